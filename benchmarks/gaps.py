"""Pictures of combinations of words that no training picture has, measured against the true ones.

    python benchmarks/gaps.py make SET ARCHIVE -o FOLDER
    python benchmarks/gaps.py train FOLDER [--seed S] [--as-before]
    python benchmarks/gaps.py score FOLDER SOURCE... [--sheet SHEET.png]

``make`` divides a grid of pictures into ``FOLDER/pictures`` and ``FOLDER/truth``, each with a table. SET is people (of
312 people of Twemoji, 75 with one skin each less), drawings (12 of 52 pairs of person and job, in all skins), hands (a
fifth of the hands), all of a zip with ``metadata.csv`` (file_name, text, subcategory, skin_tone); or papirus (84 of 336
folders, 14 colours and 24 symbols), of a folder of SVG files, for which ``rsvg-convert`` must be installed.
``train`` makes data, fills gaps, trains a model (--as-before: without filled gaps, a narrow network, cross-entropy and
4,000 steps) and fits q_agg, one thread. ``score`` draws one picture of each true one from a SOURCE:
lookup:COLUMN and palette:COLUMN (of a training picture that differs in this word), filled (the pictures of fill-gaps
themselves), or an aggregate, with guidance behind an @. Prints the PSNR to the truth [dB] with its error over pairs of
person and job, hands or folders, how often the truth is the nearest of all pictures, each word of the nearest, and
weave: the root mean square of what is finer than three pixels where the truth is even [grey levels of 255].
"""

import argparse
import csv
import io
import os
import random
import re
import subprocess
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import maximum_filter, minimum_filter, uniform_filter

Key = tuple[str, ...]
Cells = dict[Key, bytes]

JOBS = {
    *("farmer", "cook", "student", "singer", "artist", "teacher", "factory-worker", "technologist", "office-worker"),
    *("mechanic", "scientist", "astronaut", "firefighter", "health-worker", "judge", "pilot", "police-officer"),
    *("construction-worker", "guard", "detective", "superhero", "supervillain", "mage", "fairy", "vampire", "elf"),
}
COLOURS = [
    *("black", "blue", "brown", "cyan", "green", "grey", "indigo"),
    *("magenta", "orange", "pink", "red", "teal", "violet", "yellow"),
]
AS_BEFORE = ["--set", "model.image_likelihood=bernoulli", "--set", "model.image_network.channels=[32,64,128]"]


def read_twemoji(archive: Path, is_hands: bool) -> Cells:
    cells: Cells = {}
    with zipfile.ZipFile(archive) as packed:
        for row in csv.DictReader(io.TextIOWrapper(packed.open("metadata.csv"), "utf-8")):
            person = re.fullmatch(r"(man|woman) ([a-z ]+?)(?:, ([a-z-]+) skin tone)?", row["text"])
            skin = row["skin_tone"].replace("none", "yellow")
            if is_hands and re.match("hand(s|-[a-z-]+)$|body-parts", row["subcategory"]) and not set(",/") & set(skin):
                name = re.sub(", [a-z-]+ skin tone.*", "", row["text"]).lower()
                cells[re.sub("[^a-z0-9]+", "-", name).strip("-"), skin] = packed.read(row["file_name"])
            elif not is_hands and person and (job := person[2].replace(" ", "-")) in JOBS:
                cells[person[1], job, person[3] or "yellow"] = packed.read(row["file_name"])
    number = Counter(key[0] for key in cells)
    return {key: data for key, data in cells.items() if number[key[0]] >= 3}


def read_papirus(folder: Path) -> Cells:
    found: dict[str, set[str]] = {}
    for name in os.listdir(folder):
        match = re.fullmatch(r"folder-([a-z]+)-([a-z0-9]+)\.svg", name)
        if match and match[1] in COLOURS:
            found.setdefault(match[2], set()).add(match[1])
    random.seed(22)
    whole = sorted(symbol for symbol, colours in found.items() if len(colours) == len(COLOURS))
    symbols = sorted(random.sample(whole, 24))
    command = ["rsvg-convert", "-w", "64", "-h", "64"]
    return {
        (colour, symbol): subprocess.run(
            [*command, os.path.realpath(folder / f"folder-{colour}-{symbol}.svg")], capture_output=True, check=True
        ).stdout
        for symbol in symbols
        for colour in COLOURS
    }


def hold_out(cells: Cells, seed: int | None, number: int, groups: tuple[slice, ...], least: int) -> set[Key]:
    """Choose combinations such that each group keeps more than ``least``; without a seed the state is kept."""
    if seed is not None:
        random.seed(seed)
    keys, held = sorted(cells), set()
    random.shuffle(keys)
    left = [Counter(key[group] for key in keys) for group in groups]
    for key in keys:
        if len(held) < number and all(count[key[group]] > least for count, group in zip(left, groups, strict=True)):
            held.add(key)
            for count, group in zip(left, groups, strict=True):
                count[key[group]] -= 1
    return held


