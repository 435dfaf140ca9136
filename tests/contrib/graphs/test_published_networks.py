"""Citations under the names of published networks: what is that set, and what is not."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from mmgen.contrib.graphs.data_recipes.planetoid import NETWORKS, compare_with_published, read_citations
from tests.conftest import outside_data
from tests.contrib.graphs._network import build_network


def test_citations_by_what_papers_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = build_network(tmp_path, monkeypatch)
    found = read_citations("cora", folder)
    assert compare_with_published("cora", found, folder).is_published is (
        found.sha256 == NETWORKS["cora"].content or None
    )


@pytest.mark.parametrize("network", ["cora", "citeseer"])
def test_published_networks(network: str) -> None:
    source = outside_data("planetoid")
    found = read_citations(network, source)
    assert compare_with_published(network, found, source).is_published
    changed = replace(found, sha256=hashlib.sha256(b"other features").hexdigest())
    assert compare_with_published(network, changed, source).settings == {"content": f"not {network} as published"}
