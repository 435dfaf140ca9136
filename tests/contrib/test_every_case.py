"""With the rows of all worlds, every input that people have brought is tried."""

import pytest

from tests.own_data._obeying import CASES
from tests.own_data.test_cases import OTHER_DOORS, ROWS


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
def test_every_case_has_a_row() -> None:
    assert {case.name for case in CASES.iterdir()} == {row[0].partition("/")[0] for row in ROWS} | OTHER_DOORS
