"""Export of a folder with everything that drawing from a model needs.

It holds the model, what was fitted to it, the judge, a card (README.md as the Hugging Face hub reads it), pictures, the
commands that made it and checksums. Nothing in it is code but the script beside ONNX files, and nothing needs the
dataset.
"""

import hashlib
import json
import os
import shlex
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from mmgen.artifacts import (
    Header,
    atomic_path,
    check_nothing_lost,
    check_replaceable,
    check_unchanged,
    read_header,
)
from mmgen.artifacts.files import (
    SUMS,
    atomic_folder,
    check_writable,
    list_exported_files,
    list_visible_files,
    make_write_error,
    note_output,
    was_written_meanwhile,
)
from mmgen.artifacts.header import names_code, quoted_command
from mmgen.artifacts.lineage import Node, read_lineage
from mmgen.core.errors import MmgenError, UsageError
from mmgen.core.parsing import LOG_ENDING, printable
from mmgen.core.progress import Watch
from mmgen.core.version import __version__
from mmgen.core.worlds import require_added
from mmgen.descriptions import ANYTHING, quote_value
from mmgen.evaluation import write_scores
from mmgen.figures.drawing.page import Grid
from mmgen.figures.drawing.samples import sample_grid
from mmgen.generation import WORDS, TrainedModel, can_complete, write_words
from mmgen.generation.classifiers import classifier_reads_samples, find_classifier
from mmgen.generation.decode import drawable_pictures
from mmgen.generation.draws import convert_draws_to_pictures, last_file, sample_and_classify
from mmgen.results.score import Score, classifier_names, read_scores, tabulate_scores

_CARD, _COMMANDS, _PICTURE, _SCORES = "README.md", "commands.sh", "samples.png", "scores.jsonl"
_MODEL, _AGGREGATE, _SHARPENER = "model.safetensors", "aggregate.safetensors", "sharpener.safetensors"
_JUDGE, _PAGE = "judge.safetensors", "index.html"
_ONNX = ("decoder.onnx", "posterior.onnx", WORDS, "draw.py")
_KNOWN = (_CARD, SUMS, _COMMANDS, _PICTURE, _SCORES, _MODEL, _AGGREGATE, _SHARPENER, _JUDGE, _PAGE, *_ONNX)
_PROGRAM = "mmgen"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # what zip files begin with: the same files are the same archive


def check_export(out: Path, overwrite: bool) -> None:
    """Raise an error, before any work, if an export to ``out`` would overwrite files of the user.

    Raises:
        UsageError: Something is there that would be lost.
        ArtifactError: The file system refuses.
    """
    if out.suffix.lower() == ".zip":
        check_replaceable(out)
        check_nothing_lost(out, overwrite)
    elif out.exists() and not out.is_dir():
        raise UsageError(f"{out} is there and is no folder; choose another name, or one ending in .zip")
    elif out.exists() and any(out.iterdir()) and not overwrite:
        raise UsageError(
            f"{out} is there already, and is not empty; choose another folder, or --overwrite to replace what an "
            "export has written there"
        )
    if out.suffix.lower() != ".zip" and out.is_dir():
        for name in _KNOWN:
            check_replaceable(out / name)  # before the pictures are drawn, not after
        _check_is_export(out)
        out = out / SUMS
    check_writable(out)
    note_output(out)


def _check_is_export(folder: Path) -> None:
    """Refuse a folder with files by the names of ours, unless its checksums say that an export has written them."""
    listed = {*list_exported_files(folder)}
    ours = listed | {SUMS} if listed >= {_CARD, _COMMANDS, _MODEL} else set()
    files = [name for name in _KNOWN if os.path.exists(folder / name) and not os.path.islink(folder / name)]
    if other := next((name for name in files if name not in ours), None):
        raise UsageError(
            f"{folder} holds {other}, which no export has written, as far as {SUMS} tells, and which would be lost; "
            "choose another folder, or move that file away"
        )


