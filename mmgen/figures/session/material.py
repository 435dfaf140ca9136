"""Files of a report or figure: those that were named, and those that their lineage leads to."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mmgen.objectives
from mmgen.artifacts import Header, find_parent, read_header
from mmgen.artifacts.ancestors import Node, read_lineage, walk_ancestors
from mmgen.artifacts.containers import with_article
from mmgen.artifacts.files import regular_file_size
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

__all__ = ["Group", "Material", "gather", "setting"]

_ABOUT = "a checkpoint, an aggregate, a judge, a dataset, samples, scores of mmgen eval or a training log"


@dataclass
class Group:
    """One model and what was fitted to it.

    Attributes:
        model: The model's file.
        header: Its header.
        aggregates: Files of the aggregates, fitted to the true posterior before fitted to the aggregate.
        judge: The judge of its images; None where there is none.
        dataset: Its dataset; None where it is gone.
    """

    model: Path
    header: Header
    aggregates: list[Path] = field(default_factory=list)
    judge: Path | None = None
    dataset: Path | None = None


@dataclass
class Material:
    """Everything that a report shows.

    Attributes:
        nodes: The lineage of each artifact named.
        groups: Models with their aggregates.
        scores: Lines of all score files.
        score_files: These files.
        logs: Training logs by what they belong to: (name, kind of curve, path).
        names: What to call a file, by content id.
        notices: What is missing, and what to do about it.
    """

    nodes: list[Node] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    score_files: list[Path] = field(default_factory=list)
    logs: list[tuple[str, str, Path]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    @property
    def headers(self) -> dict[str, tuple[Path, Header]]:
        """Paths and headers of all files in the lineages, by content id."""
        found: dict[str, tuple[Path, Header]] = {}
        for root in self.nodes:
            for node in walk_ancestors(root):
                if node.header is not None:
                    found.setdefault(node.content_id, (node.path, node.header))
        return found

    def unread(self, paths: Iterable[Path], *, scores: bool, models: bool = True, judges: bool = True) -> list[Path]:
        """Return the files that a reader of scores, models or classifiers alone does not use.

        Args:
            paths: The files.
            scores: Whether scores are read; a page with a judge asks them which one gave them.
            models: Whether models are read, what was fitted to them, and their datasets.
            judges: Whether judges are.
        """
        read: list[Path | None] = list(self.score_files) if scores else []
        for group in self.groups if models else ():
            read += [group.model, *group.aggregates, group.dataset, group.judge if judges else None]
        known = {path.resolve() for path in read if path is not None}
        return [path for path in paths if path.resolve() not in known]

    def describe(self, paths: Iterable[Path]) -> str:
        """List files with their kinds: "a.h5 (a dataset) and b.log.jsonl (a log of training)"."""
        kinds = {node.path: with_article(node.kind) for node in self.nodes if node.kind}
        kinds |= dict.fromkeys(self.score_files, "scores")
        return " and ".join(f"{path} ({kinds.get(path, 'a log of training')})" for path in paths)

    @property
    def models(self) -> dict[str, str]:
        """Return the model that each aggregate was fitted to, both by content id."""
        return {
            content_id: parent.content_id
            for content_id, (_, header) in self.headers.items()
            if header.kind == "aggregate"
            for parent in header.parents
            if parent.role == "model"
        }

    @property
    def data(self) -> dict[str, dict[str, Any]]:
        """Return settings of the datasets by content id, to find published numbers on the same data."""
        return {key: dict(header.settings) for key, (_, header) in self.headers.items() if header.kind == "dataset"}


def setting(header: Header, room: str, key: str) -> Any:
    """Return a setting of a file, "?" if the file lacks it."""
    values = header.settings.get(room)
    return values.get(key, "?") if isinstance(values, dict) else "?"


def target_of(header: Header) -> dict[str, Any]:
    """Return the target of a fit with its settings; {} if the file has none."""
    target = setting(header, "aggregate", "target")
    return target if isinstance(target, dict) else {}


def latent_sizes(header: Header) -> str:
    """Return the dimensions of z in words: "10", or "100 and 50" for layers."""
    sizes = setting(header, "model", "latent_sizes")
    return " and ".join(map(str, sizes)) if isinstance(sizes, list) else str(setting(header, "model", "latent_size"))


def labels_in_latent(header: Header) -> tuple[str, ...]:
    """Return the modalities that are part of a model's z, over which its objective sums; () if it names none."""
    settings = header.settings.get("objective")
    if not isinstance(settings, dict):
        return ()
    try:
        objective: Objective = build_member(mmgen.objectives, settings, "objective")
    except (SettingsError, UsageError):  # whoever opens the model says what is wrong
        return ()
    return objective.demands.marginalises


def _is_lines(path: Path) -> bool:
    """Return whether a file is JSON lines rather than an artifact."""
    regular_file_size(path)
    try:
        with open(path, "rb") as file:
            start = file.read(64).lstrip()
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {reason_of(error)}; check the path") from None
    return start.startswith((b"{", *MARKS)) or (not start and path.suffix == ".jsonl")


def _first_record(path: Path) -> dict[str, Any]:
    try:
        with closing(read_lines(path)) as lines:
            record = parse_json(next((line for line in lines if line.strip()), "{}"))
    except MalformedError:  # whoever reads all of it says what is wrong
        record = {}
    return record if isinstance(record, dict) else {}


