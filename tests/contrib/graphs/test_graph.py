"""Graphs: five nodes by hand, a bound by quadrature, renumbered nodes, and what the encoder must not see."""

import itertools
import math

import numpy as np
import pytest
import torch

from mmgen.contrib.graphs._networks import GraphConvolution, normalised_adjacency
from mmgen.contrib.graphs.modalities.graph import Graph, Pairs
from mmgen.contrib.graphs.models.graph_vae import GraphVAE
from mmgen.contrib.graphs.objectives.balanced_edges import BalancedEdges
from mmgen.core.batch import Batch
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.objectives._base import Objective
from mmgen.objectives.elbo import Elbo

EDGES = torch.tensor([[0, 0, 1, 3], [1, 2, 2, 4]])  # a triangle, and a pair beside it
FEATURES = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.0], [0.0, 0.0]])
GIVEN = ("graph", "features")
NOTHING = torch.zeros(2, 0, dtype=torch.int64)


def whole(edges: torch.Tensor = EDGES, unknown: torch.Tensor = NOTHING, **held: torch.Tensor) -> Batch:
    """All five nodes."""
    shared = {"graph.edges": edges, "graph.unknown": unknown, "graph.features": FEATURES}
    shared |= {f"graph.{name}": pairs for name, pairs in held.items()}
    values = {"graph": torch.arange(5), "features": FEATURES}
    return Batch(values, {name: torch.ones(5, dtype=torch.bool) for name in values}, shared)


def vgae(variational: bool = True, features: bool = True) -> GraphVAE:
    torch.manual_seed(0)
    return GraphVAE(3, Graph("graph", 5), ("features", 2) if features else None, 4, variational)


def test_adjacency_by_hand() -> None:
    found = normalised_adjacency(EDGES, 5).to_dense()
    third, half = 1 / 3, 1 / 2  # with itself a node of the triangle has three neighbours, one of the pair two
    expected = torch.zeros(5, 5)
    expected[:3, :3], expected[3:, 3:] = third, half
    torch.testing.assert_close(found, expected)


def test_node_without_edges_keeps_itself() -> None:
    found = normalised_adjacency(torch.tensor([[0], [1]]), 3).to_dense()
    torch.testing.assert_close(found[2], torch.tensor([0.0, 0.0, 1.0]))


def test_convolution_by_hand() -> None:
    layer, adjacency = GraphConvolution(2, 3), normalised_adjacency(EDGES, 5)
    expected = adjacency.to_dense() @ FEATURES @ layer.linear.weight.T
    torch.testing.assert_close(layer(adjacency, FEATURES), expected)
    identity = GraphConvolution(5, 3)
    torch.testing.assert_close(identity(adjacency, None), identity(adjacency, torch.eye(5)))


def _dense(pairs: torch.Tensor) -> torch.Tensor:
    marked = torch.zeros(5, 5, dtype=torch.bool)
    marked[pairs[0], pairs[1]] = marked[pairs[1], pairs[0]] = True
    return marked


def test_likelihood_by_hand() -> None:
    z = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    unknown = torch.tensor([[0, 2], [3, 4]])
    by_hand = torch.zeros(2, dtype=torch.float64)
    for i, j in itertools.combinations(range(5), 2):
        if [i, j] in unknown.T.tolist():
            continue
        probability = torch.sigmoid((z[:, i] * z[:, j]).sum(-1))
        by_hand += (probability if [i, j] in EDGES.T.tolist() else 1 - probability).log()
    graph = Graph("graph", 5)
    shares = graph.log_prob(z, _dense(EDGES), ~_dense(unknown))
    torch.testing.assert_close(shares.sum(-1), by_hand)
    torch.testing.assert_close(graph.log_prob_of_pairs(z, Pairs(EDGES, unknown)), shares)


