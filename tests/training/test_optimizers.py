"""Optimisers and schedules by name: each against its closed form; settings of another one are refused."""

import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from mmgen.training.optimizers import (
    OPTIMIZERS,
    SCHEDULES,
    constant,
    cosine,
    decay_factor,
    linear,
    optimizer_state,
    stages,
    warmup_factor,
)
from mmgen.training.settings import TrainingSettings

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
