"""Next steps after a measurement: the weakest numbers among scores, each with advice."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mmgen.results.conditions import Conditions
from mmgen.results.groups import (
    MeasuredPosterior,
    differ,
    fit_identity,
    rank_posteriors,
    shared_conditions,
)
from mmgen.results.naming import CONDITIONAL, RETRIEVAL
from mmgen.results.score import Score, classifier_names, detail_number

Need = Literal["train", "fit", "draw", "larger", "read", "judge", "copies"]
"""What a step asks for: a longer training of the model or of the fit, pictures to look at, larger pictures, pictures
that the attribute classifier misreads, an attribute classifier, or the nearest training pictures."""

_READABLE = 90.0
"""Accuracy in percent below which the readings of an attribute classifier are doubtful."""
_SHORT = 5.0
"""Points below the classifier's own accuracy from which drawn pictures count as worse than real ones."""
_VARIED = 90.0
"""Coverage in percent below which pictures vary too little."""
_FAR = 10.0
"""Points of recall below that of real pictures which are worth a step."""
_ATTRIBUTES = 3
"""Most attributes among the steps."""


@dataclass(frozen=True)
class NextStep:
    """Finding about the scores of a model, with advice.

    Attributes:
        loss: Points that are lost, by which steps are sorted.
        text: A sentence with the numbers and the advice.
        need: What the advice asks for.
        score: The score behind it, whose ids name the files.
    """

    loss: float
    text: str
    need: Need
    score: Score


def find_next_steps(scores: Sequence[Score], *, larger: bool = False, most: int = 4) -> list[NextStep]:
    """Find the weakest numbers of each model's best posterior, the weakest first, then the effect of guidance.

    Args:
        scores: Scores of one or several models, by one or several attribute classifiers, or by none.
        larger: Whether larger pictures can be had.
        most: Largest number of steps.

    Returns:
        Steps; none for scores that say nothing about drawn pictures or words.
    """
    scores = [score for score in scores if math.isfinite(score.value)]
    by_model: dict[str, list[Score]] = {}
    for score in scores:
        by_model.setdefault(_model_of(score), []).append(score)
    ranked = {model: rank_posteriors(found) for model, found in by_model.items()}
    weak, guided = list(_copies(scores)) + list(_learnt_by_heart(scores)), []
    for model, rows in ranked.items():
        if rows:
            own = _Measured(by_model[model], rows, several=sum(map(bool, ranked.values())) > 1)
            rivals = [score for other, found in by_model.items() if not ranked[other] for score in found]
            weak += [
                *own.attributes(larger),
                *own.pairs(),
                *own.few_words(),
                *own.ghosts(),
                *own.coverage(),
                *own.recall(),
            ]
            weak += own.rivals(rivals)
            guided += list(own.guidance())
    weak = sorted(weak, key=lambda step: step.loss, reverse=True)[: most - bool(guided)]
    return [*weak, *guided[:1]] or _without_weakness(scores, [rows[0].right for rows in ranked.values() if rows])


def _model_of(score: Score) -> str:
    return str(score.ids.get("model") or score.run.get("name") or "")


def _without_weakness(scores: Sequence[Score], best: Sequence[Score]) -> list[NextStep]:
    """Return the step of scores without a weak number, or of scores that lack those of words."""
    described = [score for score in scores if score.given]
    if best and best[0].by_attribute:
        text = (
            "Every word is drawn about as well as the judge reads it on real pictures: draw pictures of your own words."
        )
        return [NextStep(0.0, text, "draw", best[0])]
    if best or not described:
        return []
    if any(score.metric == "correctness" for score in described):
        text = "Only the prior was measured: fit a posterior to the words, and measure it beside the prior."
        return [NextStep(0.0, text, "fit", described[0])]
    text = (
        "No judge has read these pictures, so nobody knows whether they show their words: train one, and measure again."
    )
    return [NextStep(0.0, text, "judge", described[0])]


