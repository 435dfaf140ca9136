"""Summary of scores in one table: what is right as a whole, the worst pair, recall, agreement and sharpness."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mmgen.results.frame import pivot
from mmgen.results.naming import CONDITIONAL
from mmgen.results.number import Number
from mmgen.results.score import Score, detail_number

REAL = "(real pictures)"
"""Name of the last row."""
DECODED = "reconstruction"
"""Metric of pictures that are encoded and decoded, which no words ask for."""


def name_rows(scores: Sequence[Score]) -> list[str]:
    """Name the row of each score: its posterior, with the family or file of its fit where several have it, or what is
    decoded.
    """
    fits = [(score.family, score.run.get("name", "")) for score in scores]
    names = []
    for score, fit in zip(scores, fits, strict=True):
        if score.metric == DECODED:
            names.append(f"({score.conditions.get('part', '')}, decoded)")
            continue
        alike = list(
            zip(*{other for one, other in zip(scores, fits, strict=True) if one.source == score.source}, strict=True)
        )
        told = next((own for own, others in zip(fit, alike, strict=True) if len({*others}) > 1), "")
        told = "the prior" if score.posterior == "prior" and score.base != CONDITIONAL else told
        names.append(", ".join(filter(None, [score.source, told])))
    return names


@dataclass(frozen=True)
class _Column:
    """Column of a summary: a quantity, with which words it is shown, and keys of details of drawn and real pictures."""

    heading: str
    metric: str
    quantity: str
    most_words: bool
    drawn: str
    real: str
    is_high_bad: bool = False

    def number(self, score: Score) -> Number | None:
        """Return a score's number for the column, of drawn or of decoded pictures; None of another quantity."""
        decoded = self.metric == "correctness" and score.metric == DECODED
        quantity = self.quantity or score.quantity
        same = (score.metric, score.quantity or score.metric) == (self.metric, quantity) and bool(
            score.given or self.is_high_bad
        )
        if score.protocol in ("pooled", "paper", "features") or not (same or decoded):
            return None
        alone = not self.drawn or (self.drawn == "all_right" and score.given == 1)
        return score.number if alone else detail_number(score.details, self.drawn)


_COLUMNS = (
    _Column("all right", "correctness", "correctness", True, "all_right", "real_all_right"),
    _Column("worst pair", "correctness", "correctness", False, "worst_pair", "real_worst_pair"),
    _Column("recall", "recall", "recall", True, "", "ceiling"),
    _Column("agreement", "agreement", "agreement", False, "", "ceiling"),
    _Column("sharpness", "sharpness", "fine detail", True, "", "ceiling"),
    _Column("copies", "copies", "", True, "", "ceiling", is_high_bad=True),
)


def summarise(scores: Sequence[Score]) -> tuple[list[str], dict[str, list[Number | None]]]:
    """Return headings, and the numbers in % of each row, the last of real pictures, without columns that are empty.

    Shares of all words and of sharpness are with the most words given, those of pairs and of open words with the
    fewest. Of several judges the one that sees least counts in each place, of real pictures too. Of copies the largest
    number counts, whether of words that training pictures have, or of gaps; by pixels.
    """
    found = [
        (column, name, score, number)
        for column in _COLUMNS
        for name, score in zip(name_rows(scores), scores, strict=True)
        if (number := column.number(score))
    ]
    worst: dict[tuple[str, str], Number | None] = {}
    for column, name, score, number in found:
        every = [one.given for same, _, one, _ in found if same == column and one.given]
        if column.is_high_bad or score.given in ((max if column.most_words else min)(every, default=None), None):
            for row, own in ((name, number), (REAL, detail_number(score.details, column.real))):
                place = row, column.heading
                worst[place] = _worse(worst.get(place), own, max if column.is_high_bad else min)
    ordered = sorted(worst.items(), key=lambda one: one[0][0] == REAL)
    return pivot((row, heading, number) for (row, heading), number in ordered if number)


def _worse(one: Number | None, other: Number | None, choose: Callable[..., Number]) -> Number | None:
    """Return the worse of two numbers, where there are any, with one decimal unless it has a name."""
    found = [number for number in (one, other) if number]
    worse = choose(found, key=lambda number: number.value) if found else None
    return worse if worse is None or worse.note else replace(worse, places=1)
