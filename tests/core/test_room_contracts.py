"""What every inference and every modality promises, over all members of their rooms."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import mmgen.inference
import mmgen.modalities
from mmgen.batch import Batch
from mmgen.config import build_member
from mmgen.errors import SettingsError, UsageError
from mmgen.inference._base import Inference, Parts
from mmgen.likelihoods.bernoulli import Bernoulli
from mmgen.modalities._base import Modality
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.modalities.text import Text
from mmgen.models._parts import describe_attributes
from mmgen.networks._text import TextDecoder, TextNetwork
from tests.core.test_objectives import SMALL_DATA, SMALL_MODEL, small_batch

GIVEN = [("image",), ("attributes",), ("image", "attributes")]


def parts() -> Parts:
    assert SMALL_DATA.image is not None
    assert SMALL_DATA.attributes is not None
    modalities = {
        "image": Image("image", SMALL_DATA.image.shape, Bernoulli()),
        "attributes": describe_attributes(SMALL_DATA.attributes),
    }
    image_network = build_member(mmgen.networks, SMALL_MODEL.image_network, "image_network")
    return Parts(3, modalities, image_network, SMALL_MODEL.attribute_network, TextNetwork(), hidden=16)


def built(name: str, given: tuple[str, ...]) -> Inference | None:
    """The member made for one query; None where it refuses the query."""
    torch.manual_seed(0)
    try:
        made: Inference = mmgen.inference.get(name)(parts(), frozenset([given]))
    except SettingsError:
        return None
    return made if made.answers(given) else None


def with_others_changed(batch: Batch, given: tuple[str, ...]) -> Batch:
    """The batch with other values of everything that is not given."""
    other = {"image": 1 - batch.values["image"], "attributes": 1 - batch.values["attributes"].clamp(max=1)}
    return Batch({name: v if name in given else other[name] for name, v in batch.values.items()}, batch.present)


@pytest.mark.parametrize("given", GIVEN, ids=" and ".join)
@pytest.mark.parametrize("name", mmgen.inference.names())
def test_inference(name: str, given: tuple[str, ...]) -> None:
    inference = built(name, given)
    if inference is None:
        assert any(built(name, other) for other in GIVEN), f"{name} answers none of {GIVEN}: test what it is for here"
        return
    batch = small_batch()
    q = inference.posterior(batch, given)
    assert q.mean.shape == q.log_sd.shape == (5, 3)
    assert q.mean.isfinite().all()
    assert q.log_sd.isfinite().all()
    torch.testing.assert_close(inference.posterior(batch, given[::-1]).mean, q.mean)
    torch.testing.assert_close(inference.posterior(with_others_changed(batch, given), given).mean, q.mean)
    (q.mean.sum() + q.log_sd.sum()).backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in inference.parameters())
    with pytest.raises(UsageError, match=f"needs {given[-1]}, which the batch does not hold"):
        inference.posterior(Batch({n: v for n, v in batch.values.items() if n != given[-1]}, batch.present), given)
    assert not inference.answers(("smell",))


@pytest.mark.parametrize("name", mmgen.inference.names())
def test_inference_from_subsets(name: str) -> None:
    """Whoever says any_subset has a posterior for each, equal to the one that is asked for directly."""
    inference, batch = next(filter(None, (built(name, given) for given in reversed(GIVEN)))), small_batch()
    units = [("image", None), ("attributes", None)]
    chosen = [[True, False], [False, True], [True, True]]
    if not inference.any_subset:
        # Not a user's mistake: whoever asks has not looked at any_subset, so it is Python's own error.
        with pytest.raises(NotImplementedError, match="no posterior for every subset"):
            inference.infer_subsets(batch, units, chosen)
        return
    q = inference.infer_subsets(batch, units, chosen)
    assert q.mean.shape == (3, 5, 3)
    for one, given in enumerate(GIVEN):
        torch.testing.assert_close(q.mean[one], inference.posterior(batch, given).mean)
        torch.testing.assert_close(q.log_sd[one], inference.posterior(batch, given).log_sd)


@dataclass
class Example:
    """A small modality, decoder outputs [B, *] for it, and every value [N, *event] that it can take."""

    modality: Modality
    parameters: Tensor
    every: Tensor
    present: Callable[[int], Tensor]
    """Everything there, for so many examples."""


def some_image() -> Example:
    every = torch.tensor([*itertools.product((0.0, 1.0), repeat=4)]).reshape(-1, 1, 2, 2)
    return Example(Image("image", (1, 2, 2), Bernoulli()), torch.randn(1, 1, 2, 2), every, whole)


def some_attributes() -> Example:
    modality = Attributes("attributes", ("a", "b"), (("0", "1", "2"), ("x", "y")))
    every = torch.tensor([*itertools.product(range(3), range(2))])
    return Example(modality, torch.randn(1, 5), every, lambda n: torch.ones(n, 2, dtype=torch.bool))


def some_text() -> Example:
    speaker = TextDecoder(3, 2, TextNetwork(embedding=4, hidden=6, head=5)).eval()
    every = torch.tensor([[2, 2], *([w, 2] for w in range(2)), *itertools.product(range(2), repeat=2)])
    return Example(Text("text", ("big", "red"), 2, speaker=speaker), speaker(torch.randn(1, 3)), every, whole)


def whole(number: int) -> Tensor:
    return torch.ones(number, dtype=torch.bool)


EXAMPLES = {"image": some_image, "attributes": some_attributes, "text": some_text}


@pytest.mark.parametrize("name", mmgen.modalities.names())
def test_modality(name: str) -> None:
    """Probabilities of all values add up to one; what is not there adds nothing; draws are values and repeatable."""
    assert name in EXAMPLES, "a new modality needs one of its kind in EXAMPLES, with every value that it can take"
    torch.manual_seed(0)
    with torch.no_grad():
        example = EXAMPLES[name]()
        modality, number = example.modality, len(example.every)
        assert isinstance(modality, mmgen.modalities.get(name))
        parameters = example.parameters.expand(number, *example.parameters.shape[1:])
        there = example.present(number)
        log_prob = modality.log_prob(parameters, example.every, there)
        assert log_prob.shape == (number,)
        assert log_prob.exp().sum().item() == pytest.approx(1.0, abs=1e-5)
        assert (modality.log_prob(parameters, example.every, ~there) == 0).all()
        assert modality.mean(parameters).isfinite().all()
        draws = [modality.sample(parameters, torch.Generator().manual_seed(1)) for _ in range(2)]
        assert draws[0].equal(draws[1])
        values = {tuple(value.flatten().tolist()) for value in example.every}
        assert {tuple(value.flatten().tolist()) for value in draws[0]} <= values
