"""Descriptions read off pictures: by hand, and against the enumerated mixture over sentences."""

import itertools
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.progress import run_generator
from mmgen.evaluation.evaluation import EvaluationSettings
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.metrics.label_accuracy import LabelAccuracy
from mmgen.metrics.parameters import Parameters
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.text import Text
from mmgen.networks._text import TextDecoder, TextNetwork
from mmgen.objectives.mvae import Mvae
from mmgen.results.score import Score

ATTRIBUTES = Attributes("attributes", ("side", "size"), (("left", "right"), ("small", "middle", "big")))


class Reader:
    """q(z | x) = N(x, sd^2), and decoders that make logits of z."""

    conditional_on = ()
    capabilities = frozenset({"gaussian", "density"})

    def __init__(self, modality: Any, sd: float) -> None:
        self.modalities = {"image": None, modality.name: modality}
        self.sd = sd

    def has_posterior(self, inputs: tuple[str, ...]) -> bool:
        return inputs == ("image",)

    def posterior(self, batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
        mean = batch.values["image"].double()
        return DiagonalGaussian(mean, torch.full_like(mean, math.log(self.sd)))

    def encode(self, batch: Batch, given: tuple[str, ...], generator: object = None) -> DiagonalGaussian:
        return self.posterior(batch, given)

    def means(self, batch: Batch, given: tuple[str, ...], generator: object = None) -> Tensor:
        return self.posterior(batch, given).mean

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        if isinstance(self.modalities[name], Text):
            return z
        # side: right where z0 > 0; size by z1 about -10, 0, 10.
        logits = [-4 * z[..., 0], 4 * z[..., 0], -2 * z[..., 1], torch.full_like(z[..., 0], 10.0), 2 * z[..., 1]]
        return torch.stack(logits, -1)

    def label_log_probabilities(self, name: str, batch: Batch, given: tuple[str, ...]) -> None:
        """q(y | x) is an average over z here."""


def scores(model: Any, points: Batch, **settings: Any) -> dict[tuple[str, str], Score]:
    name = next(name for name in model.modalities if name != "image")
    modality = model.modalities[name]
    known = SimpleNamespace(name=name)
    evaluation = SimpleNamespace(
        loaded=SimpleNamespace(
            path="m.safetensors",
            model=model,
            observation=SimpleNamespace(name="image"),
            observed={"image": None},
            attributes=known if isinstance(modality, Attributes) else None,
            text=known if isinstance(modality, Text) else None,
            device=torch.device("cpu"),
            encoder_inputs=("image",),
            guidance=None,
            completes=True,
            sharpener=None,
            settings=SimpleNamespace(
                objective={"name": "mvae", "predicts": {}},
                build_objective=Mvae,
                data=SimpleNamespace(split="official", paired=0.05, least_paired_share=0.2, labelled=None),
            ),
        ),
        dataset=SimpleNamespace(schemes=["official"], split=lambda scheme, part: range(1000)),
        attributes=SimpleNamespace(names=getattr(modality, "names", ())),
        settings=EvaluationSettings(**settings),
        data_points=points,
        split="official",
        content_ids={},
    )
    metric = LabelAccuracy()
    metric.check(evaluation)
    return {(score.quantity, score.protocol): score for score in run_generator(metric(evaluation, "prior"))}


def attribute_points() -> Batch:
    """Four pictures that say (right, big), (left, small), (right, middle), (left, middle); one wrong in both codes, one
    of unknown size."""
    image = torch.tensor([[5.0, 10.0], [-5.0, -10.0], [5.0, 0.0], [-5.0, 0.0]])
    codes = torch.tensor([[1, 2], [0, 0], [0, 0], [0, 0]])
    present = torch.tensor([[True, True], [True, True], [True, True], [True, False]])
    return Batch(
        {"image": image, "attributes": codes}, {"image": torch.ones(4, dtype=torch.bool), "attributes": present}
    )


def test_attributes_by_hand() -> None:
    found = scores(Reader(ATTRIBUTES, 0.01), attribute_points(), samples=7)
    for protocol in ("samples", "mean"):
        whole, each = found["whole description", protocol], found["each attribute", protocol]
        assert (whole.value, whole.n, whole.unit) == (75.0, 4, "%")
        assert whole.stderr == pytest.approx(100 * math.sqrt(5 / 8 * 3 / 8 / 8))  # Agresti and Coull, 3 of 4
        assert each.value == 75.0  # 1, 1, 0, 1
        assert whole.by_attribute == {"side": 75.0, "size": pytest.approx(200 / 3)}
        assert whole.points.values == [100.0, 100.0, 0.0, 100.0]
        assert [whole.details[key] for key in ("method", "share", "paired", "least_paired_share")] == [
            "mvae",
            0.05,
            50,
            0.2,
        ]
        assert "predicts" not in whole.details


def test_samples_average_probabilities_and_the_mean_does_not() -> None:
    """z0 = 0.1 +- 5: at the mean "right"; over draws about half of all mass is on either side, and both are certain of
    themselves. z0 = 3 +- 1 is right either way."""
    image = torch.tensor([[3.0, 0.0]]).repeat(50, 1)
    points = Batch(
        {"image": image, "attributes": torch.tensor([[1, 1]]).repeat(50, 1)},
        {"image": torch.ones(50, dtype=torch.bool), "attributes": torch.ones(50, 2, dtype=torch.bool)},
    )
    found = scores(Reader(ATTRIBUTES, 1.0), points, samples=200)
    assert found["whole description", "samples"].value == found["whole description", "mean"].value == 100.0
    points.values["image"][:] = torch.tensor([0.1, 0.0])
    found = scores(Reader(ATTRIBUTES, 5.0), points, samples=1)
    assert found["whole description", "mean"].value == 100.0
    assert found["whole description", "samples"].value < 90.0


def test_what_is_missing_does_not_count() -> None:
    points = attribute_points()
    points.present["image"][0] = False
    points.present["attributes"][1] = False
    assert scores(Reader(ATTRIBUTES, 0.01), points)["whole description", "mean"].n == 2
    points.present["image"][:] = False
    with pytest.raises(UsageError, match="no data point of the test part has both"):
        scores(Reader(ATTRIBUTES, 0.01), points)


class Speaker:
    """Words of a context, which is the logits [..., (V + 1) + (V + 1)^2] of the first and of each following word."""

    def __init__(self, words: int) -> None:
        self.classes = words + 1
        self.steps = 0

    def start(self, context: Tensor) -> tuple[Tensor, Tensor]:
        state = context.new_zeros(*context.shape[:-1], 1)  # how many words there have been
        return state, torch.full((1,) * (context.dim() - 1), self.classes)

    def step(self, context: Tensor, state: Tensor, previous: Tensor) -> tuple[Tensor, Tensor]:
        self.steps += 1
        first, after = context.split([self.classes, self.classes**2], -1)
        assert ((previous == self.classes) == (state[..., 0] == 0)).all()
        rows = previous.clamp_max(self.classes - 1).expand(context.shape[:-1])
        rows = rows[..., None, None].expand(*context.shape[:-1], 1, self.classes)
        following = after.unflatten(-1, (self.classes, self.classes)).gather(-2, rows).squeeze(-2)
        return state + 1, torch.where(state == 0, first, following)

    def logits(self, context: Tensor, tokens: Tensor) -> Tensor:
        first, after = context.split([self.classes, self.classes**2], -1)
        after = after.unflatten(-1, (self.classes, self.classes))
        shape = (*context.shape[:-1], self.classes)
        steps = [first.expand(shape)]
        for place in range(tokens.shape[-1] - 1):
            previous = tokens[..., place].expand(context.shape[:-1])[..., None, None].expand(*shape[:-1], 1, shape[-1])
            steps.append(after.gather(-2, previous).squeeze(-2))
        return torch.stack(steps, -2)


TEXT = Text("text", ("a", "b"), 3, (), Speaker(2))


def test_words_are_those_of_the_mixture() -> None:
    """Each word is the likeliest of the mixture's conditional, found by adding up all sentences of all contexts."""
    contexts = 3 * torch.randn(4, 20, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    before = TEXT.speaker.steps
    found = TEXT.likeliest(contexts)
    assert TEXT.speaker.steps - before <= TEXT.length  # each word is asked for once
    sentences = torch.tensor(list(itertools.product(range(3), repeat=3)))
    table = []
    for sentence in sentences:
        tokens = sentence.expand(20, 3)
        steps = TEXT.probabilities(contexts, tokens).gather(-1, tokens.expand(4, 20, 3)[..., None])[..., 0]
        table.append(steps.prod(-1).mean(0))
    mass = torch.stack(table)  # [27, B]
    torch.testing.assert_close(mass.sum(0), torch.ones(20, dtype=torch.float64))
    for row in range(20):
        kept = torch.ones(27, dtype=torch.bool)
        for place in range(3):
            word = max(range(3), key=lambda w: float(mass[kept & (sentences[:, place] == w), row].sum()))
            assert int(found[row, place]) == word
            kept &= sentences[:, place] == word


def test_sentences_by_hand() -> None:
    """Contexts that say "a b" for certain. Truths: "a b", "a", "a b a", "b b", and nothing."""
    context = torch.full((12,), -50.0)
    context[0] = 0.0  # first "a"
    context[3 + 0 * 3 + 1] = 0.0  # after "a": "b"
    context[3 + 1 * 3 + 2] = 0.0  # after "b": nothing more
    words = torch.tensor([[0, 1, 2], [0, 2, 2], [0, 1, 0], [1, 1, 2], [2, 2, 2]])
    there = torch.ones(5, dtype=torch.bool)
    points = Batch({"image": context.expand(5, 12), "text": words}, {"image": there, "text": there})
    found = scores(Reader(TEXT, 0.01), points, samples=3)
    for protocol in ("samples", "mean"):
        assert found["whole description", protocol].value == pytest.approx(20.0)
        assert found["each word", protocol].value == pytest.approx(100 * (1 + 1 / 2 + 2 / 3 + 1 / 2 + 0) / 5)


@pytest.mark.parametrize("length", [1, 5])
def test_a_recurrent_decoder_is_read_as_its_whole_sentences_are(length: int) -> None:
    """Its state carried along from word to word, against all positions at once for each place."""
    torch.manual_seed(7)
    decoder = TextDecoder(3, 4, TextNetwork(embedding=5, hidden=6, head=7)).eval()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter, std=1.0 if parameter.dim() > 1 else 0.1)
    text = Text("text", ("a", "b", "c", "d"), length, (), decoder)
    with torch.inference_mode():
        contexts = decoder(5 * torch.randn(50, 3) + torch.randn(6, 50, 3))
        words, so_far = torch.full((50, length), 4), torch.zeros(6, 50, dtype=torch.float64)
        for place in range(length):
            table = text.probabilities(contexts, words)[..., place, :].double()
            words[:, place] = (so_far.softmax(0).unsqueeze(-1) * table).sum(0).argmax(-1)
            so_far += table.gather(-1, words[:, place].expand(6, 50).unsqueeze(-1)).squeeze(-1).log()
        assert len(words.unique(dim=0)) > 2 and 0 < (words[:, -1] == 4).double().mean() < 1
        assert torch.equal(text.likeliest(contexts), words)


def test_models_that_cannot_read_are_told_so() -> None:
    model = Reader(ATTRIBUTES, 1.0)
    model.has_posterior = lambda given: False
    with pytest.raises(UsageError, match=r"needs q\(z \| image\)"):
        scores(model, attribute_points())
    model.modalities = {"image": None}
    loaded = SimpleNamespace(model=model, observed={"image": None}, attributes=None, text=None, guidance=None)
    with pytest.raises(UsageError, match="model that generates descriptions"):
        LabelAccuracy().check(SimpleNamespace(loaded=loaded))


def test_parameters_are_counted_once() -> None:
    inference, decoder = torch.nn.Linear(3, 2), torch.nn.Linear(2, 3)
    model = torch.nn.ModuleDict({"inference": inference, "decoder": decoder, "again": inference})
    model.inference_parameters = lambda: list(inference.parameters())
    found = run_generator(Parameters()(SimpleNamespace(loaded=SimpleNamespace(model=model), content_ids={}), "prior"))
    assert {score.quantity: score.value for score in found} == {"inference networks": 8, "whole model": 17}
