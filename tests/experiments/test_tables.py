"""Tables of published numbers: the paper's beside ours, by hand-made scores."""

from dataclasses import replace
from pathlib import Path

import pytest

from mmgen.core.errors import SettingsError, UsageError
from mmgen.experiments._page import classifier_accuracy_sentence, comparison_tables, page_markdown
from mmgen.experiments._plan import read_plan, select_rows, use_dataset
from mmgen.experiments._stages import Plan
from mmgen.experiments._states import finished_files
from mmgen.experiments._tables import TableComparison, compare_table
from mmgen.results.score import ExampleValues, Score
from mmgen.results.table import Table as ResultTable
from tests.experiments.files import write_data, write_model


def score(posterior: str, value: float, protocol: str = "paper", metric: str = "correctness") -> Score:
    quantity = "correctness" if metric == "correctness" else "log p(x|y)"
    accuracy = {"colour_1": 98.0, "mean": 95.0, "words": 95.56} if metric == "correctness" else None
    weight = 200.0 if posterior == "true" else None
    return Score(metric, quantity, value, 0.3, "%", "higher", 6000, posterior, 9, protocol, accuracy, weight)


def cells(table: ResultTable) -> list[list[str]]:
    return [[str(cell) for cell in row] for row in table.rows]


def compared(plan: Plan, scores: list[Score]) -> TableComparison:
    return compare_table(plan.table[0], {"scores.jsonl": scores})


def test_gains_of_likelihoods_are_paired_by_point() -> None:
    plan = read_plan("cremer-table1")
    of = {
        name: Score("log-likelihood", "log p(x|y)", value, 173.2, "nats", "higher", 3, name, protocol="bound")
        for name, value in (("true", 400.0), ("aggregate", 410.0))
    }
    of["true"] = replace(of["true"], text_weight=200.0, seed=0, points=ExampleValues([100.0, 400.0, 700.0]))
    of["aggregate"] = replace(of["aggregate"], seed=0, points=ExampleValues([109.0, 410.0, 711.0]))
    gain = compared(plan, list(of.values())).our_difference((2, 3), (2, 0))
    assert gain == (10.0, pytest.approx(1 / 3**0.5))
    of["aggregate"] = replace(of["aggregate"], seed=1)  # other points
    gain = compared(plan, list(of.values())).our_difference((2, 3), (2, 0))
    assert gain == (10.0, pytest.approx(173.2 * 2**0.5))


def test_comparison_by_hand(tmp_path: Path) -> None:
    plan: Plan = read_plan("cremer-table1")
    scores = [score("true", 70.0), score("aggregate", 81.5), score("true", 60.0, "exact")]
    scores.append(score("aggregate", 30_000.5, "bound", "log-likelihood"))
    found = compared(plan, scores)
    (table,) = comparison_tables(plan, [found])
    title, columns, rows = table.title, table.columns, cells(table)
    assert title == plan.title
    assert columns[:2] == ["", "paper: q_true(w = 200), as published"]
    by_name = [dict(zip(columns, row, strict=True)) for row in rows]
    assert by_name[0]["paper: q_agg"] == "87.01" and by_name[0]["paper: q_true(w = 200), as published"] == "72.75"
    assert by_name[0]["ours: q_agg"] == "81.50 ± 0.30" and by_name[0]["n"] == "6,000"
    assert by_name[0]["ours: q_true(w = 200), as published"] == "70.00 ± 0.30"
    assert by_name[1]["ours: q_true(w = 200), as published"] == "60.00 ± 0.30"
    assert rows[0][columns.index("gain of q_agg: paper") :][:2] == ["+14.26", "+11.5 ± 0.4"]
    assert by_name[1]["ours: q_agg"] == "not measured"
    assert by_name[2]["ours: q_agg"] == "30,000.50 ± 0.30"
    assert "95.56 % of all words, 95.00 % of those it says (colour_1 98.0)" in classifier_accuracy_sentence([found])
    page = page_markdown(plan, plan.get_scale("cpu"), [found], tmp_path, [])
    table = [line for line in page.splitlines() if line.startswith("| ")]
    assert len({line.replace("\\|", "").count("|") for line in table[:6]}) == 1
    assert "q_true(w = 200), as published" in page
    assert all(stage.command_line in page for stage in plan.get_scale("cpu").stage)
    assert classifier_accuracy_sentence([compared(plan, [])]) == ""


