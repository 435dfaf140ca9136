"""Datasets."""

from pathlib import Path
from typing import Any

from mmgen.artifacts import Dataset
from mmgen.commands._watching import watching
from mmgen.commands.data_plan import plan_data
from mmgen.commands.notebook._typed import Settings, command_of
from mmgen.core.errors import UsageError, clip
from mmgen.core.progress import Watch
from mmgen.settings.arguments import checked, unknown_argument
from mmgen.settings.config import validate
from mmgen.settings.kinds import Count, FilePath, Seed
from mmgen.settings.registry import registry_of
from mmgen.settings.switches import Switches, placed

__all__ = ["make_data"]

_RECIPES = "mmgen.data_recipes"  # the floor above: found by name, as members from outside are


@checked
def make_data(
    recipe: str,
    output: FilePath | None = None,
    *,
    seed: Seed = 0,
    workers: Count | str | None = None,
    overwrite: bool = False,
    progress: bool | Watch = True,
    **settings: Any,
) -> Dataset:
    """Make a dataset file from a recipe, or open the one that the same settings have made.

    Args:
        recipe: One of ``mmgen list recipe``.
        output: Where to write; RECIPE.h5 by default.
        seed: All randomness comes from this number.
        workers: Processes, all cores by default; or the address of a Dask scheduler.
        overwrite: Replace what is there.
        progress: Whether a notebook shows progress; or who watches.
        settings: Settings of the recipe; its switches are true or false.

    Returns:
        The dataset, open.

    Raises:
        UsageError: There is no such recipe, or another dataset is there.
    """
    room = registry_of(_RECIPES)
    schema: Any = room.get(recipe)
    settings = _switched(schema, settings)
    for name in settings:
        if name not in schema.model_fields:
            raise unknown_argument(make_data, name, schema.model_fields)
    chosen: Any = validate(schema, settings)
    path = Path(output) if output is not None else Path(f"{recipe}.h5")
    others = dict(settings)
    words = [others.pop(name) for name in placed(schema) if name in settings]
    command = command_of(["make-data", recipe, *words], {"--seed": seed, "-o": path}, others)
    plan = plan_data(recipe, chosen, path, seed=seed, command=command, overwrite=overwrite)
    return Dataset.open(plan.path if plan.is_there else plan.run(watching(progress), workers))


def _switched(schema: Any, settings: Settings) -> dict[str, Any]:
    """Settings with switches of the command line, such as ``grey=True``, as the fields that they stand for.

    Raises:
        UsageError: A switch is neither true nor false, or gives a field a second value.
    """
    found = dict(settings)
    for name, field in schema.model_fields.items():
        said = [name] if name in settings else []
        for switch in (
            one for switches in field.metadata if isinstance(switches, Switches) for one in switches.members
        ):
            typed = switch.name.removeprefix("--").replace("-", "_")
            if typed not in settings or typed in schema.model_fields:  # the field itself can say it
                continue
            turned = found.pop(typed)
            if not isinstance(turned, bool):
                raise UsageError(f"{typed} got {clip(repr(turned), 100)}, expected True or False")
            if turned:
                said.append(typed)
                found[name] = switch.value
        if len(said) > 1:
            raise UsageError(f"{' and '.join(said)} give one setting, {name}, {len(said)} values; give one of them")
    return found
