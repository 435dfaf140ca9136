"""Models of images and sentences: what they build, learn, save and answer, on a toy file of both."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mmgen
import mmgen.objectives
from mmgen.artifacts import Dataset, DatasetWriter, read_latents
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.generation.descriptions import parse_descriptions
from mmgen.generation.latents import draw_completions
from mmgen.metrics._base import evaluate
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.models._build import build_model
from mmgen.models._settings import DataSettings, MultimodalSettings
from mmgen.networks._shared import SharedDecoder, SharedEncoder, SharedNetwork
from mmgen.posteriors import FitSettings, complete_fit_settings, fit_aggregate
from mmgen.settings.config import find_preset
from mmgen.settings.extends import load_preset
from mmgen.training.model_run import complete_settings, load_model, train_model

DATA = DataSettings.from_descriptions(
    ImageDescription(shape=(3, 16, 16), layout="bytes"),
    AttributesDescription(names=("size", "colour"), values=(("big", "small"), ("red", "blue", "grey"))),
    TextDescription(vocabulary=("big", "small", "red", "blue", "grey"), length=2, slots=("size", "colour")),
)
SMALL: dict[str, Any] = {
    "latent_size": 3,
    "hidden": 16,
    "image_likelihood": "beta",
    "image_network": {"name": "strided", "channels": [8, 8], "fully_connected": [16], "patch": 4},
    "attribute_network": {"embedding": 4, "hidden": 8, "decoder_hidden": 8},
    "text_network": {"embedding": 4, "hidden": 8, "head": 8},
}


def batch(size: int = 5) -> Batch:
    generator = torch.Generator().manual_seed(0)
    values = {
        "image": torch.randint(0, 256, (size, 3, 16, 16), generator=generator) / 255,
        "attributes": torch.stack([torch.arange(size) % 2, torch.arange(size) % 3], 1),
        "text": torch.stack([torch.arange(size) % 2, 2 + torch.arange(size) % 3], 1),
    }
    present = {name: torch.ones(size, dtype=torch.bool) for name in ("image", "text")}
    return Batch(values, {**present, "attributes": torch.ones(size, 2, dtype=torch.bool)})


MODELS: list[dict[str, Any]] = [
    {"modalities": ("image", "text")},
    {"modalities": ("image", "text"), "given": ("image", "text")},
    {"modalities": ("text",), "given": ("text",)},
    {"modalities": ("image", "attributes", "text")},
]


@pytest.mark.parametrize("shared", [None, {"hidden": 12}], ids=["separate", "shared"])
@pytest.mark.parametrize("inference", [None, "product-of-experts"])
@pytest.mark.parametrize("objective", MODELS, ids=lambda o: " ".join((*o["modalities"], "from", *o.get("given", "x"))))
def test_contract(objective: dict[str, Any], inference: str | None, shared: dict[str, int] | None) -> None:
    """Shape, finite terms, and gradients to every weight that the objective uses."""
    member = mmgen.objectives.get("elbo")(**objective, text_weight=200.0)
    torch.manual_seed(0)
    model = build_model(MultimodalSettings(**SMALL, inference=inference, shared=shared), member.demands, DATA)
    bound = member(model, batch())
    assert bound.value.shape == (5,) and not bound.is_bound
    assert set(bound.terms) == {f"log p({name}|z)" for name in objective["modalities"]} | {"kl"}
    assert all(term.shape == (5,) and term.isfinite().all() for term in bound.terms.values())
    weights = {"image": 1.0, "attributes": 1.0, "text": 200.0}
    expected = sum(weights[name] * bound.terms[f"log p({name}|z)"] for name in objective["modalities"])
    torch.testing.assert_close(bound.value, expected - bound.terms["kl"])
    bound.value.mean().backward()
    lost = {key for key, p in model.named_parameters() if p.grad is None}
    used = [f"inference.experts.{name}." for name in member.given] if inference else [""]
    assert not [key for key in lost if key.startswith(tuple(used))]


def test_objectives_that_know_no_text_ask_for_attributes() -> None:
    only_text = DataSettings.from_descriptions(DATA.image, DATA.text)
    described = {n for n, one in mmgen.objectives.import_all().items() if "attributes" in one().demands.modalities}
    assert len(described) >= 7
    for name in sorted(described - {"elbo"}):
        with pytest.raises(SettingsError, match="needs the modality attributes, but the dataset holds image, text"):
            build_model(MultimodalSettings(**SMALL), mmgen.objectives.get(name)().demands, only_text)


def test_a_likelihood_of_sentences_is_none_of_images() -> None:
    with pytest.raises(SettingsError, match="no likelihood of images; expected one of bernoulli, beta"):
        build_model(MultimodalSettings(image_likelihood="autoregressive"), mmgen.objectives.get("elbo")().demands, DATA)


def test_the_published_shared_decoder() -> None:
    """CK's z_to_enc: five layers, z and the middle passed on beside two of them each, 500 wide inside, 200 out."""
    settings = load_preset("cremer/two-objects")
    shared = SharedNetwork(**settings["model"]["shared"])
    torch.manual_seed(0)
    decoder = SharedDecoder(settings["model"]["latent_size"], shared).eval()
    assert decoder.outputs == 200
    inside = 3 * (500 * 500 + 500) + (50 * 500 + 500)
    assert sum(p.numel() for p in decoder.parameters()) == inside + 2 * 2 * 500 + (500 * 200 + 200)
    z = torch.randn(4, 50)
    first, second, third, fourth, last = decoder.layers
    middle = second(first(z)) + torch.cat([z, torch.zeros(4, 450)], 1)
    torch.testing.assert_close(decoder(z), last(fourth(third(middle)) + middle))
    with pytest.raises(SettingsError, match=r"model\.shared\.hidden got 8, expected at least the latent size 50"):
        SharedDecoder(50, SharedNetwork(hidden=8, outputs=4))


