"""What pages to explore are made of: which descriptions they hold, densities, sheets of pictures."""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import gaussian_kde

from mmgen.figures.explore.choices import captions_by_difference, descriptions_by_frequency
from mmgen.figures.explore.density import CELLS, MapSquare, compute_densities, smooth_points, split_middle
from mmgen.figures.explore.sprites import STEP, pack_sheets
from mmgen.generation.encodings import principal_plane
from mmgen.posteriors import Guidance
from tests.figures._pages_to_explore import picture
from tests.posteriors.stand_in import stand_ins


def test_the_most_frequent_descriptions_come_first() -> None:
    """Against counting each of them."""
    codes = np.random.default_rng(1).choice(3, (50, 3), p=(0.6, 0.3, 0.1)).astype(np.uint8)
    codes[:5, 1] = 255
    found = np.stack(list(descriptions_by_frequency(codes, (3, 3, 3))))
    assert sorted(map(tuple, found.tolist())) == sorted(itertools.product((0, 1, 2, 255), repeat=3))
    counts = [int(((codes == row) | (row == 255)).all(1).sum()) for row in found]
    assert counts == sorted(counts, reverse=True)
    shortest = list(itertools.islice(descriptions_by_frequency(np.zeros((0, 2), np.uint8), (2, 2)), 9))
    assert [int((row != 255).sum()) for row in shortest] == [0, 1, 1, 1, 1, 2, 2, 2, 2]


def test_neighbours_differ_in_at_most_two_words() -> None:
    starts = np.array([[0, 0, 0], [2, 2, 2]])
    found = list(captions_by_difference(starts, [range(3)] * 3))
    assert len({tuple(key) for key in found}) == len(found)
    distances = [min(int((key != start).sum()) for start in starts) for key in found]
    assert distances == sorted(distances) and max(distances) == 2
    assert len(found) == 26  # all but 1, 1, 1


def test_densities_of_draws_are_kernel_estimates() -> None:
    """Against scipy's, for places without correlation: the same kernel and Scott's width with the effective number."""
    generator = np.random.default_rng(0)
    places, weights = generator.normal(0, (0.15, 0.25), (4000, 2)), generator.random(4000)
    cells = 61
    line = (np.arange(cells) + 0.5) * 2 / cells - 1
    grid = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    expected = gaussian_kde(places.T, weights=weights)(grid.T).reshape(cells, cells)
    found, beside = split_middle(smooth_points(places, weights, cells))
    assert found.sum() + beside.sum() == pytest.approx(1)
    assert np.abs(found / found.sum() - expected / expected.sum()).max() < 0.08 * (expected / expected.sum()).max()


def test_a_draw_that_lies_anywhere_leaves_a_density() -> None:
    """A model that has hardly been trained draws some z by far too large: no kernel is wider than what is looked at."""
    places = np.concatenate([np.random.default_rng(0).normal(0, 0.3, (100, 2)), [[1e21, -1e20]]])
    found, _ = split_middle(smooth_points(places, np.ones(101), 31))
    assert np.isfinite(found).all() and 0 < found.sum() < 1


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("middle", [0.0, 3.0, 6.0, 30.0])
def test_what_lies_beside_the_map_counts(exact: bool, middle: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Gaussian about (middle, 0) on a map from -3 to 3: 1 - Phi(3 - middle) of it is to the right."""
    plane = principal_plane(torch.randn(50, 2, generator=torch.manual_seed(0)))
    normal = torch.distributions.Normal(torch.tensor([middle, 0.0]), 1.0)
    loaded = SimpleNamespace(
        guidance=Guidance(),
        sharpener=None,
        device="cpu",
        posteriors=stand_ins("q", densities=lambda _: lambda z, _: normal.log_prob(z.double()).sum(-1)),
    )

    class One(SimpleNamespace):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, rows: slice) -> "One":
            return self

    asked = One(batch=lambda *_: None, stream_key=lambda _: ())
    draws = middle * torch.tensor([1.0, 0.0]) + torch.randn(4000, 2, generator=torch.manual_seed(1))
    monkeypatch.setattr("mmgen.figures.explore.density.draw_latents", lambda *_: draws[None])
    source: Any = SimpleNamespace(loaded=loaded, posterior="q", path="p")
    ((levels, outside),) = compute_densities(source, asked, MapSquare(plane, 3.0, exact), 0, {})
    right = 1 - torch.distributions.Normal(0.0, 1.0).cdf(torch.tensor(3 - middle)).item()
    if middle < 30:
        assert outside == pytest.approx(right, abs=0.01 if exact else 0.02)
    line = (np.arange(CELLS) + 0.5) * 6 / CELLS - 3
    squares = (line[None, :] - middle) ** 2 + line[:, None] ** 2
    for share in (0.5, 0.9):  # the disc that holds it, cut off where the map ends
        expected = (squares < -2 * np.log(1 - share)).mean()
        assert (levels[..., 0] / 255 > 1 - share).mean() == pytest.approx(expected, abs=0.02 if exact else 0.05)


def test_sheets_hold_every_picture_in_sixteen_greys() -> None:
    generator = np.random.default_rng(0)
    pictures = generator.integers(0, 256, (800, 60, 90, 1)).astype(np.uint8)
    sheets = pack_sheets(pictures)
    assert len(sheets.images) > 1
    for number in (0, 1, sheets.per_sheet - 1, sheets.per_sheet, 799):
        shown = picture(sheets.to_json(), number)
        assert (shown[..., 0] == np.rint(pictures[number, ..., 0] / STEP) * STEP).all()
        assert (shown == shown[..., :1]).all()
