"""Sentences: every probability against enumeration of all of them, every bound against quadrature over z."""

import dataclasses
import itertools
import math

import pytest
import torch
from torch import Tensor

import mmgen.densities
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.inference.image_only import ImageOnly
from mmgen.latent.space import LatentSpace
from mmgen.modalities.text import Text
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.networks._text import TextDecoder, TextEncoder, TextNetwork, text_encoder
from mmgen.posteriors import Aggregate
from mmgen.posteriors.aggregate import AggregatedTask
from mmgen.posteriors.true import ExactTask

WORDS = ("red", "big", "cube")
PADDING, LENGTH = 3, 3
NETWORK = TextNetwork(embedding=4, hidden=6, head=5, dropout=0.5)
CAPTIONS = Text("text", WORDS, LENGTH)


def sentences() -> Tensor:
    """All sentences of up to three words, the empty one too: 1 + 3 + 9 + 27."""
    found = []
    for length in range(LENGTH + 1):
        for words in itertools.product(range(PADDING), repeat=length):
            found.append([*words, *[PADDING] * (LENGTH - length)])
    return torch.tensor(found)


ALL = sentences()


def decoder(inputs: int = 2, sharpness: float = 3.0, seed: int = 5) -> TextDecoder:
    """A decoder far from its initial state, in float64 and evaluation mode."""
    torch.manual_seed(seed)
    network = TextDecoder(inputs, len(WORDS), NETWORK).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
        network.head.last.weight.mul_(sharpness)
    return network.eval().requires_grad_(False)


def model(network: TextDecoder | None = None) -> MultimodalVAE:
    network = network or decoder()
    text = Text("text", WORDS, LENGTH, speaker=network)
    return MultimodalVAE(LatentSpace.flat(2), {"text": text}, {"text": network}, ImageOnly.__new__(ImageOnly))


def make_batch(tokens: Tensor) -> Batch:
    return Batch({"text": tokens}, {"text": torch.ones(len(tokens), dtype=torch.bool)})


def test_the_probabilities_of_all_sentences_add_up_to_one() -> None:
    z = 2 * torch.randn(7, 1, 2, dtype=torch.float64)
    log_p = model().log_likelihood("text", z.expand(7, len(ALL), 2), make_batch(ALL))
    assert log_p.shape == (7, 40)
    torch.testing.assert_close(log_p.exp().sum(1), torch.ones(7, dtype=torch.float64))
    assert log_p.exp().max() > 0.2, "a test of sentences that are all alike would show little"


def test_a_sentence_is_the_product_of_its_words() -> None:
    """One unit at a time by torch's own GRU cell, whose gates are reset, update, new."""
    network, z = decoder(), torch.randn(4, 2, dtype=torch.float64)
    unit = network.unit
    cell = torch.nn.GRUCell(4, 6, dtype=torch.float64)
    cell.load_state_dict(
        {"weight_ih": unit.word.weight, "bias_ih": unit.word.bias, "weight_hh": unit.state.weight}
        | {"bias_hh": unit.state.bias}
    )
    tokens = torch.tensor([[0, 1, 2], [2, 2, PADDING], [1, PADDING, PADDING], [PADDING] * 3])
    expected = torch.zeros(4, dtype=torch.float64)
    for row in range(4):
        state, previous = torch.zeros(1, 6, dtype=torch.float64), PADDING + 1
        # z's share in the gates, as a bias of the input.
        share = network.context.weight @ z[row]
        for word in tokens[row].tolist():
            cell.bias_ih.data = unit.word.bias + share
            state = cell(unit.embedding.weight[previous][None], state)
            expected[row] += network.head(state).log_softmax(-1)[0, word]
            previous = word
            if word == PADDING:
                break
    given = model(network)
    torch.testing.assert_close(given.log_likelihood("text", z, make_batch(tokens)), expected)
    with torch.no_grad():
        torch.testing.assert_close(given.log_likelihood("text", z, make_batch(tokens)), expected)
    probabilities = given.word_probabilities("text", z, tokens)
    chosen = probabilities.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(chosen.log().sum(-1), expected)


