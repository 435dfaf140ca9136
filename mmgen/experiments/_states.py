"""What there is of a stage already, and notes of which command made a file that cannot tell.

Notes lie in ``.stages`` beside the files: a line that says which content is meant, and the command.
"""

import hashlib
from pathlib import Path
from typing import Literal

from mmgen.artifacts import Header, read_header, write_text_atomic
from mmgen.artifacts.files import make_internal_folder
from mmgen.core.errors import ArtifactError, reason_of
from mmgen.core.foreign import CannotReadError, open_regular
from mmgen.core.parsing import MalformedError, read_text
from mmgen.experiments._stages import Scale, Stage
from mmgen.results.score import read_scores

State = Literal["missing", "unfinished", "outdated", "unsure", "done"]
"""Nothing; a run that was interrupted; scores or a page of other files or of another command; an artifact of a command
in other words, which has to say itself whether it is the same; a file to be used as it is."""
_MOST_BYTES = 2**30
"""Limit of a page or a file of scores."""


def find_state(stage: Stage, folder: Path, earlier: list[str]) -> State:
    """Return whether a stage still has to run, can be continued, or is done.

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
    if not is_artifact_name(path):
        return _state_of_output(path, stage, folder, inputs)
    header = read_header(path)
    if stage.seed is not None and header.seed != stage.seed:
        raise ArtifactError(f"{path} was made with seed {header.seed}, expected seed {stage.seed}; {_advice(stage)}")
    parents = {parent.content_id for parent in header.parents}
    if other := next((one for one in inputs if read_header(one).content_id not in parents), None):
        raise ArtifactError(f"{path} was made from another {other.name} than the present one; {_advice(stage)}")
    if not stage.is_data and not _is_finished(path, header, stage):
        return "unfinished"
    return "done" if header.command == stage.command_line or matches_record(stage, folder) else "unsure"


def _is_finished(path: Path, header: Header, stage: Stage) -> bool:
    """Return True if the training that wrote a file has ended, including a classifier's measurement."""
    from mmgen.training.state import is_finished, state_path  # seconds, which a printed list need not take

    state = state_path(path)
    ended = is_finished(header) and (header.kind != "classifier" or "held_out_accuracy" in header.facts)
    if not ended and not state.exists():
        raise ArtifactError(
            f"{path} belongs to an interrupted run whose state {state.name} is missing; {_advice(stage)}"
        )
    return ended and (not state.exists() or is_finished(read_header(state)))


def _state_of_output(path: Path, stage: Stage, folder: Path, inputs: list[Path]) -> State:
    """Return the state of a stage that makes scores, a page or a picture."""
    if matches_record(stage, folder) is False:
        return "outdated"
    if path.suffix == ".jsonl":
        return "done" if _match_inputs(path, inputs, stage.seed) else "outdated"
    newest = max((parent.stat().st_mtime for parent in inputs if parent.exists()), default=0.0)
    return "done" if path.stat().st_mtime >= newest else "outdated"


def _match_inputs(path: Path, inputs: list[Path], seed: int | None) -> bool:
    """Return True if scores were measured with these inputs and this seed."""
    try:
        scores = read_scores(path)
    except ArtifactError:
        return False
    if seed is not None and any(score.seed not in (None, seed) for score in scores):
        return False
    named = [identity for score in scores for identity in score.ids.values()]
    return bool(scores) and all(read_header(parent).content_id in named for parent in inputs)


def _advice(stage: Stage) -> str:
    """Return the advice for a file that does not belong to its stage."""
    if stage.is_data:
        return f"move it away, use another --output, or give it to mmgen reproduce with --data {stage.makes}"
    return "remove it and its training state to have it made again, or use another --output"


def finished_files(scale: Scale, folder: Path) -> list[str]:
    """Return the files of all stages that are done and whose inputs are done."""
    made = [stage.makes for stage in scale.stage]
    finished: list[str] = []
    for number, stage in enumerate(scale.stage):
        try:
            state = find_state(stage, folder, made[:number])
        except ArtifactError:  # of another dataset, and belongs to a row that is not asked for
            continue
        if state == "done" and set(stage.inputs(made[:number])) & set(made) <= set(finished):
            finished.append(stage.makes)
    return finished


def is_artifact_name(path: Path) -> bool:
    """Return True if the name of a file is that of an artifact, which records its parents."""
    return path.suffix in (".h5", ".safetensors")


def record_command(stage: Stage, folder: Path) -> None:
    """Record the command and inputs by which a stage's file was made."""
    path = _record_path(stage, folder)
    for place in [*path.relative_to(folder).parents][-2::-1]:  # .stages, and folders in it
        make_internal_folder(folder / place)
    write_text_atomic(path, f"{_content_id(folder / stage.makes)}\n{stage.command_line}\n")


def matches_record(stage: Stage, folder: Path) -> bool | None:
    """Return True if a stage's file was made by its present command and inputs; None without a record."""
    try:
        content, _, command = read_text(_record_path(stage, folder)).strip().partition("\n")
    except (OSError, MalformedError):
        return None
    return command == stage.command_line and content == _content_id(folder / stage.makes)


def _record_path(stage: Stage, folder: Path) -> Path:
    return folder / ".stages" / f"{stage.makes}.txt"


def _content_id(path: Path) -> str:
    """Return a hash of a file's contents: an artifact's content id, else SHA-256."""
    if is_artifact_name(path):
        return read_header(path).content_id
    try:
        with open_regular(path, _MOST_BYTES) as file:  # pages too, which are no stand-ins here
            return hashlib.sha256(file.read()).hexdigest()
    except (OSError, ValueError, CannotReadError) as error:
        raise ArtifactError(f"cannot read {path}: {reason_of(error)}; check the path") from None
