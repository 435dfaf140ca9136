"""Sentences below the table of ``mmgen quickstart --images``, from the numbers of its scores."""

from typing import Any

from mmgen.cli._next_steps import describe_next_steps
from mmgen.cli._quickstart_table import choose_columns, final_table
from mmgen.results.score import Score


def score(posterior: str, value: float, given: int = 3, metric: str = "correctness", **others: Any) -> Score:
    return Score(
        metric, metric, value, 1.0, "%", "higher", 100, posterior, given,
        judge=others.pop("judge", "small"), base="aggregate" if posterior == "guided" else "", **others,
    )  # fmt: skip


WORDS = {"letter": 60.0, "font": 70.0, "colour": 99.0}
READ = {"letter": 77.0, "font": 95.0, "colour": 100.0, "mean": 90.7}


def test_weakest_words_come_first_with_advice() -> None:
    scores = [score("aggregate", 76.3, by_attribute=WORDS, judge_accuracy=READ)]
    lines = describe_next_steps(scores, "mmgen quickstart --images letters --size 64")
    assert [line.partition(":")[0] for line in lines] == ["letter", "font"]
    assert "77.0 % of real pictures read right" in lines[0] and lines[0].endswith("letters --size 64.")
    assert "the model draws it badly" in lines[1]
    assert "more pictures of each value" in describe_next_steps(scores)[0], "there are no larger pictures"
    assert describe_next_steps([score("aggregate", 99.0, by_attribute={"colour": 99.0}, judge_accuracy=READ)]) == []
    assert describe_next_steps([]) == []


def test_guidance_without_effect_is_to_be_left_out() -> None:
    plain = [score("aggregate", 90.0), score("aggregate", 80.0, 2, "coverage")]
    guided = [score("guided", 91.0, guidance=1.0, guidance_method="cfg"), score("guided", 79.0, 2, "coverage")]
    assert "leave guidance out" in describe_next_steps([*plain, *guided])[0]
    better = [score("guided", 95.0, guidance=1.0, guidance_method="cfg"), guided[1]]
    assert describe_next_steps([*plain, *better]) == []


def test_a_better_rival_is_named_by_the_first_judge_alone() -> None:
    rival = {"run": {"name": "plain-cvae"}}
    ours = [score("aggregate", 90.0), score("aggregate", 90.0, 1)]
    theirs = [
        score("prior", 95.0, **rival),
        score("prior", 91.0, 1, **rival),
        score("prior", 99.0, judge="attentive", **rival),
    ]
    (line,) = describe_next_steps([*ours, *theirs])
    assert "3 given: 95.0 against 90.0 %" in line and "1 given" not in line
    assert describe_next_steps([*ours, score("prior", 95.0, run={"name": "model"})]) == []


def test_the_table_has_a_row_for_the_rival_and_columns_for_every_number_of_words() -> None:
    scores = [
        score("aggregate", 90.0), score("aggregate", 80.0, 1), score("prior", 20.0),
        score("prior", 85.0, run={"name": "plain-cvae"}), score("aggregate", 1.0, 3, "copies", protocol="features"),
        score("aggregate", 2.0, 3, "copies", protocol="pixels", judge=""),
    ]  # fmt: skip
    columns, rows = final_table(scores, choose_columns(scores))
    assert columns[1:] == ["correctness, 3 words given", "correctness, 1 word given", "copies, 3 words given"]
    assert [row[0] for row in rows] == ["q_agg", "p(z), the prior", "plain conditional VAE"]
    assert str(rows[0][-1]).startswith("2.0")


def test_copies_above_those_of_test_pictures_are_said() -> None:
    def copies(low: float, posterior: str = "aggregate", protocol: str = "pixels") -> Score:
        details = {"low": low, "ceiling": 1.0}
        return score(posterior, 8.0, metric="copies", judge="", protocol=protocol, details=details)

    fitted = score("aggregate", 99.0, by_attribute={"colour": 99.0}, judge_accuracy=READ)
    (line,) = describe_next_steps([fitted, copies(5.0)])
    assert line.startswith("q_agg: 8.0 ± 1.0 % of its pictures nearly equal one of yours, of test pictures 1.0 %")
    for few in (copies(0.5), copies(5.0, "retrieval"), copies(5.0, protocol="features")):
        assert describe_next_steps([fitted, few]) == []
