"""Next steps by constructed scores: the weakest numbers first, each with the advice that its numbers call for."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mmgen.results.groups import rank_posteriors
from mmgen.results.next_steps import find_next_steps
from mmgen.results.score import ExampleValues, Score


def score(posterior: str, value: float, given: int = 3, metric: str = "correctness", **others: Any) -> Score:
    ids = {"model": "m", "dataset": "d", "judge": others.get("judge", "small")} | others.pop("ids", {})
    run = {"name": "model", "settings": "s", "seed": "0"} | others.pop("run", {})
    base, error = "aggregate" if posterior == "guided" else "", others.pop("stderr", 1.0)
    others = {"judge": "small", "base": base, "run": run, "ids": ids, **others}
    return Score(metric, metric, value, error, "%", "higher", 100, posterior, given, **others)


def guided(value: float, given: int = 3, metric: str = "correctness", **others: Any) -> Score:
    return score("guided", value, given, metric, guidance=1.5, guidance_method="cfg", **others)


def rival(value: float, given: int = 3, metric: str = "correctness", **others: Any) -> Score:
    return score("prior", value, given, metric, ids={"model": "r"}, run={"name": "plain-cvae"}, **others)


def agreement(value: float, given: int = 1, error: float = 1.0, **others: Any) -> Score:
    details = {"ceiling": 99.5, "below_ceiling": 99.5 - value, "below_ceiling_stderr": error}
    values = {"by_attribute": {"shape": value, "colour": 98.0}, **others}
    return score("aggregate", value, given, "agreement", details=details, **values)


def shape(drawn: float, real: float, **others: Any) -> Score:
    """Of which one word is read."""
    read = {"shape": real, "mean": real}
    return score("aggregate", drawn, by_attribute={"shape": drawn}, judge_accuracy=read, **others)


def recall(value: float, given: int = 1, **others: Any) -> Score:
    return score("aggregate", value, given, "recall", details={"ceiling": 98.0}, **others)


def copies(low: Any, posterior: str = "aggregate", protocol: str = "pixels", ceiling: Any = 1.0) -> Score:
    details = {"low": low, "ceiling": ceiling}
    return score(posterior, 8.0, metric="copies", judge="", protocol=protocol, details=details)


def pair(value: float, error: float) -> list[Score]:
    """Asked for as a pair, not as the whole of four words, of which each is right."""
    told = {"worst_pair": value, "worst_pair_stderr": error, "worst_pair_name": "square night", "real_worst_pair": 95.0}
    words: dict[str, Any] = {"by_attribute": {"shape": 99.0}, "judge_accuracy": {"shape": 100.0, "mean": 100.0}}
    whole = score("aggregate", 99.0, 4, details={**told, "worst_pair": 90.0}, **words)
    return [whole, score("aggregate", 99.0, 2, details=told, **words)]


READ = {"letter": 77.0, "font": 95.0, "colour": 100.0, "mean": 90.7}
DRAWN = score("aggregate", 76.3, by_attribute={"letter": 60.0, "font": 70.0, "colour": 99.0}, judge_accuracy=READ)
LETTER = "letter: 60.0 % drawn right; 77.0 % of real pictures read right"
FONT = "font: 70.0 % drawn right; 95.0 % of real pictures read right"
BADLY = ": the model draws it badly; train longer, or add pictures of each value"
WITHOUT = score("prior", 40.0, by_attribute={"letter": 12.5, "font": 33.0, "colour": 16.0}, judge_accuracy=READ)
SECOND = score(
    "true", 50.0, by_attribute={"font": 10.0}, judge_accuracy=READ, ids={"model": "n"}, run={"name": "second"}
)
FULL, RIGHT = score("aggregate", 95.0, 4), score("aggregate", 99.0)
ALL = "Every word is drawn about as well as the judge reads it on real pictures: draw pictures of your own words."
JUDGE = ": the judge misreads real pictures too, so look with your own eyes."
ALIKE = "1 word given: two judges read the open words alike on"
VARIES = "coverage is 73.2 ± 1.0 % with 3 words given: what is left open varies less than in your data; "
PLAIN = [score("aggregate", 90.0), score("aggregate", 95.0, 2, "coverage")]
BRINGS = "q_agg guided (cfg 1.5) brings"
NOTHING = f"{BRINGS} +1.0 points of correctness (3 given), within their error: leave guidance out."
OURS = [score("aggregate", 90.0), score("aggregate", 89.0, 1), score("aggregate", 95.0, 2, "coverage")]
MORE = "plain-cvae draws more words right (3 given 96.0 against 90.0 %)"
POINTS = [50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 50.0, 60.0]
PAIRED = score("aggregate", 70.0, stderr=6.5, points=ExampleValues(POINTS))
BY_EXAMPLE = ExampleValues([*(value + 2.0 for value in POINTS[:-1]), 62.1])
COPIED = "nearly equal a training picture, of test pictures 1.0 %"
PAIR = "square night: both words right in"

TABLE: dict[str, tuple[list[Score], list[tuple[str, str]]]] = {
    # words, weakest first
    "words": ([DRAWN], [("train", f"{LETTER}{BADLY}."), ("train", f"{FONT}{BADLY}.")]),
    "words, two models": (
        [DRAWN, SECOND], [("train", "second, font"), ("train", "model, letter"), ("train", "model, font")]),
    "words, drawn without": (
        [DRAWN, WITHOUT],
        [("train", f"{LETTER}; 12.5 % of those drawn without words{BADLY}"),
         ("train", f"{FONT}; 33.0 % of those drawn without words{BADLY}")],
    ),
    "words, without them of other descriptions": (
        [DRAWN, replace(WITHOUT, given=1)], [("train", f"{LETTER}{BADLY}."), ("train", f"{FONT}{BADLY}.")]),
    "judge's own errors": (
        [shape(85.0, 88.0)], [("read", f"shape: 85.0 % drawn right; 88.0 % of real pictures read right{JUDGE}")]),
    "far more than the judge's errors": ([shape(17.0, 88.0)], [("train", "shape: 17.0 %")]),
    "five points below real ones": ([shape(94.9, 100.0)], [("train", "shape: 94.9 %")]),
    "as good as real ones": ([shape(95.0, 100.0)], [("draw", ALL)]),
    "judges disagree": (
        [shape(97.5, 100.0), shape(82.6, 100.0, judge="attentive")],
        [("draw", "shape: 82.6 % drawn right by attentive, 97.5 % by small; 100.0 % of real pictures read right by "
          "attentive: the judges disagree, so look with your own eyes.")],
    ),
    "judges agree": ([shape(80.0, 100.0), shape(82.6, 100.0, judge="attentive")], [("train", "shape: 80.0 %")]),
    "a pair": (
        pair(54.0, 12.0),
        [("train", f"{PAIR} 54 ± 12 % of drawn pictures, the worst pair of words in 95.00 % of real ones: "
          "train longer, or add pictures of this pair.")],
    ),
    "a pair within five points": (pair(88.0, 8.0), [("draw", ALL)]),
    "a pair within its error": (pair(30.0, 40.0), [("draw", ALL)]),
    # what judges read alike
    "ghosts": (
        [RIGHT, agreement(90.0, 2), agreement(76.7)],
        [("fit", f"{ALIKE} 76.7 ± 1.0 % of drawn pictures, on 99.5 % of real ones: the others show two values at once; "
          "fit the posterior longer.")],
    ),
    "ghosts, few": ([RIGHT, agreement(97.0)], []),
    "ghosts, within the error": ([RIGHT, agreement(80.0, error=15.0)], []),
    "ghosts of words that stay open": (
        [score("aggregate", 99.0, as_given=True), agreement(70.0, as_given=True)],
        [("draw", f"{ALIKE} 70.0 ± 1.0 % of drawn pictures, on 99.5 % of real ones: the others show two values "
          "at once; let words that are left open be completed (without --no-complete), or fit the posterior longer.")],
    ),
    # what is missing, or nothing
    "only the prior": ([score("prior", 20.0)], [("fit", "Only the prior was measured: fit a posterior to the words")]),
    "no judge": ([score("aggregate", 1.0, metric="copies", judge="")], [("judge", "No judge has read these pictures")]),
    "no scores": ([], []),
    "no words": ([Score("log-likelihood", "log p(x)", -90.0, 0.1, "nats", "higher", 100, "prior")], []),
    "not finite": ([score("aggregate", float("nan"))], []),
    # guidance beside the same posterior without it
    "guidance": ([*PLAIN, guided(91.0), guided(94.0, 2, "coverage")], [("draw", NOTHING)]),
    "guidance, of one comparison that is named beforehand": (
        [*PLAIN, guided(91.0), guided(94.0, 2, "coverage"), score("aggregate", 90.0, judge="attentive"),
         guided(99.0, judge="attentive"), score("aggregate", 90.0, 1), guided(99.0, 1)],
        [("draw", NOTHING)],
    ),
    "guidance at a price": (
        [*PLAIN, guided(95.0), guided(91.0, 2, "coverage")],
        [("draw", f"{BRINGS} +5.0 points of correctness (3 given) and -4.0 points of coverage (2 given): a smaller "
          "weight keeps more variety.")],
    ),
    "guidance that helps": (
        [*PLAIN, guided(95.0), guided(94.0, 2, "coverage")],
        [("draw", f"{BRINGS} +5.0 points of correctness (3 given): use it.")]),
    "guidance that harms": (
        [*PLAIN, guided(80.0)], [("draw", f"{BRINGS} -10.0 points of correctness (3 given): leave guidance out.")]),
    "guidance of another fit": (
        [score("aggregate", 90.0, ids={"aggregate": "a"}), guided(95.0, ids={"aggregate": "b"})], []),
    "guidance of good pictures": (
        [shape(99.0, 100.0), guided(99.0)], [("draw", ALL), ("draw", f"{BRINGS} +0.0 points")]),
    "guidance, errors too large": (
        [PAIRED, guided(72.0, stderr=6.5)], [("draw", f"{BRINGS} +2.0 points of correctness (3 given), within")]),
    "guidance, example by example": (
        [PAIRED, guided(72.0125, stderr=6.5, points=BY_EXAMPLE)],
        [("draw", f"{BRINGS} +2.0 points of correctness (3 given): use it.")]),
    # other models
    "rival": (
        [*OURS, rival(96.0), rival(91.0, 1), rival(99.0, judge="attentive")],
        [("draw", f"{MORE}: look whether it varies what is left open.")]),
    "rival that varies less": (
        [*OURS, rival(96.0), rival(80.0, 2, "coverage")],
        [("draw", f"{MORE} and varies less: coverage 80.0 against 95.0 %.")]),
    "rival that varies as much": (
        [*OURS, rival(96.0), rival(95.5, 2, "coverage")],
        [("draw", f"{MORE} and varies no less: coverage 95.5 against 95.0 %.")]),
    "rival that varies less, within the error": (
        [*OURS, rival(96.0), rival(94.5, 2, "coverage")],
        [("draw", f"{MORE} and varies no less: coverage 94.5 against 95.0 %.")]),
    "rival within the error": ([*OURS, rival(92.0)], []),
    "the prior of the same model is chance": ([*OURS, score("prior", 99.0)], []),
    # what is left open
    "coverage": (
        [FULL, score("aggregate", 73.2, 3, "coverage")], [("fit", f"{VARIES}fit the posterior longer, or add")]),
    "coverage of guidance": (
        [guided(99.0, 4), guided(73.2, 3, "coverage")], [("fit", f"{VARIES}use a smaller weight of guidance")]),
    "enough coverage": ([FULL, score("aggregate", 95.0, 3, "coverage")], []),
    "recall": (
        [FULL, recall(60.0)],
        [("train", "recall with 1 word given: 60.0 ± 1.0 % of real pictures have a drawn one like them, among real "
          "pictures 98.0 %: some kinds are never drawn, or all are blurred; train longer.")],
    ),
    "recall within ten points": ([FULL, recall(88.1)], []),
    "recall within its error": ([FULL, recall(60.0, stderr=20.0)], []),
    "recall as tables show it": ([FULL, recall(97.0, 4), recall(24.0, 1)], []),
    # copies
    "copies": ([RIGHT, copies(5.0)], [("copies", f"q_agg: 8.0 ± 1.0 % of its pictures {COPIED}")]),
    "copies, the larger of both": (
        [RIGHT, replace(copies(5.0), quantity="copies of gaps"),
         replace(copies(90.0), value=100.0, quantity="copies of training words")],
        [("copies", f"q_agg: 100.0 ± 1.0 % of its pictures of training words {COPIED}")],
    ),
    "copies that are no number": ([RIGHT, copies("x", ceiling=None)], []),
    "few copies": ([RIGHT, copies(0.5)], []),
    "copies by retrieval": ([RIGHT, copies(5.0, "retrieval")], []),
    "copies by features": ([RIGHT, copies(5.0, protocol="features")], []),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_steps_and_their_sentences(name: str) -> None:
    scores, expected = TABLE[name]
    steps = find_next_steps(scores)
    assert [
        (step.need, step.text[: len(text)]) for step, (_, text) in itertools.zip_longest(steps, expected)
    ] == expected


def test_larger_pictures_the_number_of_steps_and_what_is_lost() -> None:
    letter, font = find_next_steps([DRAWN], larger=True)
    assert letter.text == f"{LETTER}{BADLY}; larger pictures keep more detail." and font.text == f"{FONT}{BADLY}."
    assert (letter.need, font.need, letter.loss, font.loss) == ("larger", "train", 40.0, 30.0)
    assert len(find_next_steps([DRAWN, SECOND], most=2)) == 2
    with_guidance = guided(90.0, by_attribute=DRAWN.by_attribute, judge_accuracy=READ)
    found = find_next_steps([DRAWN, SECOND, with_guidance], most=2)
    assert "second, font" in found[0].text and BRINGS in found[1].text, "guidance keeps its place"
    losses = {"ghosts": 22.8, "judges disagree": 17.4, "copies": 7.0, "recall": 38.0, "rival": 6.0}
    assert {name: find_next_steps(TABLE[name][0])[0].loss for name in losses} == pytest.approx(losses)
    (step,) = find_next_steps(TABLE["guidance at a price"][0])
    assert step.score.guidance == 0.75, "the command draws with the smaller weight"


def test_guidance_without_an_effect_is_seldom_said_to_have_one() -> None:
    """Of five weights, two judges and two numbers of words one comparison is looked at, which errs in 5 % of trials."""
    generator, said = np.random.default_rng(0), 0
    for _ in range(300):
        scores = []
        for judge, given in itertools.product(("small", "attentive"), (3, 1)):
            for weight in (None, 0.5, 1.0, 1.5, 2.0, 3.0):
                how = {"posterior": "aggregate"} if weight is None else {"posterior": "guided", "guidance": weight}
                scores.append(score(value=95 + generator.normal(), given=given, judge=judge, **how))
        said += not any("within their error: leave" in step.text for step in find_next_steps(scores))
    assert 5 <= said <= 25


def test_posteriors_are_ranked_by_the_sum_of_both_measures() -> None:
    scores = [
        score("true", 99.0), score("true", 50.0, 2, "coverage"), score("aggregate", 84.0),
        score("aggregate", 97.0, 2, "coverage"), score("prior", 100.0), score("own", 100.0),
    ]  # fmt: skip
    assert [row.right.posterior for row in rank_posteriors(scores)] == ["aggregate", "true", "own"]
