"""Next steps by constructed scores: the weakest numbers first, each with the advice that its numbers call for."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mmgen.results.groups import rank_posteriors
from mmgen.results.next_steps import find_next_steps
from mmgen.results.score import Score


def score(posterior: str, value: float, given: int = 3, metric: str = "correctness", **others: Any) -> Score:
    ids = {"model": "m", "dataset": "d", "judge": others.get("judge", "small")} | others.pop("ids", {})
    run = {"name": "model", "settings": "s", "seed": "0"} | others.pop("run", {})
    base = "aggregate" if posterior == "guided" else ""
    judge = others.pop("judge", "small")
    error = others.pop("stderr", 1.0)
    return Score(
        metric, metric, value, error, "%", "higher", 100, posterior, given,
        judge=judge, base=base, run=run, ids=ids, **others,
    )  # fmt: skip


WORDS = {"letter": 60.0, "font": 70.0, "colour": 99.0}
READ = {"letter": 77.0, "font": 95.0, "colour": 100.0, "mean": 90.7}
GUIDED = {"guidance": 1.5, "guidance_method": "cfg"}
RIVAL = {"ids": {"model": "r"}, "run": {"name": "plain-cvae"}}


def texts(*scores: Score, **options: Any) -> list[str]:
    return [step.text for step in find_next_steps(scores, **options)]


def test_the_weakest_words_come_first_with_what_real_pictures_reach() -> None:
    drawn = score("aggregate", 76.3, by_attribute=WORDS, judge_accuracy=READ)
    letter, font = find_next_steps([drawn], larger=True)
    assert letter.text == (
        "letter: 60.0 % drawn right; 77.0 % of real pictures read right: the model draws it badly; train longer, or "
        "add pictures of each value; larger pictures keep more detail."
    )
    assert font.text == (
        "font: 70.0 % drawn right; 95.0 % of real pictures read right: the model draws it badly; train longer, or "
        "add pictures of each value."
    )
    assert (letter.need, font.need) == ("larger", "train")
    assert [step.need for step in find_next_steps([drawn])] == ["train", "train"], "there are no larger pictures"


def test_the_judge_alone_is_doubted_where_its_own_errors_explain_what_is_seen() -> None:
    """A perfect model's pictures are misread as often as real ones; 71 points are more than the judge's 12."""
    real = {"shape": 88.0, "mean": 88.0}
    (step,) = find_next_steps([score("aggregate", 85.0, by_attribute={"shape": 85.0}, judge_accuracy=real)])
    assert step.need == "read" and "look with your own eyes" in step.text and "draws it badly" not in step.text
    (step,) = find_next_steps([score("aggregate", 17.0, by_attribute={"shape": 17.0}, judge_accuracy=real)])
    assert step.need == "train" and "the model draws it badly" in step.text


def agreement(value: float, given: int = 1, error: float = 1.0, **others: Any) -> Score:
    details = {"ceiling": 99.5, "below_ceiling": 99.5 - value, "below_ceiling_stderr": error}
    values = {"by_attribute": {"shape": value, "colour": 98.0}, **others}
    return score("aggregate", value, given, "agreement", details=details, **values)


def test_pictures_that_judges_read_differently_are_ghosts() -> None:
    right = score("aggregate", 99.0)
    (step,) = find_next_steps([right, agreement(90.0, 2), agreement(76.7)])
    assert step.text == (
        "1 word given: two judges read the open words alike on 76.7 ± 1.0 % of drawn pictures, on 99.5 % of real ones: "
        "the others show two values at once; fit the posterior longer."
    )
    assert (step.need, step.loss) == ("fit", pytest.approx(22.8))
    assert texts(right, agreement(97.0)) == texts(right, agreement(80.0, error=15.0)) == [], "within the error"
    as_given = {"as_given": True}
    (step,) = find_next_steps([score("aggregate", 99.0, **as_given), agreement(70.0, **as_given)])
    assert step.need == "draw" and "let words that are left open be completed" in step.text


def test_judges_that_disagree_send_the_reader_to_the_pictures() -> None:
    read = {"shape": 100.0, "mean": 100.0}
    small = score("aggregate", 97.5, by_attribute={"shape": 97.5}, judge_accuracy=read)
    other = score("aggregate", 82.6, by_attribute={"shape": 82.6}, judge_accuracy=read, judge="attentive")
    (step,) = find_next_steps([small, other])
    assert step.text.startswith("shape: 82.6 % drawn right by attentive, 97.5 % by small; 100.0 % of real pictures")
    assert "the judges disagree" in step.text and step.need == "draw" and step.loss == pytest.approx(17.4)
    both = score("aggregate", 80.0, by_attribute={"shape": 80.0}, judge_accuracy=read)
    assert "the model draws it badly" in texts(both, other)[0]


def test_scores_without_a_weak_number_say_so_and_others_say_what_is_missing() -> None:
    good = score("aggregate", 99.0, by_attribute={"colour": 99.0}, judge_accuracy={"colour": 100.0, "mean": 100.0})
    assert texts(good) == [
        "Every word is drawn about as well as the judge reads it on real pictures: draw pictures of your own words."
    ]
    (step,) = find_next_steps([score("prior", 20.0)])
    assert "Only the prior was measured" in step.text and step.need == "fit"
    (step,) = find_next_steps([score("aggregate", 1.0, metric="copies", judge="", details={})])
    assert "No judge has read these pictures" in step.text and step.need == "judge"
    plain = Score("log-likelihood", "log p(x)", -90.0, 0.1, "nats", "higher", 100, "prior")
    assert texts() == texts(plain) == texts(score("aggregate", float("nan"))) == []


def test_guidance_is_compared_with_the_same_posterior_without_it() -> None:
    plain = [score("aggregate", 90.0), score("aggregate", 95.0, 2, "coverage")]
    same = [score("guided", 91.0, **GUIDED), score("guided", 94.0, 2, "coverage", **GUIDED)]
    none = "q_agg guided (cfg 1.5) brings +1.0 points of correctness (3 given), within their error: leave guidance out."
    assert texts(*plain, *same) == [none]
    traded = [score("guided", 95.0, **GUIDED), score("guided", 91.0, 2, "coverage", **GUIDED)]
    assert texts(*plain, *traded) == [
        "q_agg guided (cfg 1.5) brings +5.0 points of correctness (3 given) and -4.0 points of coverage (2 given): a "
        "smaller weight keeps more variety."
    ]
    (step,) = find_next_steps([*plain, *traded])
    assert step.score.guidance == 0.75, "the command draws with the smaller weight"
    other_judge = [score("aggregate", 90.0, judge="attentive"), score("guided", 99.0, judge="attentive", **GUIDED)]
    few = [score("aggregate", 90.0, 1), score("guided", 99.0, 1, **GUIDED)]
    assert texts(*plain, *same, *other_judge, *few) == [none], "one comparison, named beforehand"
    good = score("aggregate", 99.0, by_attribute={"shape": 99.0}, judge_accuracy={"shape": 100.0, "mean": 100.0})
    assert [step.need for step in find_next_steps([good, score("guided", 99.0, **GUIDED)])] == ["draw", "draw"]
    assert texts(good, score("guided", 99.0, **GUIDED))[0].startswith("Every word is drawn about as well")
    assert texts(*plain, traded[0], same[1])[0].endswith("+5.0 points of correctness (3 given): use it.")
    assert texts(*plain, score("guided", 80.0, **GUIDED), same[1])[0].endswith("(3 given): leave guidance out.")
    another_fit = [score("guided", 95.0, ids={"aggregate": "b"}, **GUIDED)]
    assert texts(score("aggregate", 90.0, ids={"aggregate": "a"}), *another_fit) == []


def test_guidance_without_an_effect_is_seldom_said_to_have_one() -> None:
    """Of five weights, two judges and two numbers of words one comparison is looked at, which errs in 5 % of trials."""
    generator, said = np.random.default_rng(0), 0
    for _ in range(300):
        scores = []
        for judge, given in itertools.product(("small", "attentive"), (3, 1)):
            for weight in (None, 0.5, 1.0, 1.5, 2.0, 3.0):
                how = {"posterior": "aggregate"} if weight is None else {"posterior": "guided", "guidance": weight}
                scores.append(score(value=95 + generator.normal(), given=given, judge=judge, **how))
        said += not any("within their error: leave" in text for text in texts(*scores))
    assert 5 <= said <= 25


def test_what_differs_beyond_the_errors_is_asked_of_pairs_of_examples() -> None:
    """Two scores with large errors differ if every example does, and not by their errors alone."""
    from mmgen.results.score import ExampleValues

    values = [50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 50.0, 60.0]
    ours = score("aggregate", 70.0, stderr=6.5, points=ExampleValues(values))
    theirs = score("guided", 72.0, stderr=6.5, points=ExampleValues([value + 2.0 for value in values[:-1]] + [62.1]))
    assert "within their error" in texts(ours, score("guided", 72.0, stderr=6.5, **GUIDED))[0]
    guided = Score(**{**theirs.__dict__, **GUIDED, "value": 72.0125})
    assert texts(ours, guided)[0].endswith("brings +2.0 points of correctness (3 given): use it.")


def test_a_rival_that_draws_more_words_right_is_named() -> None:
    ours = [score("aggregate", 90.0), score("aggregate", 89.0, 1), score("aggregate", 95.0, 2, "coverage")]
    theirs = [
        score("prior", 96.0, **RIVAL), score("prior", 91.0, 1, **RIVAL),
        score("prior", 99.0, judge="attentive", **RIVAL),
    ]  # fmt: skip
    assert texts(*ours, *theirs) == [
        "plain-cvae draws more words right (3 given 96.0 against 90.0 %): look whether it varies what is left open."
    ]
    assert texts(*ours, score("prior", 99.0)) == [], "the prior of the same model is chance"
    rivals = (score("prior", value, 2, "coverage", **RIVAL) for value in (80.0, 95.5))
    less, as_much = (texts(*ours, *theirs, coverage)[0] for coverage in rivals)
    assert less.endswith("(3 given 96.0 against 90.0 %) and varies less: coverage 80.0 against 95.0 %.")
    assert as_much.endswith("and varies no less: coverage 95.5 against 95.0 %.")


def test_words_are_told_beside_what_is_drawn_without_them() -> None:
    drawn = score("aggregate", 76.3, by_attribute=WORDS, judge_accuracy=READ)
    prior = score("prior", 40.0, by_attribute={"letter": 12.5, "font": 33.0, "colour": 16.0}, judge_accuracy=READ)
    letter, font = texts(drawn, prior)
    assert "77.0 % of real pictures read right; 12.5 % of those drawn without words: the model" in letter
    assert "; 33.0 % of those drawn without words: the model draws it badly" in font
    assert "without words" not in "".join(texts(drawn, score("prior", 40.0, 1, by_attribute={"letter": 12.5})))


def test_low_coverage_and_low_recall_have_reasons() -> None:
    full = score("aggregate", 95.0, 4)
    open_words = "coverage is 73.2 ± 1.0 % with 3 words given: what is left open varies less than in your data; "
    assert texts(full, score("aggregate", 73.2, 3, "coverage")) == [
        f"{open_words}fit the posterior longer, or add pictures of more combinations."
    ]
    guided = score("guided", 99.0, 4, **GUIDED), score("guided", 73.2, 3, "coverage", **GUIDED)
    assert "use a smaller weight of guidance" in texts(*guided)[0]
    assert texts(full, score("aggregate", 95.0, 3, "coverage")) == []
    (line,) = texts(full, score("aggregate", 60.0, 1, "recall", details={"ceiling": 98.0}))
    assert line == (
        "recall with 1 word given: 60.0 ± 1.0 % of real pictures have a drawn one like them, among real pictures 98.0 "
        "%: some kinds are never drawn, or all are blurred; train longer."
    )
    assert texts(full, score("aggregate", 95.0, 1, "recall", details={"ceiling": 98.0})) == []
    few = score("aggregate", 24.0, 1, "recall", details={"ceiling": 98.0})
    assert texts(full, score("aggregate", 97.0, 4, "recall", details={"ceiling": 98.0}), few) == [], "as tables show it"


def test_copies_above_those_of_test_pictures_come_with_their_share() -> None:
    def copies(low: float, posterior: str = "aggregate", protocol: str = "pixels") -> Score:
        details = {"low": low, "ceiling": 1.0}
        return score(posterior, 8.0, metric="copies", judge="", protocol=protocol, details=details)

    fitted = score("aggregate", 99.0)
    (step,) = find_next_steps([fitted, copies(5.0)])
    assert step.text.startswith(
        "q_agg: 8.0 ± 1.0 % of its pictures nearly equal a training picture, of test pictures 1.0"
    )
    assert step.need == "copies" and step.loss == 7.0
    gaps, words = replace(copies(5.0), quantity="copies of gaps"), replace(copies(90.0), value=100.0)
    (line,) = texts(fitted, gaps, replace(words, quantity="copies of training words"))
    assert line.startswith("q_agg: 100.0 ± 1.0 % of its pictures of training words nearly equal"), "the larger of both"
    strange = score("aggregate", 8.0, metric="copies", protocol="pixels", details={"low": "x", "ceiling": None})
    for few in (strange, copies(0.5), copies(5.0, "retrieval"), copies(5.0, protocol="features")):
        assert texts(fitted, few) == []


def test_several_models_are_named_and_no_more_steps_than_asked_are_given() -> None:
    one = score("aggregate", 76.3, by_attribute=WORDS, judge_accuracy=READ)
    two = score(
        "true", 50.0, by_attribute={"font": 10.0}, judge_accuracy=READ, ids={"model": "n"}, run={"name": "second"}
    )
    assert [text.partition(":")[0] for text in texts(one, two)] == ["second, font", "model, letter", "model, font"]
    assert len(texts(one, two, most=2)) == 2
    guided = score("guided", 90.0, by_attribute=WORDS, judge_accuracy=READ, **GUIDED)
    found = texts(one, two, guided, most=2)
    assert "second, font" in found[0] and "guided (cfg 1.5) brings" in found[1], "guidance keeps its place"


def test_posteriors_are_ranked_by_the_sum_of_both_measures() -> None:
    scores = [
        score("true", 99.0), score("true", 50.0, 2, "coverage"), score("aggregate", 84.0),
        score("aggregate", 97.0, 2, "coverage"), score("prior", 100.0), score("own", 100.0),
    ]  # fmt: skip
    assert [row.right.posterior for row in rank_posteriors(scores)] == ["aggregate", "true", "own"]


@pytest.mark.parametrize(("value", "error", "said"), [(54.0, 12.0, True), (88.0, 8.0, False), (30.0, 40.0, False)])
def test_a_pair_of_words_that_is_drawn_badly_is_named(value: float, error: float, said: bool) -> None:
    """Though every word is right, and only beyond the error of the worst of many; as pairs are asked for, not whole."""
    pair = {"worst_pair": value, "worst_pair_stderr": error, "worst_pair_name": "square night", "real_worst_pair": 95.0}
    words: dict[str, Any] = {"by_attribute": {"shape": 99.0}, "judge_accuracy": {"shape": 100.0, "mean": 100.0}}
    whole = score("aggregate", 99.0, 4, details={**pair, "worst_pair": 90.0}, **words)
    (step,) = find_next_steps([whole, score("aggregate", 99.0, 2, details=pair, **words)])
    assert ("square night" in step.text) == said
    assert step.text.startswith(
        "square night: both words right in 54 ± 12 % of drawn pictures, the worst pair of words in 95.00 % of real ones"
        if said
        else "Every word is drawn about as well as the judge reads it"
    )
