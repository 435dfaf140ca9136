"""The lists of Figure 3 of Wu and Goodman (2018), whose rows are models and baselines."""

import pytest

from mmgen import experiments
from mmgen.experiments._page import comparison_tables
from mmgen.experiments._plan import read_plan
from mmgen.experiments._tables import compare_table
from mmgen.results.score import Score
from mmgen.settings.presets import preset_names

WEAK = [name for name in experiments.experiment_names() if name.startswith("wu-figure3/")]


@pytest.mark.parametrize("scale", ["cpu", "paper"])
@pytest.mark.parametrize("name", WEAK)
def test_methods_of_figure_3_see_the_same_pairs(name: str, scale: str) -> None:
    """One split and seed, the same shares for models and baselines, the same networks, all of them in the figure."""
    plan = read_plan(name)
    shares = [f"{column.details['share']:g}" for column in plan.table[0].column]
    assert len(shares) == 6
    methods = [str(row.details["method"]) for row in plan.table[0].row]
    *stages, figure = plan.get_scale(scale).stage[1:]
    asked: dict[str, list[str]] = {}
    networks = set()
    for stage in stages:
        words = stage.arguments
        if words[0] == "eval":
            continue
        assert words[words.index("--split") + 1] == "official" and words[words.index("--seed") + 1] == "0"
        method = words[words.index("--method") + 1] if words[0] == "baseline" else stage.makes.split("-")[0]
        asked.setdefault(method, []).extend(words[i + 1] for i, word in enumerate(words) if word == "--paired")
        networks.add(words[words.index("--preset") + 1].removesuffix("-jmvae"))
    assert asked.keys() == set(methods) - ({"jmvae"} if scale == "cpu" else set())
    assert all(given == shares for given in asked.values())
    assert len(networks) == 1 and networks <= set(preset_names())
    assert [stage.makes for stage in stages if stage.makes.endswith(".jsonl")] == figure.arguments[2:-2]


def test_a_cell_is_found_by_its_method_and_share() -> None:
    plan = read_plan("wu-figure3/mnist")
    table = plan.table[0]
    found = [
        Score(
            "label-accuracy",
            "whole description",
            value,
            1.0,
            "%",
            "higher",
            10,
            "x",
            protocol=protocol,
            details=details,
        )
        for value, protocol, details in (
            (1.0, "mean", {"method": "mvae", "share": 0.01}),
            (2.0, "samples", {"method": "mvae", "share": 0.01}),
            (3.0, "baseline", {"method": "logistic", "share": 0.01}),
            (4.0, "baseline", {"method": "logistic", "share": 1.0}),
        )
    ]
    compared = compare_table(table, {"a.jsonl": found})
    ours = compared.ours
    (shown,) = comparison_tables(plan, [compared])
    assert shown.columns[1] == "ours: 28 pairs", "there are no columns for numbers that the paper does not have"
    values = {
        (column.details["share"], row.details["method"]): cell.value
        for row, cells in zip(table.row, ours, strict=True)
        for column, cell in zip(table.column, cells, strict=True)
        if cell is not None
    }
    assert values == {(0.01, "mvae"): 1.0, (0.01, "logistic"): 3.0, (1.0, "logistic"): 4.0}
