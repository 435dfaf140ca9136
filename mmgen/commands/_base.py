"""A stage is declared once: one class, from which its command, its Python function, help and pages follow.

The form, in ``mmgen/commands/draw_dice.py``, which is then ``mmgen draw-dice`` and, named in ``mmgen/__init__.py``,
``mmgen.draw_dice(...)``::

    @dataclass(frozen=True)
    class DrawDice(Stage["Throws"]):
        \"\"\"Throw dice of a model.\"\"\"

        model: Annotated[File, InputFile("model")]
        \"\"\"Model file.\"\"\"
        output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
        \"\"\"Where to write; named after the input by default.\"\"\"
        _: KW_ONLY
        number: Annotated[Count, Option("-n")] = 16
        \"\"\"Dice of each throw.\"\"\"
        judge: Annotated[File | None, InputFile("classifier")] = None
        \"\"\"Classifier; found by itself if near.\"\"\"
        objective: Annotated[str | None, MemberOf("mmgen.objectives")] = None
        \"\"\"What is maximised: {mmgen.objectives}.\"\"\"

        def run(self, command: str = "") -> "Throws":
            from mmgen.generation import throw  # what is heavy is imported here: help must not load torch

            ...

A field is an option of its name, one without a default is given by its place. Types, ranges and docstrings hold for the
command line and for Python alike. A field without a docstring whose name is one of
:attr:`Stage.described_by` takes docstring and range from there: ``steps`` from ``TrainingSettings``. ``run`` makes the
file and returns what Python users go on with; it never prints, talks through :attr:`Stage.watch`, and records
``command``, or :meth:`Stage.command_line` where nothing was typed. What a command prints is a function
``draw_dice_command(stage, ...)`` in ``cli/draw_dice.py``, whose further parameters are options about printing alone;
without one the path of the result is printed.
"""

import importlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from mmgen.commands._fields import fields_of, option_names
from mmgen.core.errors import UsageError, format_unknown_name
from mmgen.core.parsing import nested_items
from mmgen.core.progress import Watch, choose_watch
from mmgen.core.worlds import added_files
from mmgen.settings.declared import read_class_fields
from mmgen.settings.kinds import Option, Seed, path_of

_FILES = {"eval": "evaluate"}
"""Files that are not called as their command is."""


def stage_names() -> list[str]:
    """Return the names of all commands, sorted, without importing them."""
    return sorted(command_name(path.stem) for path in _source_files().values())


def _source_files() -> dict[str, Path]:
    """Return the files of all commands, by the names of their modules."""
    own = {f"{__package__}.{path.stem}": path for path in Path(__file__).parent.glob("[!_]*.py")}
    return {**own, **added_files("mmgen.commands")}


def _module_of(command: str) -> str:
    stem = _FILES.get(command, command.replace("-", "_"))
    found = next((module for module, path in _source_files().items() if path.stem == stem), None)
    if found is None:
        raise UsageError(format_unknown_name("command", command, stage_names()))
    return found


def command_name(file: str) -> str:
    """Return the name of the command of a file, by its stem."""
    return {stem: command for command, stem in _FILES.items()}.get(file, file.replace("_", "-"))


def source_file_of(command: str) -> Path:
    """Return the Python file in which a command is defined."""
    return _source_files()[_module_of(command)]


def stage_class(command: str) -> Any:
    """Import the class of a command and return it.

    Raises:
        UsageError: There is no such command, perhaps because this installation lacks its world.
    """
    module = importlib.import_module(_module_of(command))
    (name,) = module.__all__
    return getattr(module, name)


R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Stage(Generic[R]):
    """Base of all commands as Python objects: the settings are fields, and ``run`` does the work."""

    described_by: ClassVar[tuple[str, ...]] = ()
    """Settings classes that describe fields of the same names, each as ``room:Class``."""
    shows_described_defaults: ClassVar[bool] = False
    """Whether help shows the default of ``described_by`` where a field is None."""
    member_settings: ClassVar[str] = ""
    """Field with the settings of the member that the first field names, such as a recipe, each an option of its own;
    such a stage has ``settings_names``, which returns their names."""
    not_recorded: ClassVar[frozenset[str]] = frozenset({"progress", "resume", "overwrite"})
    """Fields that do not change the result, and are left out of the recorded command."""

    first_options: ClassVar[tuple[str, ...]] = ()
    """Fields whose options help shows first, where others would bury them."""
    first_in_lists: ClassVar[str | None] = None
    """What lists of experiments call the first argument, "" where all are ``files``; None if no list may have the
    command as a stage."""

    progress: bool | Watch = True
    """Whether a notebook shows progress; or who watches."""

    @cached_property
    def watch(self) -> Watch:
        """Observer to which the command sends messages and progress."""
        return choose_watch(self.progress)

    def run(self, command: str = "") -> R:
        """Run the command and return its result.

        Args:
            command: The command to record; :meth:`command_line` where it is empty.
        """
        raise NotImplementedError

    def command_line(self, **replacements: Any) -> str:
        """Return the shell command that has the same settings.

        Args:
            replacements: Values in place of the fields', such as the output that was chosen.
        """
        name = command_name(type(self).__module__.rpartition(".")[2])
        return shlex.join(["mmgen", name, *_command_words(replace(self, **replacements))])


