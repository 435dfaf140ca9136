"""Reading of pretrained autoencoders from a folder: settings, tensors and licence, all bounded and nothing executed."""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mmgen.artifacts.containers import Tensor, read_tensor_table
from mmgen.codecs._base import Codec
from mmgen.codecs._kl import KLAutoencoder
from mmgen.codecs._tiny import TinyAutoencoder
from mmgen.core.errors import ArtifactError, SettingsError, reason_of
from mmgen.core.memory import bounded_networks
from mmgen.core.parsing import MalformedError, parse_json, printable, read_beginning, read_text
from mmgen.settings.config import validate

if TYPE_CHECKING:
    import torch
    from torch import nn


_CONFIG = "config.json"
_USUAL = "diffusion_pytorch_model.safetensors"
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_UNUSED = ("_class_name", "_diffusers_version", "_name_or_path", "force_upcast", "sample_size")
_ADVICE = (
    "name a folder that holds config.json and one .safetensors file, as the library diffusers writes them, or "
    "..._encoder.safetensors and ..._decoder.safetensors of a tiny autoencoder"
)
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_TINY = {
    "latent_channels": "latent_channels", "encoder_block_out_channels": "encoder_channels",
    "decoder_block_out_channels": "decoder_channels", "num_encoder_blocks": "encoder_blocks",
    "num_decoder_blocks": "decoder_blocks", "act_fn": "activation", "scaling_factor": "scaling_factor",
}  # fmt: skip
_KL = {
    "latent_channels": "latent_channels", "block_out_channels": "channels", "layers_per_block": "layers",
    "norm_num_groups": "groups", "mid_block_add_attention": "attention", "use_quant_conv": "quant_conv",
    "use_post_quant_conv": "post_quant_conv", "scaling_factor": "scaling_factor", "shift_factor": "shift_factor",
}  # fmt: skip
_FIXED: dict[str, tuple[Any, ...]] = {
    "in_channels": (3,), "out_channels": (3,), "upsample_fn": ("nearest",), "upsampling_scaling_factor": (2,),
    "latent_magnitude": (3,), "latent_shift": (0.5,), "latents_mean": (None,), "latents_std": (None,),
}  # fmt: skip
"""Settings of the library that have one value here."""
_OLD_NAMES = {"query": "to_q", "key": "to_k", "value": "to_v", "proj_attn": "to_out.0"}
"""Names of attention layers in older files of the library."""
_OLD_NAME = re.compile(rf"(attentions\.0\.)({'|'.join(_OLD_NAMES)})\.")
_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENCE.txt", "COPYING")


class Place(NamedTuple):
    """Where a tensor of the networks lies: its file, its name there, and its entry in the file's table."""

    path: Path
    name: str
    tensor: Tensor


@dataclass(frozen=True)
class Pretrained:
    """A pretrained autoencoder as its files describe it.

    Attributes:
        name: Name of its folder.
        codec: Settings of the networks.
        places: The place of each tensor of the networks.
        digest: SHA-256 of the tensors' files, in hex.
        licence: The licence that the folder names; "" if it names none.
    """

    name: str
    codec: Codec
    places: Mapping[str, Place]
    digest: str
    licence: str

    def load_into(self, encoder: "nn.Module", decoder: "nn.Module") -> None:
        """Load the tensors into the networks that :meth:`Codec.build` made.

        Raises:
            ArtifactError: Names, shapes or types of tensors are not those of the networks, or a number is not finite.
        """
        import torch
        from safetensors import SafetensorError, safe_open

        networks = self.match(encoder, decoder)
        for path in dict.fromkeys(place.path for place in self.places.values()):
            try:
                with safe_open(path, "pt") as file, torch.no_grad():
                    for key, place in self.places.items():
                        if place.path == path:
                            tensor = file.get_tensor(place.name).to(networks[key].dtype)
                            if not tensor.isfinite().all():
                                raise ArtifactError(
                                    f"{path} has numbers in its tensor '{printable(place.name, 80)}' that are NaN or "
                                    "not finite in float32, expected finite ones; copy the file again"
                                )
                            networks[key].copy_(tensor.reshape(networks[key].shape))
            except (SafetensorError, OSError, ValueError, RuntimeError, MemoryError) as error:
                raise ArtifactError(
                    f"cannot read {path}: its tensors are damaged ({printable(str(error), 160)}); copy the file again"
                ) from None

    def match(self, encoder: "nn.Module", decoder: "nn.Module") -> "dict[str, torch.Tensor]":
        """Return the tensors of the networks by key; refuse files whose tensors are not those, before any is read."""
        networks = {f"encoder.{name}": each for name, each in encoder.state_dict().items()}
        networks |= {f"decoder.{name}": each for name, each in decoder.state_dict().items()}
        for key, (path, name, tensor) in self.places.items():
            if key not in networks:
                raise ArtifactError(
                    f"{path} has a tensor '{printable(name, 80)}', which codec {self.codec.name} of these settings "
                    "has not; convert the weights with the library diffusers, whose names of tensors are read"
                )
            shape, expected = [*tensor.shape], [*networks[key].shape]
            if "attentions" in key and shape[2:] == [1, 1]:  # convolutions of 1x1 in older files
                shape = shape[:2]
            if shape != expected or tensor.type_name not in _FLOATS:
                raise ArtifactError(
                    f"{path} has a tensor '{printable(name, 80)}' of {shape} {tensor.type_name}, expected {expected} "
                    f"as its settings say, of {', '.join(_FLOATS)}; save it so, or copy the folder again"
                )
        missing = next((key for key in networks if key not in self.places), None)
        if missing is not None:
            half, _, _, name = missing.split(".", 3)
            raise ArtifactError(
                f"the autoencoder {self.name} lacks the tensor {name} of its {half}, expected all {len(networks)} of "
                f"codec {self.codec.name}; copy its folder again"
            )
        return networks