def write_export(folder: Path, names: Sequence[str], out: Path) -> None:
    """Copy the files ``names`` to ``out``, a folder or a zip archive, and remove stale files of an earlier export.

    Raises:
        ArtifactError: The file system refuses; or another program has written ``out`` since :func:`check_export`, and
            this export has another name.
    """
    try:
        if out.suffix.lower() == ".zip":
            _write_archive(folder, names, out)
        elif was_written_meanwhile(out) or was_written_meanwhile(out / SUMS) or not out.is_dir():
            with atomic_folder(out) as part:
                _copy_files(folder, names, part)
        else:
            earlier = [name for name in list_exported_files(out) if name in _KNOWN and name not in names]
            _copy_files(folder, names, out)
            for name in earlier:
                (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise make_write_error(out, error) from None


def _copy_files(folder: Path, names: Sequence[str], out: Path) -> None:
    """Copy files to the folder ``out``, all or none; the file of checksums comes last."""
    new = [out / name for name in names if not os.path.lexists(out / name)]
    try:
        with ExitStack() as stack:  # which ends with what began it
            for name in sorted(names, key=lambda name: name != SUMS):
                shutil.copyfile(folder / name, stack.enter_context(atomic_path(out / name)))
            (out / SUMS).unlink(missing_ok=True)
    except BaseException:
        for path in new:
            path.unlink(missing_ok=True)
        raise


def require_page() -> ModuleType:
    """Return the module of the command that makes a page to draw from words.

    Raises:
        UsageError: This installation lacks it.
    """
    return require_added("mmgen.commands", "explore", "explore", "--page")


def make_export_files(
    folder: Path,
    loaded: TrainedModel,
    watch: Watch,
    *,
    judge: Path | None = None,
    scores: Sequence[Path] = (),
    onnx: bool = False,
    page: bool = False,
    seed: int = 0,
) -> list[str]:
    """Write all files of an export (model, README, scores, pictures) into ``folder``; return their names.

    Args:
        folder: An empty folder.
        loaded: The model or aggregate.
        watch: Observer, who shows what is left out.
        judge: The judge; the one near the files by default.
        scores: Files with scores of ``mmgen eval``; all near the files by default.
        onnx: Whether to add the networks for ONNX, with a script that draws from words.
        page: Whether to add a page that draws from words.
        seed: Seed of the pictures.
    """
    without = "" if not loaded.reads(loaded.posteriors.default) else " without PyTorch"
    if loaded.fitted is None and (onnx or not without) and (loaded.attributes or loaded.text):
        advice = f"fit a posterior with mmgen fit-aggregate {loaded.model_path}, and export that"
        watch.say(f"{loaded.path} draws from no words{without}: {advice}")
    files = {_MODEL: "the model"}
    shutil.copyfile(loaded.model_path, folder / _MODEL)
    if loaded.fitted is not None:
        shutil.copyfile(loaded.path, folder / _AGGREGATE)
        files[_AGGREGATE] = loaded.fitted.named.title
    if loaded.sharpener is not None:
        files[_SHARPENER] = "a network that sharpens the pictures"
        shutil.copyfile(last_file(loaded), folder / _SHARPENER)
    if onnx:
        from mmgen.commands._onnx import export_onnx

        files |= export_onnx(loaded, folder)
    if loaded.fitted is None and any(can_complete(loaded, name) for name in loaded.posteriors):
        files |= write_words(loaded, folder)  # a fit holds its own
    judge = judge or (find_classifier(loaded.model_path, [loaded.path]) if loaded.attributes is not None else None)
    opened = {**loaded.headers, **({} if judge is None else {judge: read_header(judge)})}
    if judge is not None:
        shutil.copyfile(judge, folder / _JUDGE)
        files[_JUDGE] = "a classifier that reads the words off pictures, with its own accuracy"
    elif loaded.attributes is not None:
        watch.say("no judge found, so none is exported: make one with mmgen train-classifier")
    scores = scores or _find_scores(loaded, watch)
    latest: dict[tuple[Any, ...], Score] = {}
    for path in scores:
        found = read_scores(path)
        ours = [score for score in found if _belongs_to_model(score, loaded)]
        latest |= {(x.quantity, x.source, x.given, x.protocol, x.judge, str(x.conditions)): x for x in ours}
        if len(ours) < len(found):
            watch.say(f"{len(found) - len(ours)} scores of {path} are of other files, and are left out")
    measured = [*latest.values()]
    if scores:
        write_scores(folder / _SCORES, measured)
        files[_SCORES] = "what was measured, a JSON line each"
    else:
        watch.say(f"no scores found, so the card has none: make them with mmgen eval {last_file(loaded)}")
    descriptions = _example_descriptions(loaded)
    if drawable_pictures(loaded):
        _draw_pictures(loaded, descriptions, judge, seed).save(folder / _PICTURE)
        files[_PICTURE] = "pictures drawn from words"
    if page:
        paths = [last_file(loaded), loaded.path, *([judge] if judge else [])]
        watch.follow(require_page().Explore.make_page_of_words(paths, folder / _PAGE, seed))
        files[_PAGE] = "a page that draws from words, for a browser: put it on a web site"
    commands = _lineage_commands(read_lineage(last_file(loaded)))
    for path, header in opened.items():  # which were read more than once
        check_unchanged(path, header.content_id)
    if any(os.path.isabs(word) for command in commands for word in command.split()):
        watch.say(
            f"{_COMMANDS} and {_CARD} name folders of this machine, as the commands were typed; look before sharing"
        )
    text = "#!/bin/sh\n# How these files were made.\nset -eu\n" + "".join(f"{command}\n" for command in commands)
    (folder / _COMMANDS).write_text(text, encoding="utf-8")
    files[_COMMANDS] = "the commands that make it again, from data on"
    card = write_card(loaded, files, commands, measured, descriptions[0])
    (folder / _CARD).write_text(card, encoding="utf-8")
    names = [_CARD, *files]
    sums = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in sorted(names)]
    (folder / SUMS).write_text("".join(sums), encoding="ascii")
    return [*names, SUMS]


