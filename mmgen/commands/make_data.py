"""``mmgen make-data``: a dataset recipe into a dataset file."""

import shlex
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mmgen.commands._base import Stage
from mmgen.core.errors import UsageError, clip
from mmgen.core.processes import MOST
from mmgen.settings.kinds import FilePath, MemberOf, Option, Range, Seed, path_of
from mmgen.settings.registry import registry_of

if TYPE_CHECKING:
    from mmgen.artifacts import Dataset

__all__ = ["MakeData"]


@dataclass(frozen=True)
class MakeData(Stage["Dataset"]):
    """Make a dataset file from a recipe.

    The file holds the data, every generative factor that is known, and one or several ways to split.
    Its content depends only on the recipe's settings and the seed, never on the number of workers.
    """

    first_in_lists: ClassVar[str | None] = "recipe"
    member_settings: ClassVar[str] = "settings"

    recipe: Annotated[str, MemberOf("recipe")]
    """One of mmgen list recipe."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write; RECIPE.h5 by default."""
    _: KW_ONLY
    overwrite: bool = False
    """Replace the file that is there."""
    settings: Annotated[Mapping[str, Any] | None, Option("--set", metavar="KEY=VALUE")] = None
    """Any setting of the recipe."""
    workers: Annotated[int | None, Range(1, MOST)] = None
    """Processes; all cores by default. Never more than there is work, nor more than four a core."""
    scheduler: Annotated[str | None, Option(metavar="ADDRESS")] = None
    """Dask scheduler, as tcp://host:8786, whose workers do the work instead of this machine."""
    seed: Seed = 0
    """All randomness comes from this number."""

    def run(self, command: str = "") -> "Dataset":
        """Make the dataset file and open it; a file that the same command has made is only opened.

        Returns:
            The dataset, open.

        Raises:
            UsageError: There is no such recipe, or another dataset is there.
        """
        from mmgen.artifacts import Dataset

        return Dataset.open(self.write_file(command))

    def write_file(self, command: str = "") -> Path:
        """Make the dataset file and return its path, without opening it."""
        command = command or self.command_line(output=self._output_path)
        if self.is_up_to_date(command):
            self.watch.say(
                f"{self._output_path} is there already, made by the same command; --overwrite makes it again"
            )
            return self._output_path
        recipe, where = self.recipe_settings, self._workers_or_scheduler
        preparing = recipe.setup_work()
        if preparing is not None:
            self.watch.follow(preparing)
        surveying = recipe.survey(self.seed, where)
        surveyed = {} if surveying is None else {"survey": self.watch.follow(surveying)}
        for line in surveyed["survey"].notes if surveyed else ():
            self.watch.say(line)
        making = recipe.make(self._output_path, seed=self.seed, workers=where, command=command, **surveyed)
        for line in making.notes:
            self.watch.say(line)
        made: Path = self.watch.follow(making)
        return made

    def preview(self, command: str = "") -> list[str]:
        """Return lines that describe the dataset, without making it.

        Raises:
            UsageError: Something that is there would be lost.
        """
        if self.output is not None:
            self.is_up_to_date(command)
        surveying = self.recipe_settings.survey(self.seed, self._workers_or_scheduler)
        if surveying is not None:
            notes: list[str] = self.watch.follow(surveying).notes
            return notes
        from mmgen.core.parsing import flatten

        settings = flatten(self.recipe_settings.model_dump(mode="json"))
        return [
            *(f"{name} = {value}" for name, value in settings.items()),
            *preview_recipe(self.recipe_settings, self.seed),
        ]

    def is_up_to_date(self, command: str) -> bool:
        """Return True if the existing file was made by the same command and the same versions.

        Raises:
            UsageError: Something else is there.
        """
        from mmgen.artifacts import check_nothing_lost, check_output

        check_output(self._output_path, "dataset")
        # Nobody knows whether the user has changed sources since.
        reads_files = self.recipe_settings.reads_sources or any(
            isinstance(value, Path) for _, value in self.recipe_settings
        )
        if not self.overwrite and not reads_files and self._was_made_by(command):
            return True
        check_nothing_lost(
            self._output_path, self.overwrite, "" if reads_files else "use the same command to keep it, "
        )
        return False

    def command_line(self, **replacements: Any) -> str:
        """Return the shell command that makes the same file."""
        settings = {**_apply_switches(self._recipe_class, self.settings or {})}
        places = [name for name, option in _recipe_options(self._recipe_class) if option.positional]
        words = [str(settings.pop(name)) for name in places if name in settings]
        program, command, recipe, *others = shlex.split(super().command_line(settings=settings, **replacements))
        return shlex.join([program, command, recipe, *words, *others])

    def settings_names(self) -> list[str]:
        """Return the names of the settings and switches of the dataset recipe."""
        options = _recipe_options(self._recipe_class)
        switches = [_argument_name(switch) for _, option in options for switch in option.switches]
        return list(dict.fromkeys([*self._recipe_class.model_fields, *switches]))

    @cached_property
    def recipe_settings(self) -> Any:
        """The dataset recipe, an object with the chosen settings.

        Raises:
            SettingsError: Names all wrong keys and values.
        """
        from mmgen.settings.config import validate

        settings = _apply_switches(self._recipe_class, self.settings or {})
        return validate(self._recipe_class, settings)

    @property
    def _recipe_class(self) -> Any:
        return registry_of("recipe").get(self.recipe)

    @property
    def _output_path(self) -> Path:
        return path_of(self.output or f"{self.recipe}.h5")

    @property
    def _workers_or_scheduler(self) -> int | str | None:
        """Number of worker processes, or the address of a cluster's scheduler."""
        from mmgen.artifacts.header import members_of

        if self.scheduler is None:
            return self.workers
        if self.workers is not None:
            raise UsageError(
                "--workers counts processes of this machine, --scheduler uses a cluster's; give one of them"
            )
        if any(member.file for member in members_of({"recipe": self.recipe})):
            raise UsageError(
                f"--scheduler sends work to machines without the --code file of {self.recipe}; leave it out, or make a "
                "package of the file and install it there"
            )
        return self.scheduler

    def _was_made_by(self, command: str) -> bool:
        from mmgen.artifacts import read_header
        from mmgen.artifacts.header import members_of
        from mmgen.core.version import __version__

        if not self._output_path.exists() or not self._output_path.stat().st_size:
            return False
        header = read_header(self._output_path)
        before, now = (text.replace(" --overwrite", "") for text in (header.command, command))
        same = (before, header.seed, header.program_version) == (now, self.seed, __version__)
        return same and header.members == members_of({"recipe": self.recipe})  # another version is another one


