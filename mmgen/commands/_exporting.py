"""Export of a folder with everything that drawing from a model needs.

It holds the model, what was fitted to it, the judge, a card (README.md as the Hugging Face hub reads it), pictures, the
commands that made it and checksums. Nothing in it is code, and nothing needs the dataset.
"""

import errno
import hashlib
import json
import os
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.artifacts import Header, atomic_path, check_nothing_lost, check_place
from mmgen.artifacts.ancestors import Node, lineage
from mmgen.artifacts.files import SUMS, cannot_write, check_writable, exported_names
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.parsing import printable
from mmgen.core.progress import Watch
from mmgen.core.version import __version__
from mmgen.descriptions import ANYTHING, quoted
from mmgen.evaluation import default_scores_file, write_scores
from mmgen.figures.drawing.page import Grid
from mmgen.figures.drawing.samples import sample_grid
from mmgen.generation import TrainedModel
from mmgen.generation.classifiers import classifier_sees_samples, find_classifier
from mmgen.generation.decode import drawable_pictures
from mmgen.generation.draws import convert_draws_to_pictures
from mmgen.generation.sampling import sample_and_classify
from mmgen.results.score import Score, classifier_names, read_scores
from mmgen.results.score_table import tabulate_scores

__all__ = ["check_output", "fill", "place", "temporary_folder"]

_CARD, _COMMANDS, _PICTURE, _SCORES = "README.md", "commands.sh", "samples.png", "scores.jsonl"
_MODEL, _AGGREGATE, _JUDGE, _ONNX = "model.safetensors", "aggregate.safetensors", "judge.safetensors", "decoder.onnx"
_KNOWN = (_CARD, SUMS, _COMMANDS, _PICTURE, _SCORES, _MODEL, _AGGREGATE, _JUDGE, _ONNX)
_PROGRAM = "mmgen"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # what zip files begin with: the same files are the same archive


@dataclass(frozen=True)
class _Exported:
    """The exported files and facts that the model card mentions.

    Attributes:
        loaded: The model, or the aggregate with its model.
        files: Names in the folder, with what each is.
        commands: How it was made, in order, as lines of a shell script.
        scores: What was measured.
        given: The description that an example draws from.
    """

    loaded: TrainedModel
    files: Mapping[str, str]
    commands: Sequence[str]
    scores: Sequence[Score]
    given: str


def check_output(out: Path, overwrite: bool) -> None:
    """Refuse a place where an export would lose something, before any work.

    Raises:
        UsageError: Something is there that would be lost.
        ArtifactError: The file system refuses.
    """
    if _is_archive(out):
        check_place(out)
        check_nothing_lost(out, overwrite)
    elif out.exists() and not out.is_dir():
        raise UsageError(f"{out} is there and is no folder; choose another name, or one ending in .zip")
    elif out.exists() and any(out.iterdir()) and not overwrite:
        raise UsageError(
            f"{out} is there already, and is not empty; choose another folder, or --overwrite to replace what an "
            "export has written there"
        )
    if not _is_archive(out) and out.is_dir():
        for name in _KNOWN:
            check_place(out / name)  # before the pictures are drawn, not after
        out = out / SUMS
    check_writable(out)


def _is_archive(out: Path) -> bool:
    return out.suffix.lower() == ".zip"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a folder for this block, where no room is no room in that folder, which is not where the export goes."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        try:
            yield folder
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise ArtifactError(
                f"cannot make the export in {folder.parent}, where it is put together first: "
                f"{os.strerror(error.errno).lower()}; free some space there, or set TMPDIR to a folder with room"
            ) from None


def place(folder: Path, names: Sequence[str], out: Path) -> None:
    """Write what is in a folder to ``out``, a folder or an archive; of an earlier export there nothing else stays.

    Raises:
        ArtifactError: The file system refuses.
    """
    try:
        if _is_archive(out):
            _pack(folder, names, out)
            return
        earlier = [name for name in exported_names(out) if name in _KNOWN and name not in names]
        _copy(folder, names, out)
        for name in earlier:
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(out, error) from None


def _copy(folder: Path, names: Sequence[str], out: Path) -> None:
    """Copy files to the folder ``out``, where they take their places when all are written, the checksums last."""
    new_folder = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    new = [out / name for name in names if not os.path.lexists(out / name)]
    try:
        with ExitStack() as stack:  # which ends with what began it
            for name in sorted(names, key=lambda name: name != SUMS):
                shutil.copyfile(folder / name, stack.enter_context(atomic_path(out / name)))
            (out / SUMS).unlink(missing_ok=True)
    except BaseException:
        for path in new:
            path.unlink(missing_ok=True)
        if new_folder:
            out.rmdir()
        raise


