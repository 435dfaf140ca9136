"""How right and how varied: mmgen's own pictures beside a plain conditional VAE, by the same descriptions and judges.

    python benchmarks/own_pictures_rival.py own.h5 --judge judge.safetensors --judge second-judge.safetensors
        --plain plain.safetensors --model aggregate.safetensors --model aggregate.safetensors@cfg:0.5
        [--part val] [--json FILE]

Descriptions are those of --part with one, two and all words given, every choice of words (at most --queries of each
number). Each is drawn --draws times. Right is the share of given words that a judge reads, with its standard error over
descriptions. Open is the entropy of each word left out, as a judge reads it, as a share of the largest, with its mean
over words and descriptions. First come the shares that each judge reads on the real pictures of --part.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from plain_cvae import load_plain
from torch import Tensor

from mmgen import load
from mmgen.artifacts import Dataset
from mmgen.classifier import Classifier, load_classifier
from mmgen.core.notation import UNKNOWN
from mmgen.evaluation.queries import Queries, fewest_dropped, make_queries, weighted_mean
from mmgen.generation.draws import draw

Drawer = Callable[[np.ndarray, int], Tensor]
"""From codes [Q, A] and a number n to pictures [Q, n, C, H, W]."""


def model_drawer(argument: str, seed: int) -> Drawer:
    """Return the drawer of a fitted posterior, PATH or PATH@GUIDANCE, or of a model's prior."""
    path, _, guidance = argument.partition("@")
    model = load(Path(path))
    model = model.guided(guidance, seed) if guidance else model

    def draw_pictures(codes: np.ndarray, count: int) -> Tensor:
        return torch.from_numpy(draw(model, codes, count, posterior=model.posteriors.default, seed=seed).means)

    return draw_pictures


def plain_drawer(path: str, seed: int) -> Drawer:
    """Return the drawer of a plain conditional VAE."""
    torch.manual_seed(seed)
    return load_plain(Path(path)).draw


def predict(judge: Classifier, pictures: Tensor, codes: np.ndarray) -> np.ndarray:
    """Return the codes [Q, n, A] that a judge reads from pictures [Q, n, C, H, W]."""
    hints = torch.from_numpy(codes).repeat_interleave(pictures.shape[1], 0)
    parts = zip(pictures.flatten(0, 1).split(1024), hints.split(1024), strict=True)
    read = torch.cat([judge.predict(part, hint).cpu() for part, hint in parts]).numpy()
    return read.reshape(*pictures.shape[:2], -1)


def score(queries: Queries, read: np.ndarray, sizes: tuple[int, ...], names: tuple[str, ...]) -> dict[str, object]:
    """Return percentages right with errors, by word too, and relative entropies of what is left open."""
    given = queries.codes != UNKNOWN
    agree = (read == queries.codes[:, None]).mean(1)
    right = weighted_mean(100 * (agree * given).sum(1) / given.sum(1), queries.weights, 0)
    by_word = {
        name: round(100 * float(np.average(agree[given[:, a], a], weights=queries.weights[given[:, a]])), 1)
        for a, name in enumerate(names)
        if given[:, a].any()
    }
    entropies, open_by_word = np.zeros(given.shape), {}
    for a, size in enumerate(sizes):
        shares = (read[:, :, a, None] == np.arange(size)).mean(1)
        entropies[:, a] = -(shares * np.log(np.maximum(shares, 1e-9))).sum(1) / np.log(max(size, 2))
        if (~given[:, a]).any():
            open_by_word[names[a]] = round(float(entropies[~given[:, a], a].mean()), 3)
    left = (~given).sum(1)
    varied = None
    if left.all():
        varied = weighted_mean((entropies * ~given).sum(1) / left, queries.weights, 0)
    return {
        "right": round(right.value, 1),
        "right_error": round(right.stderr or 0.0, 1),
        "right_by_word": by_word,
        "open": None if varied is None else round(varied.value, 3),
        "open_error": None if varied is None else round(varied.stderr or 0.0, 3),
        "open_by_word": open_by_word,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--judge", action="append", required=True)
    parser.add_argument("--plain", action="append", default=[])
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--part", default="test")
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--queries", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    judges = {Path(path).stem: load_classifier(Path(path), "cpu") for path in options.judge}
    with Dataset.open(options.dataset) as data:
        (info, *_), (image, *_) = data.attributes.values(), data.images
        rows = data.split("iid", options.part)
        codes, real = data.read_attributes(info.name, rows), torch.from_numpy(data.read_pixels(image, rows))[:, None]
    fewest, count = fewest_dropped(codes), len(info.names)
    dropped = dict.fromkeys(number for number in (count - 1, count - 2, fewest) if fewest <= number < count)
    queries = {number: make_queries(codes, number, limit=options.queries, seed=0) for number in dropped}
    for name, judge in judges.items():
        known = codes != UNKNOWN
        read = predict(judge, real, codes)[:, 0] == codes
        shares = [f"{word} {100 * read[known[:, a], a].mean():.1f}" for a, word in enumerate(info.names)]
        print(f"{options.part} pictures, {name}: {', '.join(shares)}", flush=True)
    drawers = {path: plain_drawer(path, options.seed) for path in options.plain}
    drawers |= {path: model_drawer(path, options.seed) for path in options.model}
    records = []
    for drawer, draw_pictures in drawers.items():
        started = time.process_time()
        drawn = {number: draw_pictures(each.codes, options.draws) for number, each in queries.items()}
        seconds = time.process_time() - started
        for name, judge in judges.items():
            for number, each in queries.items():
                scores = score(each, predict(judge, drawn[number], each.codes), info.sizes, info.names)
                records.append(
                    {"drawn": drawer, "judge": name, "given": count - number, "descriptions": len(each)} | scores
                )
                varied = "" if scores["open"] is None else f"open {scores['open']:.3f} +- {scores['open_error']:.3f}"
                print(
                    f"{drawer} | {name} | {count - number} given | right {scores['right']:.1f} +- "
                    f"{scores['right_error']:.1f} | {varied} | {scores['right_by_word']} | {scores['open_by_word']}",
                    flush=True,
                )
        print(f"{drawer}: drawn in {seconds:.1f} s of processor", flush=True)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
