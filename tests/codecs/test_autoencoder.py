"""The model autoencoder, from a folder of weights and pictures to drawings of captions."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import mmgen
from mmgen.artifacts import Dataset, read_checkpoint, read_header
from mmgen.codecs import Codec, read_pretrained
from mmgen.core.batch import Batch
from mmgen.core.errors import ArtifactError, SettingsError
from mmgen.modalities import all_present
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.models import DataSettings, Demands, build_model
from mmgen.models.autoencoder import Autoencoder, AutoencoderSettings
from mmgen.objectives.reader import Reader
from mmgen.training.batches import DatasetRows, MaskedRows
from mmgen.training.encoded import EncodedRows, encode_once
from mmgen.training.model_run import load_model
from tests.codecs.conftest import KL, TINY
from tests.program import within

DATA = DataSettings.from_descriptions(
    ImageDescription(shape=(3, 16, 16), layout="bytes"),
    AttributesDescription(names=("colour",), values=(("red", "green"),)),
)
DEMANDS = Demands(frozenset([("image",)]), generates=("attributes",), needs=frozenset())
QUICK = ["--batch", "16", "--device", "cpu"]


def made(settings: AutoencoderSettings, demands: Demands = DEMANDS) -> Autoencoder:
    torch.manual_seed(0)
    model = build_model(Autoencoder.complete_settings(settings, demands, DATA), demands, DATA)
    assert isinstance(model, Autoencoder)
    return model.eval()


def batch_of(pictures: Tensor) -> Batch:
    codes = torch.zeros(len(pictures), 1, dtype=torch.int64)
    return Batch({"image": pictures, "attributes": codes}, {"image": all_present(codes), "attributes": codes == 0})


def smooth_pictures(count: int) -> Tensor:
    coarse = torch.rand(count, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.interpolate(coarse, scale_factor=4, mode="bilinear")


def test_pixels_have_noise_of_a_grey_level_and_no_loss() -> None:
    settings = AutoencoderSettings.model_validate({"codec": {"name": "pixels"}})
    model, pictures = made(settings), smooth_pictures(6)
    prepared = model.prepare(settings, *[lambda count: batch_of(pictures[:count])] * 2)
    assert prepared.facts["autoencoder"]["psnr"] is None and "without loss" in prepared.note
    assert float(model.noise) == pytest.approx(2 / 255)
    posterior = model.posterior(batch_of(pictures), ("image",))
    torch.testing.assert_close(model.mean("image", posterior.mean), pictures)
    # log p(x | z) of a quantised normal is at most 0, and that of pictures of the data is far above chance.
    nats = model.log_likelihood("image", posterior.sample(), batch_of((pictures * 255).round() / 255))
    assert (nats < 0).all() and (nats / (768 * math.log(2)) > -3).all()


class _Darker(nn.Module):
    def forward(self, pictures: Tensor) -> Tensor:
        return 0.9 * pictures


def test_noise_costs_a_third_of_a_decibel() -> None:
    settings = AutoencoderSettings.model_validate({"codec": {"name": "pixels"}})
    model, pictures = made(settings), smooth_pictures(8)
    decoder = model.decoders["image"]
    assert isinstance(decoder, nn.Module)
    decoder.decoder = nn.Sequential(decoder.decoder, _Darker())
    model.noise.fill_(model._measure_noise(TINY, pictures))
    q = model.posterior(batch_of(pictures), ("image",))

    def decibels(z: Tensor) -> float:
        return float(-10 * (model.mean("image", z) - pictures).square().flatten(1).mean(1).log10().mean())

    assert decibels(q.mean) - decibels(q.sample(torch.Generator().manual_seed(1))) == pytest.approx(0.3, abs=0.1)


def test_preparation_measures_and_reports(tiny: Path) -> None:
    settings = AutoencoderSettings(weights=str(tiny), noise=0.2)
    model, pictures = made(settings), smooth_pictures(8)
    prepared = model.prepare(settings, *[lambda count: batch_of(pictures[:count])] * 2)
    facts = prepared.facts["autoencoder"]
    assert facts["sha256"] == prepared.run_settings["weights"] == read_pretrained(tiny).digest
    assert (facts["psnr_pictures"], facts["noise"]) == (8, pytest.approx(0.2))
    decoded = model.mean("image", model.posterior(batch_of(pictures), ("image",)).mean)
    assert facts["psnr"] == pytest.approx(float(-10 * (decoded - pictures).square().flatten(1).mean(1).log10().mean()))


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1e308, r"makes numbers that are not finite of pictures.*: look at scaling_factor"),
        (1e-320, r"makes numbers that are not finite of pictures.*: look at scaling_factor"),
        (1e30, r"encodes pictures as numbers up to \S+, expected about 1: make scaling_factor .* smaller"),
    ],
)
def test_a_codec_without_finite_pictures_is_refused(factor: float, words: str, tiny: Path) -> None:
    config = json.loads((tiny / "config.json").read_text())
    (tiny / "config.json").write_text(json.dumps(config | {"scaling_factor": factor}))
    settings, pictures = AutoencoderSettings(weights=str(tiny)), smooth_pictures(8)
    with pytest.raises(ArtifactError, match=words):
        made(settings).prepare(settings, *[lambda count: batch_of(pictures[:count])] * 2)


@pytest.mark.parametrize("generates", [("attributes",), ("image", "attributes")])
def test_the_decoder_is_trained_only_if_pictures_are_generated(generates: tuple[str, ...], tiny: Path) -> None:
    objective = Reader(modalities=generates)
    model = made(AutoencoderSettings(weights=str(tiny)), objective.demands)
    objective(model, batch_of(smooth_pictures(3))).value.mean().backward()
    trained = {name for name, each in model.named_parameters() if each.grad is not None and each.grad.abs().sum() > 0}
    assert any(name.startswith("decoders.attributes") for name in trained)
    assert any(name.startswith("decoders.image") for name in trained) == ("image" in generates)
    assert not any(name.startswith("encoder") for name in trained)
    assert model.encodes_once == ("" if "image" in generates else "image")


class _Decode(nn.Module):
    def __init__(self, model: Autoencoder) -> None:
        super().__init__()
        self.model = model

    def forward(self, z: Tensor) -> Tensor:
        return self.model.mean("image", z)


@pytest.mark.slow_cases("codec1", "codec0")
@pytest.mark.parametrize("codec", [TINY, KL])
def test_the_decoder_can_be_exported_for_any_number_of_pictures(codec: Codec) -> None:
    decode = _Decode(made(AutoencoderSettings.model_validate({"codec": codec.model_dump()})))
    size = decode.model.latent_size
    with torch.no_grad():
        program = torch.export.export(decode, (torch.zeros(2, size),), dynamic_shapes={"z": {0: torch.export.Dim("B")}})
        z = torch.randn(20, size)
        torch.testing.assert_close(program.module()(z), decode(z), rtol=1e-4, atol=1e-5)


def test_settings_without_weights_are_refused(tiny: Path) -> None:
    with pytest.raises(SettingsError, match=r"setting 'model\.weights' is missing"):
        made(AutoencoderSettings())
    random = AutoencoderSettings(codec=TINY)
    with pytest.raises(SettingsError, match=r"setting 'model\.weights' is missing"):
        made(random).prepare(random, *[lambda count: batch_of(smooth_pictures(count))] * 2)
    both = AutoencoderSettings.model_validate({"codec": {"name": "pixels"}, "weights": str(tiny)})
    with pytest.raises(SettingsError, match="leave one of the two out"):
        made(both)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of red and green squares on noise, 16 by 16, with captions."""
    folder = tmp_path_factory.mktemp("squares")
    rows, random = ["file_name,text,colour"], np.random.default_rng(0)
    for number in range(64):
        pixels = random.integers(0, 120, (16, 16, 3)).astype(np.uint8)
        pixels[4:12, 4:12, number % 2] = 255
        Image.fromarray(pixels).save(folder / f"{number}.png")
        colour = ("red", "green")[number % 2]
        rows.append(f"{number}.png,a {colour} square,{colour}")
    (folder / "metadata.csv").write_text("\n".join(rows))
    done = within(folder, "make-data", "folder", ".", "--size", "16", "-o", "squares.h5")
    assert done.returncode == 0, done.stderr
    return folder / "squares.h5"


