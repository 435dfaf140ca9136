"""What every inference and every modality promises, over all members of their rooms."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import mmgen.inference
import mmgen.modalities
from mmgen.likelihoods.bernoulli import Bernoulli
from mmgen.modalities._base import Modality
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.modalities.text import Text
from mmgen.networks._text import TextDecoder, TextNetwork
from mmgen.testing import models as inference
from tests.worlds import added


@pytest.mark.parametrize("given", inference.GIVEN, ids=" and ".join)
@pytest.mark.parametrize("name", mmgen.inference.names())
def test_inference(name: str, given: tuple[str, ...]) -> None:
    inference.check_posterior(name, given)


@pytest.mark.parametrize("name", mmgen.inference.names())
def test_inference_from_subsets(name: str) -> None:
    inference.check_subsets(name)


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


def test_modalities_of_countless_values_are_tested_elsewhere() -> None:
    others = set(mmgen.modalities.names()) - set(EXAMPLES)
    elsewhere = {"vector"}.union(*added("KINDS"), *added("KINDS_WITHOUT_ROWS"))
    assert others == elsewhere, "see test_kinds.py; others need an example here"


@pytest.mark.parametrize("name", EXAMPLES)
def test_modality(name: str) -> None:
    """Probabilities of all values add up to one; what is not there adds nothing; draws are values and repeatable."""
    torch.manual_seed(0)
    with torch.no_grad():
        example = EXAMPLES[name]()
        modality, number = example.modality, len(example.every)
        assert modality.kind == mmgen.modalities.get(name).model_fields["kind"].default == name
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
