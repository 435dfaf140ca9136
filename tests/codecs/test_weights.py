"""Reading of pretrained autoencoders: folders of every kind, equality with the library, and hostile ones."""

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mmgen.codecs import Codec, Pixels, read_pretrained
from mmgen.core.errors import ArtifactError, SettingsError
from tests.codecs.conftest import CONFIGS, KL, TINY, library_names, write_folder
from tests.conftest import outside_data

WEIGHTS = "diffusion_pytorch_model.safetensors"


def loaded(folder: Path, channels: int = 3) -> tuple[nn.Module, nn.Module]:
    pretrained = read_pretrained(folder)
    networks = pretrained.codec.build(channels)
    pretrained.load_into(*networks)
    return networks


def pictures(channels: int = 3, side: int = 16) -> Tensor:
    return torch.rand(2, channels, side, side, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("codec", "shape"), [(KL, (2, 4, 8, 8)), (TINY, (2, 3, 8, 8))])
def test_settings_and_tensors_are_read(codec: Codec, shape: tuple[int, ...], tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "given", codec)
    pretrained = read_pretrained(folder)
    assert (pretrained.codec, pretrained.name, len(pretrained.digest)) == (codec, "given", 64)
    torch.manual_seed(0)
    expected, networks = codec.build(3), loaded(folder)
    for ours, other in zip(networks, expected, strict=True):
        assert all(
            torch.equal(a, b) for a, b in zip(ours.state_dict().values(), other.state_dict().values(), strict=True)
        )
    z = networks[0](pictures())
    assert z.shape == shape and codec.grid((3, 16, 16)) == shape[1:]
    assert networks[1](z).shape == (2, 3, 16, 16)


@pytest.mark.parametrize("name", ["kl", "tiny"])
def test_outputs_equal_those_of_the_library(name: str, tmp_path: Path) -> None:
    diffusers = pytest.importorskip("diffusers", reason="diffusers is not installed, which outputs are compared with")
    torch.manual_seed(1)
    config = {key: value for key, value in CONFIGS[name].items() if not key.startswith("_")}
    config = {key: value for key, value in config.items() if name == "kl" or key not in ("block_out_channels",)}
    if name == "kl":
        config |= {"scaling_factor": 0.3, "shift_factor": 0.1}
    original = getattr(diffusers, str(CONFIGS[name]["_class_name"]))(**config)
    original.save_pretrained(tmp_path)
    encoder, decoder = loaded(tmp_path)
    with torch.no_grad():
        z = original.encode(2 * pictures() - 1)
        z = (z.latent_dist.mode() - 0.1) * 0.3 if name == "kl" else z.latents
        pixels = original.decode(z / 0.3 + 0.1 if name == "kl" else z).sample / 2 + 0.5
        torch.testing.assert_close(encoder(pictures()), z, rtol=0, atol=1e-5)
        torch.testing.assert_close(decoder(z), pixels, rtol=0, atol=1e-5)


def test_old_names_of_attention_are_understood(kl: Path) -> None:
    before = [network(value) for network, value in zip(loaded(kl), (pictures(), torch.ones(1, 4, 8, 8)), strict=True)]
    tensors = load_file(kl / WEIGHTS)
    for new, old in (("to_q", "query"), ("to_k", "key"), ("to_v", "value"), ("to_out.0", "proj_attn")):
        for name in [name for name in tensors if f".{new}." in name]:
            tensor = tensors.pop(name)
            tensors[name.replace(new, old)] = tensor[..., None, None] if name.endswith("weight") else tensor
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, kl / WEIGHTS)
    after = [network(value) for network, value in zip(loaded(kl), (pictures(), torch.ones(1, 4, 8, 8)), strict=True)]
    assert all(torch.equal(*pair) for pair in zip(before, after, strict=True))


@pytest.mark.parametrize("prefix", ["module", "_orig_mod"])
def test_a_name_before_all_names_is_left_out(prefix: str, tiny: Path) -> None:
    """As of networks that were compiled, or trained on several devices."""
    before = loaded(tiny)[0](pictures())
    save_file({f"{prefix}.{name}": tensor for name, tensor in load_file(tiny / WEIGHTS).items()}, tiny / WEIGHTS)
    torch.testing.assert_close(loaded(tiny)[0](pictures()), before, rtol=0, atol=0)


