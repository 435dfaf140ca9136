"""Conditional VAEs with a prior N(0, I), a learned Gaussian or a learned mixture, beside densities fitted afterwards.

    python benchmarks/conditional_vaes.py FOLDER DATA [--seeds 0,1,2] [--trial-steps 700] [--toml FILE] [--trials]

DATA is shapes, digits or letters (FOLDER/letters.h5 must be there). Each prior has five pulls (weights of the
divergence), trained for ``--trial-steps`` with seed 0. Of those whose mean of "all words right" and recall is within
one standard error of the highest, on validation descriptions by a judge that judges nothing else, the one with the
sharpest pictures is trained at full length with each seed. Those are asked on the test part by the quickstart's two
judges and two further ones. What is in FOLDER is not made again.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from words_first import Line, cell, markdown, pick

PRIORS = {"N(0, I)": [], "learned Gaussian": ["model.prior={}"], "learned mixture": ["model.prior.components=10"]}
PULLS = ("0.1", "0.3", "1", "3", "10")
DATA: dict[str, dict[str, Any]] = {
    "shapes": {
        "make": ["shapes", "--number", "6000"],
        "preset": "shapes", "steps": 1500, "judge": (250, 500), "given": (4, 2),
    },
    "digits": {
        "make": ["mnist-a", "--source", "digits", "--size", "32", "--grey", "--copies", "40"],
        "preset": "digits", "steps": 4500, "judge": (1000, 1000), "given": (4, 3),
    },
    "letters": {"preset": "pictures", "steps": 2300, "judge": (1000, 1000), "given": (5, 3)},
}  # fmt: skip
JUDGES = {  # file, network, seed
    "judge": ("small", 0), "second-judge": ("encoder", 1), "third-judge": ("attentive", 2),
    "fourth-judge": ("small", 3), "trial-judge": ("encoder", 7),
}  # fmt: skip
ASKED = {  # the first of its judges -> all of them, metrics
    "judge": (("judge", "second-judge"), ("correctness", "coverage", "recall", "agreement")),
    "third-judge": (("third-judge", "fourth-judge"), ("correctness", "recall")),
    "trial-judge": (("trial-judge",), ("correctness", "recall")),
}


class Bench:
    """The files of one set of data, made where they are missing."""

    def __init__(self, folder: Path, data: str) -> None:
        self.folder, self.data, self.settings = folder, data, DATA[data]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "seconds.json"
        self.seconds: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}

    def make(self, name: str, *command: str) -> Path:
        """Run ``mmgen ... -o name`` unless the file is there; note its processor seconds."""
        path = self.folder / name
        if not path.exists():
            print("mmgen", *command, "-o", name, file=sys.stderr, flush=True)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [sys.executable, "-m", "mmgen", *command, "-o", str(path)], check=True, stdout=subprocess.DEVNULL,
                stderr=(self.folder / "log.txt").open("a"), env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.seconds[name] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            (self.folder / "seconds.json").write_text(json.dumps(self.seconds, indent=1))
        return path

    def make_data(self) -> None:
        self.dataset = f"{self.data}.h5"
        if "make" in self.settings:
            self.make(self.dataset, "make-data", *self.settings["make"], "--seed", "0")

    def train_judges(self, *names: str) -> None:
        steps = self.settings["judge"]
        for name in names:
            network, seed = JUDGES[name]
            count = 400 if network == "attentive" else steps[network == "encoder"]
            further = ["--batch", "64", "--set", "training.warmup_steps=30"] if network == "encoder" else []
            self.make(
                f"{name}.safetensors", "train-classifier", str(self.folder / self.dataset), "--network", network,
                *further, "--steps", str(count), "--set", "training.validate_every=50", "--seed", str(seed),
            )  # fmt: skip

    def train(self, name: str, steps: int, seed: int, *settings: str) -> Path:
        words = [word for each in settings for word in ("--set", each)]
        return self.make(
            f"{name}.safetensors", "train", str(self.folder / self.dataset), "--preset",
            f"quickstart/{self.settings['preset']}", *words, "--steps", str(steps), "--seed", str(seed),
        )  # fmt: skip

    def train_conditional(self, name: str, steps: int, seed: int, prior: str, pull: str) -> Path:
        of_objective = ["objective={name='cvae'}", "objective.hidden_share=0.1", f"objective.beta={pull}"]
        return self.train(name, steps, seed, "objective.kl_warmup_steps=300", *of_objective, *PRIORS[prior])

    def fit(self, name: str, model: Path, family: str, seed: int) -> Path:
        rate = "0.008" if family == "rectified-flow" else "0.002"
        return self.make(
            f"{name}.safetensors", "fit-aggregate", str(model), "--family", family, "--steps", "1000",
            "--set", f"training.learning_rate={rate}", "--seed", str(seed),
        )  # fmt: skip

    def ask(self, model: Path, part: str, first: str, draws: int) -> tuple[list[Line], list[str]]:
        """Return the score lines of a model, and names of the judges: of the fitted density, else of the prior."""
        judges, metrics = ASKED[first]
        posterior = "aggregate" if "-then-" in model.name else "prior"
        words = [word for judge in judges for word in ("--judge", str(self.folder / f"{judge}.safetensors"))]
        words += [word for metric in metrics for word in ("-m", metric)]
        out = self.make(
            f"{model.stem}-{part}-{first}.jsonl", "eval", str(model), "-p", posterior, *words, "--part", part,
            "--given-count", ",".join(map(str, self.settings["given"])), "--draws", str(draws), "--queries", "40",
        )  # fmt: skip
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        return lines, list(dict.fromkeys(line["judge"] for line in lines if line.get("judge")))


def choose(bench: Bench, steps: int) -> tuple[dict[str, str], list[list[str]]]:
    """Return the pull of each prior that validation descriptions choose, and the table of trials."""
    bench.train_judges("trial-judge")
    chosen, rows, (every, part) = {}, [], bench.settings["given"]
    for number, prior in enumerate(PRIORS):
        found = {}
        for pull in PULLS:
            model = bench.train_conditional(f"trial-{number}-{pull}", steps, 0, prior, pull)
            lines, judge = bench.ask(model, "val", "trial-judge", 12)
            right, recall = pick(lines, "correctness", every, 0, judge), pick(lines, "recall", part, 0, judge)
            assert right is not None and recall is not None
            whole, its_error = right["details"]["all_right"], right["details"]["all_right_stderr"]
            mean, error = (whole + recall["value"]) / 2, float(np.hypot(its_error, recall["stderr"])) / 2
            sharp = look(bench, model, ("trial-judge",), 2)["sharpness"]
            found[pull] = (mean, error, sharp[0])
            cells = [f"{whole:.1f} ± {its_error:.1f}", cell([recall]), f"{mean:.1f} ± {error:.1f}", f"{sharp[0]:.1f}"]
            rows.append([prior, pull, *cells])
        best, error, _ = max(found.values())
        good = [pull for pull, (mean, *_) in found.items() if mean >= best - error]
        chosen[prior] = max(good, key=lambda pull: found[pull][2])
    return chosen, rows


def look(bench: Bench, model: Path, judges: tuple[str, ...], count: int) -> dict[str, Any]:
    """Draw every whole description; return sharpness (%, ±), and the worst pair of words by each judge."""
    out = bench.folder / f"{model.stem}-pictures-{judges[0]}.json"
    if not out.exists():
        import torch

        import mmgen
        from mmgen.artifacts import Dataset
        from mmgen.classifier import load_classifier

        with Dataset.open(bench.folder / bench.dataset) as data:
            info, image = next(iter(data.attributes.values())), next(iter(data.images))
            rows = np.arange(len(data))
            codes = data.read_attributes(info.name, rows)
            energies = np.concatenate([laplacian(data.read_pixels(image, part)) for part in np.array_split(rows, 60)])
        whole, which = np.unique(codes, axis=0, return_inverse=True)
        kept = np.flatnonzero((whole != 255).all(1))
        kept = kept[np.linspace(0, len(kept) - 1, min(288, len(kept))).round().astype(int)]
        loaded = mmgen.load(model)
        posterior = "aggregate" if "-then-" in model.name else "prior"
        drawn = []
        for one in kept:
            words = " ".join(f"{n}={v[c]}" for n, v, c in zip(info.names, info.values, whole[one], strict=True))
            drawn.append(np.asarray(loaded.sample(words, n=count, posterior=posterior, seed=0)))
        pictures = np.stack(drawn)
        flat = pictures.reshape(-1, *pictures.shape[2:])
        ours = laplacian(flat).reshape(len(kept), count).mean(1)
        real = np.array([energies[which.reshape(-1) == one].mean() for one in kept])
        share = ours.sum() / real.sum()
        error = np.sqrt(((ours - share * real) ** 2).sum()) / real.sum()
        found: dict[str, Any] = {"sharpness": [100 * share, 100 * error], "worst": []}
        asked = np.repeat(whole[kept], count, 0)
        for judge in judges:
            seen = load_classifier(bench.folder / f"{judge}.safetensors").predict(torch.from_numpy(flat)).numpy()
            found["worst"].append(worst_pair(asked, seen == asked, info))
        out.write_text(json.dumps(found))
    result: dict[str, Any] = json.loads(out.read_text())
    return result


def laplacian(pictures: np.ndarray) -> np.ndarray:
    """Return the mean squared Laplacian of each picture [N, C, H, W] in [0, 1]."""
    x = np.asarray(pictures, np.float64) / (255 if pictures.dtype == np.uint8 else 1)
    inner = x[..., 1:-1, 1:-1]
    around = x[..., :-2, 1:-1] + x[..., 2:, 1:-1] + x[..., 1:-1, :-2] + x[..., 1:-1, 2:]
    return np.asarray(((around - 4 * inner) ** 2).mean((1, 2, 3)))


def worst_pair(asked: np.ndarray, right: np.ndarray, info: Any) -> list[Any]:
    """Return the pair of words whose pictures show both least often: words, %, number of pictures."""
    worst: list[Any] = ["", 101.0, 0]
    for one, other in itertools.combinations(range(asked.shape[1]), 2):
        for a, b in itertools.product(range(len(info.values[one])), range(len(info.values[other]))):
            rows = (asked[:, one] == a) & (asked[:, other] == b)
            if rows.sum() and (share := 100 * float(right[rows][:, [one, other]].all(1).mean())) < worst[1]:
                worst = [f"{info.values[one][a]} {info.values[other][b]}", share, int(rows.sum())]
    return worst


def finals(bench: Bench, chosen: dict[str, str], seeds: list[int]) -> dict[str, list[Path]]:
    """Train the chosen rows at full length, with each seed; return files by row."""
    steps: int = bench.settings["steps"]
    rows: dict[str, list[Path]] = {}
    for seed in seeds:
        for number, (prior, pull) in enumerate(chosen.items()):
            model = bench.train_conditional(f"cvae-{number}-{pull}-{seed}", steps, seed, prior, pull)
            rows.setdefault(f"conditional VAE, prior {prior}, pull {pull}", []).append(model)
        weak = bench.train_conditional(f"cvae-0-0.1-{seed}", steps, seed, "N(0, I)", "0.1")
        joint = bench.train(f"joint-{seed}", steps, seed)
        for of, model in (("conditional VAE, prior N(0, I), pull 0.1", weak), ("joint model (preset)", joint)):
            for family in ("full-gaussian", "rectified-flow"):
                fitted = bench.fit(f"{model.stem}-then-{family}", model, family, seed)
                rows.setdefault(f"{of}, {family} afterwards", []).append(fitted)
    return rows


def tables(bench: Bench, rows: dict[str, list[Path]]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Ask and look at every row; return tables as title, heading and cells."""
    bench.train_judges(*(name for name in JUDGES if name != "trial-judge"))
    every, part = bench.settings["given"]
    asked, open_words, looks = [], [], []
    for name, models in rows.items():
        answers = {first: [bench.ask(each, "test", first, 24) for each in models] for first in ("judge", "third-judge")}

        def by_judge(quantity: str, given: int, count: int = 4, answers: dict[str, Any] = answers) -> list[str]:
            return [
                cell([pick(lines, quantity, given, judge, names) for lines, names in each])
                for each in answers.values() for judge in (0, 1)
            ][:count]  # fmt: skip

        asked.append([name, *by_judge("correctness", every), *by_judge("correctness", part)])
        alike = by_judge("agreement", part, 1)
        open_words.append([name, *by_judge("recall", part), *by_judge("coverage", part, 2), *alike])
        seen = [look(bench, each, ASKED["judge"][0], 4) for each in models]
        shares, errors = zip(*(each["sharpness"] for each in seen), strict=True)
        pairs = [
            "; ".join("{} {:.0f} of {}".format(*each["worst"][judge]) for each in seen) for judge in (0, 1)
        ]  # fmt: skip
        parts = [{f"{each.stem.split('-then-')[0]}.safetensors", each.name} for each in models]
        seconds = "/".join(f"{sum(bench.seconds.get(one, 0) for one in each):.0f}" for each in parts)
        looks.append([name, "/".join(f"{each:.0f}" for each in shares) + f" ± {np.mean(errors):.1f}", *pairs, seconds])
    judges = [f"judge {number + 1}" for number in range(4)]
    recalls = [f"recall, {judge}" for judge in judges]
    covers = ["coverage, judge 1", "coverage, judge 2", "judges 1 and 2 agree"]
    pairs = ["worst pair of words, judge 1, %", "judge 2, %", "processor seconds, model and fit"]
    return [
        ("Right, %", ["drawn from", *(f"{g} given, {judge}" for g in (every, part) for judge in judges)], asked),
        (f"What is left open, {part} given, %", ["drawn from", *recalls, *covers], open_words),
        ("Every whole description, four pictures each", ["drawn from", "sharpness, % of real", *pairs], looks),
    ]


