"""Optimisers and schedules by name: each against its closed form; settings of another one are refused."""

import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from mmgen.core.errors import SettingsError
from mmgen.training.optimizers import (
    OPTIMIZERS,
    SCHEDULES,
    Muon,
    constant,
    cosine,
    decay_factor,
    is_orthogonalised,
    linear,
    optimizer_state,
    orthogonalise,
    stages,
    warmup_factor,
)
from mmgen.training.settings import TrainingSettings, merge_settings

FIRST, SECOND, RATE, DECAY = 3.0, -1.0, 0.1, 0.5


"""Gradients of two steps."""


def moved(start: float, **settings: Any) -> list[float]:
    """A number after one and after two steps of an optimiser."""
    weight = nn.Parameter(torch.tensor([start], dtype=torch.float64))
    groups = [{"params": [weight], "weight_decay": settings.pop("weight_decay", 0.0)}]
    optimizer = TrainingSettings(learning_rate=RATE, **settings).build_optimizer(groups)
    found = []
    for gradient in (FIRST, SECOND):
        weight.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        found.append(weight.item())
    return found


def test_sgd_steps_along_the_gradient() -> None:
    assert moved(2.0, optimizer="sgd") == pytest.approx([2 - RATE * FIRST, 2 - RATE * (FIRST + SECOND)])
    first = 2 - RATE * (FIRST + DECAY * 2)
    assert moved(2.0, optimizer="sgd", weight_decay=DECAY)[0] == pytest.approx(first), "decay is in the gradient"


def test_sgd_with_momentum_keeps_a_velocity() -> None:
    m, velocity = 0.9, SECOND + 0.9 * FIRST
    plain = [2 - RATE * FIRST, 2 - RATE * FIRST - RATE * velocity]
    assert moved(2.0, optimizer="sgd", momentum=m) == pytest.approx(plain)


def test_rmsprop_divides_by_the_root_mean_square() -> None:
    alpha, epsilon = 0.99, 1e-8
    square = (1 - alpha) * FIRST**2
    first = 2 - RATE * FIRST / (math.sqrt(square) + epsilon)
    square = alpha * square + (1 - alpha) * SECOND**2
    second = first - RATE * SECOND / (math.sqrt(square) + epsilon)
    options = {"optimizer": "rmsprop"}
    assert moved(2.0, **options) == pytest.approx([first, second])
    velocity = 0.5 * (2 - first) / RATE + SECOND / (math.sqrt(square) + epsilon)
    assert moved(2.0, momentum=0.5, **options)[1] == pytest.approx(first - RATE * velocity)


def test_adagrad_divides_by_the_root_of_the_sum_of_squares() -> None:
    """The first step is as long as the rate, whatever the gradient; epsilon stands beside the root."""
    first = 2 - RATE
    second = first - RATE * SECOND / math.hypot(FIRST, SECOND)
    assert moved(2.0, optimizer="adagrad") == pytest.approx([first, second])
    found = moved(2.0, optimizer="adagrad", adagrad_epsilon=1.0)
    assert found[0] == pytest.approx(2 - RATE * FIRST / (FIRST + 1))


def test_adam_and_adamw_step_by_the_rate_and_differ_in_decay() -> None:
    """Adam's first step is g / (|g| + epsilon) rates long; with decay g is g + lambda w, or w shrinks apart."""
    epsilon = 0.25
    for start in (2.0, -2.0):
        gradient = FIRST + DECAY * start
        adam = start - RATE * gradient / (abs(gradient) + epsilon)
        assert moved(start, weight_decay=DECAY, adam_epsilon=epsilon)[0] == pytest.approx(adam)
        adamw = start * (1 - RATE * DECAY) - RATE * FIRST / (FIRST + epsilon)
        found = moved(start, optimizer="adamw", weight_decay=DECAY, adam_epsilon=epsilon)[0]
        assert found == pytest.approx(adamw)