def of_model(name: str, values: list[float], posterior: str = "prior", seed: int = 0) -> Score:
    mean = sum(values) / len(values)
    return Score(
        "log-likelihood", name, mean, 0.7, "nats", "higher", 2, posterior, protocol="importance",
        conditions={"split": "official", "part": "test", "samples": "1000"}, seed=seed, points=ExampleValues(values),
        details={"samples": 1000, "log_weight_variance": 22.5, "log_weight_variance_stderr": 0.5},
    )  # fmt: skip


LIST = """
title = "Two models"
source = "A paper"
dataset = "Digits"
stage = [
  { why = "Data", command = "make-data", recipe = "mnist", makes = "data.h5" },
  { why = "A", of = "A", command = "train", dataset = "data.h5", makes = "a.safetensors" },
  { why = "B", of = "B", command = "train", dataset = "data.h5", makes = "b.safetensors" },
  { why = "Scores of A", of = "A", command = "eval", model = "a.safetensors", makes = "a.jsonl" },
  { why = "Scores of B", of = "B", command = "eval", model = "b.safetensors", makes = "b.jsonl" },
]
[[table]]
title = "Likelihoods"
against = "B"
decimals = 3
column = [{ name = "log p(x)", quantity = "log p(x)" }, { name = "log p(x,y)", quantity = "log p(x,y)" }]
row = [
  { name = "A", scores = "a.jsonl", paper = [-86.3, ""] },
  { name = "B", scores = "b.jsonl", paper = [-86.0, -86.2] },
]
[[table]]
title = "Variances"
column = [{ name = "log p(x)", metric = "log-likelihood", field = "log_weight_variance" }]
row = [{ name = "A", scores = "a.jsonl" }]
[scale.cpu]
folder = "two"
about = "Small."
"""


@pytest.fixture
def two_models(tmp_path: Path) -> Plan:
    (tmp_path / "two.toml").write_text(LIST)
    return read_plan(str(tmp_path / "two.toml"))


def test_models_as_rows_by_hand(two_models: Plan, tmp_path: Path) -> None:
    scores = {
        "a.jsonl": [of_model("log p(x)", [-80.0, -94.0])],
        "b.jsonl": [of_model("log p(x)", [-79.0, -92.0]), of_model("log p(x,y)", [-80.0, -93.0])],
    }
    found = [compare_table(table, scores) for table in two_models.table]
    shown = comparison_tables(two_models, found)
    assert [table.title for table in shown] == ["Likelihoods", "Likelihoods: differences from B", "Variances"]
    columns = ["", "paper: log p(x)", "paper: log p(x,y)", "ours: log p(x)", "ours: log p(x,y)", "n", "draws of z"]
    assert shown[0].columns == columns
    assert cells(shown[0]) == [
        ["A", "-86.300", "", "-87.0 ± 0.7", "", "2", "1,000"],
        ["B", "-86.000", "-86.200", "-85.5 ± 0.7", "-86.5 ± 0.7", "2", "1,000"],
    ]
    assert shown[1].columns == ["", "paper: log p(x)", "ours: log p(x)"], "B alone has numbers of p(x,y)"
    assert cells(shown[1]) == [["A", "-0.300", "-1.5 ± 0.5"]]  # of the points: -1 and -2
    assert cells(shown[2]) == [["A", "22.5 ± 0.5", "2", "1,000"]]  # the paper has none of these
    page = page_markdown(two_models, two_models.get_scale("cpu"), found, tmp_path, [])
    assert "## Likelihoods: differences from B" in page


def test_no_published_numbers_stand_beside_scores_of_other_data(two_models: Plan) -> None:
    measured = of_model("log p(x)", [-80.0, -94.0])
    other = replace(measured, conditions=measured.conditions | {"content": "not MNIST as published"})
    found = [compare_table(table, {"a.jsonl": [other], "b.jsonl": [other]}) for table in two_models.table]
    table = comparison_tables(two_models, found)[0]
    columns, rows = table.columns, cells(table)
    assert table.title == "Likelihoods (ours are of data that are not MNIST as published)"
    assert not [name for name in columns if name.startswith("paper")] and rows[0][1] == "-87.0 ± 0.7"


def test_part_of_a_table(two_models: Plan) -> None:
    assert [stage.makes for stage in select_rows(two_models.get_scale("cpu"), ["b"]).stage] == [
        "data.h5",
        "b.safetensors",
        "b.jsonl",
    ]
    with pytest.raises(UsageError, match="unknown row 'C'"):
        select_rows(two_models.get_scale("cpu"), ["C"])
    with pytest.raises(UsageError, match="rows of this table share all"):
        select_rows(read_plan("cremer-table1").get_scale("cpu"), ["correctness"])