def hold_out_pairs(cells: Cells) -> set[Key]:
    random.seed(11)
    pairs = sorted({key[:2] for key in cells})
    random.shuffle(pairs)
    chosen: list[Key] = []
    for pair in pairs:
        if len(chosen) < 12 and pair[1] not in {one[1] for one in chosen}:
            chosen.append(pair)
    return {key for key in cells if key[:2] in chosen}


def make(name: str, source: Path, output: Path) -> None:
    cells = read_papirus(source) if name == "papirus" else read_twemoji(source, name == "hands")
    held = {
        "people": lambda: hold_out(cells, 7, 75, (slice(0, 2),), 3),
        "drawings": lambda: hold_out_pairs(cells),
        "hands": lambda: hold_out(cells, 21, len(cells) // 5, (slice(0, 1),), 3),
        "papirus": lambda: hold_out(cells, None, 84, (slice(1, 2), slice(0, 1)), 5),
    }[name]()
    columns = {"hands": ["name", "skin"], "papirus": ["colour", "kind"]}.get(name, ["who", "job", "skin"])
    for part in ("pictures", "truth"):
        (output / part).mkdir(parents=True)
        with open(output / part / "metadata.csv", "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["file_name", *columns])
            for number, key in enumerate(sorted(cells)):
                if (key in held) == (part == "truth"):
                    (output / part / f"{number:04d}.png").write_bytes(cells[key])
                    table.writerow([f"{number:04d}.png", *key])
    print(f"{len(cells)} pictures, {len(held)} held out")


def train(folder: Path, seed: int, as_before: bool) -> None:
    name = "before" if as_before else "aggregate"
    with open(folder / "pictures" / "metadata.csv") as file:
        words = next(csv.reader(file))[1:]
    commands = [["make-data", "folder", "pictures", "--size", "64", "--attributes", ",".join(words), "-o", "own.h5"]]
    commands = [] if (folder / "own.h5").exists() else commands
    commands += [] if as_before or (folder / "own-filled.h5").exists() else [["fill-gaps", "own.h5"]]
    length = ["--steps", "4000", *AS_BEFORE] if as_before else ["--steps", "1700"]
    data, model = "own.h5" if as_before else "own-filled.h5", f"{name}-model-{seed}.safetensors"
    commands.append(["train", data, "--preset", "quickstart/pictures", "--seed", str(seed), *length, "-o", model])
    fit = ["--family", "rectified-flow", "--learning-rate", "0.008", "--steps", "1000", "--seed", str(seed)]
    commands.append(
        ["fit-aggregate", model, *fit, "--set", "training.validate_every=100", "-o", f"{name}-{seed}.safetensors"]
    )
    start = os.times()
    for command in commands:
        subprocess.run(["mmgen", *command], cwd=folder, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    end = os.times()
    print(
        f"{end.children_user + end.children_system - start.children_user - start.children_system:.0f} processor seconds"
    )


def read_pictures(folder: Path) -> tuple[list[str], dict[Key, np.ndarray]]:
    with open(folder / "metadata.csv") as file:
        (_, *columns), *rows = csv.reader(file)
    found = {}
    for name, *key in rows:
        picture = Image.open(folder / name).convert("RGBA")
        ground = Image.new("RGBA", picture.size, (255, 255, 255, 255))
        ground.alpha_composite(picture)
        found[tuple(key)] = np.asarray(ground.convert("RGB"), np.float32).transpose(2, 0, 1) / 255
    return columns, found


def palette(train: dict[Key, np.ndarray], key: Key, place: int) -> np.ndarray:
    """A training picture that differs in one word, its colours mapped as between other pictures of these two words."""
    codes = {one: ((x.transpose(1, 2, 0) * 31).round().astype(int) @ (1024, 32, 1)).ravel() for one, x in train.items()}
    best: tuple[int, np.ndarray] | None = None
    for source in (one for one in train if one[:place] + one[place + 1 :] == key[:place] + key[place + 1 :]):
        number, total = np.zeros(32768), np.zeros((32768, 3))
        for one in train:
            other = (*one[:place], key[place], *one[place + 1 :])
            if one[place] == source[place] and other in train:
                number += np.bincount(codes[one], minlength=32768)
                for channel in range(3):
                    total[:, channel] += np.bincount(codes[one], train[other][channel].ravel(), 32768)
        known = number[codes[source]] > 0
        mapped = total[codes[source]] / np.maximum(number[codes[source]], 1)[:, None]
        picture = np.where(known[:, None], mapped, train[source].reshape(3, -1).T).T.reshape(train[source].shape)
        if number.any() and (best is None or (~known).sum() < best[0]):
            best = int((~known).sum()), picture
    return look_up(train, key) if best is None else best[1]


def look_up(train: dict[Key, np.ndarray], key: Key) -> np.ndarray:
    return train[max(train, key=lambda one: sum(a == b for a, b in zip(one, key, strict=True)))]


def drawer(
    folder: Path, source: str, columns: list[str], train: dict[Key, np.ndarray], wanted: Collection[Key]
) -> Callable[[Key], np.ndarray]:
    if source.startswith("lookup:"):
        place = columns.index(source.partition(":")[2])
        kin = {
            key: [one for one in train if one[:place] + one[place + 1 :] == key[:place] + key[place + 1 :]]
            for key in wanted
        }
        return lambda key: train[kin[key][0]] if kin[key] else look_up(train, key)
    if source.startswith("palette:"):
        return lambda key: palette(train, key, columns.index(source.partition(":")[2]))
    import mmgen
    from mmgen.artifacts import Dataset
    from mmgen.artifacts.elements import FILLED

    if source == "filled":
        with Dataset.open(folder / "own-filled.h5") as data:
            words = data.attributes["attributes"]
            rows = np.flatnonzero(data.read_factor(FILLED) >= 0)
            pixels, codes = data.read_pixels("image", rows), data.read_attributes("attributes", rows).tolist()
        names = [{n: v[c] for n, v, c in zip(words.names, words.values, code, strict=True)} for code in codes]
        found = {tuple(each[column] for column in columns): x for each, x in zip(names, pixels, strict=True)}
        return lambda key: found[key] if key in found else look_up(train, key)
    name, _, guidance = source.partition("@")
    model = mmgen.load(folder / name)
    model = model.guided(guidance) if guidance else model
    return lambda key: np.asarray(model.sample(dict(zip(columns, key, strict=True)), 1, seed=0)[0].cpu())


def score(folder: Path, sources: list[str], sheet: Path | None) -> None:
    columns, train = read_pictures(folder / "pictures")
    _, truth = read_pictures(folder / "truth")
    every = train | truth
    names, pixels = list(every), np.stack(list(every.values())).reshape(len(every), -1)
    shown = list(truth)[:: max(1, len(truth) // 12)][:12]
    rows = [[truth[key] for key in shown]]
    for source in sources:
        draw, start = drawer(folder, source, columns, train, list(truth)), time.process_time()
        drawn = {key: draw(key) for key in truth}
        seconds = time.process_time() - start
        noise = [-10 * np.log10(((drawn[key] - x) ** 2).mean() + 1e-10) for key, x in truth.items()]
        nearest = {key: names[int(((pixels - x.reshape(1, -1)) ** 2).sum(1).argmin())] for key, x in drawn.items()}
        right = np.mean([[a == b for a, b in zip(near, key, strict=True)] for key, near in nearest.items()], 0)
        weave = []
        for key, x in truth.items():
            even = np.max([maximum_filter(c, 5) - minimum_filter(c, 5) for c in x], 0) < 0.02
            fine = drawn[key] - np.stack([uniform_filter(c, 3) for c in drawn[key]])
            weave += [(fine[:, even] ** 2).mean()] if even.any() else []
        words = ", ".join(f"{column} {100 * share:.0f}" for column, share in zip(columns, right, strict=True))
        kin = [key[:2] if len(key) > 2 else key for key in truth]  # skins of one person and job are one answer
        by_kin = [np.mean([n for n, k in zip(noise, kin, strict=True) if k == one]) for one in dict.fromkeys(kin)]
        print(
            f"{source}: {np.mean(noise):.2f} ± {np.std(by_kin, ddof=1) / len(by_kin) ** 0.5:.2f} dB, truth nearest in "
            f"{100 * np.mean([near == key for key, near in nearest.items()]):.1f} % of {len(truth)} ({words}), weave "
            f"{255 * np.mean(weave) ** 0.5:.2f}, {seconds:.0f} s",
            flush=True,
        )
        rows.append([drawn[key] for key in shown])
    if sheet:
        page = np.concatenate([np.concatenate(row, 2) for row in rows], 1).transpose(1, 2, 0)
        image = Image.fromarray((page.clip(0, 1) * 255).round().astype(np.uint8))
        image.resize((2 * image.width, 2 * image.height), Image.Resampling.NEAREST).save(sheet)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("set", choices=["people", "drawings", "hands", "papirus"])
    making.add_argument("source", type=Path)
    making.add_argument("-o", "--output", type=Path, required=True)
    training, scoring = commands.add_parser("train"), commands.add_parser("score")
    for each in (training, scoring):
        each.add_argument("folder", type=Path)
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--as-before", action="store_true")
    scoring.add_argument("sources", nargs="+")
    scoring.add_argument("--sheet", type=Path)
    asked = parser.parse_args()
    if asked.command == "make":
        make(asked.set, asked.source, asked.output)
    elif asked.command == "train":
        train(asked.folder, asked.seed, asked.as_before)
    else:
        score(asked.folder, asked.sources, asked.sheet)


if __name__ == "__main__":
    main()
