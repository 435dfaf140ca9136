"""Files from which a report or figure is drawn: those that the user names, and those of their lineage."""

import shlex
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mmgen.objectives
from mmgen.artifacts import Header, find_parent, read_header
from mmgen.artifacts.containers import add_article
from mmgen.artifacts.files import regular_file_size
from mmgen.artifacts.header import advised_command
from mmgen.artifacts.lineage import Node, read_lineage, walk_ancestors
from mmgen.core.errors import ArtifactError, MissingParentError, MmgenError, SettingsError, UsageError, reason_of
from mmgen.core.parsing import MalformedError, parse_json, read_lines
from mmgen.core.plain_text import MARKS
from mmgen.generation.classifiers import find_classifier
from mmgen.models import DataSettings
from mmgen.objectives import Objective
from mmgen.results.naming import format_weight
from mmgen.results.score import Score, read_scores
from mmgen.settings.config import build_member, validate
from mmgen.training.log import log_path

_ABOUT = "a checkpoint, an aggregate, a judge, a dataset, samples, scores of mmgen eval or a training log"


@dataclass
class ModelFiles:
    """Paths of the files of one model: its checkpoint, fitted posteriors, attribute classifier and dataset.

    Attributes:
        model: The model's file.
        header: Its header.
        aggregates: Files of fitted posteriors; those fitted to the true posterior come first.
        judge: File of the attribute classifier of its images; None without one.
        dataset: Its dataset; None if missing.
    """

    model: Path
    header: Header
    aggregates: list[Path] = field(default_factory=list)
    judge: Path | None = None
    dataset: Path | None = None


