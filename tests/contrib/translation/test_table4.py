"""The list of Table 4 of Wu and Goodman (2018)."""

from mmgen.experiments._plan import read_plan


def test_shares_of_pairs_are_those_of_the_paper() -> None:
    """WG Table 4: from 0.1 % to all, level from 5 %; the sum is theirs, so far as anybody can tell."""
    plan = read_plan("wu-table4")
    numbers = [row.paper[-1] for row in plan.table[0].row]
    assert numbers == [-558.88, -494.76, -483.23, -478.75, -478.04, -478.12]
    assert max(map(abs, (a - b for a in numbers[3:] for b in numbers[3:] if a and b))) < 1  # type: ignore[operator]
    for scale in ("cpu", "paper"):
        trained = [stage for stage in plan.get_scale(scale).stage if stage.command == "train"]
        shares = [float(stage.arguments[stage.arguments.index("--paired") + 1]) for stage in trained]
        assert shares == [0.001, 0.005, 0.01, 0.05, 0.1, 1]