def _find_scores(loaded: TrainedModel, watch: Watch) -> list[Path]:
    """Return all files with scores of the model near it or in the current folder, the oldest first."""
    places = (Path(), loaded.model_path.parent, last_file(loaded).parent)
    folders = {folder.resolve(): folder for folder in places}
    near = [path for folder in folders.values() for path in list_visible_files(folder)]
    near = [path for path in near if path.suffix == ".jsonl" and not path.name.endswith(LOG_ENDING)]
    found = []
    for path in sorted(near, key=lambda path: path.stat().st_mtime):
        with suppress(MmgenError):  # other JSON lines
            found += [path] if any(_belongs_to_model(score, loaded) for score in read_scores(path)) else []
    if found:
        watch.say(f"scores of {', '.join(map(str, found))}; --scores names others")
    return found


def _belongs_to_model(score: Score, loaded: TrainedModel) -> bool:
    """Return True if a score was measured on the exported model, or on a posterior fitted to it."""
    fitted = loaded.header.content_id if loaded.fitted else None
    sharpened = loaded.sharpener.header.content_id if loaded.sharpener else None
    ours: dict[str, tuple[str | None, ...]] = {"aggregate": (fitted, None), "sharpener": (sharpened, None)}
    ours["model"] = (loaded.model_header.content_id,)
    return all(score.ids.get(role) in ids for role, ids in ours.items())


def _write_archive(folder: Path, names: Sequence[str], out: Path) -> None:
    with atomic_path(out) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(f"{out.stem}/{name}", _EPOCH), (folder / name).read_bytes())


def _example_descriptions(loaded: TrainedModel) -> list[str]:
    """Return descriptions for the example pictures: four values of the first attribute, or ""."""
    if (
        loaded.attributes is None
        or loaded.description_kind != "attributes"
        or not loaded.reads(loaded.posteriors.default)
    ):
        return [""]
    name, words = loaded.attributes.names[0], loaded.attributes.values[0]
    return [f"{name}={quote_value(word)}" for word in words[:4]]


def _draw_pictures(loaded: TrainedModel, descriptions: Sequence[str], judge: Path | None, seed: int) -> Grid:
    drawn, _, judging = sample_and_classify(loaded, descriptions, 8, Watch(), classifier_path=judge, seed=seed)
    accuracy = judging.accuracy if judging else None
    return sample_grid(
        convert_draws_to_pictures(loaded, drawn), loaded.attributes, text=loaded.text, accuracy=accuracy,
        judged_samples=classifier_reads_samples(loaded),
    )  # fmt: skip


