"""Sets of words: probabilities against enumeration of all sets, and order that changes nothing, to the last bit."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import mmgen
import mmgen.densities
from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.generation import load
from mmgen.latent.space import LatentSpace
from mmgen.likelihoods.word_set import WordSet
from mmgen.modalities.text import Text, TextDescription
from mmgen.networks import BagDecoder, TextNetwork
from mmgen.posteriors import Aggregate, posterior_of
from mmgen.training.model_run import complete_settings, train_model
from tests.small_data import write_small

WORDS = ("red", "big", "cube", "old", "flat")
V, LENGTH = 5, 4
SETS = [words for size in range(V + 1) for words in itertools.combinations(range(V), size)]


def listed(words: Any, length: int = V) -> Tensor:
    return torch.tensor([[*words, *[V] * (length - len(words))]])


def text(length: int = V) -> Text:
    return Text("text", WORDS, length, speaker=torch.nn.Identity(), likelihood=WordSet(V))


def logits(rows: int = 3) -> Tensor:
    return 2 * torch.randn(rows, V, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def log_probabilities(parameters: Tensor) -> Tensor:
    """log p of each of the 32 sets [32, rows], set by set."""
    there = torch.ones(len(parameters), dtype=torch.bool)
    return torch.stack(
        [text().log_prob(parameters, listed(words).expand(len(parameters), -1), there) for words in SETS]
    )


def test_probabilities_of_all_sets_add_up_to_one_and_are_products() -> None:
    parameters = logits()
    found = log_probabilities(parameters).exp()
    torch.testing.assert_close(found.sum(0), torch.ones(3, dtype=torch.float64))
    p = parameters.sigmoid()
    for number, words in enumerate(SETS):
        factors = torch.stack([p[:, word] if word in words else 1 - p[:, word] for word in range(V)])
        torch.testing.assert_close(found[number], factors.prod(0))


def test_order_and_repeated_words_change_no_bit_of_the_likelihood() -> None:
    parameters, there = logits(1).float(), torch.ones(1, dtype=torch.bool)
    first = text().log_prob(parameters, listed((0, 2, 3)), there)
    for words in (*itertools.permutations((0, 2, 3)), (0, 2, 3, 3), (2, 0, 2, 3, 0)):
        assert torch.equal(text().log_prob(parameters, listed(words), there), first)
    assert text().log_prob(parameters, listed((0,)), ~there).item() == 0


def test_words_in_their_order_multiply_to_the_set() -> None:
    """p of each further word after those before it, with the end as the last, is p of the set."""
    parameters = logits()
    for number, words in enumerate(SETS):
        tokens = torch.tensor([*words, V])
        table = text().probabilities(parameters, tokens)
        torch.testing.assert_close(table.sum(-1), torch.ones(3, len(tokens), dtype=torch.float64))
        chain = table.gather(-1, tokens.expand(3, -1).unsqueeze(-1))[..., 0].prod(-1)
        torch.testing.assert_close(chain.double(), log_probabilities(parameters)[number].exp(), rtol=1e-4, atol=1e-6)
    shuffled = text().probabilities(parameters, torch.tensor([3, 0, V, V]))
    assert torch.equal(shuffled, text().probabilities(parameters, torch.tensor([0, 3, V, V])))
    assert (shuffled[:, 3] == torch.eye(V + 1)[V]).all(), "after the end there is no word"


def test_draws_have_the_probabilities_of_sets() -> None:
    parameters = logits(1)
    drawn = text().sample(parameters.expand(40_000, V), torch.Generator().manual_seed(1))
    exact = log_probabilities(parameters).exp()[:, 0]
    for words, share in zip(SETS, exact.tolist(), strict=True):
        found = (drawn == listed(words)).all(1).double().mean().item()
        assert abs(found - share) < 5 * (share * (1 - share) / 40_000) ** 0.5 + 1e-9
    greedy = text().sample(parameters, greedy=True)
    assert (greedy == listed(SETS[int(exact.argmax())])).all()


def test_of_more_words_than_there_is_room_for_the_likeliest_are_kept() -> None:
    parameters = torch.tensor([[1.0, 4.0, 3.0, -9.0, 2.0]])
    assert text(3).sample(parameters, greedy=True).tolist() == [[1, 2, 4]]
    assert text(7).sample(parameters, greedy=True).tolist() == [[0, 1, 2, 4, V, V, V]]
    assert text(3).mean(parameters).shape == (1, 3, V + 1)


def test_the_likeliest_set_is_of_mean_probabilities() -> None:
    parameters = torch.tensor([[[9.0, -9, 0.5, -9, -9]], [[9.0, -9, 0.5, -9, -9]], [[9.0, 9, -9, -9, -9]]])
    assert text().likeliest(parameters).tolist() == [[0, V, V, V, V]]  # "cube" is at 62 % in two of three


def test_sets_are_compared_by_their_words() -> None:
    shared, either = text().compare(listed((3, 0, 1)), listed((0, 2, 3)))
    assert (shared.sum().item(), either.sum().item()) == (2, 4)
    place, counted = Text("text", WORDS, V).compare(listed((3, 0, 1)), listed((0, 2, 3)))
    assert (place.sum().item(), counted.sum().item()) == (0, 3), "sentences place by place"


def test_settings_choose_it() -> None:
    described = TextDescription(vocabulary=WORDS, length=LENGTH).modality()
    made, network = described.decoder(2, TextNetwork(head=7, decoder="bag"))
    assert isinstance(made.likelihood, WordSet)
    assert isinstance(network, BagDecoder)
    assert network(torch.zeros(6, 3, 2)).shape == (6, 3, V)
    with pytest.raises(ValueError, match="'bag' reads no words"):
        TextNetwork(decoder="bag", word_dropout=0.2)


@pytest.mark.slow_cases("rectified-flow")
@pytest.mark.parametrize("family", ["gaussian", "mixture", "realnvp", "nsf", "rectified-flow"])
def test_the_order_of_words_changes_no_bit_of_a_fitted_posterior(family: str) -> None:
    torch.manual_seed(0)
    condition = Text("text", WORDS, LENGTH)
    aggregate = Aggregate(
        LatentSpace.flat(3),
        condition,
        mmgen.densities.get(family)(),
        TextNetwork(embedding=16, hidden=20, encoder="bag"),
    ).eval()
    with torch.no_grad():
        for parameter in aggregate.parameters():
            parameter.normal_(std=0.3)
        z = torch.randn(9, 1, 3)
        there = torch.ones(1, dtype=torch.bool)
        found = [
            aggregate.log_prob(z, Batch({"text": listed(words, LENGTH)}, {"text": there}))
            for words in itertools.permutations((0, 1, 4))
        ]
    assert all(torch.equal(one, found[0]) for one in found)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty pictures whose pixels are the words that are said of them, in random order."""
    path, generator = tmp_path_factory.mktemp("words") / "d.h5", np.random.default_rng(0)
    said = generator.random((60, V)) < 0.5
    said[said.sum(1) > LENGTH, 0] = False
    codes = np.full((60, LENGTH), V, np.uint16)
    for row, words in enumerate(said):
        order = generator.permutation(np.flatnonzero(words))
        codes[row, : len(order)] = order
    images = np.zeros((60, 1, 8, 8), np.uint8)
    images[:, 0, :V] = 255 * said[:, :, None]
    return write_small(path, {"image": images, "text": codes}, None, (WORDS, ()), (40, 10), recipe="words")