def read_pretrained(path: Path) -> Pretrained:
    """Read the description of the pretrained autoencoder in the folder ``path``; tensors are read later.

    A folder of the library diffusers holds config.json and one .safetensors file; a tiny autoencoder may also be two
    files that end in encoder.safetensors and decoder.safetensors. The library itself is not needed.

    Raises:
        SettingsError: There is no such folder, or its settings are of another class or not supported.
        ArtifactError: A file is damaged.
    """
    if not path.is_dir():
        raise SettingsError(f"model.weights got {path}, which is no folder; {_ADVICE}")
    files = sorted(each for each in path.iterdir() if each.suffix == ".safetensors")
    if (path / _CONFIG).exists():
        file = path / _USUAL if path / _USUAL in files or len(files) != 1 else files[0]
        if file not in files:
            raise SettingsError(f"model.weights got {path}, {_describe_lack(path)}; {_ADVICE}")
        codec = _read_config(path / _CONFIG)
        table = read_tensor_table(file).tensors
        first = f"{next(iter(table), '').partition('.')[0]}."
        wrapped = first not in ("encoder.", "decoder.") and all(
            name.startswith(first) for name in table
        )  # in "module."
        prefix = first if wrapped else ""
        places = {
            _place_of(codec, name.removeprefix(prefix)): Place(file, name, tensor) for name, tensor in table.items()
        }
        return _describe(path, codec, places)
    halves = [[each for each in files if each.stem.endswith(end)] for end in ("encoder", "decoder")]
    if [len(half) for half in halves] != [1, 1]:
        raise SettingsError(f"model.weights got {path}, {_describe_lack(path)}; {_ADVICE}")
    return _read_halves(path, halves[0][0], halves[1][0])


def _describe_lack(path: Path) -> str:
    """Describe why a folder has no weights that can be read."""
    if pickled := sorted(each.name for each in path.iterdir() if each.suffix in _PICKLED):
        return f"whose {pickled[0]} is a pickle, which can hold code and is never opened"
    files = sorted(each.name for each in path.iterdir() if each.suffix == ".safetensors")
    several = f" in one file, but {len(files)}, such as {printable(files[0], 80)}" if len(files) > 1 else ""
    return f"which holds no weights of one autoencoder{several}"


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        try:
            with open(path, "rb") as file:
                while piece := file.read(2**22):
                    digest.update(piece)
        except OSError as error:
            raise ArtifactError(f"cannot read {path}: {reason_of(error)}; check its permissions") from None
    return digest.hexdigest()


def _read_licence(folder: Path) -> str:
    """Return the licence that a folder names: the first line of its licence, or the field of its README."""
    for name in _LICENCES:
        lines = [line.strip() for line in read_beginning(folder / name).splitlines() if line.strip()]
        if lines:
            return printable(lines[0], 100)
    field = re.search(r"^licen[sc]e:[ \t]*(\S.*)$", read_beginning(folder / "README.md"), re.MULTILINE)
    return printable(field[1].strip(), 100) if field else ""


