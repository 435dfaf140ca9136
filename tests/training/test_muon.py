"""Muon against singular value decompositions."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mmgen.core.errors import SettingsError
from mmgen.training.optimizers import Muon, is_orthogonalised, orthogonalise
from mmgen.training.settings import TrainingSettings, merge_settings

RATE, SCALE, MOMENTUM, DECAY = 0.1, 0.3, 0.95, 0.5


def by_decomposition(matrix: Tensor) -> Tensor:
    """What five iterations make of a matrix, value by value: products of matrices never meet."""
    u, values, v = torch.linalg.svd(matrix, full_matrices=False)
    values = values / matrix.norm()
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return u @ values.diag() @ v


def normal(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(len(shape) + shape[0])
    return torch.randn(shape, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (4, 4), (1, 5), (5, 1)])
def test_orthogonalising_maps_singular_values_alone(shape: tuple[int, int]) -> None:
    found = orthogonalise(normal(*shape))
    torch.testing.assert_close(found, by_decomposition(normal(*shape)))
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.68 and values.max() < 1.21


def test_orthogonalising_says_truly_what_becomes_of_small_values() -> None:
    values = torch.cat([torch.linspace(0.002, 1, 4000, dtype=torch.float64), torch.tensor([1e-6], dtype=torch.float64)])
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    assert 0.68 < values[:-1].min() < 0.69 and 1.20 < values[:-1].max() < 1.21
    assert 480 < values[-1] / 1e-6 <= 485
    assert orthogonalise(torch.zeros(3, 2)).equal(torch.zeros(3, 2))


def test_a_kernel_moves_as_its_matrix_along_the_momentum_that_is_to_come() -> None:
    start, gradients = normal(3, 2, 1, 2), (normal(4, 2, 1, 2)[:3], normal(5, 2, 1, 2)[:3])
    kernel = nn.Parameter(start.clone())
    settings = TrainingSettings(optimizer="muon", learning_rate=RATE, muon_scale=SCALE, weight_decay=DECAY)
    optimizer = settings.build_optimizer([{"params": [kernel], "weight_decay": DECAY}])
    expected, mean = start.reshape(3, 4), torch.zeros(3, 4, dtype=torch.float64)
    for gradient in gradients:
        kernel.grad = gradient.clone()
        optimizer.step()
        flat = gradient.reshape(3, 4)
        mean = MOMENTUM * mean + (1 - MOMENTUM) * flat
        ahead = MOMENTUM * mean + (1 - MOMENTUM) * flat
        root = 2  # of the number of columns
        expected = expected * (1 - RATE * DECAY) - RATE * SCALE * root * by_decomposition(ahead)
        torch.testing.assert_close(kernel.detach().reshape(3, 4), expected)


def test_a_step_is_as_long_as_its_scale_says() -> None:
    """The root mean square of what a kernel moves by is the scale times the rate times that of its singular values."""
    for shape in ((64, 16, 3, 3), (16, 64, 3, 3), (8, 8, 3)):
        kernel = nn.Parameter(torch.zeros(shape, dtype=torch.float64))
        kernel.grad = normal(*shape)
        TrainingSettings(optimizer="muon", learning_rate=RATE).build_optimizer([{"params": [kernel]}]).step()
        assert 0.68 < kernel.detach().square().mean().sqrt().item() / (0.2 * RATE) < 1.21


@pytest.mark.parametrize("parameters", ["kernels", "matrices"])
def test_all_else_moves_as_adamw(parameters: Any) -> None:
    network = nn.Sequential(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.Flatten(), nn.Linear(3, 4)).double()
    twin = nn.Sequential(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.Flatten(), nn.Linear(3, 4)).double()
    twin.load_state_dict(network.state_dict())
    common: dict[str, Any] = {"learning_rate": RATE, "adam_betas": (0.5, 0.7), "adam_epsilon": 1e-3}
    pairs = []
    for module, own in (
        (network, {"optimizer": "muon", "muon_parameters": parameters}),
        (twin, {"optimizer": "adamw"}),
    ):
        groups = [{"params": list(module.parameters()), "weight_decay": DECAY}]
        pairs.append((module, TrainingSettings(**common, **own).build_optimizer(groups)))
    for step in range(3):
        for module, optimizer in pairs:
            for p in module.parameters():
                p.grad = torch.full_like(p, 0.3 * step - 0.2)
            optimizer.step()
    axes = 3 if parameters == "kernels" else 2
    for (name, p), q in zip(network.named_parameters(), twin.parameters(), strict=True):
        assert torch.allclose(p, q) is (p.dim() < axes), name


def test_groups_keep_their_own_options() -> None:
    kernel, vector = nn.Parameter(torch.zeros(2, 2, 2)), nn.Parameter(torch.zeros(2))
    groups = [{"params": [kernel, vector], "weight_decay": 0.25, "rate": 2.0}]
    optimizer = TrainingSettings(optimizer="muon").build_optimizer(groups)
    kept = [(g["params"], g["orthogonal"], g["weight_decay"], g["rate"]) for g in optimizer.param_groups]
    assert [len(each[0]) for each in kept] == [1, 1]
    assert kept[0][0][0] is kernel and kept[1][0][0] is vector
    assert [each[1:] for each in kept] == [(True, 0.25, 2.0), (False, 0.25, 2.0)]


def test_what_has_nothing_that_muon_moves_is_refused() -> None:
    matrix, vector = nn.Parameter(torch.zeros(2, 2)), nn.Parameter(torch.zeros(2))
    with pytest.raises(SettingsError, match=r"is for kernels.* set training\.muon_parameters=matrices, or use adamw"):
        TrainingSettings(optimizer="muon").build_optimizer([{"params": [matrix, vector]}])
    settings = TrainingSettings(optimizer="muon", muon_parameters="matrices")
    with pytest.raises(SettingsError, match=r"is for matrices.* have none; use adamw"):
        settings.build_optimizer([{"params": [vector]}])
    assert isinstance(settings.build_optimizer([{"params": [matrix, vector]}]), Muon)


def test_vectors_in_all_but_their_axes_are_left_to_adamw() -> None:
    """A background [C, 1, 1], a single row, nothing at all."""
    shapes = ((3, 1, 1), (1, 3, 3), (1, 4), (4, 1), (0, 3, 3), (0, 4), (4, 0), (2,), ())
    assert not any(is_orthogonalised(torch.zeros(shape), "matrices") for shape in shapes)
    assert is_orthogonalised(torch.zeros(2, 2), "matrices") and not is_orthogonalised(torch.zeros(2, 2), "kernels")
    assert is_orthogonalised(torch.zeros(2, 1, 2), "kernels")
    background, kernel = nn.Parameter(torch.zeros(3, 1, 1)), nn.Parameter(torch.zeros(2, 2, 2))
    optimizer = TrainingSettings(optimizer="muon", learning_rate=RATE).build_optimizer(
        [{"params": (p for p in (background, kernel))}]
    )
    background.grad = torch.tensor([1.0, 1e-3, 0.0]).view(3, 1, 1)
    optimizer.step()
    assert background.detach().flatten().tolist() == pytest.approx([-RATE, -RATE, 0], rel=1e-3)
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 2


def test_options_of_a_group_that_it_does_not_know_are_refused() -> None:
    groups = [{"params": [nn.Parameter(torch.zeros(2, 2, 2))], "maximize": True}]
    with pytest.raises(ValueError, match="got maximize, expected options of muon"):
        TrainingSettings(optimizer="muon").build_optimizer(groups)


def test_a_state_tells_the_steps_of_kernels_too() -> None:
    """A bias without a gradient at every step is no sign of a state that is not whole."""
    kernel, bias = nn.Parameter(torch.zeros(2, 2, 2)), nn.Parameter(torch.zeros(2))
    optimizer = TrainingSettings(optimizer="muon").build_optimizer([{"params": [bias, kernel]}])
    for gradient in (torch.ones(2), None, None):
        kernel.grad, bias.grad = torch.ones(2, 2, 2), gradient
        optimizer.step()
    assert [float(optimizer.state[p]["step"]) for p in (kernel, bias)] == [3, 1]


def test_another_optimiser_has_none_of_the_settings_of_the_one_below() -> None:
    below = {"training": {"steps": 9, "optimizer": "muon", "muon_scale": 0.8, "adam_epsilon": 1e-3}}
    assert merge_settings(below, {"training": {"optimizer": "sgd", "momentum": 0.9}}) == {
        "training": {"steps": 9, "optimizer": "sgd", "momentum": 0.9}
    }
    assert merge_settings(below, {"training": {"optimizer": "muon", "steps": 8}})["training"]["muon_scale"] == 0.8
    assert merge_settings(below, {"training": {"adam_epsilon": 1e-2}})["training"]["muon_scale"] == 0.8
    assert merge_settings({}, {"training": {"optimizer": "sgd"}}) == {"training": {"optimizer": "sgd"}}


def test_a_closure_is_asked_with_gradients() -> None:
    weight = nn.Parameter(torch.ones(2, 2, 2))
    optimizer = TrainingSettings(optimizer="muon", learning_rate=RATE).build_optimizer([{"params": [weight]}])

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = weight.square().sum()
        value.backward()
        return value

    assert optimizer.step(loss).item() == 8.0
    assert weight.detach().square().sum() < 8
