"""The final table of ``mmgen quickstart``: a row for each posterior, judge and rival."""

from typing import Any

from mmgen.cli.quickstart import choose_columns, final_table
from mmgen.results.score import Score


def score(posterior: str, value: float, given: int = 3, metric: str = "correctness", **others: Any) -> Score:
    judge = others.pop("judge", "small")
    return Score(metric, metric, value, 1.0, "%", "higher", 100, posterior, given, judge=judge, **others)


def test_the_table_has_a_row_for_the_rival_and_columns_for_every_number_of_words() -> None:
    scores = [
        score("aggregate", 90.0), score("aggregate", 80.0, 1), score("prior", 20.0),
        score("prior", 85.0, base="plain conditional VAE"), score("aggregate", 1.0, 3, "copies", protocol="features"),
        score("aggregate", 2.0, 3, "copies", protocol="pixels", judge=""),
    ]  # fmt: skip
    columns, rows = final_table(scores, choose_columns(scores))
    assert columns[1:] == ["correctness, 3 words given", "correctness, 1 word given", "copies, 3 words given"]
    assert [row[0] for row in rows] == ["q_agg", "p(z), the prior", "plain conditional VAE"]
    assert str(rows[0][-1]).startswith("2.0")