def test_adam_keeps_means_of_the_gradient_and_its_square() -> None:
    one, two, epsilon = 0.5, 0.75, 1e-3
    mean = one * (1 - one) * FIRST + (1 - one) * SECOND
    square = two * (1 - two) * FIRST**2 + (1 - two) * SECOND**2
    first = 2 - RATE * FIRST / (FIRST + epsilon)
    second = first - RATE * mean / (1 - one**2) / (math.sqrt(square / (1 - two**2)) + epsilon)
    assert moved(2.0, adam_betas=(one, two), adam_epsilon=epsilon) == pytest.approx([first, second])


def test_an_optimiser_keeps_what_its_state_says() -> None:
    expected = {
        "adam": {"step", "exp_avg", "exp_avg_sq"},
        "adamw": {"step", "exp_avg", "exp_avg_sq"},
        "rmsprop": {"step", "square_avg"},
        "sgd": set(),
        "adagrad": {"step", "sum"},
        "muon": {"step", "momentum_buffer"},
    }
    assert expected.keys() == OPTIMIZERS.keys()
    for name, kept in expected.items():
        weight = nn.Parameter(torch.zeros(2, 2, 2))
        optimizer = TrainingSettings(optimizer=name).build_optimizer([{"params": [weight]}])
        before = {key: value.clone() for key, value in optimizer.state[weight].items()}  # adagrad has some at once
        assert optimizer_state(optimizer, optimizer.param_groups[0]).keys() == kept
        after = optimizer.state[weight]
        assert after.keys() == before.keys(), "the question moves nothing"
        assert all(after[key].equal(value) for key, value in before.items())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"optimizer": "sgd", "adam_epsilon": 1e-4}, r"adam_epsilon got 0\.0001 with optimizer sgd.* adam or adamw"),
        ({"momentum": 0.9}, r"momentum got 0\.9 with optimizer adam, .* set training\.optimizer to rmsprop or sgd"),
        ({"optimizer": "adm"}, "unknown optimiser 'adm': did you mean 'adam'"),
        ({"schedule": "cosin"}, "unknown schedule 'cosin': did you mean 'cosine'"),
        ({"stages": [[1, 1.0]]}, "got 1 stages with schedule constant"),
        ({"schedule": "stages"}, "got 0 stages with schedule stages; give training.stages too"),
    ],
)
def test_settings_of_another_one_are_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        TrainingSettings(**values)


PARTS = (0.0, 0.1, 0.25, 0.5, 1.0)


def test_schedules_are_their_closed_forms() -> None:
    assert SCHEDULES.keys() == {"constant", "cosine", "linear", "stages"}
    for done in PARTS:
        assert constant(done) == 1
        assert cosine(done) == pytest.approx(0.505 + 0.495 * math.cos(math.pi * done))
        assert linear(done) == pytest.approx(1 - 0.99 * done)
    steps = ((1.0, 1.0), (2.0, 0.3), (1.0, 0.1))
    assert [stages(done, stages=steps) for done in (0.0, 0.24, 0.25, 0.74, 0.75, 1.0)] == [1, 1, 0.3, 0.3, 0.1, 0.1]


def test_warmup_and_decay_count_steps() -> None:
    assert [warmup_factor(step, 5) for step in range(7)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1, 1, 1])
    assert warmup_factor(0, 0) == 1
    assert decay_factor(7, 0.9) == pytest.approx(0.9**7)


def test_the_rate_is_the_product_of_its_factors() -> None:
    settings = TrainingSettings(
        learning_rate=0.5, steps=100, schedule="linear", warmup_steps=20, learning_rate_decay=0.99
    )
    for step in (0, 10, 50, 99):
        expected = 0.5 * min(1, (step + 1) / 20) * 0.99**step * (1 - 0.99 * step / 100)
        assert settings.learning_rate_at(step) == pytest.approx(expected)


def test_with_minutes_the_schedule_follows_the_clock_where_that_is_ahead() -> None:
    settings = TrainingSettings(learning_rate=1.0, steps=100, schedule="linear", minutes=1.0)
    assert settings.learning_rate_at(10, seconds=30) == pytest.approx(linear(0.5))
    assert settings.learning_rate_at(80, seconds=30) == pytest.approx(linear(0.8))
    assert settings.learning_rate_at(80, seconds=120) == pytest.approx(linear(1.0))


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
