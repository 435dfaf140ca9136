"""What only a GPU would show, without one: tensors made on another device, and steps that wait for the device.

On torch's device `meta` tensors have shapes and no values. A tensor that code makes on the CPU cannot be combined with
them, and a value cannot be read.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import mmgen.densities
import mmgen.likelihoods
import mmgen.networks
import mmgen.objectives
from mmgen import codecs, metrics
from mmgen.core.batch import Batch
from mmgen.latent.space import LatentSpace
from mmgen.models import Model, build_model
from mmgen.objectives import Adversarial, Objective
from mmgen.posteriors import Aggregate
from mmgen.testing.densities import ATTRIBUTES, CONDITION
from mmgen.testing.metrics import accepts_evaluation, small_evaluation
from mmgen.testing.objectives import _find_case
from mmgen.training.batches import Rows
from mmgen.training.loop import _Run
from mmgen.training.settings import TrainingSettings
from mmgen.training.task import ModelTask

SPARSE = ("balanced-edges",)
"""Objectives of graphs, whose sparse matrices `meta` has not."""
WAITS = ("semi-supervised",)
"""Objectives whose steps wait: the rows with labels are chosen, since the others cost as many times as there are."""
OBJECTIVES = [
    pytest.param(name, settings, id=" ".join([name, *map(str, settings.values())]))
    for name in mmgen.objectives.names()
    if name not in SPARSE
    for settings in ({}, *mmgen.objectives.get(name).variants)
]


class _OneDevice(TorchDispatchMode):
    """Refuses every operation of tensors on two devices, which not all of torch does for `meta`.

    Single numbers may be on the CPU, indices too, and what copies may copy.
    """

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor) and one.dim()]
        free = function.overloadpacket in (torch.ops.aten.copy_, torch.ops.aten.index, torch.ops.aten.index_put_)
        assert free or len({one.device for one in tensors}) < 2, f"{function} of tensors on two devices"
        return function(*args, **kwargs or {})


class _MadeUp(TorchDispatchMode):
    """Makes up each value that is read off `meta`, so that what is computed afterwards is seen too: ones."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, packet, aten = kwargs or {}, function.overloadpacket, torch.ops.aten
        read = next((one for one in args if isinstance(one, torch.Tensor)), None)
        if read is not None and read.is_meta:
            if packet in (aten._local_scalar_dense, aten.item, aten.is_nonzero):
                return torch.ones((), dtype=read.dtype).item()
            if packet in (aten._to_copy, aten.to) and torch.device("cpu") in (kwargs.get("device"), *args[1:2]):
                return torch.ones(read.shape, dtype=kwargs.get("dtype") or read.dtype)
            if packet is aten.nonzero:
                return torch.ones(read.numel(), read.dim(), dtype=torch.int64, device="meta")
        return function(*args, **kwargs)