def test_the_published_schedule_of_two_objects() -> None:
    settings = load_preset("cremer/two-objects")
    training = settings["training"]
    assert training["learning_rate_decay"] ** training["steps"] == pytest.approx(math.exp(-2), rel=1e-3)
    assert (training["weight_decay"], settings["model"]["text_network"]["embedding"]) == (1e-7, 100)


def test_shared_networks_have_the_layers_of_the_paper() -> None:
    """CK Section 5.1: three layers and one residual connection before z, five and two behind it."""
    torch.manual_seed(0)
    settings = SharedNetwork(hidden=7)
    encoder, decoder = SharedEncoder(4, 6, settings).eval(), SharedDecoder(3, settings).eval()
    for network, layers in ((encoder, 3), (decoder, 5)):
        assert sum(isinstance(m, torch.nn.Linear) for m in network.modules()) == layers
    features, z = torch.randn(5, 4), torch.randn(5, 3)
    one = encoder.first(features)
    torch.testing.assert_close(encoder(features), encoder.last(one + encoder.second(one)))
    h = [decoder.layers[0](z)]
    h.append(decoder.layers[1](h[0]))
    h.append(decoder.layers[2](h[1]) + h[0])
    h.append(decoder.layers[3](h[2]))
    torch.testing.assert_close(decoder(z), decoder.layers[4](h[3]) + h[2])


