"""Nothing that is given is ignored: every kind of model and fitted posterior, of description, and every way to ask."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import read_samples
from mmgen.commands._exporting import write_card
from mmgen.core.errors import MmgenError, UsageError
from mmgen.evaluation.drawn import ClassifiedPictures
from mmgen.evaluation.queries import Queries
from mmgen.figures.session import Source, draw_from_sources, gather_files, open_session
from mmgen.generation import TrainedModel, load
from mmgen.generation.descriptions import check_posterior_reads, default_posterior, parse_descriptions
from mmgen.generation.draws import draw
from mmgen.generation.latents import draw_latents
from tests.figures._reading_models import refusal
from tests.program import exit_code

GIVEN = {"attributes": ("colour=red", "colour=blue"), "caption": ("big red", "small blue")}


FILES = ("labels", "elbo", "both", "jmvae", "cvae", "bare", "elbo-attributes", "elbo-text", "elbo-nothing", "elbo-true")


WEIGHTS = (0.0, 2.0)


def opened(readers: Path, name: str, weight: float) -> TrainedModel | None:
    """The file, guided; None where it says no words to guide by."""
    loaded = load(readers / f"{name}.safetensors")
    if weight and not loaded.likelihood.names:
        with pytest.raises(UsageError, match="guidance needs"):
            loaded.guided(weight)
        return None
    return loaded.guided(weight)


def depends(loaded: TrainedModel, posterior: str, one: str, other: str) -> bool:
    """Whether pictures of two descriptions differ, though they are drawn from the same stream of randomness."""
    found = []
    for words in (one, other):
        batch = parse_descriptions(loaded, [words]).batch(loaded, 0)
        z = loaded.posteriors[posterior].sample(batch, 3, torch.Generator().manual_seed(0))[:, 0]
        every = batch.repeat(3) if loaded.model.conditional_on else None
        found.append(loaded.model.mean("image", z, every))
    return not torch.equal(*found)


@torch.no_grad()
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("name", FILES)
def test_a_description_is_read_or_refused(readers: Path, name: str, kind: str, weight: float) -> None:
    loaded = opened(readers, name, weight)
    if loaded is None:
        return
    one, other = GIVEN[kind]
    asked = parse_descriptions(loaded, [one])
    for posterior in loaded.posteriors:
        ways: list[Callable[[], Any]] = [
            partial(check_posterior_reads, loaded, posterior, asked),
            partial(loaded.sample, one, 2, posterior),
            partial(draw, loaded, asked, 2, posterior=posterior),
        ]
        refused = [refusal(way) for way in ways]
        if any(refused):
            assert all(refused[1:]), refused
            assert all(any(why in text for why in ("reads", "generates")) for text in refused[1:]), refused
            continue
        assert depends(loaded, posterior, one, other), (name, posterior, kind, weight)


@pytest.mark.parametrize(
    ("name", "posterior", "words", "said"),
    [
        ("labels", None, "one red", r"posterior 'own' of \S+ reads attributes: give attribute=value of colour, size$"),
        ("elbo-attributes", None, "one red", "posterior 'aggregate' of .* reads attributes"),
        ("elbo-true", None, "one red", "posterior 'true' of .* reads attributes"),
        ("elbo-text", None, "colour=red", "posterior 'aggregate' of .* reads text: give a caption$"),
        ("jmvae", None, "colour=red", "posterior 'own' of .* reads text"),
        ("cvae", None, "one red", "posterior 'own' of .* reads attributes"),
        (
            "elbo",
            None,
            "colour=red",
            "draws z from a posterior that reads no description; fit one .* or draw with guidance",
        ),
        ("bare", None, "colour=red", "draws z from a posterior that reads no description; fit one that does"),
        ("elbo-nothing", None, "colour=red", "draws z from a posterior that reads no description"),
        ("elbo-attributes", "prior", "colour=red", "for posterior 'prior' of .*, which reads no descriptions"),
    ],
)
def test_what_is_not_read_is_one_sentence_from_python_and_the_program(
    readers: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    posterior: str | None,
    words: str,
    said: str,
) -> None:
    file = readers / f"{name}.safetensors"
    with pytest.raises(UsageError, match=said):
        load(file).sample(words, 2, posterior)
    out = tmp_path / "s.png"
    options = ["--posterior", posterior] if posterior else []
    assert exit_code("sample", file, "--given", words, "-o", out, *options) == 2
    complaint = capsys.readouterr().err.strip().splitlines()
    assert len(complaint) == 1 and complaint[0].startswith("mmgen: ")
    assert not out.exists()


def test_values_alone_are_attributes_where_no_text_is_read(readers: Path) -> None:
    for name, same in (("labels", True), ("elbo-attributes", True), ("both", False), ("jmvae", False)):
        loaded = load(readers / f"{name}.safetensors")
        asked = parse_descriptions(loaded, ["big red"])
        assert (asked.tokens is None) is same, name
        if same:
            torch.testing.assert_close(
                loaded.sample("big red", 2, seed=0), loaded.sample("size=big colour=red", 2, seed=0)
            )


def test_a_quote_in_a_caption_opens_nothing_where_text_is_read(readers: Path) -> None:
    with pytest.raises(UsageError, match="no word of the data"):
        load(readers / "jmvae.safetensors").sample("reds' big", 2)


def test_own_posterior_and_pictures_read_what_is_given_too(readers: Path) -> None:
    labels = load(readers / "labels.safetensors")
    with pytest.raises(UsageError, match="reads attributes"):
        labels.posterior("one red")
    with pytest.raises(MmgenError, match="cannot infer z from image and text"):
        labels.translate(np.zeros((1, 1, 16, 16), np.float32), description="one red")


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("name", ["elbo-attributes", "elbo-nothing", "labels", "both", "cvae"])
def test_the_same_z_and_pictures_from_everywhere(
    readers: Path, name: str, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program (which draws by ``draw``), Python and metrics: bit for bit in z, to rounding in pictures."""
    loaded = opened(readers, name, weight)
    if loaded is None:
        return
    decoded: list[torch.Tensor] = []
    decode = type(loaded.model).decode

    def watch(self: Any, which: str, z: torch.Tensor, condition: Any = None) -> torch.Tensor:
        if which == "image":
            decoded.append(z.clone())
        return decode(self, which, z, condition)

    monkeypatch.setattr(type(loaded.model), "decode", watch)
    queries = Queries(np.array([[1, 0], [0, 255]], np.uint8), np.ones(2), 0)
    described = ["colour=blue size=big", "colour=red"]
    for posterior in loaded.posteriors:
        if not loaded.reads(posterior):
            continue
        drawn = draw(loaded, parse_descriptions(loaded, described), 300, posterior=posterior, seed=4)
        judged = ClassifiedPictures(loaded, None, 4)  # type: ignore[arg-type]  # no judge is needed to draw
        monkeypatch.setattr(ClassifiedPictures, "sampled", property(lambda self: True))
        pieces = list(judged.draw_pictures(queries, posterior, 300))
        decoded.clear()
        pictures = [loaded.sample(words, 300, posterior, seed=4) for words in described]
        z = torch.cat(decoded).reshape(2, 300, -1)
        assert np.array_equal(drawn.z, z.numpy())
        for row in range(2):
            torch.testing.assert_close(pictures[row], torch.from_numpy(drawn.means[row]))
        for piece in pieces:
            torch.testing.assert_close(piece.means, torch.from_numpy(drawn.means[piece.rows, piece.draws]))
            same = piece.classifier_input == torch.from_numpy(drawn.sampled[piece.rows, piece.draws])
            assert same.float().mean() > 0.999  # a pixel at the edge of rounding may turn
        assert sum((piece.rows.stop - piece.rows.start) * piece.means.shape[1] for piece in pieces) == 600
        decoded.clear()
        list(judged.draw_pictures(queries, posterior, 300))
        assert torch.equal(torch.cat(decoded).reshape(2, 300, -1), z)
        more = draw(loaded, parse_descriptions(loaded, described[:1]), 300, posterior=posterior, seed=4)
        assert np.array_equal(more.z[0], drawn.z[0])
        further = next(judged.draw_pictures(queries, posterior, 300, have=300))
        assert not np.array_equal(further.means[0].numpy(), drawn.means[0, : further.means.shape[1]])


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("name", ["elbo-attributes", "elbo-nothing", "labels", "jmvae", "cvae"])
def test_one_stream_of_randomness_in_every_product(readers: Path, tmp_path: Path, name: str, weight: float) -> None:
    """The program, Python, the pictures that `eval` judges, and figures: the same z and pictures of a description."""
    loaded = opened(readers, name, weight)
    if loaded is None or not loaded.reads(loaded.posteriors.default):
        return
    words = "red big" if loaded.reads(loaded.posteriors.default) == ("text",) else "colour=red size=big"
    out, number, seed = tmp_path / "s.h5", 5, 3
    options = ("--guidance", weight) if weight else ()
    file = readers / f"{name}.safetensors"
    assert exit_code("sample", file, "--given", words, "-n", number, "--seed", seed, "-o", out, *options) == 0
    samples = read_samples(out)
    posterior = samples.header.settings["posterior"]
    means, sampled, z = samples.images, samples.images_sampled, samples.z
    assert sampled is not None

    torch.testing.assert_close(loaded.sample(words, number, seed=seed), torch.from_numpy(means))

    asked = parse_descriptions(loaded, [words])
    assert np.array_equal(draw_latents(loaded, posterior, asked, number, seed)[0].numpy(), z)

    # A figure draws by its session; its sources have the posterior, guided or not.
    session = open_session(gather_files([file]).groups[0], seed, guidance=weight)
    sources = [s for s in (*session.sources, *session.priors) if s.loaded.guidance == weight]
    shown = [s for s in sources if s.posterior == posterior] or [Source("its own", loaded, posterior, file)]
    ((_, drawn),) = draw_from_sources(session, asked, number, shown[:1])
    assert np.array_equal(drawn.z[0], z)
    np.testing.assert_allclose(drawn.means[0], means, atol=1e-6)

    if asked.tokens is None:  # metrics ask by attributes
        queries = Queries(asked.codes, np.ones(1), 0)
        (piece,) = ClassifiedPictures(loaded, None, seed).draw_pictures(queries, posterior, number)  # type: ignore[arg-type]  # no judge is needed to draw
        np.testing.assert_allclose(piece.means[0].numpy(), means, atol=1e-6)
        assert (np.rint(255 * piece.classifier_input[0].numpy()) == sampled).mean() > 0.999


