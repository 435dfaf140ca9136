"""mmgen's own contract tests over every member of this package: all the tests that a package of members needs."""

import pytest

from mmgen import testing


@pytest.mark.parametrize("member", testing.members_of("mmgen-stranger"), ids=str)
def test_contract(member: testing.Subject) -> None:
    testing.check(member)