def test_what_rows_are_compared_with_has_to_be_there(two_models: Plan, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(LIST.replace('against = "B"', 'against = "C"'))
    with pytest.raises(SettingsError, match=r"(?i)against got 'c'"):
        read_plan(str(tmp_path / "two.toml"))


def test_only_scores_of_files_that_fit_are_shown(two_models: Plan, tmp_path: Path) -> None:
    scale = two_models.get_scale("cpu")
    made, first, *_ = scale.stage
    write_data(tmp_path / "data.h5", command=made.command_line)
    write_model(tmp_path / "a.safetensors", tmp_path / "data.h5", finished=True, command=first.command_line)
    write_model(tmp_path / "b.safetensors", tmp_path / "data.h5", finished=False)
    assert finished_files(scale, tmp_path) == ["data.h5", "a.safetensors"]
    write_data(tmp_path / "other.h5", level=7)
    assert finished_files(use_dataset(scale, tmp_path / "other.h5"), tmp_path) == []


def test_the_page_lists_what_was_used(two_models: Plan, tmp_path: Path) -> None:
    """A damaged file of a row that nobody asked for, and one of another dataset, are neither read nor listed."""
    scale, data = two_models.get_scale("cpu"), tmp_path / "data.h5"
    write_data(data, command="mmgen make-data mnist --note `two\nlines` | touch")
    (tmp_path / "a.safetensors").write_bytes(b"damaged")
    write_data(tmp_path / "other.h5", level=7)
    write_model(tmp_path / "b.safetensors", tmp_path / "other.h5", finished=True)
    page = page_markdown(two_models, scale, [], tmp_path, ["data.h5"])
    listed = page.split("| file |")[1].splitlines()[2:]
    assert [line.split(" | ")[0] for line in listed] == ["| data.h5"]
    assert listed[0].endswith("| `` mmgen make-data mnist --note `two?lines` \\| touch `` |")


REPEATED = """
title = "Three splits"
source = "ours"
dataset = "three of them"
let.train = { dataset = "d-{run}.h5", seed = "{run}" }
stage = [
  { each = "run", why = "Split", command = "make-data", recipe = "mnist-a", seed = "{run}", makes = "d-{run}.h5" },
  { each = ["run"], why = "Model {run}", of = "VGAE", command = "train", makes = "v-{run}.safetensors" },
  { each = ["run"], why = "S", of = "VGAE", command = "eval", model = "v-{run}.safetensors", makes = "v-{run}.jsonl" },
]
[[table]]
column = [{ name = "AUC", quantity = "correctness" }]
row = [{ name = "VGAE", scores = "v-[0-9].jsonl" }]
[each]
run = 3
[scale.cpu]
about = "small"
folder = "runs/three"
"""


def test_stages_of_an_axis_are_run_row_by_row(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(REPEATED.replace('["run"]', '"run"'))
    stages = read_plan(str(tmp_path / "three.toml")).get_scale("cpu").stage
    assert [stage.makes for stage in stages] == [
        file for run in range(3) for file in (f"d-{run}.h5", f"v-{run}.safetensors", f"v-{run}.jsonl")
    ]
    assert stages[4].command_line == "mmgen train d-1.h5 --seed 1 -o v-1.safetensors"
    assert (stages[4].why, stages[4].seed, stages[4].of) == ("Model 1", 1, "VGAE")
    with pytest.raises(UsageError, match="makes 3 datasets"):
        use_dataset(read_plan(str(tmp_path / "three.toml")).get_scale("cpu"), tmp_path / "mine.h5")


def test_repeated_stages_need_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(REPEATED.replace("d-{run}.h5", "data.h5"))
    with pytest.raises(SettingsError, match=r"stages 1 and 4 of 'cpu' both make data\.h5, .* put the name of the row"):
        read_plan(str(tmp_path / "three.toml"))


def test_mean_over_runs_by_hand(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(REPEATED)
    plan = read_plan(str(tmp_path / "three.toml"))
    runs = {f"v-{run}.jsonl": [score("true", value)] for run, value in enumerate((90.0, 91.0, 95.0))}
    (cell,) = compare_table(plan.table[0], {**runs, "other.jsonl": [score("true", 1.0)]}).ours[0]
    assert cell is not None
    assert cell.value == pytest.approx(92.0)
    assert cell.stderr == pytest.approx((7 / 3) ** 0.5)  # the sample variance is 7, over three runs
    assert cell.score.n == 18_000
    (single,) = compare_table(plan.table[0], {"v-2.jsonl": runs["v-2.jsonl"]}).ours[0]
    assert single is not None and (single.value, single.stderr) == (95.0, 0.3)
