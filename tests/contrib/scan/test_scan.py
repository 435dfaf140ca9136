"""SCAN: the moments it must reach, the direction of its divergence, every term, and its operators."""

import math
from typing import Any

import pytest
import torch

import mmgen.densities
import mmgen.posteriors
from mmgen.contrib.scan.posteriors.scan import OperatorTask, ScanTask, draw_recombination
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.descriptions import AND, IGNORE, IN_COMMON, parse
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.modalities.text import Text
from mmgen.posteriors import Aggregate, FitParts, FitSettings
from mmgen.testing.densities import ATTRIBUTES
from mmgen.training.task import Task

CODES = torch.cartesian_prod(torch.arange(2), torch.arange(3))  # colour, size


def scan(**settings: Any) -> tuple[Aggregate, Task]:
    target = mmgen.posteriors.get("scan")(**settings)
    torch.manual_seed(0)
    family = mmgen.densities.get("gaussian")(hidden=(64,))
    aggregate = Aggregate(
        LatentSpace.flat(3), ATTRIBUTES, family, networks=lambda: target.build_networks(3, ATTRIBUTES)
    )
    model: Any = None
    return aggregate, target.build_task(FitParts(aggregate, None, model, 0.5, torch.zeros(0), torch.zeros(0)))


def encodings(number: int, seed: int = 0) -> Batch:
    """A perfect code: z_1 is colour at -1, 1; z_2 size at -1.2, 0, 1.2; z_3 neither; all of unit variance over all."""
    generator = torch.Generator().manual_seed(seed)
    codes = CODES[torch.randint(0, 6, (number,), generator=generator)]
    noise = torch.randn(number, 3, generator=generator)
    centre = torch.stack([2.0 * codes[:, 0] - 1, 1.2 * (codes[:, 1] - 1.0), torch.zeros(number)], 1)
    spread = torch.tensor([0.0, 0.0, math.sqrt(0.75)])
    mean = math.sqrt(0.9) * centre + spread * noise
    sd = torch.tensor([math.sqrt(0.1), math.sqrt(1 - 0.9 * 0.96), 0.5])
    values = {"mean": mean, "log_sd": sd.log().expand(number, 3), "attributes": codes}
    present = {name: torch.ones(number, dtype=torch.bool) for name in ("mean", "log_sd")}
    return Batch(values, present | {"attributes": torch.ones(number, 2, dtype=torch.bool)})