def preview_recipe(recipe: Any, seed: int) -> list[str]:
    """Return lines about the dataset that a recipe would make, without making it.

    Args:
        recipe: A recipe without a survey of its own.
        seed: Seed of the dataset.

    Returns:
        Lines for people: what would be fetched first, or how much would be made, and of what.
    """
    preparing = recipe.setup_work()
    if preparing is not None and preparing.unit == "byte":
        return [f"to do first: {preparing.description}, {len(preparing):,} bytes; nothing is known of them yet"]
    making = recipe.make(Path("unwritten.h5"), seed=seed)  # whose work is not done
    first = [f"to do first: {preparing.description}"] if preparing is not None else []
    units = f"{making.unit}es" if making.unit.endswith("ch") else f"{making.unit}s"
    return [*first, f"to do: {making.description}, {len(making):,} {units}", *making.notes]


def _recipe_options(schema: Any) -> list[tuple[str, Option]]:
    """Return (field, option) for each setting of a dataset recipe that says how it is typed."""
    fields = schema.model_fields.items()
    return [(name, mark) for name, field in fields for mark in field.metadata if isinstance(mark, Option)]


def _argument_name(switch: str) -> str:
    """Return the Python argument for a switch: "--no-text" becomes "no_text"."""
    return switch.removeprefix("--").replace("-", "_")


def _apply_switches(schema: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Replace switches, such as ``grey=True``, by the recipe's fields that they set."""
    fields = dict(settings)
    typed = {name: [name] for name in schema.model_fields if name in settings}
    switches = [(name, *each) for name, option in _recipe_options(schema) for each in option.switches.items()]
    for name, switch, (switched, _) in switches:
        argument = _argument_name(switch)
        if argument not in settings or argument in schema.model_fields:  # the field itself can say it
            continue
        value = fields.pop(argument)
        if not isinstance(value, bool):
            raise UsageError(f"{argument} got {clip(repr(value), 100)}, expected True or False")
        if value:
            typed[name] = [*typed.get(name, ()), argument]
            fields[name] = switched
    for name, several in typed.items():
        if len(several) > 1:
            raise UsageError(
                f"{' and '.join(several)} give one setting, {name}, {len(several)} values; give one of them"
            )
    return fields
