"""The networks that both sides train, written once more in plain torch for a user of MultiVae.

They are the networks of ``mmgen`` (Vedantam et al., Appendix A.4, and smaller ones) with parameters of the same shapes
in the same order, so that weights can be copied from one side to the other: equal parameter counts are asserted,
and equal numbers come out of both sides' likelihoods. This file imports neither ``mmgen`` nor ``multivae``.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

__all__ = [
    "NETWORKS", "AttributeDecoder", "AttributeEncoder", "ImageDecoder", "ImageEncoder", "JointEncoder", "Sizes",
    "mmgen_settings",
]  # fmt: skip

ACTIVATIONS = {"elu": nn.ELU, "relu": nn.ReLU, "silu": nn.SiLU}


@dataclass(frozen=True)
class Sizes:
    """One row of the comparison: an image network by name with its settings, and the widths of everything else."""

    meaning: str
    image_network: str
    image: dict[str, object]
    embedding: int = 32
    attribute_hidden: int = 512
    attribute_decoder_hidden: int = 128
    hidden: int = 512
    latent: int = 10
    activation: str = "elu"
    head_layers: int = 2


NETWORKS = {
    "strided": Sizes(
        "4x4 patches folded into channels, convolutions 32-64-128 down and up: the networks of mmgen's -cpu presets",
        "strided",
        {"patch": 4, "channels": (32, 64, 128), "fully_connected": (256,), "activation": "relu"},
        attribute_hidden=256,
    ),
    "digits": Sizes(
        "those of strided, with the other widths of mmgen's preset quickstart/digits",
        "strided",
        {"patch": 4, "channels": (32, 64, 128), "fully_connected": (256,), "activation": "relu"},
        attribute_hidden=128,
        attribute_decoder_hidden=64,
        hidden=256,
        latent=12,
    ),
    "dcgan": Sizes(
        "convolutions 32-64-128-256 down, 256-128-64-32 up, 5x5, batch norm, ELU",
        "dcgan",
        {
            "channels": (32, 64, 128, 256),
            "kernels": (5, 5, 5, 5),
            "strides": (2, 2, 2, 2),
            "decoder_width": 32,
            "activation": "elu",
        },
    ),
    "mlp": Sizes(
        "fully connected 512-512, Swish (WG's on MNIST; MultiVae's default has these widths too)",
        "mlp",
        {"hidden": (512, 512), "activation": "silu"},
    ),
    "convolutional": Sizes(
        "convolutions 32-64-128-256 down and up, 4x4, batch norm, Swish: WG's on CelebA",
        "convolutional",
        {
            "channels": (32, 64, 128, 256),
            "strides": (2, 2, 2, 1),
            "paddings": (1, 1, 1, 0),
            "fully_connected": (512,),
            "decoder_fully_connected": (),
            "dropout": 0.1,
            "activation": "silu",
        },
        head_layers=0,
    ),
}


def mlp(sizes: list[int], activation: type[nn.Module] = nn.ELU, last: bool = False) -> nn.Sequential:
    """Linear layers with an activation between them."""
    layers: list[nn.Module] = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if last or i < len(sizes) - 2:
            layers.append(activation())
    return nn.Sequential(*layers)


def image_features(sizes: Sizes, side: int, colours: int = 1) -> tuple[nn.Module, int]:
    """Build an encoder of images [B, C, H, W] -> [B, F], and return F too."""
    settings = sizes.image
    activation = ACTIVATIONS[settings["activation"]]
    if sizes.image_network == "mlp":
        hidden = list(settings["hidden"])
        return nn.Sequential(nn.Flatten(), mlp([colours * side * side, *hidden], activation, last=True)), hidden[-1]
    if sizes.image_network == "strided":
        channels, patch = settings["channels"], settings["patch"]
        layers = [nn.PixelUnshuffle(patch)]
        for before, after, stride in zip((colours * patch**2, *channels[:-1]), channels, (1, 2, 2), strict=True):
            layers += [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), activation()]
        end = side // (patch * 4)
        widths = [channels[-1] * end * end, *settings["fully_connected"]]
        return nn.Sequential(*layers, nn.Flatten(), mlp(widths, activation, last=True)), widths[-1]
    if sizes.image_network == "convolutional":
        layers, before = [], colours
        for number, after in enumerate(settings["channels"]):
            stride, padding = settings["strides"][number], settings["paddings"][number]
            layers.append(nn.Conv2d(before, after, 4, stride, padding, bias=False))
            layers += [nn.BatchNorm2d(after)] if number else []
            layers.append(activation())
            before, side = after, (side + 2 * padding - 4) // stride + 1
        widths = [before * side * side, *settings["fully_connected"]]
        full = mlp(widths, activation, last=True)
        return nn.Sequential(*layers, nn.Flatten(), full, nn.Dropout(settings["dropout"])), widths[-1]
    layers = []
    before = colours
    for after, kernel, stride in zip(settings["channels"], settings["kernels"], settings["strides"], strict=True):
        layers += [
            nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(after),
            activation(),
        ]
        before, side = after, (side + 2 * (kernel // 2) - kernel) // stride + 1
    return nn.Sequential(*layers, nn.Flatten()), before * side * side


def image_pixels(sizes: Sizes, side: int, colours: int = 1) -> nn.Module:
    """Build a decoder [B, D] -> logits of images [B, C, H, W]."""
    settings = sizes.image
    activation = ACTIVATIONS[settings["activation"]]
    if sizes.image_network == "mlp":
        hidden = [*reversed(settings["hidden"])]
        shape = (colours, side, side)
        return nn.Sequential(mlp([sizes.latent, *hidden, colours * side**2], activation), nn.Unflatten(1, shape))
    if sizes.image_network == "strided":
        patch, widths = settings["patch"], [*reversed(settings["channels"])]
        start = side // (patch * 4)
        layers = [
            mlp([sizes.latent, *reversed(settings["fully_connected"])], activation, last=True),
            nn.Linear(settings["fully_connected"][0], widths[0] * start * start),
            nn.Unflatten(1, (widths[0], start, start)),
            nn.BatchNorm2d(widths[0]),
            activation(),
        ]
        for before, after in pairwise(widths):
            layers += [
                nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False),
                nn.BatchNorm2d(after),
                activation(),
            ]
        return nn.Sequential(*layers, nn.Conv2d(widths[-1], colours * patch**2, 3, 1, 1), nn.PixelShuffle(patch))
    if sizes.image_network == "convolutional":
        for stride, padding in zip(settings["strides"], settings["paddings"], strict=True):
            side = (side + 2 * padding - 4) // stride + 1
        start = (settings["channels"][-1], side, side)
        full = [sizes.latent, *settings["decoder_fully_connected"], start[0] * side * side]
        layers = [mlp(full, activation, last=True), nn.Unflatten(1, start)]
        widths = [colours, *settings["channels"]]
        for number in reversed(range(len(settings["channels"]))):
            stride, padding = settings["strides"][number], settings["paddings"][number]
            layers.append(nn.ConvTranspose2d(widths[number + 1], widths[number], 4, stride, padding, bias=False))
            layers += [nn.BatchNorm2d(widths[number]), activation()] if number else []
        return nn.Sequential(*layers)
    doublings = 0
    while side // 2**doublings > 4:
        doublings += 1
    widths = [settings["decoder_width"] * 2**i for i in reversed(range(doublings))]
    start = side // 2**doublings
    layers = [
        nn.Linear(sizes.latent, widths[0] * start * start, bias=False),
        nn.Unflatten(1, (widths[0], start, start)),
        nn.BatchNorm2d(widths[0]),
        activation(),
    ]
    for before, after in pairwise(widths):
        layers += [
            nn.ConvTranspose2d(before, after, 5, 2, 2, output_padding=1, bias=False),
            nn.BatchNorm2d(after),
            activation(),
        ]
    return nn.Sequential(*layers, nn.ConvTranspose2d(widths[-1], colours, 5, 2, 2, output_padding=1))


def gaussian(raw: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and log variance from a head's output, the log sd kept in [-7, 4]."""
    mean, log_sd = raw.chunk(2, -1)
    return mean, 2 * log_sd.clamp(-7.0, 4.0)