def test_half_precision_and_another_file_name(tiny: Path) -> None:
    tensors = {name: tensor.half() for name, tensor in load_file(tiny / WEIGHTS).items()}
    (tiny / WEIGHTS).unlink()
    save_file(tensors, tiny / "model.fp16.safetensors")
    encoder, _ = loaded(tiny)
    assert next(encoder.parameters()).dtype == torch.float32


@pytest.mark.parametrize(
    ("name", "text", "licence"),
    [
        ("LICENSE", "\nMIT License\n\nCopyright", "MIT License"),
        ("README.md", "---\nlicense: openrail\n---\n", "openrail"),
        ("other", "x", ""),
    ],
)
def test_the_licence_is_read(name: str, text: str, licence: str, tiny: Path) -> None:
    (tiny / name).write_text(text)
    assert read_pretrained(tiny).licence == licence


def test_grey_pictures_are_repeated_and_averaged(tiny: Path) -> None:
    colour, grey = loaded(tiny), loaded(tiny, channels=1)
    z = grey[0](pictures(1))
    torch.testing.assert_close(z, colour[0](pictures(1).expand(-1, 3, -1, -1)))
    torch.testing.assert_close(grey[1](z), colour[1](z).mean(1, keepdim=True))


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_are_kept_with_their_distances(channels: int) -> None:
    codec = Pixels(patch=4)
    encoder, decoder = codec.build(channels)
    x = pictures(channels)
    z = encoder(x)
    assert z.shape == (2, *codec.grid((channels, 16, 16))) == (2, 16 * channels, 4, 4)
    torch.testing.assert_close(decoder(z), x)
    torch.testing.assert_close((z[0] - z[1]).norm(), 2 * (x[0] - x[1]).norm())


def test_sides_that_do_not_fit_are_refused_with_those_that_do() -> None:
    with pytest.raises(
        SettingsError, match=r"got pictures of 60x60, expected sides that are multiples of 8; .* --size 64"
    ):
        Pixels().grid((3, 60, 60))
    with pytest.raises(SettingsError, match="4 channels, expected 3 for colour or 1 for grey"):
        TINY.build(4)