def test_graphs_of_three_nodes_add_up_to_one() -> None:
    z, graph = torch.randn(3, 2, generator=torch.Generator().manual_seed(0)), Graph("graph", 3)
    every = torch.tensor([[0, 0, 1], [1, 2, 2]])
    chosen = [every[:, list(some)] for n in range(4) for some in itertools.combinations(range(3), n)]
    total = sum(graph.log_prob_of_pairs(z, Pairs(pairs, NOTHING)).sum().exp() for pairs in chosen)
    torch.testing.assert_close(total, torch.tensor(1.0))
    drawn = [graph.sample(z, torch.Generator().manual_seed(1)) for _ in range(2)]
    assert drawn[0].equal(drawn[1]) and drawn[0].equal(drawn[0].mT) and not drawn[0].diagonal().any()
    torch.testing.assert_close(graph.mean(z)[0, 1], torch.sigmoid(z[0] @ z[1]))


def test_held_back_pairs_by_hand() -> None:
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    joined, absent = torch.tensor([[0], [3]]), torch.tensor([[1], [4]])
    expected = torch.sigmoid(z[0] @ z[3]).log() + torch.sigmoid(-z[1] @ z[4]).log()
    pairs = Graph("graph", 5).pairs(whole(held_edges=joined, held_absent=absent))
    torch.testing.assert_close(Graph("graph", 5).log_prob_of_pairs(z, pairs).sum(), expected)


def test_published_loss_by_hand() -> None:
    """The authors' code: a weighted mean over N squared pairs, times a norm; here it is times N, a node's share."""
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    target, odds = (_dense(EDGES) | torch.eye(5, dtype=torch.bool)).double(), z @ z.T
    total = float(_dense(EDGES).sum())
    positive_weight, norm = (25 - total) / total, 25 / (2 * (25 - total))
    loss = norm * torch.nn.functional.binary_cross_entropy_with_logits(
        odds, target, pos_weight=torch.tensor(positive_weight)
    )
    found = Graph("graph", 5).balanced_log_prob(z, Pairs(EDGES, NOTHING), Graph("graph", 5).edge_share(whole()))
    torch.testing.assert_close(found.mean(), -loss * 5)


def test_published_divergence_by_hand() -> None:
    """KL is divided by N twice where the mean over pairs is divided by N squared: their ratio is 1."""
    model, batch = vgae(), whole()
    torch.manual_seed(3)
    bound = BalancedEdges()(model, batch)
    torch.manual_seed(3)
    q = model.posterior(batch, GIVEN)
    z = q.sample()
    log_sd, mean = q.log_sd, q.mean
    kl = -(0.5 / 5) * (1 + 2 * log_sd - mean**2 - log_sd.exp() ** 2).sum(1).mean()
    likely = -model.graph.balanced_log_prob(z, Pairs(EDGES, NOTHING), model.graph.edge_share(batch)).mean() / 5
    torch.testing.assert_close(-bound.value.mean() / 5, likely + kl)
    assert not bound.is_bound


@torch.no_grad()
def test_elbo_lies_below_the_likelihood() -> None:
    """Three nodes and one dimension: log p(A) by quadrature over z in R^3."""
    torch.manual_seed(0)
    model = GraphVAE(1, Graph("graph", 3), None, 4, True)
    edges = torch.tensor([[0], [1]])
    batch = Batch({"graph": torch.arange(3)}, {"graph": torch.ones(3, dtype=torch.bool)},
                  {"graph.edges": edges, "graph.unknown": NOTHING})  # fmt: skip
    points, weights = np.polynomial.hermite_e.hermegauss(40)
    grid = torch.cartesian_prod(*[torch.tensor(points)] * 3).unsqueeze(-1)  # [40^3, 3, 1]
    weight = torch.cartesian_prod(*[torch.tensor(weights / math.sqrt(2 * math.pi))] * 3).prod(-1)
    likely = model.log_likelihood("graph", grid, batch).sum(-1)
    exact = float((weight * likely.exp()).sum().log())
    bound = Elbo(modalities=("graph",), given=("graph",), samples=2_000)(model, batch)
    assert bound.is_bound
    assert -3 < exact < -1.9  # of eight graphs
    assert float(bound.value.sum()) < exact
    # Were q the prior, the bound would be E_p[log p(A | z)], which quadrature knows as well.
    prior = DiagonalGaussian.standard(20_000, 3, 1)
    drawn = model.log_likelihood("graph", prior.sample(torch.Generator().manual_seed(0)), batch).sum(-1)
    torch.testing.assert_close(float(drawn.mean()), float((weight * likely).sum()), atol=0.02, rtol=0)


