"""Where scores are kept: JSON lines, beside what was measured unless somebody says where."""

import json
from collections.abc import Sequence
from pathlib import Path

from mmgen.artifacts import write_text_atomic
from mmgen.results.score import Score

__all__ = ["default_scores_file", "write_scores"]


def default_scores_file(path: Path) -> Path:
    """Return the default path for the scores of a model or an aggregate."""
    return path.parent / f"{path.stem}-scores.jsonl"


def write_scores(path: Path, scores: Sequence[Score]) -> None:
    """Write scores as JSON lines; a failed write leaves the earlier file."""
    write_text_atomic(path, "".join(json.dumps(score.to_json(), allow_nan=False) + "\n" for score in scores))