def maximise(task: Task, steps: int = 400) -> None:
    optimiser = torch.optim.Adam([p for p in task.parameters() if p.requires_grad], lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    rows = encodings(50_000)
    for _ in range(steps):
        optimiser.zero_grad()
        (-task(rows[torch.randint(0, rows.size, (512,))], None).value.mean()).backward()
        optimiser.step()
        schedule.step()


def described(colour: int | None, size: int | None) -> Batch:
    values = torch.tensor([[colour or 0, size or 0]])
    return Batch({"attributes": values}, {"attributes": torch.tensor([[colour is not None, size is not None]])})


def posterior(aggregate: Aggregate, one: Batch) -> DiagonalGaussian:
    density: Any = aggregate.density
    with torch.no_grad():
        found: DiagonalGaussian = density.distribution(aggregate.context(one), 1)
    return found


def moments(colour: int | None, size: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and standard deviation of the mixture of the encodings with these attributes, in closed form."""
    mean = torch.tensor([0.0 if colour is None else 2.0 * colour - 1, 0.0 if size is None else 1.2 * (size - 1), 0.0])
    inside = torch.tensor([0.1, 1 - 0.9 * 0.96, 1.0])
    between = torch.tensor([0.9 if colour is None else 0.0, 0.9 * 0.96 if size is None else 0.0, 0.0])
    return math.sqrt(0.9) * mean, (inside + between).sqrt()


ASKED = [(0, 1), (1, None), (None, 2), (None, None)]


@pytest.mark.slow
def test_without_its_other_terms_it_reaches_the_moments_of_the_mixture() -> None:
    """The forward divergence alone: mean and variance of the mixture of q(z|x), and sd 1 on what is not asked."""
    aggregate, task = scan(beta=0.0, symbols_weight=0.0)
    maximise(task)
    for colour, size in ASKED:
        q, (mean, sd) = posterior(aggregate, described(colour, size)), moments(colour, size)
        torch.testing.assert_close(q.mean[0], mean, atol=0.08, rtol=0)
        torch.testing.assert_close(q.sd[0], sd, atol=0.06, rtol=0)
        unasked = [place for place, said in enumerate((colour, size, None)) if said is None]
        assert (q.sd[0, unasked] - 1).abs().max() < 0.06
        # The reverse divergence would sit on one of the modes, as narrow as one encoding.
        assert size is not None or (q.sd[0, 1] > 0.9 and q.sd[0, 1] > 2 * math.sqrt(1 - 0.9 * 0.96))


def test_the_divergence_has_the_posterior_of_images_first() -> None:
    aggregate, task = scan()
    batch = encodings(40)
    keep: Any = task
    keep.keep_all = 1.0
    bound = task(batch, None)
    q = posterior(aggregate, batch)
    encoded = DiagonalGaussian(batch.values["mean"], batch.values["log_sd"])
    normal = [torch.distributions.Normal(each.mean, each.sd) for each in (encoded, q)]
    forward = torch.distributions.kl_divergence(*normal).sum(-1)
    found = bound.terms["KL(q(z|x), q(z|y))"]
    torch.testing.assert_close(found, forward)
    assert (found - torch.distributions.kl_divergence(*normal[::-1]).sum(-1)).abs().min() > 1e-3


def test_terms_are_weighed_as_said() -> None:
    aggregate, task = scan(symbols_weight=3.0, beta=2.0, images_weight=7.0)
    bound = task(encodings(40), None)
    likely, to_prior, from_images = bound.terms.values()
    torch.testing.assert_close(bound.value, 3 * likely - 2 * to_prior - 7 * from_images)
    assert not bound.is_bound
    other: Any = task
    other.keep_all = 1.0
    q = posterior(aggregate, encodings(40))
    closed = 0.5 * (q.variance + q.mean.square() - 1 - q.variance.log()).sum(-1)
    torch.testing.assert_close(task(encodings(40), None).terms["KL(q(z|y), p(z))"], closed)


def test_what_is_unknown_is_no_symbol() -> None:
    """p(y|z) leaves it out, and q(z|y) reads it as unknown, not as the first value nor as "no"."""
    aggregate, _ = scan()
    networks: Any = aggregate.networks
    z = torch.randn(1, 3)
    with torch.no_grad():
        parts = [networks.log_likelihood(z, described(*said)) for said in ((1, None), (None, 2), (1, 2), (None, None))]
    torch.testing.assert_close(parts[0] + parts[1], parts[2])
    assert parts[3].item() == 0
    assert not torch.equal(posterior(aggregate, described(0, 1)).mean, posterior(aggregate, described(None, 1)).mean)


def test_sentences_have_symbols_too() -> None:
    target, text = mmgen.posteriors.get("scan")(decoder_hidden=8), Text("text", ("a", "b"), 2)
    family = mmgen.densities.get("gaussian")(hidden=(16,))
    aggregate = Aggregate(LatentSpace.flat(3), text, family, networks=lambda: target.build_networks(3, text))
    task = ScanTask(aggregate, target, keep_all=0.5)  # type: ignore[arg-type]
    words = Batch({"text": torch.tensor([[0, 1], [1, 2]])}, {"text": torch.ones(2, dtype=torch.bool)})
    bound = task(encodings(2) | words, None)
    assert bound.value.shape == (2,) and (bound.terms["log p(y|z)"] < 0).all()


@pytest.mark.parametrize("operator", [AND, IN_COMMON, IGNORE])
def test_operators_are_taught_what_they_mean(operator: str) -> None:
    torch.manual_seed(0)
    batch = encodings(400)
    (lv, lm), (rv, rm), (v, m) = draw_recombination(batch, "attributes", operator)
    assert (v[m] == batch.values["attributes"][m]).all(), "the result is true of the example"
    both = lm & rm & (lv == rv)
    if operator == AND:
        assert ((lm | rm) == m).all() and (lv[lm] == v[lm]).all() and (rv[rm] == v[rm]).all()
    elif operator == IN_COMMON:
        assert (both == m).all()
    else:
        assert (rm <= both).all() and ((lm & ~rm) == m).all()


@pytest.mark.parametrize("number", [1, 2, 4])
def test_figures_of_few_examples_are_numbers(number: int) -> None:
    _, task = scan(operators=True)
    bound = task(encodings(number), None)
    assert bound.value.isfinite().all() and (bound.value < 0).all()
    assert all(term.shape == (number,) and term.isfinite().all() for term in bound.terms.values())


def test_a_base_has_the_settings_of_what_starts_from_it() -> None:
    every = [
        FitSettings.model_validate({"aggregate": {"target": {"name": "scan"}, **other}})
        for other in ({}, {"keep_all": 0.2}, {"target": {"name": "scan", "beta": 2.0}})
    ]
    shapes = [(each.settings_to_match, each.aggregate.target) for each in every]
    assert shapes[0] not in shapes[1:]


@pytest.mark.slow
def test_operators_reach_the_moments_of_what_is_meant() -> None:
    """On a perfect code each operator finds the posterior of the concept that it names; the rest of SCAN stays."""
    aggregate, task = scan(operators=True, beta=0.0, symbols_weight=0.0)
    _, plain = scan(beta=0.0, symbols_weight=0.0)
    maximise(plain)
    aggregate.load_state_dict({**aggregate.state_dict(), **plain.saved_tensors()})
    assert isinstance(task, OperatorTask)
    before = {name: value.clone() for name, value in plain.saved_tensors().items()}
    maximise(task, 1500)
    after = task.saved_tensors()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    for words, meant in (
        ("colour=red AND size=tiny", (0, 2)),
        ("(colour=red size=big) IN COMMON (colour=red size=tiny)", (0, None)),
        ("colour=blue size=big IGNORE colour=blue", (None, 0)),
    ):
        with torch.no_grad():
            q = aggregate.recombined_posterior(parse(words, ATTRIBUTES))
        mean, sd = moments(*meant)
        torch.testing.assert_close(q.mean[0], mean, atol=0.15, rtol=0)
        # Weights are shared by the dimensions, and one network tells three of them apart by their widths alone.
        torch.testing.assert_close(q.sd[0], sd, atol=0.25, rtol=0)


def test_it_says_what_it_is_and_refuses_what_it_is_not() -> None:
    settings = FitSettings.model_validate({"aggregate": {"target": {"name": "scan"}, "given": "attributes"}})
    assert (settings.name, settings.file_name_part, settings.family_name, settings.base) == (
        "q_scan",
        "scan",
        "gaussian",
        None,
    )
    target = {"name": "scan", "operators": True}
    operators = FitSettings.model_validate({"aggregate": {"target": target, "given": "attributes"}})
    assert (operators.name, operators.file_name_part) == ("q_scan with operators", "scan-operators")
    assert operators.base is not None and operators.base.file_name_part == "scan"
    target = {"name": "scan", "images_weight": 30, "beta": 0.5}
    weighed = FitSettings.model_validate({"aggregate": {"target": target, "given": "attributes"}})
    assert weighed.file_name_part == "scan-beta-w0.5-images-w30"
    aggregate, _ = scan()
    with pytest.raises(UsageError, match="has none"):
        aggregate.recombined_posterior(parse("colour=red AND size=big", ATTRIBUTES))
    model: Any = None
    with pytest.raises(UsageError, match="expected attributes or text; leave --given out"):
        mmgen.posteriors.get("scan")().check(model, "nothing", "all")
    with pytest.raises(UsageError, match="needs --given attributes, but got --given text"):
        mmgen.posteriors.get("scan")(operators=True).check(model, "text", "all")
