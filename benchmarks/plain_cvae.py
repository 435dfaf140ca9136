"""A plain conditional VAE of pictures and words, without mmgen: the rival of ``mmgen quickstart --images``.

    python benchmarks/plain_cvae.py own.h5 -o plain.safetensors [--weight 1] [--batches 2800] [--seed 0]

Three strided convolutions, 12 latents, words as one-hot codes beside z in encoder and decoder, a tenth of the words
blanked in training. --weight multiplies the squared error of pixels beside the divergence. Prints processor seconds.
``benchmarks/own_pictures_rival.py`` chooses the weight on validation pictures and scores the result.
"""

import argparse
import json
import time
from pathlib import Path

import h5py
import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

LATENTS, BATCH, BLANKED = 12, 64, 0.1


class PlainCvae(nn.Module):
    """Encoder q(z | picture, words) and decoder of pictures from z and words; ``side`` is 28, 32 or 64 pixels."""

    def __init__(self, channels: int, side: int, sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.sizes, self.side = sizes, -(-side // 8) * 8
        self.cropped, first = side, self.side // 16 if self.side >= 64 else 2  # the map after three layers is 4 x 4
        words, low = sum(sizes), self.side // first // 4
        steps = [(channels, 32, first), (32, 64, 2), (64, 128, 2)]
        down = [layer for a, b, s in steps for layer in (nn.Conv2d(a, b, 2 * s, s, s // 2), nn.ReLU())]
        self.encoder = nn.Sequential(*down, nn.Flatten())
        self.head = nn.Sequential(nn.Linear(128 * low**2 + words, 256), nn.ReLU(), nn.Linear(256, 2 * LATENTS))
        up = [layer for a, b, s in steps[::-1] for layer in (nn.ConvTranspose2d(b, a, 2 * s, s, s // 2), nn.ReLU())]
        self.decoder = nn.Sequential(
            nn.Linear(LATENTS + words, 256), nn.ReLU(), nn.Linear(256, 128 * low**2), nn.ReLU(),
            nn.Unflatten(1, (128, low, low)), *up[:-1], nn.Sigmoid(),
        )  # fmt: skip

    def one_hot(self, codes: Tensor) -> Tensor:
        """Convert codes [B, A] to one-hot codes [B, sum of sizes], zeros where a code is 255."""
        columns = [F.one_hot(c.long().clamp(max=n), n + 1)[:, :n] for c, n in zip(codes.T, self.sizes, strict=True)]
        return torch.cat(columns, 1).float()

    def decode(self, z: Tensor, words: Tensor) -> Tensor:
        return self.decoder(torch.cat([z, words], 1))[..., : self.cropped, : self.cropped]

    def loss(self, pictures: Tensor, codes: Tensor, weight: float) -> Tensor:
        words = self.one_hot(codes.masked_fill(torch.rand(codes.shape) < BLANKED, 255))
        padded = F.pad(pictures, (0, self.side - self.cropped) * 2)
        mean, log_var = self.head(torch.cat([self.encoder(padded), words], 1)).chunk(2, 1)
        drawn = self.decode(mean + torch.randn_like(mean) * (0.5 * log_var).exp(), words)
        divergence = 0.5 * (mean**2 + log_var.exp() - 1 - log_var).sum(1)
        return (weight * (drawn - pictures).square().flatten(1).sum(1) + divergence).mean()

    @torch.no_grad()
    def draw(self, codes: np.ndarray, count: int) -> Tensor:
        """Draw pictures [Q, count, C, H, W] for codes [Q, A]."""
        words = self.one_hot(torch.from_numpy(codes)).repeat_interleave(count, 0)
        drawn = [self.decode(torch.randn(len(part), LATENTS), part) for part in words.split(512)]
        return torch.cat(drawn).unflatten(0, (len(codes), count))


def load_plain(path: Path) -> PlainCvae:
    """Load a trained plain conditional VAE."""
    with safe_open(path, "pt") as file:
        model = PlainCvae(*json.loads(file.metadata()["shape"]))
        model.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 (no mapping)
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("plain.safetensors"))
    parser.add_argument("--weight", type=float, default=1.0)
    parser.add_argument("--batches", type=int, default=2800)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with h5py.File(options.dataset) as file:
        rows, words = file["splits/iid/train"][()], file["modalities/attributes"]
        pictures, codes = (torch.from_numpy(each[()][rows]) for each in (file["modalities/image"], words))
        sizes = tuple(len(values) for values in json.loads(words.attrs["values"]))
    torch.manual_seed(options.seed)
    model = PlainCvae(pictures.shape[1], pictures.shape[2], sizes)
    optimizer, started = torch.optim.Adam(model.parameters(), 1e-3), time.process_time()
    for _ in range(options.batches):
        chosen = torch.randint(len(pictures), (BATCH,))
        loss = model.loss(pictures[chosen].float() / 255, codes[chosen], options.weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.process_time() - started
    shape = (pictures.shape[1], pictures.shape[2], sizes)
    save_file(model.state_dict(), options.output, {"shape": json.dumps(shape), "seconds": f"{seconds:.0f}"})
    print(f"{options.output}: loss {loss.item():.1f}, {seconds:.0f} s of processor")


if __name__ == "__main__":
    main()
