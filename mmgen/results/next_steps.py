"""Next steps after a measurement: six sentences on the weakest numbers, each with advice."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from mmgen.results.groups import MeasuredPosterior, differ, fit_identity, rank_posteriors, shared_conditions
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
        loss: Points that are lost, by which steps are sorted; below 0 for guidance that changes nothing.
        text: A sentence with the numbers and the advice.
        need: What the advice asks for.
        score: The score behind it, whose ids name the files.
    """

    loss: float
    text: str
    need: Need
    score: Score


class _Model(NamedTuple):
    """A model's posteriors, the best first, its scores, those of models without a posterior, and its name in front of
    sentences; "" for a single one.
    """

    rows: Sequence[MeasuredPosterior]
    scores: Sequence[Score]
    rivals: Sequence[Score]
    prefix: str

    def find(self, metric: str) -> list[Score]:
        """Return the scores of the best posterior by a metric, of the same data, the most attributes given first."""
        best = self.rows[0].right
        data, identity = shared_conditions(best)._replace(judge="", protocol=""), fit_identity(best)
        found = [score for score in self.scores if score.metric == metric and fit_identity(score) == identity]
        found = [s for s in found if s.given and shared_conditions(s)._replace(judge="", protocol="") == data]
        return sorted(found, key=lambda score: score.given or 0, reverse=True)


