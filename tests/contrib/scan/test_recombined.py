"""Operators between descriptions where there is a network for them, and where there is none."""

import pytest
import torch

import mmgen.densities
import mmgen.posteriors
from mmgen.core.errors import UsageError
from mmgen.generation import TrainedModel
from mmgen.generation.descriptions import parse_descriptions, select_posterior
from mmgen.generation.draws import draw
from mmgen.generation.latents import draw_latents
from mmgen.latent.space import LatentSpace
from mmgen.posteriors import Aggregate, Fitted
from tests.generation.toy import ATTRIBUTES, loaded


def recombining(operators: bool = True) -> TrainedModel:
    """The toy with a SCAN in place of its aggregate."""
    toy = loaded()
    torch.manual_seed(1)
    target, family = mmgen.posteriors.get("scan")(operators=operators), mmgen.densities.get("gaussian")(hidden=(8,))
    aggregate = Aggregate(
        LatentSpace.flat(2), ATTRIBUTES, family, networks=lambda: target.build_networks(2, ATTRIBUTES)
    )
    fitted = Fitted("scan", aggregate.eval(), 2)
    source = toy.path, toy.header
    return TrainedModel(source, source, toy.settings, toy.model, toy.device, fitted)


def test_where_there_is_no_network_and_is_giving_both() -> None:
    for toy in (loaded(), recombining(operators=False)):
        both, joined = (
            parse_descriptions(toy, [words]) for words in ("colour=red size=big", "colour=red AND size=big")
        )
        posterior = toy.posteriors.default
        torch.testing.assert_close(
            draw_latents(toy, posterior, joined, 3, 0), draw_latents(toy, posterior, both, 3, 0), rtol=0, atol=0
        )
        with pytest.raises(UsageError, match=r"'colour=red size=big IGNORE size=big'|has none; give the equivalent"):
            parse_descriptions(toy, ["colour=red size=big IGNORE size=big"])


def test_an_operator_draws_from_the_posterior_that_its_network_says() -> None:
    toy = recombining()
    asked = parse_descriptions(toy, ["colour=red AND size=big", "colour=red"])
    assert toy.fitted is not None
    aggregate, recombination = toy.fitted.aggregate, asked.expression(0)
    assert asked.format_texts(toy) == ["colour=red AND size=big", "colour=red"]
    with torch.no_grad():
        q = aggregate.recombined_posterior(recombination)
        z = draw_latents(toy, "scan", asked, 20_000, 0)[0]
    torch.testing.assert_close(z.mean(0), q.mean[0], atol=0.05, rtol=0.05)
    torch.testing.assert_close(z.std(0), q.sd[0], atol=0.05, rtol=0.05)
    recombined = toy.posteriors["scan"].condition_on(recombination)
    torch.testing.assert_close(recombined.log_prob(z[:, None], asked.batch(toy, 0)), q.log_prob(z[:, None]))
    plain = draw_latents(toy, "scan", parse_descriptions(toy, ["colour=red size=big"]), 5, 0)
    assert not torch.equal(plain[0], z[:5]), "another posterior, and its own stream"
    drawn = draw(toy, asked, 2, posterior="scan")
    assert drawn.descriptions.codes[0].tolist() == [0, 0] and drawn.name.startswith("q_scan")


def test_operators_belong_to_one_posterior() -> None:
    toy = recombining()
    asked = parse_descriptions(toy, ["colour=red AND size=big"])
    assert select_posterior(toy, asked) == "scan"
    with pytest.raises(UsageError, match=r"posterior 'own' understands no operators, got .*; draw from 'scan'"):
        draw(toy, asked, 2, posterior="own")
    with pytest.raises(UsageError, match="guidance 3 has none"):
        parse_descriptions(toy.guided(3.0), ["colour=red AND size=big"])
    with pytest.raises(UsageError, match="has operators, expected a description by attribute=value"):
        toy.describe("colour=red AND size=big")


def test_parentheses_alone_change_nothing() -> None:
    for toy in (loaded(), recombining(), loaded().guided(1.0)):
        asked, plain = (
            parse_descriptions(toy, ["(colour=red size=big)"]),
            parse_descriptions(toy, ["colour=red size=big"]),
        )
        assert asked.expression(0) is None and (asked.codes == plain.codes).all()