def test_posteriors_that_are_taken_unless_told(readers: Path) -> None:
    def taken(name: str, words: str, weight: float = 0.0) -> str:
        loaded = load(readers / f"{name}.safetensors").guided(weight)
        return default_posterior(loaded, parse_descriptions(loaded, [words]))

    assert taken("labels", "colour=red") == "own" and taken("elbo-true", "colour=red") == "true"
    assert taken("elbo-text", "") == "prior" and taken("elbo-nothing", "") == "aggregate"
    assert taken("elbo", "colour=red", 2.0) == "prior" and taken("elbo-nothing", "colour=red", 2.0) == "aggregate"
    assert taken("cvae", "colour=red") == "own"


HAS = {
    "labels": {"image", "attributes"},
    "elbo": {"image", "attributes"},
    "both": {"image", "attributes", "text"},
    "jmvae": {"image", "text"},
    "cvae": {"image", "attributes"},
    "bare": {"image"},
    "elbo-attributes": {"image", "attributes"},
}


@pytest.mark.parametrize("name", HAS)
def test_a_model_is_said_to_be_of_the_modalities_that_its_objective_looks_at(readers: Path, name: str) -> None:
    """Its data have pictures, attributes and captions, each with words of its own for what it is."""
    loaded = load(readers / f"{name}.safetensors")
    assert set(loaded.settings.data.modalities) == {"image", "attributes", "text"}
    assert set(loaded.settings.modalities) == HAS[name]
    card = write_card(loaded, {}, [], [], "")
    for said in (repr(loaded), loaded._repr_html_(), card):
        found = {part for part, each in loaded.settings.data.modalities.items() if each.describe_size() in said}
        assert found == HAS[name], said