def find_next_steps(scores: Sequence[Score], *, larger: bool = False, most: int = 4) -> list[NextStep]:
    """Find the weakest numbers of each model's best posterior, the weakest first, then what guidance does.

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
    rivals = [score for model, rows in ranked.items() if not rows for score in by_model[model]]
    weak, guided = list(_copies(scores)), []
    for name, rows in ranked.items():
        if rows:
            prefix = f"{rows[0].right.run.get('name', 'model')}, " if sum(map(bool, ranked.values())) > 1 else ""
            model = _Model(rows, by_model[name], rivals, prefix)
            weak += [*_words(model, larger), *_pair(model), *_open_words(model), *_variety(model), *_rival(model)]
            guided += list(_guidance(model))
    weak = sorted(weak, key=lambda step: step.loss, reverse=True)[: most - bool(guided)]
    if not weak and not any(step.loss == 0 for step in guided):
        weak = _without_weakness(scores, [rows[0].right for rows in ranked.values() if rows])
    return [*weak, *guided[:1]]


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


def _words(model: _Model, larger: bool) -> Iterator[NextStep]:
    """Yield a step for each of the weakest attributes, by the classifier that sees it least, beside real pictures and
    those drawn without words.
    """
    best = model.rows[0].right
    readings = [s for s in model.find("correctness") if (s.given, s.protocol) == (best.given, best.protocol)]
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
        prior = (s for s in model.scores if (s.metric, s.posterior, s.given) == ("correctness", "prior", best.given))
        alike = (other for other in prior if shared_conditions(other) == shared_conditions(score))
        known = [other.by_attribute[name] for other in alike if name in other.by_attribute]
        chance = f"; {known[0]:.1f} % of those drawn without words" if known else ""
        numbers = f"{drawn:.1f} % drawn right{by}{also}; {real:.1f} % of real pictures read right{by}{chance}"
        yield NextStep(100 - drawn, f"{model.prefix}{name}: {numbers}: {advice}.", need, score)


def _pair(model: _Model) -> Iterator[NextStep]:
    """Yield a step if a pair of words is drawn worse than any is read, by the judge that sees it least."""
    found = [score for score in model.find("correctness") if "worst_pair" in score.details]
    for score in sorted(found, key=lambda score: (score.given, score.details["worst_pair"]))[:1]:
        drawn, real = (detail_number(score.details, key) for key in ("worst_pair", "real_worst_pair"))
        if drawn and real and drawn.value + 1.96 * (drawn.error or 0.0) < real.value - _SHORT:
            value, usual = (replace(each, note="", unit="%") for each in (drawn, real))
            text = f"{model.prefix}{drawn.note.strip()}: both words right in {value} of drawn pictures, the worst pair "
            text += f"of words in {usual} of real ones: train longer, or add pictures of this pair."
            yield NextStep(100 - drawn.value, text, "train", score)


def _open_words(model: _Model) -> Iterator[NextStep]:
    """Yield a step if judges read drawn pictures alike clearly less often than real ones, with fewest words given:
    pictures then show two values of an open word at once.
    """
    for score in [one for one in model.find("agreement") if one.quantity == "agreement"][-1:]:
        below, error = (score.details.get(key) for key in ("below_ceiling", "below_ceiling_stderr"))
        if isinstance(below, int | float) and below >= max(_SHORT, 1.96 * float(error or 0.0)):
            completed = "let words that are left open be completed (without --no-complete), or "
            text = (
                f"{model.prefix}{_count(score.given)} given: two judges read the open words alike on "
                f"{score.number_with_unit} of drawn pictures, on {_ceiling(score):.1f} % of real ones: the others show "
                f"two values at once; {completed if score.as_given else ''}fit the posterior longer."
            )
            yield NextStep(below, text, "draw" if score.as_given else "fit", score)


def _variety(model: _Model) -> Iterator[NextStep]:
    """Yield a step if kinds of real pictures are never drawn, or if what is left open varies too little; with the most
    words given, as tables show it.
    """
    guided = model.rows[0].right.posterior == "guided"
    for score in [one for one in model.find("recall") if one.protocol != "pooled"][:1]:
        loss = _ceiling(score) - score.value
        if loss > max(_FAR, 2 * (score.stderr or 0.0)):
            text = (
                f"{model.prefix}recall with {_count(score.given)} given: {score.number_with_unit} of real pictures "
                f"have a drawn one like them, among real pictures {_ceiling(score):.1f} %: some kinds are never drawn, "
                f"or all are blurred; train longer{', or use less guidance' if guided else ''}."
            )
            yield NextStep(loss, text, "train", score)
            return
    varied = model.rows[0].varied
    if varied is not None and varied.value < _VARIED:
        advice = "use a smaller weight of guidance" if guided else "fit the posterior longer"
        text = (
            f"{model.prefix}coverage is {varied.number_with_unit} with {_count(varied.given)} given: what is left "
            f"open varies less than in your data; {advice}, or add pictures of more combinations."
        )
        yield NextStep(100 - varied.value, text, "fit", varied)


def _rival(model: _Model) -> Iterator[NextStep]:
    """Yield a step for a model whose prior draws more words right than the best posterior of this one, with the
    coverage of both.
    """
    best, mine = model.rows[0].right, model.rows[0].varied
    for rival in model.rivals:
        if (rival.metric, rival.posterior, rival.given) != ("correctness", "prior", best.given) or rival.as_given:
            continue
        if shared_conditions(rival) != shared_conditions(best) or rival.value <= best.value or not differ(rival, best):
            continue
        name = f"the {CONDITIONAL}" if rival.base == CONDITIONAL else rival.run.get("name", "another model")
        text = f"{name} draws more words right ({rival.given} given {rival.value:.1f} against {best.value:.1f} %)"
        theirs = [one for one in model.rivals if mine and (one.metric, one.given) == ("coverage", mine.given)]
        theirs = [one for one in theirs if mine and shared_conditions(one) == shared_conditions(mine)]
        same = [one for one in theirs if _model_of(one) == _model_of(rival)]
        if mine and same:
            verdict = "no less" if same[0].value >= mine.value or not differ(same[0], mine) else "less"
            text += f" and varies {verdict}: coverage {same[0].value:.1f} against {mine.value:.1f} %"
        else:
            text += ": look whether it varies what is left open"
        yield NextStep(rival.value - best.value, f"{text}.", "draw", best)


def _guidance(model: _Model) -> Iterator[NextStep]:
    """Yield what the guidance that was measured first does to what is drawn right: of several the best would be chosen
    by chance.
    """
    rows = [row.right for row in model.rows]
    guided = min((score for score in rows if score.posterior == "guided"), key=model.scores.index, default=None)
    base = next(
        (score for score in rows if guided and score.posterior == guided.base and _same_fit(score, guided)), None
    )
    if guided is None or base is None:
        return
    change, helps = guided.value - base.value, differ(guided, base)
    varied = {fit_identity(row.right): row.varied for row in model.rows}
    before, after = varied[fit_identity(base)], varied[fit_identity(guided)]
    difference = after.value - before.value if before and after and differ(after, before) else 0.0
    listed = f" and {difference:+z.1f} points of coverage ({after.given} given)" if after and difference else ""
    advice, drawn = "leave guidance out", base
    if change > 0 > difference and helps:
        advice, drawn = "a smaller weight keeps more variety", replace(guided, guidance=(guided.guidance or 0.0) / 2)
    elif change > 0 and helps:
        advice, drawn = "use it", guided
    points = f"{change:+z.1f} points of correctness ({guided.given} given){'' if helps else ', within their error'}"
    text = f"{model.prefix}{guided.source} brings {points}{listed}: {advice}."
    yield NextStep(0.0 if helps else -1.0, text, "draw", drawn)


def _copies(scores: Sequence[Score]) -> Iterator[NextStep]:
    """Yield a step for each fitted posterior that copies more pictures than held-out pictures look like copies: of its
    largest number, of words that training pictures have or of gaps.
    """
    copied: dict[tuple[str, str], Score] = {}
    for score in scores:
        if score.metric == "copies" and score.protocol == "pixels" and score.posterior not in ("prior", RETRIEVAL):
            most = copied.setdefault((_model_of(score), score.source), score)
            copied[_model_of(score), score.source] = max(most, score, key=lambda one: one.value)
    several = len({model for model, _ in copied}) > 1
    for score in copied.values():
        low = score.details.get("low")
        if isinstance(low, int | float) and low > _ceiling(score):
            name = f"{score.run.get('name', 'model')}, " if several else ""
            words = score.quantity.partition(" of ")[2]
            yield NextStep(
                score.value - _ceiling(score),
                f"{name}{score.source}: {score.number_with_unit} of its pictures{f' of {words}' if words else ''} "
                f"nearly equal a training picture, of test pictures {_ceiling(score):.1f} %: look at the nearest ones "
                "(mmgen plot copies); a looser fit copies less and is less often right; or add pictures.",
                "copies",
                score,
            )


def _ceiling(score: Score) -> float:
    value = score.details.get("ceiling")
    return float(value) if isinstance(value, int | float) else score.value


def _same_fit(one: Score, other: Score) -> bool:
    return one.ids.get("aggregate") == other.ids.get("aggregate") and one.remark == other.remark


def _count(words: int | None) -> str:
    return f"{words} word{'' if words == 1 else 's'}"