def _hostile(folder: Path, case: str) -> None:
    weights, config = folder / WEIGHTS, folder / "config.json"
    tensors = load_file(weights)
    first = next(name for name in tensors if name.endswith("weight"))
    if case == "truncated":
        weights.write_bytes(weights.read_bytes()[:-10])
    elif case == "huge header":
        weights.write_bytes(struct.pack("<Q", 2**62) + b"{}")
    elif case == "pickle":
        weights.rename(folder / "diffusion_pytorch_model.bin")
        # A pickle that would run a program if somebody opened it.
        (folder / "diffusion_pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch opened'\ntR.")
    elif case == "NaN":
        save_file(tensors | {first: torch.full_like(tensors[first], torch.nan)}, weights)
    elif case == "shape":
        save_file(tensors | {first: tensors[first][1:].contiguous()}, weights)
    elif case == "integers":
        save_file(tensors | {first: tensors[first].long()}, weights)
    elif case == "missing":
        save_file({name: tensor for name, tensor in tensors.items() if name != first}, weights)
    elif case == "another tensor":
        save_file(tensors | {"encoder.hook.weight": torch.zeros(1)}, weights)
    elif case == "no tensor":
        save_file({}, weights)
    elif case == "many tensors":
        save_file({f"encoder.layers.{n}.w": torch.zeros(0) for n in range(5_000)}, weights)
    elif case == "deep network":  # of 200 GB
        wide = {"encoder_block_out_channels": [4096] * 8, "decoder_block_out_channels": [4096] * 8}
        config.write_text(
            json.dumps(CONFIGS["tiny"] | wide | {"num_encoder_blocks": [16] * 8, "num_decoder_blocks": [16] * 8})
        )
    elif case == "several pieces":
        for number in (1, 2):
            shutil.copy(weights, folder / f"model-0000{number}-of-00002.safetensors")
        weights.unlink()
    elif case == "beyond float32":
        save_file({name: each.double() * 1e300 for name, each in load_file(weights).items()}, weights)
    elif case in ("no bytes", "zip"):
        weights.write_bytes(b"PK\3\4 and more" if case == "zip" else b"")
    elif case == "class":
        config.write_text(json.dumps(CONFIGS["tiny"] | {"_class_name": "os.system"}))
    elif case == "remote code":
        config.write_text(json.dumps(CONFIGS["tiny"] | {"auto_map": {"AutoModel": "evil.Model"}}))
    elif case == "huge network":
        config.write_text(json.dumps(CONFIGS["tiny"] | {"latent_channels": 10**9}))
    elif case == "not JSON":
        config.write_text("[" * 100_000)
    elif case == "empty":
        for path in (weights, config):
            path.unlink()


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("truncated", "is truncated or damaged"),
        ("huge header", "is truncated or damaged"),
        ("pickle", "is a pickle, which can hold code and is never opened"),
        ("beyond float32", "that are NaN or not finite in float32"),
        ("no bytes", "it ends after 0 bytes"),
        ("zip", "it is a zip instead of the file: unpack it"),
        ("NaN", "that are NaN or not finite in float32"),
        ("shape", "as its settings say"),
        ("integers", "as its settings say"),
        ("missing", "lacks the tensor"),
        ("another tensor", "has a tensor 'encoder.hook.weight', which codec tiny of these settings has not; convert"),
        ("no tensor", "lacks the tensor 0.weight of its encoder"),
        ("many tensors", "has a tensor 'encoder.layers.0.w', which codec tiny of these settings has not"),
        ("deep network", r"describe networks of far more than the [\d,]+ numbers it holds; copy the folder again"),
        ("several pieces", "no weights of one autoencoder in one file, but 2, such as .*-00001-of-00002.safetensors; "),
        ("class", "is of class os.system, expected AutoencoderKL or AutoencoderTiny"),
        ("remote code", "sets auto_map to"),
        ("huge network", "less than or equal to 4096"),
        ("not JSON", "cannot read"),
        ("empty", "which holds no weights of one autoencoder"),
    ],
)
def test_hostile_folders_are_refused_in_a_sentence(case: str, words: str, tiny: Path) -> None:
    _hostile(tiny, case)
    with pytest.raises((SettingsError, ArtifactError), match=words) as refusal:
        loaded(tiny)
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 600


def test_two_files_of_a_tiny_autoencoder(tmp_path: Path) -> None:
    codec = TINY.model_copy(
        update={
            "encoder_channels": (8,) * 4, "decoder_channels": (8,) * 4, "encoder_blocks": (1, 3, 3, 3),
            "decoder_blocks": (3, 3, 3, 1), "pooled": True,
        }
    )  # fmt: skip
    named = library_names(codec)
    for half, first in (("encoder", 0), ("decoder", 1)):
        start = f"{half}.layers."
        numbered = [(name.removeprefix(start).partition("."), each) for name, each in named.items() if start in name]
        save_file(
            {f"{int(n) + first}.{rest}": each for (n, _, rest), each in numbered}, tmp_path / f"x_{half}.safetensors"
        )
    assert read_pretrained(tmp_path).codec == codec
    assert loaded(tmp_path)[0](pictures(side=16)).shape == (2, 3, 2, 2)


@pytest.mark.slow
def test_a_real_tiny_autoencoder_keeps_reference_scenes(two_objects_reference: Path) -> None:
    encoder, decoder = loaded(outside_data("taef2"))
    scenes = []
    for path in sorted(two_objects_reference.glob("*.png")):
        with Image.open(path) as scene:
            small = scene.convert("RGB").resize((64, 64), Image.Resampling.LANCZOS)
        scenes.append(torch.from_numpy(np.array(small)).permute(2, 0, 1) / 255)
    x = torch.stack(scenes)
    with torch.no_grad():
        errors = (decoder(encoder(x)).clamp(0, 1) - x).square().flatten(1).mean(1)
    assert abs(float(-10 * errors.log10().mean()) - 37.5) < 0.1