def test_frozen_decoders_freeze_what_they_share() -> None:
    objective = mmgen.objectives.get("elbo")(modalities=("image", "text"))
    model = build_model(MultimodalSettings(**SMALL, shared={"hidden": 12}), objective.demands, DATA)
    with model.frozen_decoders():
        objective(model, batch()).value.mean().backward()
        assert not model.shared.training
    assert model.shared.training
    assert all(p.grad is None for p in (*model.shared.parameters(), *model.decoders.parameters()))
    assert all(p.grad is not None for p in model.inference.parameters())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Squares whose size and colour a caption names; a model trained on them; nothing fitted yet."""
    folder = tmp_path_factory.mktemp("vlvae")
    generator = np.random.default_rng(0)
    size, colour = generator.integers(0, 2, 400), generator.integers(0, 3, 400)
    images = np.full((400, 3, 16, 16), 110, np.uint8)
    shades = np.array([[220, 20, 20], [20, 20, 220], [60, 60, 60]], np.uint8)
    for row, (is_small, shade) in enumerate(zip(size, shades[colour], strict=True)):
        side = 5 if is_small else 11
        x, y = generator.integers(0, 16 - side, 2)
        images[row, :, y : y + side, x : x + side] = shade[:, None, None]
    recipe, command = {"recipe": "squares"}, "mmgen make-data squares"
    with DatasetWriter(folder / "d.h5", size=400, settings=recipe, seed=0, command=command) as writer:
        assert DATA.attributes and DATA.text
        writer.add_image("image", shape=(3, 16, 16), layout="bytes")
        writer.add_attributes(
            "attributes", dict(zip(DATA.attributes.names, map(list, DATA.attributes.values), strict=True))
        )
        writer.add_text("text", DATA.text.vocabulary, 2, DATA.text.slots)
        codes = np.stack([size, colour], 1)
        writer.write(
            0,
            {
                "image": images,
                "attributes": codes.astype(np.uint8),
                "text": (codes + np.array([0, 2])).astype(np.uint16),
            },
        )
        rows = np.arange(400)
        writer.add_splits("iid", train=rows[:320], val=rows[320:360], test=rows[360:])
    values = {
        "model": SMALL,
        "objective": {"name": "elbo", "modalities": ["image", "text"], "image_weight": 0.1, "text_weight": 20.0},
        "training": {"steps": 150, "batch": 32, "learning_rate": 3e-3, "validate_every": 75, "device": "cpu"},
    }
    with Dataset.open(folder / "d.h5") as dataset:
        settings = complete_settings(values, dataset)
    train_model(folder / "d.h5", settings, folder / "m.safetensors").run()
    return folder


def fit(folder: Path, name: str, steps: int = 40, **aggregate: Any) -> Path:
    values = {
        "aggregate": {"family": {"name": "realnvp", "steps": 2, "hidden": [16]}, **aggregate},
        "training": {"steps": steps, "batch": 64, "validate_every": 20, "device": "cpu"},
    }
    settings = complete_fit_settings(values, load_model(folder / "m.safetensors")[1])
    out = folder / f"{name}.safetensors"
    for work in fit_aggregate(folder / "m.safetensors", folder / "d.h5", settings, out, folder / "latents.h5"):
        work.run()
    return out


def test_a_trained_model_says_what_it_sees(folder: Path) -> None:
    loaded = mmgen.load(folder / "m.safetensors")
    assert loaded.text == DATA.text and loaded.description_kind is None and list(loaded.posteriors) == ["prior"]
    with Dataset.open(folder / "d.h5") as dataset:
        rows = dataset.split("iid", "test")
        images, words = dataset.read_image("image", rows) / 255, dataset.read_text("text", rows)
    z = loaded.encode(images).mean
    said = loaded.model.sample("text", z, greedy=True).numpy()
    assert (said == words).mean() > 0.75, "chance is 0.42"


@pytest.mark.slow
def test_an_aggregate_of_captions(folder: Path) -> None:
    """Fitted given text by default; draws follow the caption better than the prior, by the model's own likelihood."""
    loaded = mmgen.load(fit(folder, "agg", steps=250))
    assert loaded.description_kind == "text" and list(loaded.posteriors) == ["prior", "aggregate"]
    assert read_latents(folder / "latents.h5").columns["text"].shape == (360, 2), "training and validation"
    caption = loaded.describe("Small blue")
    assert caption.values["text"].tolist() == [[1, 3]] and caption.values["attributes"].tolist() == [[1, 1]]
    likelihood = {}
    for posterior in loaded.posteriors:
        z = loaded.posteriors[posterior].sample(caption, 500, torch.Generator().manual_seed(0))
        assert z.shape == (500, 1, 3)
        likelihood[posterior] = loaded.model.log_likelihood("text", z, caption).mean().item()
    assert likelihood["aggregate"] > likelihood["prior"] + 0.5
    assert loaded.posteriors["aggregate"].log_prob(z, caption).shape == (500, 1)
    assert loaded.sample("small blue", n=4).shape == (4, 3, 16, 16)
    guided = loaded.guided(5.0)
    said = loaded.model.log_likelihood("text", z, caption)
    torch.testing.assert_close(guided.likelihood.log_prob(z, caption), said, rtol=1e-4, atol=1e-4)
    more = guided.posteriors["aggregate"].sample(caption, 500, torch.Generator().manual_seed(0))
    assert loaded.model.log_likelihood("text", more, caption).mean().item() > likelihood["aggregate"]
    for posterior in ("aggregate", "prior"):  # the model says whole captions; these become some
        assert guided.sample("colour=blue OR size=small", n=2, posterior=posterior).shape == (2, 3, 16, 16)
        with pytest.raises(UsageError, match="reads text: give a whole caption, size colour"):
            guided.completing(False).sample("colour=blue", n=2, posterior=posterior)
    asked = parse_descriptions(loaded, ["colour=blue"])
    completed = draw_completions(loaded, "aggregate", asked, 20, 0)
    words = completed.batch_of_draws(loaded, slice(0, 1), slice(0, 20)).values
    assert (words["attributes"][:, 1] == words["attributes"][0, 1]).all()  # blue, in both of the sizes
    assert len({tuple(row) for row in words["text"].tolist()}) == 2
    assert loaded.sample("colour=blue size=small", n=4, seed=3).equal(loaded.sample("small blue", n=4, seed=3))