def shuffled(batch: Batch) -> Batch:
    """The batch with the words of each text in another order."""
    tokens = batch.values["text"]
    count = (tokens < V).sum(1, keepdim=True)
    places = torch.arange(tokens.shape[1]).expand_as(tokens)
    turned = tokens.gather(1, torch.where(places < count, count - 1 - places, places))
    return Batch({**batch.values, "text": turned}, batch.present)


@pytest.mark.parametrize("objective", ["telbo", "mvae", "jmvae"])
def test_the_order_of_words_changes_no_bit_of_a_model(objective: str, data: Path, tmp_path: Path) -> None:
    """Of its posterior given the text, and of the likelihood of the set."""
    values = {
        "objective": {"name": objective},
        "model": {
            "latent_size": 2, "image_network": {"name": "mlp", "hidden": [8]}, "hidden": 8,
            "text_network": {"encoder": "bag", "decoder": "bag", "embedding": 12, "hidden": 9, "head": 10},
        },
        "training": {"steps": 12, "batch": 16, "validate_every": 6, "device": "cpu"},
    }  # fmt: skip
    with Dataset.open(data) as dataset:
        settings = complete_settings(values, dataset)
    train_model(data, settings, tmp_path / "m.safetensors").run()
    model = load(tmp_path / "m.safetensors", "cpu").model
    with Dataset.open(data) as dataset:
        tokens = torch.from_numpy(dataset.read_text("text").astype(np.int64))
    there = torch.ones(60, dtype=torch.bool)
    batch = Batch({"text": tokens}, {"text": there})
    other = shuffled(batch)
    assert not torch.equal(other.values["text"], tokens)
    with torch.inference_mode():
        one, two = (posterior_of(model, each, ("text",), "32-true") for each in (batch, other))
        assert torch.equal(one.mean, two.mean)
        assert torch.equal(one.log_sd, two.log_sd)
        z = torch.randn(4, 60, 2)
        assert torch.equal(model.log_likelihood("text", z, batch), model.log_likelihood("text", z, other))


@pytest.mark.slow
def test_from_training_to_scores(data: Path, tmp_path: Path) -> None:
    """A fit given the words, guided by p(words | z), with samples and scores."""
    settings = {
        "model": {
            "latent_size": 2,
            "image_network": {"name": "mlp", "hidden": [16]},
            "hidden": 16,
            "text_network": {
                "encoder": "bag",
                "decoder": "bag",
                "embedding": 12,
                "hidden": 9,
                "head": 16,
                "dropout": 0.0,
            },
        },
        "training": {"batch": 20, "learning_rate": 1e-2},
    }
    model = tmp_path / "m.safetensors"
    mmgen.train(data, model, objective="telbo", steps=300, settings=settings, device="cpu")
    fitted = mmgen.fit_aggregate(
        model, tmp_path / "q.safetensors", given="text", family="gaussian", device="cpu",
        settings={"training": {"steps": 30, "batch": 20}, "aggregate": {"text_network": {"encoder": "bag"}}},
    )  # fmt: skip
    assert fitted.text is not None
    scores = mmgen.evaluate(model, metric=["label-accuracy", "log-likelihood"], samples=20, text_samples=50)
    by_quantity = {(score.quantity, score.protocol): score.value for score in scores}
    assert by_quantity["each word", "mean"] > 60
    assert by_quantity["log p(y)", "importance"] > -V * np.log(2) - 3
    guided = mmgen.evaluate(
        tmp_path / "q.safetensors", metric=["log-likelihood"], guidance=2, samples=20, text_samples=50
    )
    assert all(np.isfinite(score.value) for score in guided)


def test_a_network_of_words_is_refused_where_it_does_not_fit(data: Path) -> None:
    values = {"objective": {"name": "telbo"}, "model": {"text_network": {"decoder": "bag", "word_dropout": 0.5}}}
    with Dataset.open(data) as dataset, pytest.raises(SettingsError, match="'bag' reads no words"):
        complete_settings(values, dataset)