def test_word_by_word_equals_all_words_at_once() -> None:
    """Importance sampling takes another path than training; both broadcast sentences over latents."""
    z = torch.randn(5, len(ALL), 2, dtype=torch.float64)
    at_once = model().log_likelihood("text", z, make_batch(ALL))
    with torch.no_grad():
        torch.testing.assert_close(model().log_likelihood("text", z, make_batch(ALL)), at_once)
    torch.testing.assert_close(model().log_likelihood("text", z[3], make_batch(ALL)), at_once[3])


def test_padding_is_certain_after_the_end() -> None:
    probabilities = model().word_probabilities("text", torch.randn(40, 2, dtype=torch.float64), ALL)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(40, LENGTH, dtype=torch.float64))
    ended = (ALL[:, :-1] == PADDING).unsqueeze(-1)
    certain = torch.tensor([0.0, 0.0, 0.0, 1.0], dtype=torch.float64)
    assert torch.equal(torch.where(ended, probabilities[:, 1:], certain), certain.expand(40, 2, 4)), (
        "one column per word and one for padding, which absorbs"
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_draws_follow_the_probabilities(seed: int) -> None:
    z = torch.randn(1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    count = 40_000
    drawn = model().sample("text", z.expand(count, 2), torch.Generator().manual_seed(0))
    again = model().sample("text", z.expand(count, 2), torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again) and drawn.dtype == torch.int64
    expected = model().log_likelihood("text", z.expand(40, 2), make_batch(ALL)).exp()
    observed = (drawn.unsqueeze(1) == ALL).all(-1).double().mean(0)
    assert observed.sum() == 1, "only sentences that end once"
    error = (expected * (1 - expected) / count).sqrt()
    assert ((observed - expected).abs() < 4.5 * error + 1e-6).all()


def test_greedy_takes_the_likeliest_word_each_time() -> None:
    z = torch.randn(30, 2, dtype=torch.float64)
    greedy = model().sample("text", z, greedy=True)
    table = model().word_probabilities("text", z, greedy)
    assert torch.equal(table.argmax(-1), greedy)
    torch.testing.assert_close(model().mean("text", z), table)
    assert model().sample("text", z.reshape(5, 6, 2)).shape == (5, 6, LENGTH)


def test_a_sentence_that_is_not_there_contributes_nothing() -> None:
    tokens = torch.tensor([[0, 1, 2], [0, 1, 2]])
    batch = Batch({"text": tokens}, {"text": torch.tensor([True, False])})
    value = model().log_likelihood("text", torch.randn(2, 2, dtype=torch.float64), batch)
    assert value[0] < 0 and value[1] == 0


def test_words_of_something_else_are_refused() -> None:
    with pytest.raises(UsageError, match="generates no text 'image'"):
        model().word_probabilities("image", torch.zeros(1, 2), torch.zeros(1, 3, dtype=torch.int64))


def test_the_encoder_stops_at_the_last_word() -> None:
    torch.manual_seed(0)
    encoder = TextEncoder(len(WORDS), NETWORK).eval()
    long = torch.tensor([[0, 1, PADDING, PADDING, PADDING]])
    torch.testing.assert_close(encoder(long), encoder(long[:, :2]))
    torch.testing.assert_close(encoder(long), encoder(long[:, :3]))
    assert not torch.allclose(encoder(torch.tensor([[0, 1]])), encoder(torch.tensor([[1, 0]]))), "order matters"


def test_a_bidirectional_encoder_adds_what_it_reads_backwards() -> None:
    torch.manual_seed(0)
    encoder = TextEncoder(len(WORDS), dataclasses.replace(NETWORK, bidirectional=True)).eval()
    sentence = torch.tensor([[0, 1, 2]])
    longer = torch.tensor([[0, 1, 2, PADDING, PADDING]])
    torch.testing.assert_close(encoder(longer), encoder(sentence))
    assert encoder.reverse is not None
    table = encoder.reverse.word_gates(encoder.unit.embedding.weight)
    state = torch.zeros(1, encoder.features)
    for word in (2, 1, 0):
        state = encoder.reverse(table[word], state)
    backwards = encoder(sentence) - state
    encoder.reverse = None
    torch.testing.assert_close(backwards, encoder(sentence))
    assert (encoder(torch.full((1, 3), PADDING)) == 0).all(), "a sentence of no words is no state"


def test_a_bag_of_words_knows_no_order_and_no_padding() -> None:
    torch.manual_seed(0)
    encoder = text_encoder(len(WORDS), dataclasses.replace(NETWORK, encoder="bag")).eval()
    assert encoder.features == NETWORK.hidden
    sentences = [[0, 1], [1, 0], [0, 1, PADDING], [0, 0]]
    one, other, padded, another = (encoder(torch.tensor([sentence])) for sentence in sentences)
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(one, padded)
    assert not torch.allclose(one, another)
    assert encoder(torch.full((1, 3), PADDING)).isfinite().all()
    with pytest.raises(ValueError, match="has no direction"):
        dataclasses.replace(NETWORK, encoder="bag", bidirectional=True)


# The bound of CK Eq. 3 and the aggregate of CK Eq. 4-5, by quadrature over a two-dimensional z.

AXIS = torch.linspace(-7, 7, 141, dtype=torch.float64)
GRID = torch.cartesian_prod(AXIS, AXIS)
CELL = (AXIS[1] - AXIS[0]).item() ** 2


def log_normal(z: Tensor, mean: Tensor, sd: float) -> Tensor:
    return (-0.5 * ((z - mean) / sd).square() - math.log(sd) - 0.5 * math.log(2 * math.pi)).sum(-1)


def reading_aggregate(family: str = "mixture", **settings: object) -> Aggregate:
    torch.manual_seed(2)
    member = mmgen.densities.get(family)(**settings)
    return Aggregate(LatentSpace.flat(2), CAPTIONS, member, TextNetwork(embedding=4, hidden=8, dropout=0.0)).double()


@pytest.mark.slow
def test_the_text_bound_against_quadrature() -> None:
    """E_q[log p(y|z) + log p(z) - log q(z|y)] = log p(y) - KL(q(z|y) || p(z|y)), for every sentence that is likely."""
    speaking = model(decoder(sharpness=6.0))
    aggregate = reading_aggregate("gaussian").requires_grad_(False)
    prior = log_normal(GRID, torch.zeros(2, dtype=torch.float64), 1.0)
    with torch.no_grad():
        spread = GRID.unsqueeze(1).expand(-1, len(ALL), -1)
        likelihood = speaking.log_likelihood("text", spread, make_batch(ALL))  # [grid, sentences]
    evidence = ((likelihood + prior.unsqueeze(1)).exp().sum(0) * CELL).log()
    assert evidence.exp().sum().item() == pytest.approx(1.0, abs=1e-6)
    task = ExactTask(aggregate, speaking, keep_all=1.0)
    for number in evidence.topk(3).indices.tolist():
        one = make_batch(ALL[number : number + 1])
        log_q = aggregate.log_prob(GRID.unsqueeze(1), one).squeeze(1)
        posterior = likelihood[:, number] + prior - evidence[number]
        divergence = (log_q.exp() * (log_q - posterior)).sum() * CELL
        torch.manual_seed(0)
        bound = task(one.repeat(2_000), None)
        assert bound.is_bound and divergence > 0
        error = bound.value.std().item() / math.sqrt(2_000)
        assert bound.value.mean().item() == pytest.approx((evidence[number] - divergence).item(), abs=4 * error)


@pytest.mark.slow
def test_target_true_recovers_the_posterior_of_each_sentence() -> None:
    """Fitted by CK Eq. 3 alone, q(z|y) has the mean and spread of p(z|y) by quadrature."""
    speaking = model(decoder(sharpness=3.0))
    prior = log_normal(GRID, torch.zeros(2, dtype=torch.float64), 1.0)
    chosen = torch.tensor([[0, 1, 2], [2, PADDING, PADDING]])
    with torch.no_grad():
        likelihood = speaking.log_likelihood("text", GRID.unsqueeze(1).expand(-1, 2, -1), make_batch(chosen))
    aggregate = reading_aggregate("gaussian")
    task = ExactTask(aggregate, speaking, keep_all=1.0)
    optimiser = torch.optim.Adam(task.parameters(), lr=1e-2)
    batch = make_batch(chosen.repeat(64, 1))
    for step in range(250):
        for group in optimiser.param_groups:
            group["lr"] = 1e-2 * (1 - step / 250)
        optimiser.zero_grad()
        (-task(batch, step).value.mean()).backward()
        optimiser.step()
    z = aggregate.sample(make_batch(chosen), 20_000, torch.Generator().manual_seed(0)).detach()
    for row in range(2):
        weight = (likelihood[:, row] + prior).softmax(0).unsqueeze(-1)
        mean = (weight * GRID).sum(0)
        torch.testing.assert_close(z[:, row].mean(0), mean, atol=0.12, rtol=0)
        sd = (weight * (GRID - mean).square()).sum(0).sqrt()
        torch.testing.assert_close(z[:, row].std(0), sd, atol=0.12, rtol=0)


@pytest.mark.slow
def test_the_decomposition_of_the_fitted_divergence() -> None:
    """CK Eq. 5: E_x KL(q(z|x) || q(z|y)) = E_x KL(q(z|x) || q^y) + KL(q^y || q(z|y)), images x of one sentence y.

    The first term on the right does not depend on the fit: it is the information that z carries about which of the
    images it was, I(x; z | y) = KL(q^y(z) q(x|z) || q^y(z) p(x)), which is computed in that other form too.
    """
    means = torch.tensor([[-1.5, 0.0], [1.0, 1.0], [1.2, -0.8]], dtype=torch.float64)
    sds = [0.5, 0.4, 0.7]
    encodings = torch.stack([log_normal(GRID, m, s) for m, s in zip(means, sds, strict=True)])  # [images, grid]
    mixture = encodings.logsumexp(0) - math.log(3)  # q^y, CK Eq. 4
    aggregate = reading_aggregate("realnvp").requires_grad_(False)
    one = make_batch(torch.tensor([[0, 1, PADDING]]))
    log_q = aggregate.log_prob(GRID.unsqueeze(1), one).squeeze(1)

    def divergence(p: Tensor, q: Tensor) -> Tensor:
        return (p.exp() * (p - q)).sum(-1) * CELL

    to_posterior, to_aggregate = divergence(encodings, log_q).mean(), divergence(encodings, mixture).mean()
    torch.testing.assert_close(to_posterior, to_aggregate + divergence(mixture, log_q))
    which = encodings.log_softmax(0)  # q(x | z)
    information = (mixture.exp() * (which.exp() * (which + math.log(3))).sum(0)).sum() * CELL
    torch.testing.assert_close(to_aggregate, information)
    # And what is maximised in a fit is minus the left side.
    count = 30_000
    values = {
        "mean": means.repeat(count // 3, 1),
        "log_sd": torch.tensor(sds, dtype=torch.float64).log().unsqueeze(-1).expand(3, 2).repeat(count // 3, 1),
    }
    labels = one.repeat(count)
    torch.manual_seed(1)
    task = AggregatedTask(aggregate, keep_all=1.0)
    bound = task(Batch({**values, **labels.values}, labels.present), None)
    error = bound.value.std().item() / math.sqrt(count)
    assert bound.value.mean().item() == pytest.approx(-to_posterior.item(), abs=4 * error)


@pytest.mark.parametrize("family", ["mixture", pytest.param("realnvp", marks=pytest.mark.slow)])
def test_the_aggregate_of_each_sentence_is_recovered(family: str) -> None:
    """Two sentences of the same words in another order, each with two clusters of encodings of its own."""
    captions = torch.tensor([[0, 1, PADDING], [1, 0, PADDING]])
    centres = torch.tensor([[[-2.0, 0.0], [-2.0, 3.0]], [[2.0, 0.0], [0.0, -3.0]]])
    spread, noise, count = 0.4, 0.3, 6_000
    generator = torch.Generator().manual_seed(0)

    def draw(number: int) -> tuple[Tensor, Batch]:
        which = torch.randint(2, (number,), generator=generator)
        cluster = torch.randint(2, (number,), generator=generator)
        mean = centres[which, cluster] + spread * torch.randn(number, 2, generator=generator)
        batch = make_batch(captions[which])
        values = {"mean": mean, "log_sd": torch.full((number, 2), math.log(noise)), **batch.values}
        return which, Batch(values, batch.present)

    _, training = draw(count)
    aggregate = reading_aggregate(family, **({"steps": 4, "hidden": (48, 48)} if family == "realnvp" else {})).float()
    aggregate.standardise(training.values["mean"], training.values["log_sd"])
    task = AggregatedTask(aggregate, keep_all=1.0)
    optimiser = torch.optim.Adam(task.parameters(), lr=5e-3)
    steps = 500
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 5e-3 * (1 - step / steps)
        optimiser.zero_grad()
        (-task(training[torch.randint(count, (256,), generator=generator)], step).value.mean()).backward()
        optimiser.step()
    which, held_out = draw(3_000)
    z = held_out.values["mean"] + noise * torch.randn(3_000, 2, generator=generator)
    sd = math.hypot(spread, noise)
    truth = torch.stack([log_normal(z, centres[which, k], sd) for k in range(2)]).logsumexp(0) - math.log(2)
    with torch.no_grad():
        fitted = aggregate.eval().log_prob(z, held_out)
    # Mean difference under draws from the truth estimates KL(truth || fit); affine flows bend clusters apart slowly.
    assert (truth - fitted).mean() < (0.06 if family == "mixture" else 0.2)


def test_an_aggregate_of_sentences_asks_for_sentences() -> None:
    aggregate = reading_aggregate().eval()  # a fit looks at its rows once, before its steps
    assert aggregate.given == "text"
    with pytest.raises(UsageError, match="conditioned on text"):
        aggregate.sample(None, 3)
    batch = Batch({"text": ALL[:2]}, {"text": torch.tensor([True, False])})
    with pytest.raises(UsageError, match="an example has none"):
        aggregate.log_prob(torch.zeros(2, 2, dtype=torch.float64), batch)


def test_training_scores_as_evaluation_does_where_nothing_is_dropped() -> None:
    """Words in the order of steps, without those after the end, against word by word; gradients too."""
    torch.manual_seed(1)
    network = TextDecoder(2, len(WORDS), dataclasses.replace(NETWORK, dropout=0.0, batch_norm=False)).double()
    z = torch.randn(3, len(ALL), 2, dtype=torch.float64, requires_grad=True)
    order = torch.randperm(len(ALL))
    log_p = model(network.train()).log_likelihood("text", z, make_batch(ALL[order]))
    with torch.no_grad():
        torch.testing.assert_close(model(network).log_likelihood("text", z, make_batch(ALL[order])), log_p)
    chosen = torch.stack([network.step(network(z[1, 7:8]), *network.start(network(z[1, 7:8])))[1]]).log_softmax(-1)
    assert chosen.shape == (1, 1, 4)
    (slope,) = torch.autograd.grad(log_p[1, 7], z)
    shifted = z.detach().clone()
    shifted[1, 7, 0] += 1e-6
    difference = (model(network).log_likelihood("text", shifted, make_batch(ALL[order])) - log_p)[1, 7] / 1e-6
    torch.testing.assert_close(slope[1, 7, 0], difference.detach(), rtol=1e-4, atol=1e-6)
    assert slope.count_nonzero() <= 2, "a sentence depends on its own z alone"


def test_word_dropout_hides_words_in_training_alone() -> None:
    settings = dataclasses.replace(NETWORK, dropout=0.0, batch_norm=False, word_dropout=1.0)
    torch.manual_seed(1)
    network = TextDecoder(2, len(WORDS), settings).double()
    z = torch.randn(1, 2, dtype=torch.float64).expand(2, 2)
    one, other = torch.tensor([[0, 1, 2], [1, 1, 2]])

    def last_word(tokens: Tensor) -> Tensor:
        text = model(network)
        whole = text.log_likelihood("text", z[:1], make_batch(tokens[None]))
        return whole - text.log_likelihood("text", z[:1], make_batch(torch.tensor([[*tokens[:2], PADDING]])))

    network.train()
    torch.testing.assert_close(last_word(one), last_word(other))
    network.eval()
    assert not torch.allclose(last_word(one), last_word(other)), "sentences are scored with all words"