@pytest.mark.slow
def test_target_true_and_other_conditions(folder: Path) -> None:
    true = mmgen.load(fit(folder, "true", target={"name": "true"}))
    agg = mmgen.load(fit(folder, "agg2"))
    assert true.description_kind == "text" and true.posteriors.default == "true" and true.fitted and agg.fitted
    shapes = [
        {name: tuple(p.shape) for name, p in fitted.aggregate.named_parameters()}
        for fitted in (true.fitted, agg.fitted)
    ]
    assert shapes[0] == shapes[1], "the rivals have the same family and capacity"
    assert true.header.settings["training"] == agg.header.settings["training"]
    nothing = mmgen.load(fit(folder, "nothing", given="nothing"))
    assert nothing.description_kind is None and nothing.sample(n=2).shape == (2, 3, 16, 16)
    assert nothing.sample("small blue", n=2, guidance=1).shape == (2, 3, 16, 16)
    with pytest.raises(UsageError, match="draws z from a posterior that reads no description"):
        nothing.sample("small blue", n=2)
    attributes = mmgen.load(fit(folder, "attributes", given="attributes"))
    assert attributes.description_kind == "attributes"
    z = attributes.posteriors["aggregate"].sample(attributes.describe("colour=red"), 5, None)
    assert z.shape == (5, 1, 3)
    assert attributes.sample("small blue", n=2).shape == (2, 3, 16, 16), "a caption says its attributes too"


@pytest.mark.slow
def test_the_likelihood_given_attributes_is_named_so(folder: Path) -> None:
    """y is the text that the model generates; a density fitted to attributes conditions on something else."""
    settings = EvaluationSettings(samples=4, number=8)
    quantities = {}
    for given in ("text", "attributes"):
        loaded = mmgen.load(fit(folder, f"likelihood-{given}", given=given))
        with Dataset.open(folder / "d.h5") as dataset:
            evaluation = Evaluation(loaded, dataset, None, ("aggregate",), settings)
            quantities[given] = {score.quantity for score in evaluate(evaluation, ["log-likelihood"]).run()}
    assert quantities == {"text": {"log p(x|y)"}, "attributes": {"log p(x|attributes)"}}


def test_descriptions_of_codes_are_captions_where_all_is_known(folder: Path) -> None:
    loaded = mmgen.load(folder / "m.safetensors")
    known = loaded.describe_codes(np.array([[1, 2], [0, 0]], np.uint8))
    assert known.values["text"].tolist() == [[1, 4], [0, 2]]
    assert "text" not in loaded.describe_codes(np.array([[1, 255]], np.uint8)).values
    assert loaded.describe("anything").present["attributes"].tolist() == [[False, False]]
    with pytest.raises(UsageError, match="did you mean 'small'"):
        loaded.describe("smal blue")


def test_what_cannot_be_fitted_is_said(folder: Path) -> None:
    trained = load_model(folder / "m.safetensors")[1]
    no_text = trained.model_copy(
        update={"data": DataSettings.from_descriptions(trained.data.image, trained.data.attributes)}
    )
    with pytest.raises(
        UsageError, match="--given got text, expected one of attributes, image, which the model's dataset has"
    ):
        complete_fit_settings({"aggregate": {"given": "text"}}, no_text)
    image_only = trained.model_copy(update={"objective": {"name": "elbo", "modalities": ("image",)}})
    assert complete_fit_settings({}, image_only).aggregate.given == "attributes"
    for given in ("text", "attributes"):
        with pytest.raises(UsageError, match=f"generates no {given}; use --target aggregate"):
            complete_fit_settings({"aggregate": {"given": given, "target": {"name": "true"}}}, image_only)
    conditional = trained.model_copy(update={"objective": {"name": "cvae"}})
    assert complete_fit_settings({"aggregate": {"given": "attributes", "target": {"name": "true"}}}, conditional)
    with pytest.raises(SettingsError, match=r"dropout' got 0\.3, expected 0"):
        complete_fit_settings({"aggregate": {"text_network": {"dropout": 0.3}}}, trained)
    assert isinstance(complete_fit_settings({}, trained), FitSettings)
    slugs = [
        complete_fit_settings({"aggregate": {"given": given}}, trained).file_name_part
        for given in ("text", "attributes")
    ]
    assert slugs == ["aggregate-realnvp-text", "aggregate-realnvp"]  # two fits, two files


def test_the_presets_of_two_objects_are_the_published_ones() -> None:
    """CK Sections 5.1 to 5.3."""
    published = load_preset("cremer/two-objects")
    assert published["training"]["batch"] == 20 and published["training"]["learning_rate"] == 4e-4
    assert published["training"]["steps"] == 400_000 and published["objective"]["kl_warmup_steps"] == 20_000
    assert published["model"]["latent_size"] == 50 and published["model"]["text_network"]["hidden"] == 200
    assert load_preset("cremer/figure1")["model"]["latent_size"] == 2
    assert find_preset("cremer/elbo", "mnist-a", on_cpu=True) == "cremer/elbo-mnist-a-cpu"