class ImageEncoder(nn.Module):
    """q(z | x): features, then fully connected layers."""

    def __init__(self, sizes: Sizes, side: int, colours: int = 1) -> None:
        super().__init__()
        self.encoder, features = image_features(sizes, side, colours)
        self.head = mlp([features, *[sizes.hidden] * sizes.head_layers, 2 * sizes.latent])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return gaussian(self.head(self.encoder(x)))


class AttributeTables(nn.Module):
    """Each attribute's value through an embedding and a network of its own: codes [B, A] -> [B, A, outputs]."""

    def __init__(self, values: list[int], outputs: int, sizes: Sizes) -> None:
        super().__init__()
        # A row more than there are values: mmgen's embedding of "unknown".
        self.embeddings = nn.ModuleList(nn.Embedding(v + 1, sizes.embedding) for v in values)
        widths = [sizes.embedding, sizes.attribute_hidden, sizes.attribute_hidden, outputs]
        self.networks = nn.ModuleList(mlp(widths, ACTIVATIONS[sizes.activation]) for _ in values)

    def forward(self, codes: Tensor) -> Tensor:
        return torch.stack(
            [
                net(table(codes[:, a]))
                for a, (table, net) in enumerate(zip(self.embeddings, self.networks, strict=True))
            ],
            1,
        )


