"""The files, runs and settings behind scores, and where scores are kept."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Header, read_header, write_text_atomic
from mmgen.artifacts.lineage import find_parent_file
from mmgen.core.errors import MmgenError
from mmgen.generation.latents import can_complete
from mmgen.results.conditions import format_condition, run_record
from mmgen.results.naming import CONDITIONAL, LEARNED_PRIOR, RETRIEVAL
from mmgen.results.score import Score, content_condition

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation


_BEGINNINGS = ("start", "base")
"""Roles of parents whose weights a run began with."""


def run_of_files(files: Sequence[tuple[Path, Header]], below: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the record of the run that made a model and the posteriors fitted to it.

    What it began with counts without its seed where its file is found, else by its content id.

    Args:
        files: Each file with its header; the last one gives the name.
        below: Content ids of the files that began with these.
    """
    headers = [header for _, header in files]
    data = {parent.content_id for header in headers for parent in header.parents if parent.kind == "dataset"}
    return run_record(
        files[-1][0].name.removesuffix(".safetensors"),
        [header.seed for header in headers],
        [header.settings for header in headers],
        data,
        members=[member.to_json() for header in headers for member in header.members],
        initial_runs=[one for path, header in files for one in _start_model_ids(path, header, below)],
    )


def _start_model_ids(path: Path, header: Header, below: tuple[str, ...]) -> list[str]:
    found, below = [], (*below, header.content_id)
    for parent in header.parents:
        if parent.role not in _BEGINNINGS:
            continue
        try:
            place = find_parent_file(path, parent)
            known = parent.content_id not in below
            found.append(run_of_files([(place, read_header(place))], below)["settings"] if known else parent.content_id)
        except MmgenError:
            found.append(parent.content_id)
    return found


_COMPARED = ("samples", "real")
"""Names of the details that are conditions of every metric that has them: importance samples, real pictures."""


def kind_of_pixels(evaluation: "Evaluation") -> str:
    """Return "drawn", "fixed" or "grey" for the pixels of the evaluated images; "" without images.

    "drawn": sampled from probabilities, here with the seed of the evaluation; "fixed": black and white; "grey".
    """
    main = evaluation.loaded.observation
    info = evaluation.dataset.images.get(main.name) if main is not None else None
    return {"probabilities": "drawn", "bits": "fixed", "bytes": "grey"}[info.layout] if info else ""


class Provenance:
    """Adds to scores the run, posterior and conditions by which they were measured.

    Args:
        evaluation: The evaluation.
    """

    def __init__(self, evaluation: "Evaluation") -> None:
        self._evaluation = evaluation
        self._run = cache(self._read_run)

    @property
    def trained_share(self) -> float | None:
        """Share, 0 to 1, of the evaluated examples that were among the training examples.

        None for another dataset than the model's own, and for splits of edges.
        """
        evaluation = self._evaluation
        if evaluation.dataset.header.content_id not in [
            one.content_id for one in evaluation.loaded.model_header.parents
        ]:
            return None
        if evaluation.dataset.splits_edges(evaluation.split):
            return None
        trained = evaluation.dataset.split(evaluation.loaded.settings.data.split, "train")
        return float(np.isin(evaluation.rows(), trained).mean())

    def add_conditions(self, score: Score, judged: bool, points: bool, names: Iterable[str]) -> Score:
        """Return a score with its seed and the conditions that scores must share to be comparable.

        Args:
            score: The score.
            judged: It is of drawn pictures.
            points: It is of single data points, which should not be training examples.
            names: Names of the details that are conditions.
        """
        evaluation, details = self._evaluation, dict(score.details)
        conditions = {"split": evaluation.split, "part": evaluation.settings.part} if judged or points else {}
        pixels = kind_of_pixels(evaluation) if points else ""
        if pixels == "drawn":  # else the dataset tells
            conditions["pixels"] = pixels
        compared = [name for name in (*_COMPARED, *names) if details.get(name)]
        conditions |= {name: format_condition(details[name]) for name in compared}
        conditions |= content_condition(evaluation.dataset.header.settings)
        if points:
            objective = evaluation.loaded.model_header.settings.get("objective")
            known = {"trained_share": self.trained_share, "pixels": pixels, "objective": objective}
            details = {name: value for name, value in known.items() if value} | details
        seed = evaluation.settings.seed if judged or points else None
        return replace(score, conditions=conditions, seed=seed, details=details)

    def complete(self, score: Score) -> Score:
        """Return a score with its run and classifier, and the guidance and diagnostics of a guided posterior."""
        evaluation, loaded = self._evaluation, self._evaluation.loaded
        known = score.posterior in loaded.posteriors
        score = replace(score, run=self._run(known and loaded.posteriors[score.posterior].is_fitted))
        if score.judge_accuracy is not None or "judge" in score.ids:
            score = replace(score, judge=evaluation.judge.network_name)
        if score.posterior not in evaluation.posteriors or score.posterior == RETRIEVAL:
            return score
        source = loaded.posteriors[score.posterior]
        if not loaded.completes and can_complete(loaded, score.posterior):
            score = replace(score, as_given=True)
        if source.is_fitted:
            fit = dict(loaded.header.settings.get("aggregate") or {})
            score = replace(score, family=str(dict(fit.get("family") or {}).get("name", "")))
        weights = source.weights
        if "guidance" not in weights:
            base = LEARNED_PRIOR if source.is_fitted and source.is_unconditional else ""
            if score.posterior == "prior" and loaded.model.conditional_on:
                base = CONDITIONAL
            return replace(score, text_weight=weights.get("text_weight"), base=base)
        candidates = evaluation.candidates.get(score.posterior)
        guided = loaded.guided_posterior(score.posterior) if loaded.guidance else None
        diagnostics = guided.measure_draws(candidates) if guided is not None and candidates is not None else {}
        return replace(
            score,
            posterior="guided",
            text_weight=weights.get("text_weight"),
            guidance=weights["guidance"],
            guidance_method=weights.get("method", ""),
            base=source.base,
            details={**score.details, "guidance": diagnostics} if diagnostics else score.details,
        )

    def _read_run(self, fitted: bool) -> dict[str, str]:
        """Read the record of the model's training, or of the fit of its posterior."""
        loaded = self._evaluation.loaded
        files = [(loaded.model_path, loaded.model_header), *([(loaded.path, loaded.header)] if fitted else [])]
        return run_of_files(files)


def default_scores_file(path: Path) -> Path:
    """Return the default path for the scores of a model or an aggregate."""
    return path.parent / f"{path.stem}-scores.jsonl"


def write_scores(path: Path, scores: Sequence[Score]) -> None:
    """Write scores as JSON lines; a failed write leaves the earlier file."""
    write_text_atomic(path, "".join(json.dumps(score.to_json(), allow_nan=False) + "\n" for score in scores))
