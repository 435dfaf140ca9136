"""Next steps after a measurement: the weakest numbers among scores, each with advice."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mmgen.results.conditions import Conditions
from mmgen.results.groups import (
    MeasuredPosterior,
    contrast,
    fit_identity,
    group_runs,
    rank_posteriors,
    shared_conditions,
)
from mmgen.results.naming import CONDITIONAL, RETRIEVAL
from mmgen.results.score import Score, classifier_names

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
            weak += [*own.attributes(larger), *own.few_words(), *own.ghosts(), *own.coverage(), *own.recall()]
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
        """Yield a step for each of the weakest attributes: drawn pictures, real pictures, chance."""
        readings = [s for s in self._like(self.best, "correctness") if s.given == self.best.given and s.judge_accuracy]
        readings = [score for score in readings if score.protocol == self.best.protocol]
        weakest: dict[str, Score] = {}
        for score in readings:
            for name, drawn in score.by_attribute.items():
                if name in (score.judge_accuracy or {}):
                    before = weakest.get(name)
                    weakest[name] = score if before is None or drawn < before.by_attribute[name] else before
        order = sorted(weakest, key=lambda name: weakest[name].by_attribute[name])
        for name in order[:_ATTRIBUTES]:
            step = self._attribute(name, weakest[name], readings, larger)
            if step is not None:
                yield step

    def _attribute(self, name: str, score: Score, readings: Sequence[Score], larger: bool) -> NextStep | None:
        """Return the step of an attribute, by the classifier that sees it least; None for one that is drawn well."""
        drawn, real = score.by_attribute[name], (score.judge_accuracy or {})[name]
        others = [
            (judge, other.by_attribute[name])
            for judge, other in zip(classifier_names(readings), readings, strict=True)
            if other is not score and name in other.by_attribute and name in (other.judge_accuracy or {})
        ]
        by = f" by {dict(zip(map(id, readings), classifier_names(readings), strict=True))[id(score)]}" if others else ""
        need: Need
        misread = "the judge misreads real pictures too"
        if drawn >= real - _SHORT:  # what the judge's own errors explain
            if real >= _READABLE:
                return None
            need = "larger" if larger else "read"
            advice = f"{misread}, so look with your own eyes; " + (
                "larger pictures keep more detail"
                if larger
                else "a longer training of the judge, or more pictures, may help"
            )
        elif any(value >= real - _SHORT for _, value in others):
            need, advice = "draw", "the judges disagree, so look with your own eyes; a longer training may help"
        else:
            need, advice = "train", "the model draws it badly; train longer, or add pictures of each value"
            if real < _READABLE:
                need = "larger" if larger else "train"
                further = "; larger pictures keep more detail" if larger else ""
                advice = (
                    f"the model draws it badly, and {misread}; train longer, or add pictures of each value{further}"
                )
        also = "".join(f", {value:.1f} % by {judge}" for judge, value in others)
        chance = self._chance(name, score)
        numbers = f"{drawn:.1f} % drawn right{by}{also}; {real:.1f} % of real pictures read right{by}{chance}"
        return NextStep(100 - drawn, f"{self.prefix}{name}: {numbers}: {advice}.", need, score)

    def _chance(self, name: str, score: Score) -> str:
        """Return the share of pictures drawn without words that show an attribute's value by chance; "" if unknown."""
        for other in self.scores:
            comparable = other.given == score.given and shared_conditions(other) == shared_conditions(score)
            if other.posterior == "prior" and other.metric == "correctness" and comparable:
                value = other.by_attribute.get(name)
                return "" if value is None else f"; {value:.1f} % by chance"
        return ""

    def few_words(self) -> Iterator[NextStep]:
        """Yield a step if descriptions of few words are drawn worse than complete ones."""
        found = [
            s for s in self._like(self.best, "correctness") if shared_conditions(s) == shared_conditions(self.best)
        ]
        few = min(found, key=lambda score: score.value, default=self.best)
        if few.value < self.best.value - _SHORT and _differ(few, self.best):
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
        worst = min(score.by_attribute, key=lambda name: score.by_attribute[name], default="")
        most = f", most often the {worst}" if len(score.by_attribute) > 1 else ""
        need: Need = "draw" if score.as_given else "fit"
        completed = "let words that are left open be completed (without --no-complete), or " if score.as_given else ""
        text = (
            f"{self.prefix}{_words(score.given)} given: two judges read the open words alike on "
            f"{score.number_with_unit} of drawn pictures, on {_ceiling(score):.1f} % of real ones: the others show two "
            f"values at once{most}; {completed}fit the posterior longer."
        )
        yield NextStep(below, text, need, score)

    def coverage(self) -> Iterator[NextStep]:
        """Yield a step if what a description leaves open varies too little, with the reason if scores have it."""
        score = self.rows[0].varied
        if score is None or score.value >= _VARIED:
            return
        unmatched, queries = (score.details.get(key) for key in ("queries_without_training_examples", "queries"))
        plain = [row.varied for row in self.rows[1:] if row.varied and row.right.posterior != "guided"]
        if isinstance(unmatched, int) and isinstance(queries, int) and 2 * unmatched > queries:
            reason = (
                f"{unmatched:,} of {queries:,} descriptions have no training picture; add pictures of more combinations"
            )
        elif score.posterior == "guided" and any(other.value > score.value + _SHORT for other in plain):
            reason = "guidance costs variety; use a smaller weight"
        else:
            reason = "what is left open varies less than in your data; fit the posterior longer"
        text = f"{self.prefix}coverage is {score.number_with_unit} with {_words(score.given)} given: {reason}."
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
        ours = {(s.given, shared_conditions(s)): s for s in self._like(self.best, "correctness")}
        ahead: dict[str, list[tuple[Score, Score]]] = {}
        for score in scores:
            is_rival = score.metric == "correctness" and score.posterior == "prior" and not score.as_given
            mine = ours.get((score.given, shared_conditions(score))) if is_rival else None
            if mine is None or mine.ids.get("judge") != self.best.ids.get("judge"):
                continue
            if score.value > mine.value and _differ(score, mine):
                ahead.setdefault(_model_of(score), []).append((score, mine))
        for model, pairs in ahead.items():
            listed = ", ".join(f"{s.given} given {s.value:.1f} against {mine.value:.1f} %" for s, mine in pairs)
            varied = self._compare_coverage([score for score in scores if _model_of(score) == model])
            rival = pairs[0][0]
            name = f"the {CONDITIONAL}" if rival.base == CONDITIONAL else rival.run.get("name", "another model")
            loss = max(score.value - mine.value for score, mine in pairs)
            yield NextStep(loss, f"{name} draws more words right ({listed}){varied}.", "draw", self.best)

    def _compare_coverage(self, scores: Sequence[Score]) -> str:
        """Compare the coverage of a rival with that of the best posterior; advise to look if one is missing."""
        mine = self.rows[0].varied
        theirs = [s for s in scores if mine and s.metric == "coverage" and s.given == mine.given]
        theirs = [score for score in theirs if mine and shared_conditions(score) == shared_conditions(mine)]
        if mine is None or not theirs:
            return ": look whether it varies what is left open"
        verdict = "varies less" if theirs[0].value < mine.value else "varies no less"
        return f" and {verdict}: coverage {theirs[0].value:.1f} against {mine.value:.1f} %"

    def guidance(self) -> Iterator[NextStep]:
        """Yield the effect of guidance, if the same posterior was measured with and without it."""
        guided = next((row.right for row in self.rows if row.right.posterior == "guided"), None)
        base = next(
            (r.right for r in self.rows if guided and r.right.posterior == guided.base and _same_fit(r.right, guided)),
            None,
        )
        if guided is None or base is None:
            return
        changes = self._named_changes(guided, base)
        if "correctness" not in changes:  # one comparison, named beforehand: of several, some differ by chance
            return
        listed = " and ".join(
            f"{value:+.1f} points of {metric} ({given} given)" for metric, (value, given) in changes.items()
        )
        gains, loses = changes["correctness"][0] > 0, changes.get("coverage", (0.0, 0))[0] < 0
        source, drawn = f"{self.prefix}{guided.source}", guided if gains else base
        if not gains:
            advice = "it buys variety with errors" if changes.get("coverage", (0.0, 0))[0] > 0 else "leave guidance out"
        elif loses:
            advice = "a smaller weight keeps more variety"
            drawn = replace(guided, guidance=(guided.guidance or 0.0) / 2)
        else:
            advice = "use it"
        yield NextStep(0.0, f"{source} brings {listed}: {advice}.", "draw", drawn)

    def _named_changes(self, guided: Score, base: Score) -> dict[str, tuple[float, int | None]]:
        """Return by metric the difference that guidance makes with most words given, by the first judge, and their
        number; nothing for differences within their error.
        """
        changes = {}
        for metric in ("correctness", "coverage"):
            pairs = [
                (one, other)
                for one in self._like(guided, metric)
                for other in self._like(base, metric)
                if one.given == other.given and shared_conditions(one) == shared_conditions(other)
                if one.ids.get("judge") == self.best.ids.get("judge")
            ]
            if pairs and _differ(*pairs[0]):
                one, other = pairs[0]
                changes[metric] = one.value - other.value, one.given
        return changes


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
            if loss > 0.05 * abs(test.value) and _differ(train, test):
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


def _differ(one: Score, other: Score) -> bool:
    """Return whether two scores differ at the level of confidence intervals, paired by example if possible."""
    difference = contrast(group_runs([one]), group_runs([other]))
    if difference.low is None or difference.high is None:
        return difference.stderr is None and difference.value != 0
    return difference.low > 0 or difference.high < 0


def _same_fit(one: Score, other: Score) -> bool:
    return one.ids.get("aggregate") == other.ids.get("aggregate") and (one.sharpened, one.as_given) == (
        other.sharpened,
        other.as_given,
    )


def _words(count: int | None) -> str:
    return f"{count} word{'' if count == 1 else 's'}"