@dataclass
class ReportFiles:
    """Files of a report or figure, sorted: models with their posteriors, scores, training logs, and their lineage.

    Attributes:
        nodes: The lineage of each named artifact.
        groups: Models with their fitted posteriors.
        scores: Scores of all score files.
        score_files: Paths of the score files.
        logs: Training logs: (name of the run, kind of curve, path).
        names: Name of each file for people, by content id.
        notices: Warnings about missing files, with the next step.
    """

    nodes: list[Node] = field(default_factory=list)
    groups: list[ModelFiles] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    score_files: list[Path] = field(default_factory=list)
    logs: list[tuple[str, str, Path]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    @property
    def headers(self) -> dict[str, tuple[Path, Header]]:
        """Path and header of each named file and of its ancestors, by content id."""
        found: dict[str, tuple[Path, Header]] = {}
        for root in self.nodes:
            for node in walk_ancestors(root):
                if node.header is not None:
                    found.setdefault(node.content_id, (node.path, node.header))
        return found

    def unused_files(
        self, paths: Iterable[Path], *, scores: bool, models: bool = True, judges: bool = True
    ) -> list[Path]:
        """Return the files among ``paths`` that a figure or page does not read, for a warning.

        Args:
            paths: The files.
            scores: Whether score files are used, such as to choose the classifier behind them.
            models: Whether models, fitted posteriors and datasets are used.
            judges: Whether classifiers are used.
        """
        read: list[Path | None] = list(self.score_files) if scores else []
        for group in self.groups if models else ():
            read += [group.model, *group.aggregates, group.dataset, group.judge if judges else None]
        known = {path.resolve() for path in read if path is not None}
        return [path for path in paths if path.resolve() not in known]

    def describe(self, paths: Iterable[Path]) -> str:
        """Format files with their kinds for a message: "a.h5 (a dataset) and b.log.jsonl (a log of training)"."""
        kinds = {node.path: add_article(node.kind) for node in self.nodes if node.kind}
        kinds |= dict.fromkeys(self.score_files, "scores")
        return " and ".join(f"{path} ({kinds.get(path, 'a log of training')})" for path in paths)

    @property
    def models(self) -> dict[str, str]:
        """Content id of each fitted posterior's model, by the content id of the posterior."""
        return {
            content_id: parent.content_id
            for content_id, (_, header) in self.headers.items()
            if header.kind in ("aggregate", "sharpener")
            for parent in header.parents
            if parent.role == "model"
        }

    @property
    def data(self) -> dict[str, dict[str, Any]]:
        """Settings of each dataset in the lineage, by content id."""
        return {key: dict(header.settings) for key, (_, header) in self.headers.items() if header.kind == "dataset"}


def get_setting(header: Header, room: str, key: str) -> Any:
    """Return the setting ``room.key``, such as model.latent_size, in a file's header; "?" if it is missing."""
    values = header.settings.get(room)
    return values.get(key, "?") if isinstance(values, dict) else "?"


def target_of(header: Header) -> dict[str, Any]:
    """Return the settings of the target to which a posterior was fitted; {} if its file has none."""
    target = get_setting(header, "aggregate", "target")
    return target if isinstance(target, dict) else {}


def latent_sizes(header: Header) -> str:
    """Format the size of a model's z: "10", "100 and 50" for two layers, or "4x8x8" for a grid."""
    sizes, size, private = (
        get_setting(header, "model", key) for key in ("latent_sizes", "latent_size", "private_sizes")
    )
    if isinstance(private, dict) and private:
        sizes = [each for each in (size, *private.values()) if each]
    if isinstance(sizes, list):
        return " and ".join(map(str, sizes))
    return "x".join(map(str, size)) if isinstance(size, list) else str(size)


def labels_in_latent(header: Header) -> tuple[str, ...]:
    """Return the modalities that a model's z holds as labels, over whose values its objective sums; () if none."""
    settings = header.settings.get("objective")
    if not isinstance(settings, dict):
        return ()
    try:
        objective: Objective = build_member(mmgen.objectives, settings, "objective")
    except (SettingsError, UsageError):  # opening the model reports the error
        return ()
    return objective.demands.marginalises


def _is_json_lines(path: Path) -> bool:
    """Return whether a file holds JSON lines (scores or a training log) instead of an artifact."""
    regular_file_size(path)
    try:
        with open(path, "rb") as file:
            start = file.read(64).lstrip()
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {reason_of(error)}; check the path") from None
    return start.startswith((b"{", *MARKS)) or (not start and path.suffix == ".jsonl")


def _read_first_record(path: Path) -> dict[str, Any]:
    try:
        with closing(read_lines(path)) as lines:
            record = parse_json(next((line for line in lines if line.strip()), "{}"))
    except MalformedError:  # reading the whole file reports the error
        record = {}
    return record if isinstance(record, dict) else {}


def _kind_of_curve(header: Header) -> str:
    """Name the quantity that a training log records, such as a kind of bound; curves of one kind share axes."""
    if header.kind == "aggregate":
        given = "" if get_setting(header, "aggregate", "given") == "attributes" else ", given nothing"
        target = target_of(header)
        weights = {key.replace("_", " "): target[key] for key in ("text_weight", "guidance") if key in target}
        weighed = "".join(f" with {key} {format_weight(weight)}" for key, weight in weights.items())
        return f"aggregate, target {target.get('name', '?')}{weighed}{given}"
    if header.kind in ("classifier", "sharpener"):
        return "judge" if header.kind == "classifier" else header.kind
    return f"model, objective {get_setting(header, 'objective', 'name')}"


def _add_logs(report_files: ReportFiles, extra: Sequence[Path]) -> None:
    beside = set()
    for path, header in report_files.headers.values():
        log = log_path(path)
        if header.kind in ("model", "aggregate", "classifier", "sharpener") and log.is_file():
            report_files.logs.append((report_files.names[header.content_id], _kind_of_curve(header), log))
            beside.add(log.resolve())
    for path in extra:
        if path.resolve() not in beside:
            report_files.logs.append((path.name.removesuffix(".jsonl").removesuffix(".log"), "log alone", path))


def _add_names(report_files: ReportFiles) -> None:
    """Name each file for people, with its folder if two files have the same name."""
    paths = {content_id: path for content_id, (path, _) in report_files.headers.items()}
    names = [path.stem for path in paths.values()]
    for content_id, path in paths.items():
        shared = names.count(path.stem) > 1
        report_files.names[content_id] = f"{path.resolve().parent.name}/{path.stem}" if shared else path.stem


def _find_group(report_files: ReportFiles, path: Path, header: Header) -> ModelFiles:
    for group in report_files.groups:
        if group.header.content_id == header.content_id:
            return group
    group = ModelFiles(path, header)
    try:
        group.dataset = find_parent(path, "dataset")
    except (MissingParentError, ArtifactError) as error:
        report_files.notices.append(f"{error}.")
    report_files.groups.append(group)
    return group


def _add_groups(report_files: ReportFiles, judges: Sequence[Path], frames: bool) -> None:
    for node in report_files.nodes:
        if node.kind == "model" and node.header is not None:
            _find_group(report_files, node.path, node.header)
        elif node.kind in ("aggregate", "sharpener"):
            model = next((parent for parent in node.parents if parent.role == "model"), None)
            if model is None or model.header is None:
                command = advised_command(model.command if model else "", "model")
                report_files.notices.append(
                    f"{node.path} is left out: its model is missing; make it again with: {command}."
                )
                continue
            group = _find_group(report_files, model.path, model.header)
            if node.path.resolve() not in {path.resolve() for path in group.aggregates}:
                group.aggregates.append(node.path)
    fitted = {node.path: node.header for node in report_files.nodes if node.header is not None}
    for group in report_files.groups:
        group.aggregates.sort(key=lambda path: "text_weight" not in target_of(fitted[path]))
        group.judge = _choose_classifier(group, report_files, judges, frames)


def name_data(group: ModelFiles) -> str:
    """Return what a person calls the data of a model: the folder of own pictures, else the dataset's file; the model's
    file where the data are gone.
    """
    name = group.model.stem
    if group.dataset is not None:
        header, name = read_header(group.dataset), group.dataset.stem
        if header.settings.get("recipe") in ("folder", "hub"):  # mmgen make-data folder PICTURES
            with suppress(ValueError, IndexError):
                name = Path(shlex.split(header.command)[3]).stem
    return name.replace("-", " ").replace("_", " ").strip() or "pictures"


def _can_be_classified(group: ModelFiles) -> bool:
    """Return whether a model draws images whose attributes a classifier can predict."""
    data = group.header.settings.get("data")
    try:
        return not isinstance(data, dict) or validate(DataSettings, data).attributes is not None
    except MmgenError:  # of a kind that is not installed here
        return True


def _choose_classifier(
    group: ModelFiles, report_files: ReportFiles, judges: Sequence[Path], frames: bool
) -> Path | None:
    """Choose a named attribute classifier that was trained on the model's dataset, else search for one."""
    datasets = {parent.content_id for parent in group.header.parents if parent.role == "dataset"}
    gave = {str(s.ids["judge"]) for s in report_files.scores if s.ids.get("judge") and s.ids.get("dataset") in datasets}
    named = {path: header for path, header in report_files.headers.values() if path in judges}
    named = {p: h for p, h in named.items() if any(parent.content_id in datasets for parent in h.parents)}
    found = min(named, key=lambda path: named[path].content_id not in gave, default=None)
    if found is None:
        try:
            found = find_classifier(group.model, group.aggregates, gave)
        except ArtifactError:
            found = None
        if found is not None and not any(
            found.resolve() == path.resolve() for path, _ in report_files.headers.values()
        ):
            report_files.nodes.append(read_lineage(found))
    if not frames:
        return found
    if found is None and _can_be_classified(group):
        report_files.notices.append(
            f"No judge was found for the images of {group.model.name}, so no frame is red: make one with "
            f"mmgen train-classifier {group.dataset or 'DATASET'}."
        )
    elif found is not None and gave and read_header(found).content_id not in gave:
        report_files.notices.append(
            f"The images of {group.model.name} are judged by {found.name}, which gave none of the scores: name the "
            "judge that did, or measure again with mmgen eval."
        )
    return found


def gather_files(paths: Iterable[Path], frames: bool = True) -> ReportFiles:
    """Sort the files of a report or figure by model and kind, and add files of their lineage.

    Args:
        paths: Models, fitted posteriors, classifiers, datasets, samples, scores of ``mmgen eval`` and training logs.
        frames: Whether images will be framed, so that a missing classifier gives a notice.

    Raises:
        UsageError: There are no files.
        ArtifactError: A file is none of these.
    """
    report_files, logs, judges = ReportFiles(), [], []
    paths = list(dict.fromkeys(paths))
    if not paths:
        raise UsageError(f"got no files, expected {_ABOUT}; give at least one")
    for path in paths:
        if _is_json_lines(path):
            if "step" in _read_first_record(path):
                logs.append(path)
            else:
                report_files.scores += read_scores(path)
                report_files.score_files.append(path)
            continue
        node = read_lineage(path)
        report_files.nodes.append(node)
        if node.kind == "classifier":
            judges.append(path)
    _add_groups(report_files, judges, frames)
    _add_names(report_files)
    _add_logs(report_files, logs)
    return report_files
