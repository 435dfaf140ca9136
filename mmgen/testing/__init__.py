"""Checks of members, built in or from plug-ins, with or without pytest.

A package of members needs one test::

    from mmgen import testing

    @pytest.mark.parametrize("member", testing.members_of("my-distribution"), ids=str)
    def test_contract(member):
        testing.check(member)

The checks are those that mmgen's own members pass. They raise AssertionError with a sentence where a promise is broken;
pytest says more after ``pytest.register_assert_rewrite("mmgen.testing")``. ``mmgen check FILE.py`` checks the members
of a file.
"""

import importlib
import inspect
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.core.errors import MmgenError, UsageError
from mmgen.settings.plugins import format_exception_with_line
from mmgen.settings.registry import add_code, list_registries

__all__ = ["Outcome", "Subject", "check", "check_file", "members_of"]

_CHECKS = {
    "modality": "data.check_modality",
    "model": "models.check_model",
    "objective": "objectives.check_objective",
    "network": "models.check_network",
    "judge network": "models.check_classifier_network",
    "likelihood": "densities.check_likelihood",
    "inference": "models.check_inference",
    "aggregate family": "densities.check_family",
    "recipe": "data.check_recipe",
    "metric": "metrics.check_metric",
}
"""The function of this package that checks a member, by kind; members of other kinds are only imported."""

_NEEDS_FOLDER = ("recipe", "metric")


@dataclass(frozen=True)
class Subject:
    """Member of a room to be checked: kind and name, such as "objective elbo".

    Attributes:
        room: Kind of member: "objective".
        name: Its name.
    """

    room: str
    name: str

    def __str__(self) -> str:
        return f"{self.room} {self.name}"


@dataclass(frozen=True)
class Outcome:
    """Result of the checks of one member.

    Attributes:
        member: The member.
        failure: Sentence on the first check that fails; "" if all pass.
        has_checks: Whether there are checks for members of its kind; the others are only imported.
    """

    member: Subject
    failure: str
    has_checks: bool


def check_file(path: Path, **settings: Any) -> Iterator[Outcome]:
    """Run a Python file and check all members that it defines, one after the other.

    Args:
        path: The file.
        **settings: Settings of the file's dataset recipes, as in :func:`check`.

    Raises:
        UsageError: The file cannot be run, defines no member, or no dataset recipe that could have settings.
    """
    add_code(path)
    members = members_of(path.name)
    if settings and all(member.room != "recipe" for member in members):
        raise UsageError(f"{', '.join(settings)} got a value, but {path} defines no dataset recipe; leave it out")
    for member in members:
        failure = ""
        try:
            check(member, **(settings if member.room == "recipe" else {}))
        except (AssertionError, MmgenError) as error:
            failure = str(error)
        except Exception as error:  # of the file's code, which may raise anything
            failure = f"it raises {format_exception_with_line(error, path.resolve())}"
        failure = " ".join(failure.split()).removeprefix(f"{member} fails a check: ")
        yield Outcome(member, failure, member.room in _CHECKS)


def members_of(distribution: str) -> list[Subject]:
    """Return the members that an installed distribution brings, or a file that :func:`mmgen.settings.registry.add_code`
    added.

    Args:
        distribution: Name of the distribution, or of the file without its folder.

    Raises:
        AssertionError: There are none.
    """
    found = [
        Subject(room.noun, member.name)
        for room in list_registries()
        for member in room.members()
        if distribution in (member.origin.distribution, member.origin.file)
    ]
    assert found, f"{distribution} brings no members: is it installed, and does it have entry points in our groups?"
    return found


def check(member: Subject, **settings: Any) -> None:
    """Run all checks that a member of this kind must pass.

    Args:
        member: The member to check.
        **settings: Settings of a dataset recipe that make it small: a number of images, a folder with small sources. By
            default recipes with a setting ``number`` make 24 examples.

    Raises:
        AssertionError: A check fails.
        MmgenError: The member cannot be found, imported or built.
    """
    room = next(room for room in list_registries() if room.noun == member.room)
    room.get(member.name)
    assert room.describe(member.name), f"{member} has no docstring, whose first line mmgen list prints"
    assert not settings or member.room == "recipe", f"{member} takes no settings to be checked"
    if member.room not in _CHECKS:
        return
    module, function = _CHECKS[member.room].split(".")
    checking: Callable[..., None] = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    try:
        if member.room in _NEEDS_FOLDER:
            with tempfile.TemporaryDirectory(prefix="mmgen-check-") as folder:
                checking(member.name, Path(folder), **settings)
        else:
            checking(member.name)
    except AssertionError as error:
        raise AssertionError(_describe_failure(member, error)) from error


def _describe_failure(member: Subject, error: AssertionError) -> str:
    """Return the message of a failed check: what the check asserts, and the values."""
    every = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    frames = [frame for frame in every if f"{__name__}." in frame.f_globals["__name__"]]
    found = str(error).strip()
    if not frames:
        return f"{member} fails a check: {found}"
    last = traceback.extract_tb(error.__traceback__)
    here = [summary.line or "" for summary in last if summary.filename == frames[-1].f_code.co_filename]
    fault = found or here[-1].removeprefix("assert ") + " does not hold"
    promise = inspect.getdoc(frames[-1].f_globals.get(frames[-1].f_code.co_name)) or ""
    checked = " ".join(promise.split("\n\n")[0].split()).removeprefix("Check ").removesuffix(".")
    return f"{member} fails a check: {fault}" + (f" (checked: {checked})" if checked else "")
