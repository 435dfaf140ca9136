"""Values of the template of a report's page: its tables, lists and pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen.artifacts.containers import verify_checkpoint
from mmgen.artifacts.contents import format_training
from mmgen.artifacts.lineage import outline_lineage
from mmgen.classifier import held_out_accuracy
from mmgen.core.parsing import flatten
from mmgen.core.version import __version__
from mmgen.evaluation.next_steps import advise
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.report.curves import draw_learning_curves, draw_term_curves, read_log
from mmgen.figures.report.scores import describe_findings, make_score_tables
from mmgen.figures.session import ModelFiles, ReportFiles, get_setting, latent_sizes
from mmgen.results.published import published_classifiers, published_papers


def _format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def describe_model(group: ModelFiles) -> str:
    """Describe a model in one line: its objective, size of z and training."""
    header = group.header
    objective, steps = get_setting(header, "objective", "name"), format_training(header)
    return f"objective {objective}, latent size {latent_sizes(header)}{f', {steps}' if steps else ''}"


def _differing_settings(report_files: ReportFiles) -> dict[str, Any] | None:
    """Tabulate the settings in which the models of a report differ, for the page; None if there are none."""
    settings = [flatten({**group.header.settings, "seed": group.header.seed}) for group in report_files.groups]
    keys = list(dict.fromkeys(key for one in settings for key in one))
    rows = [(key, [one.get(key, "–") for one in settings]) for key in keys]
    rows = [(key, values) for key, values in rows if len(set(values)) > 1]
    if len(settings) < 2 or not rows:
        return None
    return {"names": [report_files.names[group.header.content_id] for group in report_files.groups], "rows": rows}


def _describe_data(report_files: ReportFiles) -> list[str]:
    """Name each dataset of a report with its recipe."""
    lines = []
    for path, header in report_files.headers.values():
        if header.kind == "dataset":
            lines.append(f"Data: {path.name}, recipe {header.settings.get('recipe', '?')}.")
    return lines


_DATA = "data.modalities"
"""Settings that repeat what the data are."""


def _list_files(report_files: ReportFiles) -> list[dict[str, Any]]:
    """List each file of a report for the page: its settings, and separately the facts of its run."""
    return [
        {
            "name": path.name,
            "kind": header.kind,
            "rows": [
                ("command", header.command),
                ("content id", header.content_id),
                ("made with", f"mmgen {header.program_version}, format {header.format_version}"),
                ("seed", str(header.seed)),
                *((key, value) for key, value in flatten(header.settings).items() if not key.startswith(_DATA)),
            ],
            "measured": [
                ("step of these weights" if key == "step" else key, value)
                for key, value in flatten(_round_numbers(header.facts)).items()
            ],
        }
        for path, header in report_files.headers.values()
    ]


def _round_numbers(value: Any) -> Any:
    """Round all fractional numbers in nested values to four digits."""
    if isinstance(value, Mapping):
        return {key: _round_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_round_numbers(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _format_percent(value: Any) -> str:
    return f"{value:.1f}" if isinstance(value, int | float) else "–"


def _classifier_accuracies(report_files: ReportFiles) -> list[dict[str, Any]]:
    """List each attribute classifier of a report for the page: its accuracy by attribute, with published ones."""
    found: list[dict[str, Any]] = []
    for path, header in report_files.headers.values():
        if header.kind != "classifier":
            continue
        verify_checkpoint(path)  # its accuracy stands beside scores
        accuracy = held_out_accuracy(path, header)
        if not accuracy:
            continue
        described = get_setting(header, "classifier", "names")
        order = [str(name) for name in described] if isinstance(described, list) else []
        names = [n for n in order if n in accuracy] + [n for n in accuracy if n not in order]  # the mean comes last
        rows = [{"label": path.name, "published": False, "cells": [_format_percent(accuracy.get(n)) for n in names]}]
        data = next((report_files.data[p.content_id] for p in header.parents if p.content_id in report_files.data), {})
        for paper in published_classifiers():
            if paper.recipe == data.get("recipe") and not paper.differences(data):
                cells = [_format_percent(paper.accuracy.get(name)) for name in names]
                rows.append({"label": paper.source, "published": True, "cells": cells})
        images = header.facts.get("held_out_images")
        counts = [n for n in images.values() if isinstance(n, int)] if isinstance(images, dict) else []
        counted = f" on {max(counts):,} images" if counts else ""
        meaning = f"Measured{counted} that the judge has not seen. It bounds every score that it gives."
        found.append({"names": names, "rows": rows, "about": meaning})
    return found


def _curve_quantity(kind: str) -> str:
    """Name the quantity that a learning curve shows, by the kind of its training run."""
    names = {"judge": "log p(labels|image)", "aggregate, target aggregate": "minus the KL from the images' posteriors"}
    names["log alone"] = names["sharpener"] = "the quantity that is maximised"
    return next((name for start, name in names.items() if kind.startswith(start)), "the bound")


def _draw_curves(report_files: ReportFiles) -> tuple[list[Picture], list[Picture]]:
    """Draw training logs: learning curves (a picture for each kind of bound) and terms (a picture for each run)."""
    kinds: dict[str, list[tuple[str, Path]]] = {}
    for name, kind, path in report_files.logs:
        kinds.setdefault(kind, []).append((name, path))
    together, apart = [], []
    for kind, named in kinds.items():
        logs = [read_log(path, name) for name, path in named]
        runs = _format_count(len(logs), "run")
        caption = f"{runs}, by training step: {_curve_quantity(kind)}; higher is better. "
        caption += "Early values may lie below the axis."
        together.append(Picture(kind[:1].upper() + kind[1:], caption, draw_learning_curves(logs)))
        for log in logs:
            apart.append(Picture(log.name, f"{kind}; training batches and their running mean.", draw_term_curves(log)))
    return together, apart


def page_context(
    report_files: ReportFiles,
    runs: Sequence[Mapping[str, Any]],
    title: str,
    command: str,
    seed: int,
) -> dict[str, Any]:
    """Return all values of the template of a report's page, by name.

    Args:
        report_files: The files of the report.
        runs: Name and pictures of each model.
        title: Heading of the page.
        command: The command that makes the page.
        seed: Seed of its pictures.
    """
    together, apart = _draw_curves(report_files)
    tables = make_score_tables(
        report_files.scores, report_files.names, data=report_files.data, models=report_files.models
    )
    judges = list(dict.fromkeys(table.judge for table in tables if table.judge))
    beside = {row.posterior.split()[0] for table in tables for row in table.rows if row.published}
    counts = {"file": len(report_files.headers), "model": len(report_files.groups), "score": len(report_files.scores)}
    counted = ", ".join(_format_count(number, noun) for noun, number in counts.items())
    return {
        "title": title,
        "subtitle": f"{counted}; pictures drawn with seed {seed}.",
        "findings": describe_findings(report_files),
        "advice": advise(report_files.scores, report_files.headers),
        "data": _describe_data(report_files),
        "notices": report_files.notices,
        "tables": [table for table in tables if table.judge in ("", *judges[:1])],
        "other_judges": {judge: [table for table in tables if table.judge == judge] for judge in judges[1:]},
        "scores_title": "Scores beside the papers’ numbers" if beside else "Scores",
        "papers": {short: full for short, full in published_papers().items() if short in beside},
        "runs": runs,
        "curves": together,
        "terms": apart,
        "judges": _classifier_accuracies(report_files),
        "outline": outline_lineage(report_files.nodes),
        "compared": _differing_settings(report_files),
        "files": _list_files(report_files),
        "footer": f"Made with mmgen {__version__}" + (f": {command}" if command else "."),
    }
