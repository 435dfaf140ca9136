"""What a report says first: the best row with both measures, the data's own settings, a heading of what follows."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mmgen.artifacts import read_header
from mmgen.figures.report.make import make_report
from mmgen.figures.report.pictures import sort_by_scores
from mmgen.figures.report.scores import describe_findings
from mmgen.figures.session import Source, gather_files, open_session
from mmgen.results.groups import rank_posteriors
from mmgen.results.score import Score

GUIDED = {"base": "aggregate", "guidance": 3.0, "guidance_method": ""}
IDS = {"dataset": "d", "judge": "j"}


def line(metric: str, value: float, given: int, posterior: str, file: str, **others: Any) -> dict[str, Any]:
    ids = {"aggregate": file, **IDS}
    found = {"metric": metric, "quantity": metric, "value": value, "stderr": 0.5, "unit": "%", "better": "higher"}
    found["details"] = (
        {"all_right": value - 10, "all_right_stderr": 0.5} if metric == "correctness" and given > 1 else {}
    )
    return found | {"n": 9, "posterior": posterior, "given": given, "protocol": "exact", "ids": ids} | others


@pytest.fixture
def said(world: Path, tmp_path: Path) -> Any:
    """What is found of lines of scores, one of q_true, one of q_agg, both of flat: the sentence, the table's rows."""
    true, agg = (read_header(world / f"flat-{name}.safetensors").content_id for name in ("true", "aggregate"))

    def find(*lines: dict[str, Any]) -> list[tuple[str, list[str]]]:
        written = [{**one, "ids": one["ids"] | {"aggregate": {"true": true, "agg": agg}[one["ids"]["aggregate"]]}}
                   for one in lines]  # fmt: skip
        path = tmp_path / "found.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in written))
        files = [world / "flat-true.safetensors", world / "flat-aggregate.safetensors", path]
        return [
            (one.best, [" | ".join([plain, title, *cells]) for plain, title, cells in one.rows])
            for one in describe_findings(gather_files(files))
        ]

    return find


def test_a_plain_conditional_vae_stands_first_under_its_name(said: Any) -> None:
    """Where it was measured as the best posterior was; its own file need not be there."""
    plain = {"base": "plain conditional VAE", "run": {"name": "plain-cvae", "settings": "s", "seed": "0"}}
    ((_, rows),) = said(
        line("correctness", 84.0, 4, "aggregate", "agg"),
        line("coverage", 97.0, 3, "aggregate", "agg"),
        line("correctness", 80.0, 4, "prior", "true", **plain),
        line("coverage", 70.0, 3, "prior", "true", **plain),
    )
    assert rows == [
        "A plain conditional VAE | plain conditional VAE: its own prior, the words go to the decoder | 70.0 ± 0.5",
        "Where real pictures lie | q_agg: fitted to the aggregate | 74.0 ± 0.5",
    ]


def test_another_length_of_training_of_the_plain_model_is_said(
    stubs: SimpleNamespace, world: Path, tmp_path: Path
) -> None:
    flat, rival = world / "flat.safetensors", tmp_path / "plain-cvae.safetensors"
    stubs.train_tiny(world / "data.h5", rival, {"name": "cvae"}, steps=3)
    plain = {"base": "plain conditional VAE", "run": {"name": "plain-cvae", "settings": "s", "seed": "0"}}
    (tmp_path / "a.jsonl").write_text(
        json.dumps(line("correctness", 84.0, 4, "own", "", ids={"model": read_header(flat).content_id, **IDS}))
        + "\n"
        + json.dumps(
            line("correctness", 80.0, 4, "prior", "", ids={"model": read_header(rival).content_id, **IDS}, **plain)
        )
    )
    (found, *_) = describe_findings(gather_files([flat, rival, tmp_path / "a.jsonl"]))
    steps = read_header(flat).facts["step"]
    assert steps != 3
    assert found.best.endswith(f" It was trained for {steps} steps, the plain conditional VAE for 3.")


