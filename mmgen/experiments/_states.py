"""What there is of a stage already, and notes of which command made a file that cannot tell.

Notes lie in ``.stages`` beside the files: a line that says which content is meant, and the command.
"""

import hashlib
from pathlib import Path
from typing import Literal

from mmgen.artifacts import Header, read_header, write_text_atomic
from mmgen.artifacts.files import own_folder
from mmgen.core.errors import ArtifactError
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.parsing import Malformed, read_bounded
from mmgen.experiments._stages import Scale, Stage
from mmgen.results.score import read_scores

__all__ = ["State", "finished_files", "has_header", "is_noted", "remember", "state_of"]

State = Literal["missing", "unfinished", "outdated", "unsure", "done"]
"""Nothing; a run that was interrupted; scores or a page of other files or of another command; an artifact of a command
in other words, which has to say itself whether it is the same; a file to be used as it is."""
_MOST_BYTES = 2**30
"""Limit of a page or a file of scores."""


def state_of(stage: Stage, folder: Path, earlier: list[str]) -> State:
    """Return whether a stage has to run, can continue, or is done.

    Args:
        stage: The stage.
        folder: Where its paths begin.
        earlier: Files that the stages before it make.

    Raises:
        ArtifactError: The file is damaged, or was made from other files or with another seed, and is too dear to be
            replaced without asking.
    """
    path = folder / stage.makes
    if not path.exists():
        return "missing"
    inputs = [folder / file for file in stage.inputs(earlier)]
    if not has_header(path):
        return _state_of_product(path, stage, folder, inputs)
    header = read_header(path)
    if stage.seed is not None and header.seed != stage.seed:
        raise ArtifactError(
            f"{path} was made with seed {header.seed} and is now to be made with seed {stage.seed}; {_way_out(stage)}"
        )
    parents = {parent.content_id for parent in header.parents}
    if other := next((one for one in inputs if read_header(one).content_id not in parents), None):
        raise ArtifactError(f"{path} was made from another {other.name} than the one that is there; {_way_out(stage)}")
    if not stage.is_data and not _has_ended(path, header, stage):
        return "unfinished"
    return "done" if header.command == stage.typed or is_noted(stage, folder) else "unsure"


def _has_ended(path: Path, header: Header, stage: Stage) -> bool:
    """Return whether the run that makes a file has ended, and a classifier was measured."""
    from mmgen.training.state import is_finished, state_path  # seconds, which a printed list need not take

    state = state_path(path)
    ended = is_finished(header) and (header.kind != "classifier" or "held_out_accuracy" in header.facts)
    if not ended and not state.exists():
        raise ArtifactError(
            f"{path} is what a run had learnt when it was interrupted, and its state {state.name} is gone; "
            f"{_way_out(stage)}"
        )
    return ended and (not state.exists() or is_finished(read_header(state)))


def _state_of_product(path: Path, stage: Stage, folder: Path, inputs: list[Path]) -> State:
    """Return the state of scores, a page or a picture, which are made again if they differ from the stage."""
    if is_noted(stage, folder) is False:
        return "outdated"
    if path.suffix == ".jsonl":
        return "done" if _are_scores_of(path, inputs, stage.seed) else "outdated"
    newest = max((parent.stat().st_mtime for parent in inputs if parent.exists()), default=0.0)
    return "done" if path.stat().st_mtime >= newest else "outdated"


def _are_scores_of(path: Path, inputs: list[Path], seed: int | None) -> bool:
    try:
        scores = read_scores(path)
    except ArtifactError:
        return False
    if seed is not None and any(score.seed not in (None, seed) for score in scores):
        return False
    named = [identity for score in scores for identity in score.ids.values()]
    return bool(scores) and all(read_header(parent).content_id in named for parent in inputs)


def _way_out(stage: Stage) -> str:
    if stage.is_data:
        return f"move it away, use another --output, or give it to mmgen reproduce with --data {stage.makes}"
    return "remove it and its training state to have it made again, or use another --output"


def finished_files(scale: Scale, folder: Path) -> list[str]:
    """Return the finished files of stages whose input files are finished too."""
    made = [stage.makes for stage in scale.stage]
    finished: list[str] = []
    for number, stage in enumerate(scale.stage):
        try:
            state = state_of(stage, folder, made[:number])
        except ArtifactError:  # of another dataset, and belongs to a row that is not asked for
            continue
        if state == "done" and set(stage.inputs(made[:number])) & set(made) <= set(finished):
            finished.append(stage.makes)
    return finished


def has_header(path: Path) -> bool:
    """Return whether a file of this name is an artifact, which tells where it comes from."""
    return path.suffix in (".h5", ".safetensors")


def remember(stage: Stage, folder: Path) -> None:
    """Record that a stage's command made its file."""
    path = _note(stage, folder)
    for place in [*path.relative_to(folder).parents][-2::-1]:  # .stages, and folders in it
        own_folder(folder / place)
    write_text_atomic(path, f"{_content_of(folder / stage.makes)}\n{stage.typed}\n")


def is_noted(stage: Stage, folder: Path) -> bool | None:
    """Return whether the record of a stage's command matches the file; None without a record."""
    try:
        content, _, command = read_bounded(_note(stage, folder)).strip().partition("\n")
    except (OSError, Malformed):
        return None
    return command == stage.typed and content == _content_of(folder / stage.makes)


def _note(stage: Stage, folder: Path) -> Path:
    return folder / ".stages" / f"{stage.makes}.txt"


def _content_of(path: Path) -> str:
    """Return the content id of an artifact, the SHA-256 of any other file."""
    if has_header(path):
        return read_header(path).content_id
    try:
        return hashlib.sha256(read_file(path, _MOST_BYTES)).hexdigest()
    except CannotReadError as error:
        raise ArtifactError(f"cannot read {path}: {error}; check the path") from None