@dataclass(frozen=True)
class _Measured:
    """Scores of a model and its ranked posteriors."""

    scores: Sequence[Score]
    rows: Sequence[MeasuredPosterior]
    several: bool

    @property
    def best(self) -> Score:
        return self.rows[0].right

    @property
    def prefix(self) -> str:
        """Name of the model, if there are several."""
        return f"{self.best.run.get('name', 'model')}, " if self.several else ""

    def _like(self, one: Score, metric: str) -> list[Score]:
        """Return the scores of a posterior by metric, of the same data, the most attributes given first."""
        data = shared_conditions(one)._replace(judge="", protocol="")
        found = [
            score
            for score in self.scores
            if fit_identity(score) == fit_identity(one) and score.metric == metric and score.given
            if shared_conditions(score)._replace(judge="", protocol="") == data
        ]
        return sorted(found, key=lambda score: score.given or 0, reverse=True)

    def attributes(self, larger: bool) -> Iterator[NextStep]:
        """Yield a step for each of the weakest attributes, by the classifier that sees it least."""
        readings = [s for s in self._like(self.best, "correctness") if s.given == self.best.given]
        readings = [score for score in readings if score.protocol == self.best.protocol]
        seen: dict[str, list[tuple[float, float, str, Score]]] = {}
        for judge, score in zip(classifier_names(readings), readings, strict=True):
            for name in score.by_attribute.keys() & (score.judge_accuracy or {}).keys():
                row = score.by_attribute[name], (score.judge_accuracy or {})[name], judge, score
                seen.setdefault(name, []).append(row)
        weakest = {name: sorted(rows, key=lambda row: row[0]) for name, rows in seen.items()}
        for name in sorted(weakest, key=lambda name: (weakest[name][0][0], name))[:_ATTRIBUTES]:
            (drawn, real, judge, score), *others = weakest[name]
            need: Need = "train"
            if drawn >= real - _SHORT:  # what the judge's own errors explain
                if real >= _READABLE:
                    continue
                need, advice = "read", "the judge misreads real pictures too, so look with your own eyes"
            elif any(value >= accuracy - _SHORT for value, accuracy, *_ in others):
                need, advice = "draw", "the judges disagree, so look with your own eyes"
            else:
                advice = "the model draws it badly; train longer, or add pictures of each value"
            if real < _READABLE and larger and need != "draw":
                need, advice = "larger", f"{advice}; larger pictures keep more detail"
            by = f" by {judge}" if others else ""
            also = "".join(f", {value:.1f} % by {other}" for value, _, other, _ in others)
            numbers = f"{drawn:.1f} % drawn right{by}{also}; {real:.1f} % of real pictures read right{by}"
            yield NextStep(100 - drawn, f"{self.prefix}{name}: {numbers}: {advice}.", need, score)

    def pairs(self) -> Iterator[NextStep]:
        """Yield a step if a pair of words is drawn worse than any is read, by the judge that sees it least."""
        found = [score for score in self._like(self.best, "correctness") if "worst_pair" in score.details]
        for score in sorted(found, key=lambda score: (score.given, score.details["worst_pair"]))[:1]:
            drawn, real = (detail_number(score.details, key) for key in ("worst_pair", "real_worst_pair"))
            if drawn and real and drawn.value + 1.96 * (drawn.error or 0.0) < real.value - _SHORT:
                value, usual = (replace(each, note="", unit="%") for each in (drawn, real))
                text = (
                    f"{self.prefix}{drawn.note.strip()}: both words right in {value} of drawn pictures, the worst pair "
                )
                text += f"of words in {usual} of real ones: train longer, or add pictures of this pair."
                yield NextStep(100 - drawn.value, text, "train", score)

    def few_words(self) -> Iterator[NextStep]:
        """Yield a step if descriptions of few words are drawn worse than complete ones."""
        found = [
            s for s in self._like(self.best, "correctness") if shared_conditions(s) == shared_conditions(self.best)
        ]
        few = min(found, key=lambda score: score.value, default=self.best)
        if few.value < self.best.value - _SHORT and differ(few, self.best):
            yield NextStep(
                100 - few.value,
                f"{self.prefix}{_words(few.given)} given: {few.number_with_unit} drawn right, with "
                f"{self.best.given} {self.best.number_with_unit}: give more words, or fit the posterior longer.",
                "fit",
                few,
            )

    def ghosts(self) -> Iterator[NextStep]:
        """Yield a step if judges read drawn pictures alike clearly less often than real ones, with fewest words given:
        pictures then show two values of an open word at once.
        """
        found = [score for score in self._like(self.best, "agreement") if score.quantity == "agreement"]
        if not found:
            return
        score = found[-1]
        below, error = (score.details.get(key) for key in ("below_ceiling", "below_ceiling_stderr"))
        if not isinstance(below, int | float) or below < max(_SHORT, 1.96 * float(error or 0.0)):
            return
        need: Need = "draw" if score.as_given else "fit"
        completed = "let words that are left open be completed (without --no-complete), or " if score.as_given else ""
        text = (
            f"{self.prefix}{_words(score.given)} given: two judges read the open words alike on "
            f"{score.number_with_unit} of drawn pictures, on {_ceiling(score):.1f} % of real ones: the others show two "
            f"values at once; {completed}fit the posterior longer."
        )
        yield NextStep(below, text, need, score)

    def coverage(self) -> Iterator[NextStep]:
        """Yield a step if what a description leaves open varies too little."""
        score = self.rows[0].varied
        if score is not None and score.value < _VARIED:
            advice = "use a smaller weight of guidance" if score.posterior == "guided" else "fit the posterior longer"
            text = (
                f"{self.prefix}coverage is {score.number_with_unit} with {_words(score.given)} given: what is left "
                f"open varies less than in your data; {advice}, or add pictures of more combinations."
            )
            yield NextStep(100 - score.value, text, "fit", score)

    def recall(self) -> Iterator[NextStep]:
        """Yield a step if many kinds of real pictures are never drawn."""
        short = [(_ceiling(score) - score.value, score) for score in self._like(self.best, "recall")]
        loss, score = max(short, key=lambda pair: pair[0], default=(0.0, self.best))
        if loss > max(_FAR, 2 * (score.stderr or 0.0)):
            yield NextStep(
                loss,
                f"{self.prefix}recall with {_words(score.given)} given: {score.number_with_unit} of real pictures have "
                f"a drawn one like them, among real pictures {_ceiling(score):.1f} %: some kinds are never drawn, or "
                f"all are blurred; train longer{', or use less guidance' if score.posterior == 'guided' else ''}.",
                "train",
                score,
            )

    def rivals(self, scores: Sequence[Score]) -> Iterator[NextStep]:
        """Yield a step for a model whose prior draws more words right than the best posterior of this one."""
        for rival in scores:
            if rival.metric != "correctness" or rival.posterior != "prior" or rival.as_given:
                continue
            if rival.given == self.best.given and shared_conditions(rival) == shared_conditions(self.best):
                loss = rival.value - self.best.value
                if loss > 0 and differ(rival, self.best):
                    name = f"the {CONDITIONAL}" if rival.base == CONDITIONAL else rival.run.get("name", "another model")
                    numbers = f"{rival.given} given {rival.value:.1f} against {self.best.value:.1f} %"
                    text = f"{name} draws more words right ({numbers}): look whether it varies what is left open."
                    yield NextStep(loss, text, "draw", self.best)

    def guidance(self) -> Iterator[NextStep]:
        """Yield the effect on what is drawn right of the guidance that was measured first, if it has one: of several
        the best would be chosen by chance.
        """
        rows = [row.right for row in self.rows]
        guided = min((score for score in rows if score.posterior == "guided"), key=self.scores.index, default=None)
        if guided is None:
            return
        base = next((score for score in rows if score.posterior == guided.base and _same_fit(score, guided)), None)
        if base is None or not differ(guided, base):
            return
        change = guided.value - base.value
        varied = {fit_identity(row.right): row.varied for row in self.rows}
        before, after = varied[fit_identity(base)], varied[fit_identity(guided)]
        listed, advice, drawn = "", "use it" if change > 0 else "leave guidance out", guided if change > 0 else base
        if before and after and differ(after, before):
            difference = after.value - before.value
            listed = f" and {difference:+.1f} points of coverage ({after.given} given)"
            if change > 0 > difference:
                advice = "a smaller weight keeps more variety"
                drawn = replace(guided, guidance=(guided.guidance or 0.0) / 2)
        yield NextStep(
            0.0,
            f"{self.prefix}{guided.source} brings {change:+.1f} points of correctness ({guided.given} given){listed}: "
            f"{advice}.",
            "draw",
            drawn,
        )