@pytest.fixture(autouse=True)
def meta(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One device, and what is no part of mmgen and that torch has not for `meta`: autocast, and generators."""
    autocast = torch.autocast

    def on_any(kind: str, *arguments: Any, **options: Any) -> Any:
        return autocast("cpu" if kind == "meta" else kind, *arguments, **options)

    class Generator(torch.Generator):
        def __new__(cls, device: Any = "cpu") -> torch.Generator:  # type: ignore[misc]  # as torch's own
            return _GENERATOR("cpu" if torch.device(device).type == "meta" else device)

    monkeypatch.setattr(torch, "autocast", on_any)
    monkeypatch.setattr(torch, "Generator", Generator)
    with _OneDevice():
        yield


_GENERATOR = torch.Generator


def case_of(name: str, settings: dict[str, Any]) -> tuple[Objective, Model, Batch]:
    objective = mmgen.objectives.get(name)(**settings)
    case = _find_case(objective)
    torch.manual_seed(0)
    return objective, build_model(case.model, objective.demands, case.data), case.batch()


@pytest.mark.parametrize(("name", "settings"), OBJECTIVES)
def test_objectives(name: str, settings: dict[str, Any]) -> None:
    """Forward and backward, in a training and without one."""
    objective, model, batch = case_of(name, settings)
    model, batch = model.to("meta"), batch.to("meta")
    for step in (None, 3)[: 1 if name in WAITS else 2]:
        value = objective(model, batch, step).value
        assert value.device.type == "meta"
        value.mean().backward()
    if isinstance(objective, Adversarial):
        objective.opponent(model).to("meta")(model, batch, batch, 0).value.mean().backward()


@pytest.mark.slow_cases("rectified-flow-grid", "rectified-flow-flat")
@pytest.mark.parametrize("latent", [LatentSpace.flat(4), LatentSpace.grid(1, 2, 2)], ids=["flat", "grid"])
@pytest.mark.parametrize("name", mmgen.densities.names())
def test_densities(name: str, latent: LatentSpace) -> None:
    density = Aggregate(latent, ATTRIBUTES, mmgen.densities.get(name).example()).to("meta")
    condition = CONDITION.to("meta")
    density.training_value(torch.randn(3, 4, device="meta"), condition).sum().backward()
    density.log_prob(torch.randn(3, 4, device="meta"), condition).sum().backward()
    assert density.sample(condition, 5).device.type == "meta"
    draws, weights = density.sample_reparameterised(condition, 3)
    (weights.unsqueeze(-1) * draws).sum().backward()


@pytest.mark.parametrize(
    "name", [name for name in mmgen.likelihoods.names() if name not in ("autoregressive", "word-set")]
)
def test_likelihoods(name: str) -> None:
    likelihood = mmgen.likelihoods.get(name)()
    parameters = torch.randn(4, likelihood.parameters_per_value, 3, 3, device="meta", requires_grad=True)
    likelihood.log_prob(parameters, likelihood.sample(parameters, None)).sum().backward()
    likelihood.mean(parameters).sum().backward()


@pytest.mark.parametrize(
    "codec", [codecs.Pixels(), codecs.TinyAutoencoder(), codecs.KLAutoencoder()], ids=lambda one: one.name
)
def test_codecs(codec: codecs.Codec) -> None:
    encoder, decoder = (part.to("meta") for part in codec.build(3))
    decoder(encoder(torch.rand(2, 3, 32, 32, device="meta", requires_grad=True))).sum().backward()


@pytest.mark.parametrize("name", [name for name in mmgen.networks.names() if name != "spatial"])
def test_networks(name: str) -> None:
    network = mmgen.networks.get(name)()
    encoder, _ = network.encoder((3, 32, 32))
    decoder = network.decoder(4, (3, 32, 32))
    encoder.to("meta")(torch.rand(2, 3, 32, 32, device="meta")).sum().backward()
    decoder.to("meta")(torch.randn(2, 4, device="meta")).sum().backward()


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A small model and its judges, of which only shapes are left."""
    torch.set_num_threads(1)
    made = small_evaluation(tmp_path_factory.mktemp("meta"))
    made.loaded.model.to("meta")
    made.loaded.device = torch.device("meta")
    for one in (made, *made.further):
        one.judge.to("meta")
    return made


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of numpy, about the values that are made up
@pytest.mark.parametrize("name", [name for name in metrics.names() if name not in ("fid", "kid", "parameters")])
def test_metrics(name: str, evaluation: Any) -> None:
    """With values made up where they are read, all that is computed from them is on one device as well."""
    if not accepts_evaluation(name, evaluation):
        pytest.skip("it is for other models")
    with contextlib.suppress(NotImplementedError), _MadeUp():  # of torch, which has not every operation for `meta`
        metrics.evaluate(evaluation, [name]).run()


class _Batches(Rows):
    """Rows that are one batch on the device, whatever is asked for."""

    def __init__(self, batch: Batch) -> None:
        self.whole = batch[:4].to("meta")

    def __len__(self) -> int:
        return self.whole.size

    def batch(self, indices: torch.Tensor) -> Batch:
        return self.whole


class _Wrapped(torch.nn.Module):
    """A module as Fabric returns it, which holds the one that it was given."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *arguments: Any) -> Any:
        return self.module(*arguments)


def step_on_meta(objective: Objective, model: Model, batch: Batch, folder: Path, **settings: Any) -> None:
    """One step of a real training: whatever reads a value on the device, and so waits for it, fails."""
    fabric: Any = SimpleNamespace(
        device=torch.device("meta"), world_size=1, global_rank=0, is_global_zero=True,
        setup=lambda module, optimizer: (_Wrapped(module), optimizer), backward=lambda loss: loss.backward(),
    )  # fmt: skip
    rows, chosen = _Batches(batch), TrainingSettings(batch=4, steps=2, precision="32-true", **settings)
    task = ModelTask(model, objective)
    run = _Run(task, rows, rows, chosen, folder / "model.safetensors", lambda *_: None, {}, "never", fabric)
    for player in run.players:
        player.module.train()
        for group in player.optimizer.param_groups:
            group |= {"fused": None} if "fused" in group else {}  # torch has no such kernel for `meta`
    run._train_step([torch.arange(4)] * max(player.batch_count for player in run.players))


@pytest.mark.parametrize(("name", "settings"), OBJECTIVES)
def test_a_step_waits_for_nothing(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    if name in WAITS:
        with pytest.raises(NotImplementedError, match="nonzero"):
            step_on_meta(*case_of(name, settings), tmp_path)
        return
    step_on_meta(*case_of(name, settings), tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "muon", "muon_parameters": "matrices"},
        {"gradient_clip": 1.0, "average": 0.9},
        {"optimizer": "sgd", "momentum": 0.9},
    ],
    ids=str,
)
def test_nor_do_optimisers_clipping_and_averages(settings: dict[str, Any], tmp_path: Path) -> None:
    step_on_meta(*case_of("telbo", {}), tmp_path, **settings)


def test_what_chooses_nothing_computes_the_same() -> None:
    """On the CPU, where to choose costs no wait, both ways of two functions."""
    from mmgen.likelihoods.quantised_normal import _pixel_log_prob
    from mmgen.objectives.mvae import _masked_log_likelihood

    generator = torch.Generator().manual_seed(0)
    level = torch.randint(256, (4, 500), generator=generator).double()
    mean, sd = (torch.rand(4, 500, generator=generator, dtype=torch.float64) for _ in range(2))
    pairs = zip(*(_pixel_log_prob(mean, 0.01 + 0.1 * sd, level, True, whole) for whole in (False, True)), strict=True)
    for chosen, every in pairs:
        torch.testing.assert_close(chosen, every)
    _, model, batch = case_of("mvae", {})
    z, mask = torch.randn(2, 5, 3, generator=generator), torch.rand(2, 5, generator=generator) < 0.5
    assert 1 < mask.sum() < 10
    values = [_masked_log_likelihood(model.eval(), ("image", None), z, batch, mask, whole) for whole in (False, True)]
    torch.testing.assert_close(*values)
