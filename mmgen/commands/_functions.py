"""Stages as Python functions: signature and docstring from the fields, progress in notebooks, a judge as a result."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from mmgen.classifier import Accuracy
from mmgen.commands._base import Stage
from mmgen.commands._fields import StageField, fields_of, option_names
from mmgen.core.errors import MmgenError
from mmgen.core.markup import facts_table
from mmgen.settings.arguments import check_arguments, plain_settings, unknown_argument_error
from mmgen.settings.plugins import to_kebab_case
from mmgen.settings.registry import insert_member_names

P = ParamSpec("P")
R = TypeVar("R")


def make_function(stage: Callable[P, Stage[R]]) -> Callable[P, R]:
    """Return a Python function that runs a command: its arguments are the command's fields."""
    return cast("Callable[P, R]", _build_function(cast("type[Stage[Any]]", stage)))


def _build_function(stage: type[Stage[Any]]) -> Callable[..., Any]:
    """Build the function for a command, with signature and docstring."""
    member_settings = stage.member_settings
    known = {field.name for field in fields_of(stage)} - {member_settings}

    def run(*arguments: Any, **keywords: Any) -> Any:
        keywords = {name: plain_settings(one) if name == "settings" else one for name, one in keywords.items()}
        if not member_settings:
            return stage(*arguments, **keywords).run()
        settings = plain_settings({name: keywords.pop(name) for name in [*keywords] if name not in known})
        keywords[member_settings] = settings
        instance: Any = stage(*arguments, **keywords)
        for name in settings:
            if name not in (names := instance.settings_names()):
                raise unknown_argument_error(call, name, names)
        return instance.run()

    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return run(*arguments, **keywords)
        except MmgenError as error:
            error.name_arguments(_arguments_by_option(stage))
            raise

    name = to_kebab_case(stage.__name__).replace("-", "_")
    call.__name__ = call.__qualname__ = name
    call.__module__ = "mmgen"
    call.__doc__ = _docstring(stage)
    call.__annotations__ = {field.name: field.hint for field in fields_of(stage)}
    order = [field.name for field in fields_of(stage)]
    listed = sorted(inspect.signature(stage).parameters.values(), key=lambda one: (one.kind, order.index(one.name)))
    if member_settings:
        listed = [one for one in listed if one.name != member_settings]
        listed.append(inspect.Parameter(member_settings, inspect.Parameter.VAR_KEYWORD))
    call.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]  # read by inspect
    return check_arguments(call)


def _arguments_by_option(stage: type[Stage[Any]]) -> dict[str, str]:
    """Return a function's arguments by the options of its command: {"--from": "source", "--no-complete": ...}."""
    named = {}
    for field in fields_of(stage):
        on, _, off = option_names(field)[0].partition("/")
        if bool not in field.leaf_types:
            named[on] = field.name
        else:
            named |= {on: f"{field.name}=True", off or f"--no-{on.removeprefix('--')}": f"{field.name}=False"}
    return named


def _docstring(stage: type[Stage[Any]]) -> str:
    """Return the docstring of the function for a command."""
    sections = (inspect.getdoc(stage.run) or "").split("\n\n")
    results = [one for one in sections if one.startswith(("Returns:", "Raises:"))]
    arguments = "\n".join(f"    {field.name}: {_field_documentation(field)}" for field in fields_of(stage))
    return "\n\n".join([inspect.getdoc(stage) or "", f"Args:\n{arguments}", *results])


def _field_documentation(field: StageField) -> str:
    """Return the entry of a field in the "Args:" section of a docstring."""
    text = insert_member_names(field.about)
    if not field.default_words or field.default not in (None, MISSING):
        return text
    return f"{text.removesuffix('.')}; {field.default_words} by default." if text else field.default_words


class Judge:
    """The result of ``train_classifier``: an attribute classifier's file and its accuracy on held-out images.

    Attributes:
        path: Its file.
        accuracy: Percent by attribute and "mean", with errors and counts.
    """

    def __init__(self, path: Path, accuracy: Accuracy) -> None:
        self.path, self.accuracy = path, accuracy

    def __repr__(self) -> str:
        return f"<judge {self.path}: {', '.join(f'{name} {value}' for name, value in self.accuracy.numbers.items())}>"

    def _repr_html_(self) -> str:
        return facts_table(f"judge {self.path}", self.accuracy.numbers.items())