def _copies(scores: Sequence[Score]) -> Iterator[NextStep]:
    """Yield a step for each fitted posterior that copies more pictures than held-out pictures look like copies."""
    copied: dict[tuple[str, str], Score] = {}
    for score in scores:
        if score.metric == "copies" and score.protocol == "pixels" and score.posterior not in ("prior", RETRIEVAL):
            copied.setdefault((_model_of(score), score.source), score)  # with the most words given, which come first
    several = len({model for model, _ in copied}) > 1
    for score in copied.values():
        low = score.details.get("low")
        if isinstance(low, int | float) and low > _ceiling(score):
            name = f"{score.run.get('name', 'model')}, " if several else ""
            yield NextStep(
                score.value - _ceiling(score),
                f"{name}{score.source}: {score.number_with_unit} of its pictures nearly equal a training picture, of "
                f"test pictures {_ceiling(score):.1f} %: look at the nearest ones (mmgen plot copies); a looser fit "
                "copies less and is less often right; or add pictures.",
                "copies",
                score,
            )


def _learnt_by_heart(scores: Sequence[Score]) -> Iterator[NextStep]:
    """Yield a step for each log-likelihood that is clearly higher for training examples than for test examples."""
    parts: dict[tuple[object, ...], dict[str, Score]] = {}
    for score in scores:
        if score.unit == "nats" and score.better == "higher":
            conditions = Conditions.from_score(score)
            further = tuple(one for one in conditions.further if one[0] != "part")
            key = (_model_of(score), score.source, score.quantity, conditions._replace(further=further))
            parts.setdefault(key, {}).setdefault(score.conditions.get("part", ""), score)
    for found in parts.values():
        if {"train", "test"} <= found.keys():
            train, test = found["train"], found["test"]
            loss = train.value - test.value
            if loss > 0.05 * abs(test.value) and differ(train, test):
                yield NextStep(
                    100 * loss / max(abs(test.value), loss),
                    f"{train.quantity}: {train.number_with_unit} for training examples, {test.number_with_unit} for "
                    "test examples: much is learnt by heart; train for fewer steps, or add pictures.",
                    "draw",
                    test,
                )


def _ceiling(score: Score) -> float:
    value = score.details.get("ceiling")
    return float(value) if isinstance(value, int | float) else score.value


def _same_fit(one: Score, other: Score) -> bool:
    return one.ids.get("aggregate") == other.ids.get("aggregate") and (one.sharpened, one.as_given) == (
        other.sharpened,
        other.as_given,
    )


def _words(count: int | None) -> str:
    return f"{count} word{'' if count == 1 else 's'}"