def train(data: Path, out: Path, *more: str, steps: int = 20) -> str:
    words = ["train", data, "-o", out, "--preset", "flow/autoencoder", "--steps", steps, *QUICK, *more]
    done = within(data.parent, *words)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
def test_three_commands_from_pictures_to_drawings(pictures: Path, tiny: Path) -> None:
    folder = tiny.parent
    (tiny / "LICENSE").write_text("MIT License\n")
    told = train(pictures, folder / "m.safetensors", "--set", f"model.weights={tiny}")
    assert "random-tiny keeps" in told and "PSNR" in told and "z is 3x8x8" in told
    for path in tiny.iterdir():
        path.unlink()  # from here on the checkpoint holds the weights

    done = within(
        folder, "fit-aggregate", "m.safetensors", "--dataset", pictures, "--family", "rectified-flow",
        "--given", "text", "--set", "aggregate.family.width=16", "--steps", "20", *QUICK,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    fitted = done.stdout.strip()
    done = within(
        folder, "sample", fitted, "--given", "a red square", "--guidance", "cfg:1", "-n", "2", "-o", "red.png"
    )
    assert done.returncode == 0 and (folder / "red.png").exists(), done.stderr
    for command in (
        ["show", fitted],
        ["eval", fitted, "--dataset", str(pictures), "--metric", "negative-elbo", "-n", "4"],
    ):
        done = within(folder, *command)
        assert done.returncode == 0, done.stderr
    done = within(folder, "export", "m.safetensors", "exported")
    assert done.returncode == 0, done.stderr
    card = (folder / "exported" / "README.md").read_text()
    assert 'are those of `random-tiny`, under the licence "MIT License"' in card

    model = mmgen.load(folder / "exported")
    assert model.model.latent.shapes == {"z": (3, 8, 8)}
    assert json.loads(json.dumps(read_header(folder / "m.safetensors").settings))["model"].keys() >= {"codec"}
    assert "weights" not in read_header(folder / "m.safetensors").settings["model"]


def test_a_run_that_starts_from_another_keeps_its_weights_and_facts(pictures: Path, tiny: Path) -> None:
    first, second = tiny.parent / "first.safetensors", tiny.parent / "second.safetensors"
    train(pictures, first, "--set", f"model.weights={tiny}", steps=0)
    done = within(tiny.parent, "train", pictures, "-o", second, "--from", first, "--steps", "5", *QUICK)
    assert done.returncode == 0, done.stderr
    tensors = [read_checkpoint(path)[1] for path in (first, second)]
    fixed = [name for name in tensors[0] if name.startswith(("encoder", "decoders.image", "noise"))]
    assert fixed and all(torch.equal(tensors[0][name], tensors[1][name]) for name in fixed)
    assert not torch.equal(*(each["decoders.attributes.1.networks.0.0.weight"] for each in tensors))
    assert read_header(first).facts["autoencoder"] == read_header(second).facts["autoencoder"]


def test_encodings_do_not_depend_on_batches(pictures: Path, tiny: Path) -> None:
    path = tiny.parent / "m.safetensors"
    train(pictures, path, "--set", f"model.weights={tiny}", steps=0)
    _, settings, model = load_model(path)
    with Dataset.open(pictures) as dataset:
        rows = DatasetRows.open_split(dataset, "iid", "train", torch.device("cpu"))
        one, other = EncodedRows(rows, model), EncodedRows(rows, model)
        alone = torch.cat([one.batch(torch.tensor([row])).values["image"] for row in range(8)])
        together = other.batch(torch.arange(8)).values["image"]
        assert torch.equal(alone, together) and alone.shape == (8, 192)
        exact = model.posterior(rows.batch(torch.arange(8)), ("image",)).mean
        torch.testing.assert_close(together, exact, rtol=1e-3, atol=1e-3)
        assert torch.equal(one.batch(torch.tensor([3, 3])).values["image"][1], together[3])
        hidden = {"attributes": np.array([False, True])}
        masked = encode_once(MaskedRows(rows, np.array([3, 3]), hidden), model, settings.data)
        assert isinstance(masked, MaskedRows) and isinstance(masked.rows, EncodedRows)
        batch = masked.batch(torch.arange(2))
        assert torch.equal(batch.values["image"], together[[3, 3]])
        assert batch.present["attributes"][:, 0].tolist() == [False, True]


@pytest.mark.parametrize(
    ("value", "words"),
    [("patch=4", "expected a table with a name"), ("name=foo", "with a name, one of 'tiny', 'kl', 'pixels'")],
)
def test_a_codec_that_there_is_not_is_refused(value: str, words: str, pictures: Path) -> None:
    done = within(pictures.parent, "train", pictures, "--preset", "flow/autoencoder", "--set", f"model.codec.{value}")
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1


def test_pictures_of_other_sides_are_refused_before_training(pictures: Path, tiny: Path) -> None:
    done = within(
        pictures.parent, "train", pictures, "-o", tiny.parent / "x.safetensors", "--preset", "flow/autoencoder",
        "--set", "model.codec={name='pixels', patch=5}",
    )  # fmt: skip
    assert (
        done.returncode == 2 and "expected sides that are multiples of 5; make the data with --size 15" in done.stderr
    )
    assert done.stderr.strip().count("\n") <= 1
