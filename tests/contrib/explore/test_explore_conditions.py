"""Pages to explore of what the page's own networks cannot draw: the page has pictures instead."""

from pathlib import Path

import mmgen
from tests.posteriors.test_any_subset import trained as trained


def test_a_page_draws_no_flow_of_several_conditions(trained: Path, tmp_path: Path) -> None:
    mmgen.fit_aggregate(
        trained, given="attributes,left", family="rectified-flow", steps=2, output=tmp_path / "a.safetensors",
        device="cpu",
    )  # fmt: skip
    page = mmgen.explore([trained, tmp_path / "a.safetensors"], output=tmp_path / "e.html", number=1)
    assert Path(page).stat().st_size > 10_000
