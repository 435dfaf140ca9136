"""Another seed for a list of stages, or several: which stages have a run for each, and what their files are called."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from mmgen.core.errors import UsageError
from mmgen.experiments._stages import JUDGE, RUN, SEED, Scale, Stage

__all__ = ["Runs", "with_seed", "with_seeds"]

Runs = Mapping[str, Sequence[str]]
"""The files that the runs of a stage make, by the name that the list gives the one that it makes."""


def with_seed(scale: Scale, seed: int) -> Scale:
    """The same stages with another seed, in a folder of its own; the dataset is made as it was.

    Raises:
        UsageError: No stage but that of the dataset is given a seed, or each run of the list has its own.
    """
    _check_seeded(scale, f"--seed got {seed}")

    def drawn(stage: Stage) -> Stage:
        return stage if stage.is_data or stage.seed in (None, seed) else _seeded(stage, str(seed))

    stages = tuple(drawn(stage) for stage in scale.stage)
    folder = scale.folder if stages == scale.stage else f"{scale.folder}-seed{seed}"
    return scale.model_copy(update={"stage": stages, "folder": folder, "seeds": ()})


def with_seeds(scale: Scale, seeds: Sequence[int]) -> tuple[Scale, Runs]:
    """Every stage that has a seed once for each seed, and the files of these runs.

    Data and judges are made once, with the seed that they have, and so is what says ``once``; what reads a file that
    there is of each seed is run for each, whether it has a seed or not. The run with the seed that the list itself says
    keeps the names of its files, so that one seed becomes five without being run again; those of the others are called
    ``model-seed3.safetensors``. Stages of a seed stand together, one seed after the other.

    Args:
        scale: The stages, each with its own seed.
        seeds: The seeds; none for the list as it is.

    Raises:
        UsageError: No stage is given a seed, each run of the list has its own, or what is made once reads what is not.
    """
    if not seeds:
        return scale, {stage.makes: [stage.makes] for stage in scale.stage}
    _check_seeded(scale, f"seeds got {_said(seeds)}")
    repeated = _repeated(scale.stage)
    own = {stage.seed for stage in repeated.values() if stage.seed is not None}
    usual = own.pop() if len(own) == 1 else None
    if not repeated:
        raise UsageError(f"seeds got {_said(seeds)}, but every stage of this list that has one is made once")

    def named(seed: int) -> dict[str, str]:
        return {file: file if seed == usual else _with_number(file, seed) for file in repeated}

    templates = [_template(stage) for stage in repeated.values()]
    stages = [stage for stage in scale.stage if stage.makes not in repeated]
    for seed in seeds:
        stages += [_renamed(template.numbered(seed), named(seed)) for template in templates]
    runs = {
        stage.makes: [named(seed)[stage.makes] for seed in seeds] if stage.makes in repeated else [stage.makes]
        for stage in scale.stage
    }
    made = [stage.makes for stage in stages]
    twice = next((file for file in made if made.count(file) > 1), None)
    if twice is not None:
        raise UsageError(f"seeds got {_said(seeds)}, but the list itself makes a file called {twice}; rename it there")
    return scale.model_copy(update={"stage": tuple(stages), "seeds": tuple(seeds)}), runs


def _said(seeds: Sequence[int]) -> str:
    return ",".join(map(str, seeds))


def _check_seeded(scale: Scale, got: str) -> None:
    if not any(stage.seed is not None for stage in scale.stage if not stage.is_data):
        raise UsageError(f"{got}, but no command of this list takes {SEED}; leave the option out")
    if len({stage.seed for stage in scale.stage if stage.is_data and stage.seed is not None}) > 1:
        raise UsageError(f"{got}, but this list has a seed for each of its runs; leave the option out")


def _repeated(stages: Sequence[Stage]) -> dict[str, Stage]:
    """The stages that are run for each seed, by the file that they make, in order."""
    found: dict[str, Stage] = {}
    for stage in stages:
        read = [word for word in stage.arguments if word in found]
        once = stage.once if stage.once is not None else stage.is_data or stage.arguments[0] == JUDGE
        if once and read:
            raise UsageError(
                f"the stage that makes {stage.makes} is to be run once, but it reads {read[0]}, of which each seed has "
                "one; say once = false there, or leave the seeds out"
            )
        if not once and (stage.seed is not None or read):
            found[stage.makes] = stage
    return found


def _template(stage: Stage) -> Stage:
    """A stage whose seed is the number of its run (``{run}``, as of stages with ``times``)."""
    told = stage.model_copy(update={"why": f"{stage.why} (seed {RUN})"})
    return told if stage.seed is None else _seeded(told, RUN)


def _seeded(stage: Stage, seed: str) -> Stage:
    """A stage with another word behind ``--seed``."""
    words = stage.arguments
    words[words.index(SEED) + 1] = seed
    return stage.with_arguments(words)


def _renamed(stage: Stage, names: Mapping[str, str]) -> Stage:
    """A stage with other names of files."""
    renamed = stage.with_arguments(names.get(word, word) for word in stage.arguments)
    return renamed.model_copy(update={"makes": names[stage.makes]})


def _with_number(file: str, seed: int) -> str:
    path = PurePath(file)
    return str(path.with_name(f"{path.stem}-seed{seed}{path.suffix}"))
