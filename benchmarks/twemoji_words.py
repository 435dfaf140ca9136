"""Twemoji as words: a stand-in for CelebA as words, whose pictures and attributes are free.

    python benchmarks/twemoji_words.py TWEMOJI.zip words.h5 [--size 32] [--seed 0]
    mmgen reproduce benchmarks/twemoji-words.toml --data words.h5

TWEMOJI.zip holds pictures and a metadata.csv with the columns file_name, text, category and skin_tone
(docs/autoencoders.md). Only people are taken. As in celeba-words, each picture has attributes, no or yes, and a text of
those that are true, in random order by the seed, nine at most. The split ``iid`` is by what is shown, whatever its skin
tone; ``iid-paper`` by picture. Nothing here is CelebA: scores are of emoji.
"""

import argparse
import csv
import io
import re
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from mmgen.artifacts import DatasetWriter
from mmgen.data_recipes import random_bits, split_by_group, stream_keys

TONES = ("light", "medium-light", "medium", "medium-dark", "dark")
WORDS = (
    "man", "woman", "hands", "hand", "family", "couple", "kiss", "heart", "wheelchair", "kneeling", "right", "worker",
    "hair",
)  # fmt: skip
NAMES = (*WORDS, *TONES)
LENGTH = 9


def read(archive: zipfile.ZipFile, size: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return pictures uint8 [n, 3, size, size] on white, which of the words are true of them [n, 18], and concepts."""
    pictures, true, concepts = [], [], []
    rows = csv.DictReader(io.TextIOWrapper(archive.open("metadata.csv"), encoding="utf-8"))
    for row in rows:
        if row["category"] != "People & Body":
            continue
        text = row["text"].casefold()
        tones = set(re.findall(r"\b(medium-light|medium-dark|light|medium|dark) skin tone", text))
        words = set(re.findall(r"[a-z-]+", re.sub(r"\S+ skin tone", "", text)))
        true.append([name in words for name in WORDS] + [tone in tones for tone in TONES])
        concepts.append(re.sub(r"[:,]? ?\S+ skin tone", "", text))
        with archive.open(row["file_name"]) as file:
            picture = Image.open(file).convert("RGBA")
        ground = Image.new("RGBA", picture.size, "white")
        small = Image.alpha_composite(ground, picture).convert("RGB").resize((size, size), Image.Resampling.BOX)
        pictures.append(np.asarray(small).transpose(2, 0, 1))
    return np.stack(pictures), np.array(true), concepts


def shuffled(true: np.ndarray, seed: int) -> np.ndarray:
    """Return codes uint16 [n, 9] of true words in random order, of more than nine a random nine, then padding."""
    draws = random_bits(
        stream_keys(seed, "twemoji-words", np.arange(len(true)))[:, None], np.arange(len(NAMES))
    ) >> np.uint64(1)
    order = np.argsort(np.where(true, draws, np.iinfo(np.uint64).max), axis=1, kind="stable")[:, :LENGTH]
    there = np.arange(LENGTH) < true.sum(1, keepdims=True)
    return np.where(there, order, len(NAMES)).astype(np.uint16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("twemoji", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with zipfile.ZipFile(options.twemoji) as archive:
        pictures, true, concepts = read(archive, options.size)
    _, concept = np.unique(concepts, return_inverse=True)
    number = len(pictures)
    settings = {"recipe": "twemoji-words", "size": options.size, "number": number}
    with DatasetWriter(options.output, size=number, settings=settings, seed=options.seed) as writer:
        writer.add_image("image", pictures.shape[1:])
        writer.add_attributes("attributes", {name: ["no", "yes"] for name in NAMES})
        writer.add_text("text", NAMES, LENGTH)
        writer.add_factor("source", "uint32", "", "concept: pictures that differ in skin tone alone share it")
        columns = {"image": pictures, "attributes": true.astype(np.uint8), "text": shuffled(true, options.seed)}
        writer.write(0, columns, {"source": concept.astype(np.uint32)})
        by_concept = split_by_group(concept, int(concept.max()) + 1, options.seed, "iid")
        writer.add_splits("iid", **by_concept, meaning="85/5/10 % of the concepts: no concept is in two parts")
        by_picture = split_by_group(np.arange(number), number, options.seed, "iid-paper")
        writer.add_splits("iid-paper", **by_picture, meaning="85/5/10 % of the pictures")
    print(f"{number:,} pictures of {concept.max() + 1} concepts, {true.sum(1).mean():.1f} words each")
    print(", ".join(f"{name} {share:.0%}" for name, share in zip(NAMES, true.mean(0), strict=True)))


if __name__ == "__main__":
    main()