def test_rows_that_do_not_differ_are_not_ranked(said: Any) -> None:
    """Two rows whose difference lies within its error are named together; they are listed as they were measured."""
    ((best, _),) = said(
        line("correctness", 84.0, 4, "aggregate", "agg"), line("correctness", 84.5, 4, "guided", "agg", **GUIDED)
    )
    assert best == (
        "flat draws about as well from where real pictures lie, and the model agrees (q_agg guided (w = 3)) and where "
        "real pictures lie (q_agg). 84.5 ± 0.5 % of the 4 given attributes are right (correctness, the first)."
    )


def test_the_best_row_is_named_with_both_measures_and_all_are_listed_as_they_were_measured(said: Any) -> None:
    """By the sum of the two: q_true shows more of what is asked for than q_agg, and leaves less open."""
    both = said(
        line("correctness", 86.0, 4, "true", "true", text_weight=300.0),
        line("correctness", 99.0, 3, "true", "true", text_weight=300.0),
        line("coverage", 50.0, 3, "true", "true", text_weight=300.0),
        line("correctness", 84.0, 4, "aggregate", "agg"),
        line("coverage", 97.0, 3, "aggregate", "agg"),
        line("correctness", 94.0, 4, "guided", "agg", **GUIDED),
        line("coverage", 96.0, 3, "guided", "agg", **GUIDED),
        line("correctness", 99.9, 4, "prior", "true"),
    )
    assert both == [
        (
            "flat draws best from where real pictures lie, and the model agrees (q_agg guided (w = 3)). "
            "94.0 ± 0.5 % of the 4 given attributes are right (correctness). What is left open varies as in real "
            "pictures to 96.0 ± 0.5 % (coverage, 3 given).",
            [
                "What the model believes, words counting 300 times | q_true(w = 300): fitted to p(y|z)^300 p(z) | "
                "76.0 ± 0.5",
                "Where real pictures lie | q_agg: fitted to the aggregate | 74.0 ± 0.5",
                "Where real pictures lie, and the model agrees | q_agg guided (w = 3): the aggregate times "
                "p(y|z)^3 | 84.0 ± 0.5",
            ],
        )
    ]


def test_one_measure_or_one_row_is_said_as_it_is(said: Any) -> None:
    right = line("correctness", 84.0, 1, "aggregate", "agg", stderr=None)
    expected = (
        "flat draws best from where real pictures lie (q_agg). 84.00 % of the given attribute are right (correctness)."
    )
    row = "Where real pictures lie | q_agg: fitted to the aggregate | 84.0"
    assert said(right) == [(expected, [row])]
    ((best, others),) = said(right, line("correctness", 86.0, 1, "true", "true", text_weight=1.0))
    assert best.startswith("flat draws best from what the model believes (q_true(w = 1), exact). 86.0")
    assert others[:1] == [row]
    assert said(line("coverage", 84.0, 3, "aggregate", "agg")) == []
    assert said(line("correctness", 84.0, 0, "aggregate", "agg")) == [], "nothing was asked for"


def test_rows_of_another_judge_are_not_compared(said: Any) -> None:
    other = line("correctness", 99.0, 2, "true", "true")
    other["ids"] = other["ids"] | {"judge": "another"}
    assert said(line("correctness", 84.0, 2, "aggregate", "agg"), other)[0][1] == [
        "Where real pictures lie | q_agg: fitted to the aggregate | 74.0 ± 0.5"
    ]


@pytest.mark.slow
def test_advice_stands_before_the_scores_with_a_command_for_these_files(world: Path, tmp_path: Path) -> None:
    aggregate, judge = world / "flat-aggregate.safetensors", world / "judge.safetensors"
    ids = {"model": read_header(world / "flat.safetensors").content_id, "aggregate": read_header(aggregate).content_id}
    ids["dataset"], scores = read_header(world / "data.h5").content_id, []
    for file, drawn in ((judge, 60.0), (world / "data.h5", 95.0)):  # whatever the ids, they are of two judges
        measured = line("correctness", 70.0, 2, "aggregate", "agg", judge=file.stem)
        measured |= {"judge_accuracy": {"parity": 95.0, "mean": 95.0}, "by_attribute": {"parity": drawn}}
        scores.append(measured | {"ids": {**ids, "judge": read_header(file).content_id}})
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in scores))
    page = make_report([aggregate, judge, path], tmp_path / "r.html").run().read_text()
    assert (
        page.index('id="pictures"') < page.index('id="findings"') < page.index('id="next"') < page.index('id="scores"')
    )
    assert "<li>parity: 60.0\N{NO-BREAK SPACE}% drawn right by judge, 95.0\N{NO-BREAK SPACE}% by data;" in page
    assert f"<code>mmgen sample {aggregate} --given parity=even</code>" in page, "the judges disagree"
    assert "scores are of 2 judges" not in page, "which is no warning"
    folded = page[page.index("<summary>The same by another judge, data") :]
    assert folded.index("<h3>Correctness") < folded.index("</section>")