def _lineage_commands(node: Node) -> list[str]:
    """Return the commands that made a file and its ancestors, as lines of a shell script in order."""
    commands: list[str] = []
    for parent in node.parents:
        commands += _lineage_commands(parent)
    return list(dict.fromkeys([*commands, *([_script_line(node.command)] if node.command else [])]))


def _script_line(command: str) -> str:
    """Return a recorded mmgen command for a shell script; any other text becomes a comment."""
    if quoted := quoted_command(command):
        return quoted
    why = "runs a file of Python: look at it first" if names_code(command.split()) else f"is no command of {_PROGRAM}"
    return f"# left out, for it {why}: {printable(' '.join(command.split()))}"


def _sample_command(description: str) -> str:
    """Return the ``mmgen sample`` command for a description, to be run in the exported folder."""
    return shlex.join(
        [_PROGRAM, "sample", ".", *(["--given", description] if description else []), "-o", "pictures.png"]
    )


def write_card(
    loaded: TrainedModel, files: Mapping[str, str], commands: Sequence[str], scores: Sequence[Score], description: str
) -> str:
    """Return the README.md of an export, a model card for the Hugging Face hub (templates/card.md.jinja).

    Args:
        loaded: The model, or the aggregate with its model.
        files: Names in the folder, with what each is.
        commands: How it was made, in order, as lines of a shell script.
        scores: What was measured.
        description: The description that an example draws from.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("mmgen.commands"), undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"json": partial(json.dumps, ensure_ascii=False), "shell": shlex.quote}
    header, objective, name = loaded.model_header, str(loaded.settings.objective["name"]), last_file(loaded).stem
    made = [words[2] for command in commands if (words := command.split())[:2] == [_PROGRAM, "make-data"] and words[2:]]
    recipe = made[0] if made else "own data"
    fitted = ["aggregate-posterior"] if loaded.fitted is not None else []
    values = {
        "tags": ["mmgen", "variational-autoencoder", "multimodal", objective, *fitted],
        "recipe": recipe,
        "index": [{"name": name, "results": [_result_entry(scores, recipe)]}] if scores else [],
        "name": name,
        "parts": [each.describe_size() for each in loaded.settings.modalities.values()],
        "objective": objective,
        "latent_size": loaded.model.latent_size,
        "made_by": header.program_version,
        "exported_by": __version__,
        "pretrained": _pretrained_weights(header),
        "picture": _PICTURE,
        "described": ", ".join(_example_descriptions(loaded)) if description else ANYTHING,
        "files": files,
        "table": tabulate_scores(scores).markdown().rstrip() if scores else "",
        "sample": _sample_command(description),
        "description": description,
        "members": header.members,
        "commands": commands,
    }
    return environment.get_template("card.md.jinja").render(values)


def _pretrained_weights(header: Header) -> dict[str, str]:
    """Return name and licence of weights that were given to the model; {} without any."""
    given = header.facts.get("autoencoder")
    if not isinstance(given, dict) or "sha256" not in given:
        return {}
    return {key: printable(str(given.get(key) or ""), 100).replace("`", "'") for key in ("weights", "licence")}


def _result_entry(scores: Sequence[Score], recipe: str) -> dict[str, Any]:
    """Return scores as an entry of the card's front matter, which the Hugging Face hub reads."""
    judges = classifier_names(scores)
    several = len({*judges} - {""}) > 1
    metrics = []
    for score, judge in zip(scores, judges, strict=True):
        given = "" if score.given is None else f", {score.given} words given"
        suffix = f" (judge {judge})" if judge and several else ""
        label = f"{score.quantity or score.metric}{suffix} ({score.unit}), {score.source}{given}"
        error = {} if score.stderr is None else {"args": {"standard_error": score.stderr, "n": score.n}}
        metrics.append({"type": score.metric, "name": label, "value": score.value, **error})
    return {
        "task": {"type": "text-to-image", "name": "Pictures from words"},
        "dataset": {"type": recipe, "name": recipe},
        "metrics": metrics,
    }