def fill(
    folder: Path,
    loaded: TrainedModel,
    watch: Watch,
    *,
    judge: Path | None = None,
    scores: Path | None = None,
    onnx: bool = False,
    seed: int = 0,
) -> list[str]:
    """Make everything in a folder; return its names, the card first.

    Args:
        folder: An empty folder.
        loaded: The model or aggregate.
        watch: Observer, who shows what is left out.
        judge: The judge; the one near the files by default.
        scores: Scores of ``mmgen eval``; those beside the file by default.
        onnx: Whether to add the decoder for ONNX.
        seed: Seed of the pictures.
    """
    files = {_MODEL: "the model"}
    shutil.copyfile(loaded.model_path, folder / _MODEL)
    if loaded.fitted is not None:
        shutil.copyfile(loaded.path, folder / _AGGREGATE)
        files[_AGGREGATE] = loaded.fitted.title
    judge = judge or (find_classifier(loaded.model_path, [loaded.path]) if loaded.attributes is not None else None)
    if judge is not None:
        shutil.copyfile(judge, folder / _JUDGE)
        files[_JUDGE] = "a classifier that reads the words off pictures, with its own accuracy"
    elif loaded.attributes is not None:
        watch.say("no judge found, so none is exported: make one with mmgen train-classifier")
    kept = scores or (found if (found := default_scores_file(loaded.path)).exists() else None)
    every = read_scores(kept) if kept else []
    measured = [score for score in every if _is_of(score, loaded)]
    if len(measured) < len(every):
        watch.say(f"{len(every) - len(measured)} scores of {kept} are of other files, and are left out")
    if kept:
        write_scores(folder / _SCORES, measured)
        files[_SCORES] = "what was measured, a JSON line each"
    else:
        watch.say(f"no scores found, so the card has none: make them with mmgen eval {loaded.path}")
    given = _descriptions(loaded)
    if drawable_pictures(loaded):
        _pictures(loaded, given, judge, seed).save(folder / _PICTURE)
        files[_PICTURE] = "pictures drawn from words"
    if onnx:
        from mmgen.commands._onnx_decoder import export_decoder

        error = export_decoder(loaded, folder / _ONNX)
        files[_ONNX] = f"p(picture given z) for ONNX: z to means; within {error:.1g} of PyTorch's here"
    commands = _commands(lineage(loaded.path))
    if any(os.path.isabs(word) for command in commands for word in command.split()):
        watch.say(
            f"{_COMMANDS} and {_CARD} name folders of this machine, as the commands were typed; look before sharing"
        )
    text = "#!/bin/sh\n# How these files were made.\nset -eu\n" + "".join(f"{command}\n" for command in commands)
    (folder / _COMMANDS).write_text(text, encoding="utf-8")
    files[_COMMANDS] = "the commands that make it again, from data on"
    about = _Exported(loaded, files, commands, measured, given[0])
    (folder / _CARD).write_text(_card(about), encoding="utf-8")
    names = [_CARD, *files]
    sums = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in sorted(names)]
    (folder / SUMS).write_text("".join(sums), encoding="ascii")
    return [*names, SUMS]


def _is_of(score: Score, loaded: TrainedModel) -> bool:
    """Return True if a score belongs to these files: to the model, or to a posterior fitted to it."""
    fitted = loaded.header.content_id if loaded.fitted is not None else None
    ours: dict[str, set[str | None]] = {"model": {loaded.model_header.content_id}, "aggregate": {fitted, None}}
    return all(score.ids.get(role) in ids for role, ids in ours.items())


def _pack(folder: Path, names: Sequence[str], out: Path) -> None:
    with atomic_path(out) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(f"{out.stem}/{name}", _EPOCH), (folder / name).read_bytes())


def _descriptions(loaded: TrainedModel) -> list[str]:
    """Return descriptions for the pictures: four values of the first attribute, or no words at all."""
    if (
        loaded.attributes is None
        or loaded.description_kind != "attributes"
        or not loaded.reads(loaded.posteriors.default)
    ):
        return [""]
    name, words = loaded.attributes.names[0], loaded.attributes.values[0]
    return [f"{name}={quoted(word)}" for word in words[:4]]


def _pictures(loaded: TrainedModel, given: Sequence[str], judge: Path | None, seed: int) -> Grid:
    drawn, _, judging = sample_and_classify(loaded, given, 8, Watch(), classifier_path=judge, seed=seed)
    accuracy = judging.accuracy if judging else None
    return sample_grid(
        convert_draws_to_pictures(loaded, drawn), loaded.attributes, text=loaded.text, accuracy=accuracy,
        judged_samples=classifier_sees_samples(loaded),
    )  # fmt: skip


def _commands(node: Node) -> list[str]:
    """Return the commands of a lineage as lines of a shell script, parents first, each once."""
    found: list[str] = []
    for parent in node.parents:
        found += _commands(parent)
    return list(dict.fromkeys([*found, *([_line(node.command)] if node.command else [])]))


