"""Pages to explore of what the page's own networks cannot draw: the page has pictures instead."""

from pathlib import Path

import mmgen
from tests.core.test_any_subset import trained as trained
from tests.test_sound import Call, call as call, made as made, site as site


def test_a_page_draws_no_flow_of_several_conditions(trained: Path, tmp_path: Path) -> None:
    mmgen.fit_aggregate(
        trained, given="attributes,left", family="rectified-flow", steps=2, output=tmp_path / "a.safetensors",
        device="cpu",
    )  # fmt: skip
    page = mmgen.explore([trained, tmp_path / "a.safetensors"], output=tmp_path / "e.html", number=1)
    assert Path(page).stat().st_size > 10_000


def test_sounds(made: Path, call: Call) -> None:
    code, _, err = call("explore", made / "t.safetensors", "-n", "2", "-o", made / "e.html")
    assert code == 0, err
    assert "data:image" in (made / "e.html").read_text()
