"""A line of scores has numbers where numbers belong; what nobody can have measured is refused by its line."""

import json
from pathlib import Path
from typing import Any

import pytest

from mmgen.core.errors import ArtifactError
from mmgen.results.score import read_scores

LINE = {"metric": "correctness", "value": 50.0, "stderr": 1.0, "n": 10, "given": 3, "better": "higher"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, True) for name in ("value", "stderr", "n", "given", "text_weight", "guidance")),
        *((name, -1) for name in ("stderr", "n", "given", "text_weight", "guidance")),
        ("better", "best"), ("better", ""), ("better", True), ("guidance_method", 1),
        ("judge_accuracy", {"mean": True}), ("judge_accuracy", {"digit": 90.0}), ("run", {"name": "m"}),
        ("run", {"seed": "0"}),
        ("conditions", {"split": 1}), ("by_attribute", {"digit": "90"}), ("warnings", "all"), ("details", []),
        *(("points", {"values": [1.0], "clusters": one}) for one in ("x", [None], {"0": 1}, 7)),
        ("points", {"values": ["x"]}), ("points", {}), ("points", [1.0]),
    ],
)  # fmt: skip
def test_a_number_is_no_yes_and_counts_are_at_least_0(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n{json.dumps({**LINE, name: value})}\n")
    with pytest.raises(ArtifactError, match="line 2 is no score, expected one"):
        read_scores(path)


@pytest.mark.parametrize(
    "points",
    [{"values": [40.0, 50.0]}, {"values": [40.0, 60.0], "weights": [1.0]}, {"values": [50.0], "weights": [0.0]}],
)
def test_points_have_the_mean_that_the_line_says(points: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text(json.dumps({**LINE, "points": {"values": [40.0, 60.0]}}))
    assert read_scores(path)[0].points is not None
    clipped = {"value": 100.0, "points": {"values": [99.0, 103.0]}, "details": {"unclipped": 101.0}}
    path.write_text(json.dumps({**LINE, **clipped}))
    assert read_scores(path)[0].value == 100.0
    path.write_text(json.dumps({**LINE, "points": points}))
    with pytest.raises(ArtifactError, match="line 1 is no score"):
        read_scores(path)


def test_an_artifact_is_called_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes((1000).to_bytes(8, "little") + b'{"__metadata__":{}}\xb0')
    with pytest.raises(ArtifactError, match="holds no scores, expected JSON lines"):
        read_scores(path)