class AttributeEncoder(nn.Module):
    """Product of one Gaussian expert per attribute, with p(z) as one more expert if ``universal``."""

    def __init__(self, values: list[int], sizes: Sizes, universal: bool) -> None:
        super().__init__()
        self.tables = AttributeTables(values, 2 * sizes.latent, sizes)
        self.universal = universal

    def forward(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = gaussian(self.tables(codes))
        precision = (-log_variance).exp()
        total = precision.sum(1) + (1 if self.universal else 0)
        return (precision * mean).sum(1) / total, -total.log()


class JointEncoder(nn.Module):
    """q(z | x, y): image features and label features side by side."""

    def __init__(self, values: list[int], sizes: Sizes, side: int) -> None:
        super().__init__()
        self.encoder, features = image_features(sizes, side)
        width = sizes.attribute_hidden
        self.tables = AttributeTables(values, width, sizes)
        self.labels = mlp([width * len(values), width, width], last=True)
        self.head = mlp([features + width, sizes.hidden, 2 * sizes.latent])

    def forward(self, x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        labels = self.labels(self.tables(codes).flatten(1))
        return gaussian(self.head(torch.cat([self.encoder(x), labels], -1)))


class ImageDecoder(nn.Sequential):
    """p(x | z): logits of Bernoulli pixels."""

    def __init__(self, sizes: Sizes, side: int, colours: int = 1) -> None:
        super().__init__(image_pixels(sizes, side, colours))


class AttributeDecoder(nn.Module):
    """p(y | z): one network per attribute; logits [B, A, V], -10,000 beyond an attribute's range."""

    def __init__(self, values: list[int], sizes: Sizes) -> None:
        super().__init__()
        width = sizes.attribute_decoder_hidden
        self.networks = nn.ModuleList(
            mlp([sizes.latent, width, width, v], ACTIVATIONS[sizes.activation]) for v in values
        )
        self.width = max(values)

    def forward(self, z: Tensor) -> Tensor:
        logits = [net(z) for net in self.networks]
        return torch.stack([nn.functional.pad(x, (0, self.width - x.shape[-1]), value=-1e4) for x in logits], 1)


def mmgen_settings(name: str) -> dict[str, object]:
    """Return the same networks as settings of a model of ``mmgen``."""
    sizes = NETWORKS[name]
    return {
        "latent_size": sizes.latent,
        "hidden": sizes.hidden,
        "head_layers": sizes.head_layers,
        "image_network": {"name": sizes.image_network, **sizes.image},
        "attribute_network": {
            "embedding": sizes.embedding,
            "hidden": sizes.attribute_hidden,
            "decoder_hidden": sizes.attribute_decoder_hidden,
            "activation": sizes.activation,
        },
    }