def _read_config(path: Path) -> Codec:
    """Read the settings of an autoencoder of the library diffusers."""
    try:
        values = parse_json(read_text(path))
    except (OSError, MalformedError) as error:
        raise ArtifactError(f"cannot read {path}: {error}; copy the folder again") from None
    kind = values.get("_class_name") if isinstance(values, dict) else None
    classes: dict[Any, tuple[type[Codec], dict[str, str]]] = {
        "AutoencoderKL": (KLAutoencoder, _KL), "AutoencoderTiny": (TinyAutoencoder, _TINY),
    }  # fmt: skip
    if not isinstance(kind, str) or kind not in classes:
        raise SettingsError(
            f"{path} is of class {printable(str(kind), 60)}, expected AutoencoderKL or AutoencoderTiny; name the "
            "folder of one of these"
        )
    member, names = classes[kind]
    blocks = {"down_block_types": "DownEncoderBlock2D", "up_block_types": "UpDecoderBlock2D"}
    fixed = {**_FIXED, **({"act_fn": ("silu", "swish")} if member is KLAutoencoder else {"shift_factor": (0, None)})}
    own = {}
    for key, value in values.items():
        usual = value in fixed[key] if key in fixed else key in names or key in _UNUSED or key == "block_out_channels"
        if key in blocks:
            usual = isinstance(value, list) and {*map(str, value)} == {blocks[key]}
        if not usual:
            raise SettingsError(
                f"{path} sets {printable(key, 60)} to {printable(str(value), 60)}, which this version of mmgen does "
                "not know; name another autoencoder"
            )
        if key in names and value is not None:
            own[names[key]] = value
    return validate(member, own, str(path))


def _place_of(codec: Codec, name: str) -> str:
    """Return the name in our networks of a tensor of the library diffusers."""
    half, _, rest = name.partition(".")
    if isinstance(codec, TinyAutoencoder):
        return _place_in_tiny(half, rest.removeprefix("layers."))
    if half in ("quant_conv", "post_quant_conv"):
        half, rest = ("encoder" if half == "quant_conv" else "decoder"), name
    rest = _OLD_NAME.sub(lambda found: f"{found[1]}{_OLD_NAMES[found[2]]}.", rest)
    return f"{half}.{'1.1' if half == 'encoder' else '0.1'}.{rest}"


def _place_in_tiny(half: str, rest: str) -> str:
    """Return the name of a tensor of a tiny autoencoder, from the half and the number of its layer."""
    return f"{half}.{'1.0' if half == 'encoder' else '0.2'}.{rest}"


def _read_halves(path: Path, encoder: Path, decoder: Path) -> Pretrained:
    """Read the description of a tiny autoencoder of two files; its sizes follow from the shapes of its tensors."""
    places, shapes = {}, {}
    # The first layer of the decoder has no weights, and the library diffusers does not count it.
    for half, file, first in (("encoder", encoder, 0), ("decoder", decoder, 1)):
        for name, tensor in read_tensor_table(file).tensors.items():
            number, _, rest = name.partition(".")
            place = f"{int(number) - first}.{rest}" if number.isdecimal() and len(number) < 4 else name
            places[_place_in_tiny(half, place)] = Place(file, name, tensor)
            shapes[half, place] = tensor.shape
    latent, width = shapes.get(("decoder", "0.weight"), ()), shapes.get(("encoder", "0.weight"), ())
    if len(latent) != 4 or len(width) != 4:
        raise SettingsError(f"model.weights got {path}, whose tensors are not those of a tiny autoencoder; {_ADVICE}")
    values = {
        "latent_channels": latent[1],
        "encoder_channels": [width[0]] * 4,
        "decoder_channels": [latent[0]] * 4,
        "pooled": any(".pool." in place for _, place in shapes),
    }
    codec = validate(TinyAutoencoder, values, str(path))
    return _describe(path, codec, places)


def _describe(path: Path, codec: Codec, places: Mapping[str, Place]) -> Pretrained:
    """Return the description of a folder whose tensors are those of its settings, before networks take memory."""
    import torch

    files = [*dict.fromkeys(place.path for place in places.values())]
    pretrained = Pretrained(path.resolve().name, codec, places, _digest(files), _read_licence(path))
    numbers = sum(math.prod(place.tensor.shape) for place in places.values())
    bounded = bounded_networks(numbers, f"model.weights got {path}, whose", "; copy the folder again")
    with bounded, torch.device("meta"):
        networks = codec.build(3)
    pretrained.match(*networks)
    return pretrained