def _line(command: str) -> str:
    """Return the command that a file records, as one line of a shell script; a comment if it is none of mmgen."""
    # Whoever wrote the file wrote this text: each word is quoted where a shell needs it, so that nothing in it ends the
    # command or begins another.
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that is not closed
        words = []
    if words[:1] == [_PROGRAM] and all(word.isprintable() for word in words):
        return shlex.join(words)
    return f"# left out, for it is no command of {_PROGRAM}: {printable(' '.join(command.split()))}"


def _drawing(given: str) -> str:
    """Return the command that draws from a description, in the folder."""
    return shlex.join([_PROGRAM, "sample", ".", *(["--given", given] if given else []), "-o", "pictures.png"])


def _card(about: _Exported) -> str:
    """Return README.md: the hub's front matter, what it is, how good, how to use it, how it was made."""
    loaded = about.loaded
    header, objective = loaded.model_header, str(loaded.settings.objective["name"])
    parts = [each.in_words() for each in loaded.settings.modalities.values()]
    name = loaded.path.stem
    lines = [
        "---",
        *_front_matter(about, name, objective),
        "---",
        "",
        f"# {name}",
        "",
        f"A generative model of {'; '.join(parts)}, trained with {objective}; z has {loaded.model.latent_size} "
        f"dimensions. Made with [mmgen](#use) {header.program_version}, exported with {__version__}.",
        "",
    ]
    if _PICTURE in about.files:
        what = ", ".join(_descriptions(loaded)) if about.given else ANYTHING
        lines += [f"![Pictures drawn from {what}]({_PICTURE})", ""]
    lines += [
        "| file | what it is |",
        "|---|---|",
        *(f"| `{file}` | {what} |" for file, what in about.files.items()),
        "",
    ]
    lines += _measured(about.scores)
    lines += [
        "## Use",
        "",
        "With mmgen installed, in this folder:",
        "",
        "```sh",
        _drawing(about.given),
        "```",
        "",
        "```python",
        "import mmgen",
        "",
        'model = mmgen.load(".")',
        f"images = model.sample({json.dumps(about.given)}, n=16)",
        "```",
        "",
        "`sha256sum -c SHA256SUMS` checks the files. What needs the dataset (`mmgen eval`, reading its rows) says so.",
        "",
        *_needs(header),
        "## How it was made",
        "",
        "```sh",
        *about.commands,
        "```",
        "",
    ]
    return "\n".join(lines)


def _needs(header: Header) -> list[str]:
    """Return a sentence on other packages to install, whose members the files name."""
    named = [str(member) for member in header.members]
    return [f"It needs members from outside mmgen: {', '.join(named)}.", ""] if named else []


def _front_matter(about: _Exported, name: str, objective: str) -> list[str]:
    """YAML of the hub, whose values are written as JSON, which YAML holds."""
    tags = ["mmgen", "variational-autoencoder", "multimodal", objective]
    tags += ["aggregate-posterior"] if about.loaded.fitted is not None else []
    recipe = next(iter(_recipes(about.commands)), "own data")
    results = [
        {
            "task": {"type": "text-to-image", "name": "Pictures from words"},
            "dataset": {"type": recipe, "name": recipe},
            "metrics": [
                _metric(score, judge) for score, judge in zip(about.scores, _judges(about.scores), strict=True)
            ],
        }
    ]
    lines = [
        "# license: choose one; whoever uploads this has to.",
        "library_name: mmgen",
        f"tags: {json.dumps(tags)}",
        f"datasets_recipe: {json.dumps(recipe)}",
    ]
    if about.scores:
        lines.append(f"model-index: {json.dumps([{'name': name, 'results': results}], ensure_ascii=False)}")
    return lines


def _recipes(commands: Sequence[str]) -> list[str]:
    return [words[2] for command in commands if (words := command.split())[:2] == [_PROGRAM, "make-data"] and words[2:]]


def _metric(score: Score, judge: str) -> dict[str, Any]:
    given = "" if score.given is None else f", {score.given} words given"
    error = {} if score.stderr is None else {"args": {"standard_error": score.stderr, "n": score.n}}
    told = f"{score.quantity or score.metric}{judge} ({score.unit}), {score.source}{given}"
    return {"type": score.metric, "name": told, "value": score.value, **error}


def _judges(scores: Sequence[Score]) -> list[str]:
    """Return names that tell scores of several classifiers apart, " (judge small)" each; "" where there is one."""
    names = classifier_names(scores)
    return [f" (judge {name})" if name and len({*names} - {""}) > 1 else "" for name in names]


def _measured(scores: Sequence[Score]) -> list[str]:
    return ["## Measured", "", *tabulate_scores(scores).markdown().splitlines(), ""] if scores else []