def test_renumbered_nodes_change_nothing() -> None:
    model, order = vgae(), torch.tensor([3, 0, 4, 2, 1])  # node i becomes order[i]
    before = model.posterior(whole(), GIVEN)
    moved = whole(order[EDGES])
    features = torch.empty_like(FEATURES)
    features[order] = FEATURES
    batch = Batch(moved.values, moved.present, {**moved.shared, "graph.features": features})
    after = model.posterior(batch, GIVEN)
    torch.testing.assert_close(after.mean[order], before.mean)
    torch.testing.assert_close(
        model.log_likelihood("graph", after.mean, batch)[order], model.log_likelihood("graph", before.mean, whole())
    )


def test_order_of_a_batch_changes_nothing() -> None:
    model, order = vgae(), torch.tensor([3, 0, 4, 2, 1])
    q, shuffled = model.posterior(whole(), GIVEN), model.posterior(whole()[order], GIVEN)
    torch.testing.assert_close(shuffled.mean, q.mean[order])
    likely = model.log_likelihood("graph", q.mean, whole())
    torch.testing.assert_close(model.log_likelihood("graph", q.mean[order], whole()[order]), likely[order])


def test_some_nodes_estimate_the_whole() -> None:
    """Over all batches of three of five nodes, the mean of a node's share times N / B is the whole likelihood."""
    model, batch = vgae(), whole(unknown=torch.tensor([[0], [4]]))
    z = model.posterior(batch, GIVEN).mean
    expected = model.log_likelihood("graph", z, batch).sum()
    parts = [torch.tensor(chosen) for chosen in itertools.combinations(range(5), 3)]
    found = torch.stack([5 / 3 * model.log_likelihood("graph", z[rows], batch[rows]).sum() for rows in parts])
    torch.testing.assert_close(found.mean(), expected)


def test_some_nodes_estimate_the_published_loss() -> None:
    """A node is joined to itself once in every batch that holds it, so that this part is not scaled up with pairs."""
    model, batch, objective = vgae(variational=False), whole(), BalancedEdges(beta=0.0)
    expected = objective(model, batch).value.sum()
    parts = [torch.tensor(chosen) for chosen in itertools.combinations(range(5), 3)]
    found = torch.stack([5 / 3 * objective(model, batch[rows]).value.sum() for rows in parts])
    torch.testing.assert_close(found.mean(), expected)


@pytest.mark.parametrize("objective", [BalancedEdges(beta=0.0), Elbo(modalities=("graph",), given=GIVEN, beta=0.0)])
def test_node_that_comes_twice_counts_once(objective: Objective) -> None:
    model, batch = vgae(variational=False), whole(unknown=torch.tensor([[0], [4]]))
    once = objective(model, batch[torch.tensor([0, 1, 2, 4])]).value
    twice = objective(model, batch[torch.tensor([4, 1, 4, 0, 2])]).value
    torch.testing.assert_close(twice.mean(), once.mean())
    assert twice[0].item() == 0


def test_encoder_sees_training_edges_alone() -> None:
    model = vgae()
    seen = model.posterior(whole(), GIVEN).mean
    held = whole(unknown=torch.tensor([[0], [4]]), held_edges=torch.tensor([[0], [4]]), held_absent=NOTHING)
    torch.testing.assert_close(model.posterior(held, GIVEN).mean, seen)


def test_deterministic_encoder_is_its_mean() -> None:
    model = vgae(variational=False)
    q = model.posterior(whole(), GIVEN)
    torch.testing.assert_close(q.sample(), q.mean, rtol=0, atol=1e-30)
    bound = BalancedEdges(beta=0.0)(model, whole())
    assert bound.terms.keys() == {"balanced log p(graph|z)"}
    bound.value.mean().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("features", [True, False])
def test_every_parameter_is_trained(features: bool) -> None:
    given = GIVEN if features else ("graph",)
    for objective in (BalancedEdges(given=given), Elbo(modalities=("graph",), given=given)):
        model = vgae(features=features)
        bound = objective(model, whole())
        assert bound.value.shape == (5,)
        bound.value.mean().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())
