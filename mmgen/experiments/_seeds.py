"""Another seed for the stages of an experiment, or several: which stages run for each, and names of their files."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from mmgen.core.errors import UsageError
from mmgen.experiments._stages import Scale, Stage

Runs = Mapping[str, Sequence[str]]
"""The files that the runs of a stage make, by the name that the experiment gives the one that it makes."""


def set_seed(scale: Scale, seed: int) -> Scale:
    """Return the stages with another seed and a folder of its own; the dataset keeps its seed.

    Raises:
        UsageError: No stage but that of the dataset has a seed, or each row of the experiment has its own.
    """
    _check_seeded(scale, f"--seed got {seed}")
    stages = tuple(stage if stage.is_data else stage.replace_seed(seed) for stage in scale.stage)
    folder = scale.folder if stages == scale.stage else f"{scale.folder}-seed{seed}"
    return scale.model_copy(update={"stage": stages, "folder": folder, "seeds": ()})


def repeat_over_seeds(scale: Scale, seeds: Sequence[int]) -> tuple[Scale, Runs]:
    """Repeat every stage that has a seed for each of ``seeds``; return the stages, and each seed's files.

    Datasets and classifiers are made once, with the seed that they have, and so are stages that say ``once``. A stage
    that reads a file of a seed is run for each, whether it has a seed or not. The run with the seed that the experiment
    itself says keeps the names of its files, so that one seed becomes five without being run again; the others make
    ``model-seed3.safetensors``. Stages of a seed stand together, one seed after the other.

    Args:
        scale: The stages, each with its own seed.
        seeds: The seeds; none for the stages as they are.

    Raises:
        UsageError: No stage has a seed, each row has its own, or a stage that runs once reads one that does not.
    """
    if not seeds:
        return scale, {stage.makes: [stage.makes] for stage in scale.stage}
    option = f"seeds got {','.join(map(str, seeds))}"
    _check_seeded(scale, option)
    repeated = _stages_of_each_seed(scale.stage)
    if not repeated:
        raise UsageError(f"{option}, but all its stages with a seed have once = true; leave the seeds out")
    own = {stage.seed for stage in repeated.values() if stage.seed is not None}
    usual = own.pop() if len(own) == 1 else None
    names = {seed: {file: file if seed == usual else seed_file_name(file, seed) for file in repeated} for seed in seeds}
    stages = [stage for stage in scale.stage if stage.makes not in repeated]
    for seed in seeds:
        for stage in repeated.values():
            stages.append(stage.replace_seed(seed).rename_files(names[seed], why=f"{stage.why} (seed {seed})"))
    made = [stage.makes for stage in stages]
    if twice := next((file for file in made if made.count(file) > 1), None):
        raise UsageError(f"{option}, which would make two stages write the file {twice}; rename one in the experiment")
    runs = {
        file: [names[seed][file] for seed in seeds] if file in repeated else [file]
        for file in (stage.makes for stage in scale.stage)
    }
    return scale.model_copy(update={"stage": tuple(stages), "seeds": tuple(seeds)}), runs


def _check_seeded(scale: Scale, option: str) -> None:
    """Raise an error if no stage has a seed that ``option`` could set."""
    if not any(stage.seed is not None for stage in scale.stage if not stage.is_data):
        raise UsageError(
            f"{option}, but no stage of this experiment has a seed; give the stages one, or leave the seeds out"
        )
    if len({stage.seed for stage in scale.stage if stage.is_data and stage.seed is not None}) > 1:
        raise UsageError(f"{option}, but this experiment sets the seed of each run itself; leave the option out")


def _stages_of_each_seed(stages: Sequence[Stage]) -> dict[str, Stage]:
    """Return the stages that run once for each seed, by the name of their file."""
    repeated: dict[str, Stage] = {}
    for stage in stages:
        inputs = stage.inputs(list(repeated))
        once = stage.is_shared if stage.once is None else stage.once
        of_seeds = [file for file in inputs if file in repeated]
        if once and of_seeds:
            raise UsageError(
                f"the stage that makes {stage.makes} runs once, but it reads {of_seeds[0]}, one of each seed; "
                "set once = false there, or leave the seeds out"
            )
        if not once and (stage.seed is not None or of_seeds):
            repeated[stage.makes] = stage
    return repeated


def seed_file_name(file: str, seed: int) -> str:
    """Return the name of a stage's file for a seed."""
    path = PurePath(file)
    return str(path.with_name(f"{path.stem}-seed{seed}{path.suffix}"))
