"""Folders of autoencoders with random weights, as the library diffusers writes them."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from mmgen.codecs import Codec, KLAutoencoder, TinyAutoencoder

KL = KLAutoencoder(channels=(8, 16), layers=1, groups=4, latent_channels=4)
TINY = TinyAutoencoder(
    encoder_channels=(8, 8), decoder_channels=(8, 8), encoder_blocks=(1, 2), decoder_blocks=(2, 1), latent_channels=3
)
CONFIGS = {
    "kl": {
        "_class_name": "AutoencoderKL", "_diffusers_version": "0.42.1", "act_fn": "silu", "block_out_channels": [8, 16],
        "down_block_types": ["DownEncoderBlock2D"] * 2, "force_upcast": True, "in_channels": 3, "latent_channels": 4,
        "latents_mean": None, "latents_std": None, "layers_per_block": 1, "mid_block_add_attention": True,
        "norm_num_groups": 4, "out_channels": 3, "sample_size": 32, "scaling_factor": 0.18215, "shift_factor": None,
        "up_block_types": ["UpDecoderBlock2D"] * 2, "use_post_quant_conv": True, "use_quant_conv": True,
    },
    "tiny": {
        "_class_name": "AutoencoderTiny", "act_fn": "relu", "block_out_channels": [8, 8],
        "decoder_block_out_channels": [8, 8], "encoder_block_out_channels": [8, 8], "force_upcast": False,
        "in_channels": 3, "latent_channels": 3, "latent_magnitude": 3, "latent_shift": 0.5,
        "num_decoder_blocks": [2, 1], "num_encoder_blocks": [1, 2], "out_channels": 3, "scaling_factor": 1.0,
        "shift_factor": 0.0, "upsample_fn": "nearest", "upsampling_scaling_factor": 2,
    },
}  # fmt: skip


def library_names(codec: Codec) -> dict[str, torch.Tensor]:
    """Random tensors of a codec by the names that the library diffusers gives them."""
    torch.manual_seed(0)
    tensors = {}
    prefixes = (
        {"encoder": "1.0.", "decoder": "0.2."} if codec.name == "tiny" else {"encoder": "1.1.", "decoder": "0.1."}
    )
    for (half, prefix), network in zip(prefixes.items(), codec.build(3), strict=True):
        for name, tensor in network.state_dict().items():
            rest = name.removeprefix(prefix)
            usual = f"{half}.layers.{rest}" if codec.name == "tiny" else f"{half}.{rest}"
            tensors[rest if rest.startswith(("quant_conv", "post_quant_conv")) else usual] = tensor
    return tensors


def write_folder(folder: Path, codec: Codec, **config: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    save_file(library_names(codec), folder / "diffusion_pytorch_model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIGS[codec.name] | config))
    return folder


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A folder with a tiny autoencoder of random weights, which halves the sides of pictures."""
    return write_folder(tmp_path / "random-tiny", TINY)


@pytest.fixture
def kl(tmp_path: Path) -> Path:
    """A folder with an autoencoder of latent diffusion models of random weights."""
    return write_folder(tmp_path / "random-kl", KL)