def as_toml(data: str, found: list[tuple[str, list[str], list[list[str]]]]) -> str:
    """Return tables as in files of benchmarks/results."""

    def listed(values: list[str]) -> str:
        return "[" + ", ".join(json.dumps(value, ensure_ascii=False) for value in values) + "]"

    parts = []
    for about, columns, cells in found:
        rows = "".join(f"  {listed(row)},\n" for row in cells)
        head = f'[[table]]\ntitle = "{data.capitalize()}"\nabout = {json.dumps(about, ensure_ascii=False)}\n'
        parts.append(f"{head}columns = {listed(columns)}\nrows = [\n{rows}]\n")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("data", choices=DATA)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--trial-steps", type=int, default=700)
    parser.add_argument("--trials", action="store_true", help="end after the choice of pulls")
    parser.add_argument("--toml", type=Path, help="write the tables there too, as in benchmarks/results")
    options = parser.parse_args()
    bench = Bench(options.folder, options.data)
    bench.make_data()
    chosen, trials = choose(bench, options.trial_steps)
    columns = ["prior", "pull", "all words right, %", "recall, %", "mean", "sharpness, %"]
    title = f"Trials: {options.trial_steps} steps, seed 0, validation descriptions, a judge of its own"
    found = [(title, columns, trials)]
    if not options.trials:
        found += tables(bench, finals(bench, chosen, [int(seed) for seed in options.seeds.split(",")]))
    for about, head, cells in found:
        print(f"**{about}**\n\n{markdown(head, cells)}\n")
    if options.toml is not None:
        options.toml.write_text(as_toml(bench.data, found))


if __name__ == "__main__":
    main()