def test_what_draws_best_comes_first_and_the_exact_posterior_is_folded(world: Path) -> None:
    (group,) = gather_files([world / "flat-true.safetensors", world / "flat-aggregate.safetensors"]).groups
    sources = open_session(group, 0, guidance=2.0).sources
    names = [source.name.partition(":")[0] for source in sources]
    assert names == ["q_agg guided (w = 2)", "q_agg", "q_true(w = 1), exact"]
    assert not any(source.folded for source in sources), "there is no other q_true that it would stand beside"


def test_the_exact_posterior_is_folded_beside_that_of_the_training() -> None:
    from mmgen.figures.session.session import Source, _sort_sources

    def source(posterior: str, weight: float | None, guidance: float = 0.0) -> Source:
        own = SimpleNamespace(
            weights={} if weight is None else {"text_weight": weight}, is_fitted=posterior not in ("own", "prior")
        )
        loaded: Any = SimpleNamespace(posteriors={posterior: own}, guidance=guidance, text_weight=weight)
        return Source(f"{posterior} {weight} {guidance}", loaded, posterior, Path("f"))

    every = [source("own", None), source("true", 300.0), source("true", 1.0), source("scan", None),
             source("aggregate", None, 3.0)]  # fmt: skip
    found = _sort_sources(every)
    assert [one.posterior for one in found] == ["aggregate", "scan", "true", "true", "own"]
    assert [one.loaded.text_weight for one in found if one.folded] == [1.0]
    assert not any(one.folded for one in _sort_sources(every[2:])), "alone it is worth showing"


def test_the_heading_of_scores_names_papers_where_their_numbers_stand(world: Path, tmp_path: Path) -> None:
    page = make_report([world / "scores.jsonl"], tmp_path / "r.html").run().read_text()
    assert "<h2>Scores</h2>" in page and "beside the papers" not in page
    assert "<summary>Papers" not in page and "VE</strong>" not in page, "nothing is cited that no table shows"


def test_sources_are_sorted_by_scores_and_all_but_three_are_folded() -> None:
    def source(name: str, posterior: str, content_id: str = "", folded: bool = False, fitted: bool = True) -> Source:
        own = SimpleNamespace(named=name, is_fitted=fitted)
        header = SimpleNamespace(content_id=content_id)
        loaded: Any = SimpleNamespace(posteriors={posterior: own}, sharpener=None, header=header)
        return Source(content_id or name, loaded, posterior, Path("f"), folded=folded)

    def row(posterior: str, content_id: str, value: float, **others: Any) -> Score:
        ids = {"aggregate": content_id} if content_id else {}
        return Score("correctness", "", value, 1.0, "%", "higher", 9, posterior, 2, ids=ids, **others)

    scores = [row("aggregate", "flow", 80.0), row("aggregate", "nsf", 90.0), row("own", "", 95.0)]
    scores += [row("true", "exact", 99.0, text_weight=1.0)]
    sources = [
        source("q_agg", "aggregate", "unmeasured"), source("q_agg", "aggregate", "flow"),
        source("q_agg", "aggregate", "nsf"), source("q(z|y)", "own", fitted=False),
        source("q_true(w = 1), exact", "true", "exact", folded=True),
    ]  # fmt: skip
    found = sort_by_scores(sources, rank_posteriors(scores))
    assert [one.name for one in found] == ["exact", "q(z|y)", "nsf", "flow", "unmeasured"]
    assert [one.name for one in found if one.folded] == ["exact", "unmeasured"], "what was folded stays so"
