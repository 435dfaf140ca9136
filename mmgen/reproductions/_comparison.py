"""The paper's numbers and ours side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from pathlib import Path
from statistics import stdev

from mmgen.artifacts import read_header
from mmgen.metrics._base import Score
from mmgen.reproductions._plan import Plan, Row, Scale

__all__ = ["Compared", "compare", "judge_sentence", "markdown", "table_of"]


@dataclass(frozen=True)
class Compared:
    """One row with our scores, in the order of the columns; None where one is missing."""

    row: Row
    ours: tuple[Score | None, ...]

    @property
    def gain(self) -> tuple[float, float] | None:
        """Last column less first, ours, and its standard error; None if unknown.

        The error is over differences of the same data points where both were measured on these (likelihoods of single
        images differ by far more than models do), else as if the two were independent.
        """
        first, last = self.ours[0], self.ours[-1]
        if len(self.ours) < 2 or first is None or last is None or first.stderr is None or last.stderr is None:
            return None
        paired = _differences(first, last)
        error = hypot(first.stderr, last.stderr) if paired is None else stdev(paired) / sqrt(len(paired))
        return last.value - first.value, error


def _differences(first: Score, last: Score) -> list[float] | None:
    """Last less first, point by point; None where they are not of the same points."""
    if any(first.extra.get(key) != last.extra.get(key) for key in ("split", "part", "seed")):
        return None
    before, after = first.extra.get("values"), last.extra.get("values")
    if not isinstance(before, list) or not isinstance(after, list) or len(before) != len(after) or len(after) < 2:
        return None
    if first.ids.get("dataset") != last.ids.get("dataset"):
        return None
    return [float(b) - float(a) for a, b in zip(before, after, strict=True)]


def compare(plan: Plan, scores: Sequence[Score]) -> list[Compared]:
    """Our scores beside each row of the published table."""

    def find(row: Row, posterior: str) -> Score | None:
        wanted = (row.metric, row.quantity, row.protocol, posterior)
        found = [s for s in scores if (s.metric, s.quantity, s.protocol, s.posterior) == wanted]
        return found[-1] if found else None

    return [Compared(row, tuple(find(row, posterior) for posterior in row.posteriors)) for row in plan.row]


def table_of(plan: Plan, compared: Sequence[Compared]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows for people."""
    last = plan.columns[-1]
    columns = ["", *(f"paper: {name}" for name in plan.columns), *(f"ours: {name}" for name in plan.columns)]
    columns += [f"gain of {last}: paper", "ours", "samples"]
    rows = []
    for one in compared:
        paper = one.row.paper
        published = [f"{value:,.{plan.decimals}f}" for value in paper] or [""] * len(plan.columns)
        gained = f"{paper[-1] - paper[0]:+,.{plan.decimals}f}" if paper else ""
        ours = "" if one.gain is None else f"{one.gain[0]:+,.2f} ± {one.gain[1]:.2f}"
        counts = [f"{score.n:,}" for score in one.ours if score is not None]
        rows.append([one.row.name, *published, *map(_cell, one.ours), gained, ours, " / ".join(dict.fromkeys(counts))])
    return columns, rows


def _cell(score: Score | None) -> str:
    if score is None:
        return "not measured"
    return f"{score.value:,.2f}" + (f" ± {score.stderr:.2f}" if score.stderr is not None else "")


def judge_sentence(compared: Sequence[Compared]) -> str:
    """How good the judge itself is on held-out images of the dataset."""
    accuracy = next(
        (s.judge_accuracy for one in compared for s in one.ours if s is not None and s.judge_accuracy), None
    )
    if not accuracy:
        return ""
    words = f"{accuracy['words']:.2f} % of all words, " if "words" in accuracy else ""
    each = ", ".join(f"{name} {value:.1f}" for name, value in accuracy.items() if name not in ("mean", "words"))
    said = f"{words}{accuracy['mean']:.2f} % of those it says"
    return f"The judge itself, on real images that it has not seen: {said} ({each})."


def markdown(plan: Plan, scale: Scale, compared: Sequence[Compared], folder: Path) -> str:
    """The report: table, judge, where the numbers come from."""
    columns, rows = table_of(plan, compared)
    lines = [
        f"# {plan.title}",
        "",
        f"Paper: {plan.source}. Measured there on {plan.dataset}.",
        "",
        scale.about.strip(),
        "",
    ]
    lines += [_line(columns), _line(["---"] * len(columns)), *map(_line, rows), ""]
    lines += [
        "± is one standard error: over descriptions for correctness, over data points for likelihoods. "
        "Gains of likelihoods are compared point by point.",
        "",
    ]
    lines += [judge_sentence(compared), "", "## How it was made", "", "```sh"]
    for stage in scale.stage:
        lines += [f"# {stage.why}", stage.command]
    lines += ["```", "", "| file | content id | made by |", "|---|---|---|"]
    for stage in scale.stage:
        path = folder / stage.makes
        if path.suffix in (".h5", ".safetensors") and path.exists():
            header = read_header(path)
            lines.append(_line([stage.makes, f"`{header.content_id[:16]}`", f"`{header.command or stage.command}`"]))
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