def _kind_of_curve(header: Header) -> str:
    """Name the bound in a training log: curves of different kinds do not share axes."""
    if header.kind == "aggregate":
        given = "" if setting(header, "aggregate", "given") == "attributes" else ", given nothing"
        target = target_of(header)
        weights = {key.replace("_", " "): target[key] for key in ("text_weight", "guidance") if key in target}
        weighed = "".join(f" with {key} {format_weight(weight)}" for key, weight in weights.items())
        return f"aggregate, target {target.get('name', '?')}{weighed}{given}"
    if header.kind == "classifier":
        return "judge"
    return f"model, objective {setting(header, 'objective', 'name')}"


def _add_logs(material: Material, extra: Sequence[Path]) -> None:
    beside = set()
    for path, header in material.headers.values():
        log = log_path(path)
        if header.kind in ("model", "aggregate", "classifier") and log.is_file():
            material.logs.append((material.names[header.content_id], _kind_of_curve(header), log))
            beside.add(log.resolve())
    for path in extra:
        if path.resolve() not in beside:
            material.logs.append((path.name.removesuffix(".jsonl").removesuffix(".log"), "log alone", path))


def _add_names(material: Material) -> None:
    """Name each file; add its folder where two have the same name."""
    paths = {content_id: path for content_id, (path, _) in material.headers.items()}
    names = [path.stem for path in paths.values()]
    for content_id, path in paths.items():
        shared = names.count(path.stem) > 1
        material.names[content_id] = f"{path.resolve().parent.name}/{path.stem}" if shared else path.stem


def _group_of(material: Material, path: Path, header: Header) -> Group:
    for group in material.groups:
        if group.header.content_id == header.content_id:
            return group
    group = Group(path, header)
    try:
        group.dataset = find_parent(path, "dataset")
    except (MissingParentError, ArtifactError) as error:
        material.notices.append(f"{error}.")
    material.groups.append(group)
    return group


def _add_groups(material: Material, judges: Sequence[Path], frames: bool) -> None:
    for node in material.nodes:
        if node.kind == "model" and node.header is not None:
            _group_of(material, node.path, node.header)
        elif node.kind == "aggregate":
            model = next((parent for parent in node.parents if parent.role == "model"), None)
            if model is None or model.header is None:
                command = model.command if model else "mmgen train"
                material.notices.append(
                    f"{node.path} is left out: its model is missing; make it again with: {command}."
                )
                continue
            group = _group_of(material, model.path, model.header)
            if node.path.resolve() not in {path.resolve() for path in group.aggregates}:
                group.aggregates.append(node.path)
    fitted = {node.path: node.header for node in material.nodes if node.header is not None}
    for group in material.groups:
        group.aggregates.sort(key=lambda path: "text_weight" not in target_of(fitted[path]))
        group.judge = _judge_of(group, material, judges, frames)


def _judged(group: Group) -> bool:
    """Return whether an attribute classifier can judge a model's images."""
    data = group.header.settings.get("data")
    try:
        return not isinstance(data, dict) or validate(DataSettings, data).attributes is not None
    except MmgenError:  # of a kind that is not installed here
        return True


def _judge_of(group: Group, material: Material, judges: Sequence[Path], frames: bool) -> Path | None:
    """Choose the judge named for the report if it saw the same dataset, else one beside the files."""
    datasets = {parent.content_id for parent in group.header.parents if parent.role == "dataset"}
    gave = {str(s.ids["judge"]) for s in material.scores if s.ids.get("judge") and s.ids.get("dataset") in datasets}
    named = {path: header for path, header in material.headers.values() if path in judges}
    named = {p: h for p, h in named.items() if any(parent.content_id in datasets for parent in h.parents)}
    found = min(named, key=lambda path: named[path].content_id not in gave, default=None)
    if found is None:
        try:
            found = find_classifier(group.model, group.aggregates, gave)
        except ArtifactError:
            found = None
        if found is not None and not any(found.resolve() == path.resolve() for path, _ in material.headers.values()):
            material.nodes.append(read_lineage(found))
    if not frames:
        return found
    if found is None and _judged(group):
        material.notices.append(
            f"No judge was found for the images of {group.model.name}, so no frame is red: make one with "
            f"mmgen train-classifier {group.dataset or 'DATASET'}."
        )
    elif found is not None and gave and read_header(found).content_id not in gave:
        material.notices.append(
            f"The images of {group.model.name} are judged by {found.name}, which gave none of the scores: name the "
            "judge that did, or measure again with mmgen eval."
        )
    elif found is not None and len(gave) > 1:
        material.notices.append(
            f"The images of {group.model.name} are judged by {found.name}; scores are of {len(gave)} judges, each in "
            "tables of its own."
        )
    return found


def gather(paths: Iterable[Path], frames: bool = True) -> Material:
    """Sort the files of a report and follow their lineage.

    Args:
        paths: Checkpoints, aggregates, judges, datasets, samples, scores (JSON lines of ``mmgen eval``), training logs.
        frames: Whether images are to be framed, so that a missing judge is worth a notice.

    Raises:
        UsageError: No files.
        ArtifactError: A file is none of these.
    """
    material, logs, judges = Material(), [], []
    paths = list(dict.fromkeys(paths))
    if not paths:
        raise UsageError(f"got no files to report on, expected {_ABOUT}")
    for path in paths:
        if _is_lines(path):
            if "step" in _first_record(path):
                logs.append(path)
            else:
                material.scores += read_scores(path)
                material.score_files.append(path)
            continue
        node = read_lineage(path)
        material.nodes.append(node)
        if node.kind == "classifier":
            judges.append(path)
    _add_groups(material, judges, frames)
    _add_names(material)
    _add_logs(material, logs)
    return material