def _command_words(stage: Stage[Any]) -> Iterator[str]:
    """Yield the arguments and options of the command line that has the settings of ``stage``."""
    for field in sorted(fields_of(type(stage)), key=lambda field: not field.is_positional):
        value = getattr(stage, field.name)
        if field.name in stage.not_recorded or value is None or (not field.is_positional and value == field.default):
            continue
        if field.is_assignments:
            for name, one in nested_items(value):
                if one is not None:
                    yield from ("--set", f"{name}={json.dumps(str(one) if isinstance(one, Path) else one)}")
        elif isinstance(value, bool):
            on, _, off = option_names(field)[0].partition("/")
            yield on if value else off or f"--no-{on.removeprefix('--')}"
        else:
            several = field.takes_several and isinstance(value, Sequence) and not isinstance(value, str)
            texts = [_format_value(one) for one in (value if several else [value])]
            if field.option.commas:
                texts = [",".join(texts) or field.option.nothing]
            for text in texts:
                yield from ([text] if field.is_positional else [option_names(field)[0], text])


def _format_value(value: Any) -> str:
    return str(path_of(value)) if hasattr(value, "path") else str(value)


@dataclass(frozen=True, kw_only=True)
class Completing:
    """Base of the commands that draw from descriptions of which words may be left open."""

    complete: Annotated[bool, Option("--complete/--no-complete")] = True
    """Draw the words that a description leaves open from training descriptions that agree with it, then z given all
    words; or let the posterior read descriptions with words left open."""


@dataclass(frozen=True, kw_only=True)
class Drawing(Stage[R]):
    """Base of the commands that draw from a model and write a page or a picture."""

    overwrite: bool = False
    """Replace the file that is there, even one that mmgen did not make."""
    guidance: Annotated[float | str, Option(metavar="W")] = "0"
    """Tilt the posterior by p(words | z)^W, the model's own reading of z. The higher W, such as 3, the closer pictures
    follow the description. 3:effective=100:candidates=65536 chooses from more candidates. cfg:0.5 is classifier-free
    guidance of a fitted rectified flow, without p(words | z). gradient:1 adds the gradient of log p(words | z) to the
    flow's path."""
    device: Annotated[str, Option(metavar="NAME")] = "auto"
    """Where to compute: auto, cpu, cuda, cuda:1."""
    seed: Seed = 0
    """All randomness comes from this number."""


def nest_settings(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return settings of a stage with dotted keys expanded: {"a.b": 1} becomes {"a": {"b": 1}}.

    Raises:
        UsageError: They set the seed, which is an option: runs of several seeds would all have this one.
    """
    from mmgen.settings.config import nest_dotted_names

    nested = nest_dotted_names(settings or {})
    training = nested.get("training")
    if isinstance(training, Mapping) and "seed" in training:
        raise UsageError(
            f"--set training.seed got {training['seed']!r}, expected the option --seed or --seeds for it; give one of "
            "these"
        )
    return nested


def check_not_both(options: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Refuse a value in nested ``settings`` that an option gives otherwise."""
    given = dict(nested_items(settings))
    for name, value in nested_items(options):
        if name in given and given[name] != value and not isinstance(value, Mapping):
            option = name.removesuffix(".name").rpartition(".")[2].replace("_", "-")  # --objective is objective.name
            raise UsageError(
                f"--{option} got {value} and --set {name} got {given[name]}, expected one of them; leave one out"
            )


@dataclass(frozen=True, kw_only=True)
class Training(Stage[R]):
    """Base of the commands that train; ``TrainingSettings`` documents the fields of the same names."""

    described_by: ClassVar[tuple[str, ...]] = ("mmgen.training.settings:TrainingSettings",)

    steps: int | None = None
    batch: int | None = None
    learning_rate: float | None = None
    device: Annotated[str | None, Option(metavar="NAME")] = None
    precision: str | None = None
    seed: Seed | None = None
    log_to: Annotated[Sequence[str] | None, Option(metavar="NAME")] = None
    settings: Annotated[Mapping[str, Any] | None, Option("--set", metavar="ROOM.KEY=VALUE")] = None
    """Any other settings, over everything else: training.gradient_clip=5."""
    resume: bool = False
    """Insist on continuing a saved run (the same command again continues one if found)."""
    overwrite: bool = False
    """Begin anew even if a run was saved."""

    @cached_property
    def plan(self) -> Any:
        """Complete settings and ``output``, the file that is written.

        Raises:
            SettingsError: Names all wrong keys and values.
        """
        raise NotImplementedError

    @property
    def output_path(self) -> Path:
        """The file that is written, by default named after the inputs."""
        return path_of(self.plan.output)

    def training_settings(self) -> dict[str, Any]:
        """Return the values of those ``TrainingSettings`` that the user has set."""
        known = read_class_fields(Training.described_by[0])
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name in known}
        return {name: value for name, value in values.items() if value is not None and value is not False}

    def nested_settings(self) -> dict[str, Any]:
        """Return the field ``settings`` as nested tables, see :func:`nest_settings`.

        Raises:
            UsageError: They set what an option sets otherwise.
        """
        nested = nest_settings(self.settings)
        check_not_both({"training": self.training_settings()}, nested)
        return nested

    def resume_mode(self) -> str:
        """Return what to do with the saved state of an earlier run: "require" it, "never" use it, or "auto".

        Raises:
            UsageError: Both ``resume`` and ``overwrite`` are given.
        """
        if self.resume and self.overwrite:
            raise UsageError(
                "--resume and --overwrite got both, expected one of them: continue the saved run or begin anew"
            )
        return "require" if self.resume else "never" if self.overwrite else "auto"
