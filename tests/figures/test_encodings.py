"""Which dimensions say something, planes of encodings and ways between them, against cases worked out by hand."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from mmgen.generation.encodings import (
    Encodings,
    encode_split,
    interpolate,
    principal_plane,
    rank_axes,
    traversal_values,
    traverse,
)
from mmgen.latent import LatentSpace


def test_dimensions_are_ranked_by_their_divergence() -> None:
    """KL(N(m, s^2) || N(0, 1)) = (s^2 + m^2 - 1) / 2 - log s: by hand of three dimensions, one the prior itself."""
    mean = torch.tensor([[0.0, 2.0, 0.5], [0.0, -2.0, 0.5]])
    log_sd = torch.tensor([[0.0, math.log(0.1), math.log(0.5)]]).expand(2, 3)
    model = SimpleNamespace(latent=LatentSpace.flat(3), discrete_layers=())
    found = rank_axes(SimpleNamespace(model=model), Encodings(np.arange(2), mean, log_sd, ("image",)))
    assert found.dimensions == [1, 2, 0]
    by_hand = [0.5 * (0.01 + 4 - 1) + math.log(10), 0.5 * (0.25 + 0.25 - 1) + math.log(2), 0.0]
    assert found.values == pytest.approx(by_hand)
    assert found.measure == "mean KL in nats"


def test_the_plane_is_that_of_the_largest_variance() -> None:
    """The plane of z = (3 a, b, c / 10) turned about is spanned by the turned first two axes, and holds 10 / 10.01."""
    generator = torch.Generator().manual_seed(0)
    turn, _ = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64))
    ends = torch.tensor([[3.0, 0, 0], [-3.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0], [0, 0, 0.1], [0, 0, -0.1]]).double()
    z = ends @ turn.T + torch.tensor([5.0, 6.0, 7.0])
    plane = principal_plane(z)
    assert (plane.axes @ turn[:, :2]).abs().numpy() == pytest.approx(np.eye(2), abs=1e-9)
    assert plane.shares == pytest.approx((9 / 10.01, 1 / 10.01))
    assert plane(z).mean(0).numpy() == pytest.approx(0, abs=1e-9)
    inside = torch.tensor([[1.0, -2.0]]).double()
    assert plane(plane.to_latents(inside)).numpy() == pytest.approx(inside.numpy())
    assert principal_plane(z.flip(0)).axes.numpy() == pytest.approx(plane.axes.numpy()), "no axis turns with the order"


def test_two_dimensions_are_shown_as_they_are() -> None:
    z = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
    assert torch.equal(principal_plane(z)(z), z)
    assert sum(principal_plane(z).shares) == pytest.approx(1)
    assert principal_plane(z[:, :1])(z[:, :1]).tolist() == [[1.0, 0.0], [3.0, 0.0]]


def test_a_traversal_moves_one_dimension() -> None:
    z = torch.arange(6.0).reshape(2, 3)
    grid = traverse(z, [2, 0], torch.tensor([-1.0, 0.0, 1.0]))
    assert grid.shape == (2, 2, 3, 3)
    assert grid[1, 0, :, 2].tolist() == [-1, 0, 1] and grid[1, 1, :, 0].tolist() == [-1, 0, 1]
    assert (grid[..., 1] == z[:, None, None, 1]).all()


def test_ways_between_two_latents() -> None:
    """Between (2, 0) and (0, 4): at a third of the arc an angle of 30 degrees, and a length of 2 + 2 / 3."""
    start, end = torch.tensor([2.0, 0.0]).double(), torch.tensor([0.0, 4.0]).double()
    arc = interpolate(start, end, 4)
    assert arc[0].tolist() == pytest.approx([2, 0]) and arc[-1].tolist() == pytest.approx([0, 4])
    length = 2 + 2 / 3
    assert arc[1].tolist() == pytest.approx([length * math.cos(math.pi / 6), length * math.sin(math.pi / 6)])
    assert interpolate(start, end, 3, spherical=False)[1].tolist() == [1, 2]
    assert interpolate(start, -start, 3)[1].tolist() == [0, 0], "there is no shortest arc"
    assert interpolate(start, start, 3)[1].tolist() == [2, 0]


def test_encodings_are_those_of_the_rows_named(world: Path) -> None:
    import mmgen
    from mmgen.artifacts import Dataset

    model = mmgen.load(world / "telbo.safetensors")
    found = encode_split(model, world / "data.h5", "train", 20, seed=1)
    again = encode_split(model, world / "data.h5", "train", 20, seed=1)
    assert found.mean.shape == (20, 3) and found.inputs == ("image",) and torch.equal(found.mean, again.mean)
    with Dataset.open(world / "data.h5") as data:
        assert set(found.rows) <= set(data.split("iid", "train"))
        q = model.encode(data.read_pixels("image", found.rows))
    assert found.mean.numpy() == pytest.approx(q.mean.detach().numpy(), abs=0.01)  # encode may run in bf16


def test_steps_follow_the_prior_or_the_encodings() -> None:
    mean = torch.tensor([[1.0, 5.0, 0.0], [3.0, 5.0, 2.0], [5.0, 5.0, 4.0]])
    values, said = traversal_values(Encodings(np.arange(3), mean, torch.zeros(3, 3), ("image",)), [2, 0], 3.0, 3)
    assert values.tolist() == [[-3, 0, 3]] * 2 and said == "from -3 to 3 standard deviations of p(z)"
    values, said = traversal_values(Encodings(np.arange(3), mean, None, ("image",)), [2, 0, 1], 3.0, 3)
    assert values.tolist() == [[-4, 2, 8], [-3, 3, 9], [5, 5, 5]] and said.endswith("of the encodings about their mean")
    values, _ = traversal_values(Encodings(np.arange(1), mean[:1], None, ("image",)), [0], 3.0, 3)
    assert values.tolist() == [[1, 1, 1]]
