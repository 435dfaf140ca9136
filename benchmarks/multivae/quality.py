"""Time to quality: processor seconds until words are right and what is left open varies, mmgen beside MultiVae 1.0.3.

Both sides train on the digits of the quickstart and are asked for the same descriptions; the same judges read their
pictures. MultiVae's words are one modality: it is given whole descriptions, in which the words left open are drawn
as mmgen draws them. Settings are chosen on validation data by trials of equal length; ``quality.sh`` makes both
environments and calls this. Finished runs are rows of ``rows-SEED.jsonl``, and a run that is there is not done again.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from compare import HERE, MULTIVAE_PYTHON, Row, say, table
from exam import ATTRIBUTES, SPLIT, WHOLE, Exam
from networks import mmgen_settings

import mmgen
from mmgen.artifacts import Dataset
from mmgen.generation import TrainedModel
from mmgen.posteriors import Guidance

CORRECT, COVERED = (60, 70, 80, 90), (80, 90, 95)
RATES = (5e-4, 1e-3, 2e-3)
MARKS = (5, 7.5, 10, 15, 20, 30, 40, 60, 80, 120, 160, 220, 300, 400, 600)
SHARES = (1 / 18, 1 / 9, 2 / 9, 4 / 9, 1.0)
"""Lengths of mmgen's runs with a schedule, in those of the quickstart."""
QUICKSTART = 120
"""Processor seconds of the whole quickstart's model and fit, about."""
PASSES = {"warmup": (1, 3, 7, 15), "epochs": (2, 4, 5, 8, 16, 32)}
"""Passes over the data, as far as the limit goes: of JNF's first stage, whose second has as many, and of a whole run
with a cosine schedule."""
SHARP = {"beta": 0.1, "words": 30.0}
"""mmgen's usual weights, which every side may take instead of its own."""
OWN_WEIGHTS = {
    "MVTCAE": {"beta": 2.5, "alpha": 5 / 6, "words": 25.6},
    "MMVAE+": {"beta": 2.5, "words": 25.6},
    "JNF": {"beta": 1.0, "words": 25.6},
}
"""Those of MultiVae's own examples; words weigh what its rule gives them, the pixels over the size of their codes."""


def draw_theirs(exam: Exam, options: argparse.Namespace, setting: Row, marks: list[float]) -> Iterator[Row]:
    """Train a model of MultiVae and yield a row at each mark of processor seconds.

    What has stages or a schedule is trained at several lengths, each told beforehand.
    """
    if name := setting.get("lengths"):
        setting = {key: value for key, value in setting.items() if key != "lengths"} | {"limit": marks[-1]}
        asked = [math.inf] if name == "epochs" else marks  # half a schedule is no result
        for passes in PASSES[name] if len(marks) > 1 else PASSES[name][:1]:
            rows = list(draw_theirs(exam, options, {**setting, name: passes}, asked))
            yield from rows
            if not rows or rows[-1]["seconds"] >= marks[-1]:  # a longer one would be stopped at the limit
                return
        return
    folder, data = options.folder, options.folder / f"theirs-{len(exam.asked)}.npz"
    with Dataset.open(folder / "digits.h5") as opened:
        rows = opened.split(SPLIT, "train")
        np.savez(
            data,
            images=opened.read_image("image", rows),
            codes=opened.read_attributes(ATTRIBUTES, rows),
            values=np.array(opened.attributes[ATTRIBUTES].sizes),
            asked=exam.asked,
        )
    with tempfile.TemporaryDirectory() as drawn:
        request = {
            "network": "digits",
            "batch": options.batch,
            "seed": options.seed,
            "marks": marks,
            "limit": marks[-1],
            **setting,
        }
        request |= {"data": str(data), "folder": drawn}
        process = subprocess.Popen(
            [os.environ.get("MULTIVAE_PYTHON", MULTIVAE_PYTHON), HERE / "their_quality.py"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=(folder / "multivae.log").open("a"),
            text=True, cwd=HERE,
        )  # fmt: skip
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        for line in process.stdout:
            row = json.loads(line)
            pictures = np.load(row.pop("pictures"))
            np.save(folder / f"pictures-{setting['model']}.npy", pictures[: len(exam.whole) * WHOLE : WHOLE])
            yield {"z": "own", **row, **exam.of_pictures(pictures)}
        if process.wait():
            sys.exit(f"MultiVae's side ended with {process.returncode}; its messages are in {folder / 'multivae.log'}")


class Clock:
    """Processor seconds spent inside of ``with`` blocks."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._began


def fit(clock: Clock, model: Path, steps: int, out: Path, options: argparse.Namespace) -> TrainedModel:
    """Fit q_agg as the quickstart does."""
    with clock:
        return mmgen.fit_aggregate(
            model, out, family="rectified-flow", steps=steps, learning_rate=0.008, seed=options.seed,
            device="cpu", overwrite=True,
            settings={"training.validate_every": 1000, "training.validation_examples": 256},
        )  # fmt: skip


def draw_mvtcae(exam: Exam, options: argparse.Namespace, setting: Row, marks: list[float]) -> Iterator[Row]:
    """Train mmgen's mvtcae as MultiVae trains its own and yield a row at each mark; q_agg at every second one."""
    clock, model, done, pace = Clock(), options.folder / "mvtcae.safetensors", 0, 0.0
    for path in options.folder.glob("mvtcae.*"):
        path.unlink()
    training = {"validation_examples": 64, "validate_every": 10**6, "keep": "last"}
    objective = {"name": "mvtcae", "alpha": setting["alpha"], "beta": setting["beta"]}
    settings = {
        "model": mmgen_settings("digits"),
        "objective": objective | {"attributes_weight": setting["words"], "kl_warmup_steps": 0},
        "data": {"split": SPLIT},
        "training": training,
    }
    for number, mark in enumerate(marks):
        steps = done + max(1, round((mark - clock.seconds) / pace)) if pace else 60
        while True:
            with clock:
                loaded = mmgen.train(
                    options.folder / "digits.h5", model, steps=steps, batch=options.batch, device="cpu",
                    learning_rate=setting["learning_rate"], precision=setting["precision"], seed=options.seed,
                    settings=settings, keep_state=True,
                )  # fmt: skip
            pace, done = clock.seconds / steps, steps
            if clock.seconds > 0.9 * mark:
                break
            steps = done + max(1, round((mark - clock.seconds) / pace))
        row = {"seconds": clock.seconds, "steps": steps}
        yield {"z": "own", **row, **exam.of_model(loaded, "own")}
        if len(marks) > 1 and number % 2:
            fitting = Clock()
            fitted = fit(fitting, model, 300, options.folder / "mvtcae-aggregate.safetensors", options)
            row["seconds"] = clock.seconds + fitting.seconds
            yield {"z": "q_agg", **row, "fit": fitting.seconds, **exam.of_model(fitted, "aggregate")}


def draw_quickstart(exam: Exam, options: argparse.Namespace, setting: Row, marks: list[float]) -> Iterator[Row]:
    """Run the quickstart's model and fit at several lengths, each with a schedule of its own, within the last mark."""
    same = {} if setting["network"] == "quickstart" else {"model": mmgen_settings(setting["network"])}
    for share in SHARES if len(marks) > 1 else (setting["share"],):
        clock, steps = Clock(), round(4500 * share)
        model, fitted = (options.folder / f"{setting['network']}-{name}.safetensors" for name in ("model", "aggregate"))
        shorter = {
            "objective": {"kl_warmup_steps": round(500 * share)},
            "training": {"warmup_steps": round(100 * share), "validation_examples": 64, "validate_every": 10**6},
        }
        with clock:
            mmgen.train(
                options.folder / "digits.h5", model, preset="quickstart/digits", steps=steps, device="cpu",
                learning_rate=setting["learning_rate"], seed=options.seed, split=SPLIT, overwrite=True,
                settings={**shorter, **same},
            )  # fmt: skip
        training = clock.seconds
        loaded = fit(clock, model, max(150, round(1000 * share)), fitted, options)
        if clock.seconds > marks[-1]:
            return
        row = {"seconds": clock.seconds, "steps": steps, "fit": clock.seconds - training}
        yield {"z": "q_agg", **row, **exam.of_model(loaded, "aggregate")}
        if len(marks) > 1:
            yield {"z": "q_agg, guided", **row, **exam.of_model(loaded.guided(Guidance.parse(3), 0), "aggregate")}


def prepare(folder: Path) -> None:
    """Import and compile what a first training needs: neither side's imports are timed."""
    with tempfile.TemporaryDirectory() as name:
        model = Path(name, "model.safetensors")
        settings = {"training.validation_examples": 64}
        mmgen.train(folder / "digits.h5", model, preset="quickstart/digits", steps=1, device="cpu", settings=settings)
        mmgen.fit_aggregate(model, family="rectified-flow", steps=1, examples=64, device="cpu", settings=settings)


@dataclass(frozen=True)
class Method:
    """A model of one side: how it is trained, and the settings of which trials choose, weights first and rates then.

    Attributes:
        draw: Trains it, and yields a row at each mark.
        weights: Settings to choose from, tried with the middle learning rate.
        rates: Learning rates to choose from.
        like: Another method, whose chosen settings it takes where it has none of its own.
    """

    draw: Callable[[Exam, argparse.Namespace, Row, list[float]], Iterator[Row]]
    weights: list[Row]
    rates: tuple[float, ...] = RATES
    like: str = ""

    def choose(self, begun: Row, score: Callable[[Row], float]) -> Row:
        """Return the settings with the best score of a trial, over those that ``like`` has chosen."""
        tried = [{"learning_rate": RATES[1], **begun, **weights} for weights in self.weights]
        best = max(tried, key=score) if len(tried) > 1 else tried[0]
        return max(({**best, "learning_rate": rate} for rate in self.rates), key=score) if self.rates else best


def theirs(model: str) -> Method:
    """Return a model of MultiVae, with its own weights and with mmgen's."""
    own = {"model": model, **OWN_WEIGHTS[model], **({"lengths": "warmup"} if model == "JNF" else {})}
    return Method(draw_theirs, [own, own | SHARP])


METHODS = {
    "MultiVae MVTCAE": theirs("MVTCAE"),
    "mmgen quickstart": Method(draw_quickstart, [{"network": "quickstart"}]),
    "MultiVae MMVAE+": theirs("MMVAE+"),
    "MultiVae MVTCAE, cosine": Method(draw_theirs, [{"lengths": "epochs"}], (), "MultiVae MVTCAE"),
    "mmgen mvtcae": Method(draw_mvtcae, [{"precision": "32-true"}], (), "MultiVae MVTCAE"),
    "MultiVae JNF": theirs("JNF"),
    "mmgen quickstart, same networks": Method(draw_quickstart, [{"network": "digits"}], (), "mmgen quickstart"),
    "mmgen mvtcae, auto": Method(draw_mvtcae, [{"precision": "auto"}], (), "MultiVae MVTCAE"),
}
"""mmgen's mvtcae has the loss, networks and settings of MultiVae's: what differs is the tool."""


class Book:
    """Rows of finished runs, by name of the run."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, dict[str, list[Row]]()
        for line in path.read_text().splitlines() if path.exists() else ():
            run = json.loads(line)
            self.rows[run["run"]] = run["rows"]

    def rows_of(self, name: str, run: Iterator[Row]) -> list[Row]:
        """Return the rows of a run, which is done if it is not in the book."""
        if name not in self.rows:
            rows = []
            for row in run:
                say(f"{name}: {json.dumps(row)}")
                rows.append(row)
            self.rows[name] = rows
            with self.path.open("a") as file:
                file.write(json.dumps({"run": name, "rows": rows}) + "\n")
        return self.rows[name]


def first_within(rows: list[Row], score: str, least: float) -> str:
    """Return the processor seconds of the first row that reaches a score; "-" if none does."""
    reached = [row["seconds"] for row in rows if row[score][0] >= least]
    return f"{min(reached):.0f}" if reached else "-"


def tables(found: dict[str, list[Row]], limit: float) -> str:
    """Seconds to each threshold by either judge, and the best of each."""
    head = ["", "z from", *(f"{least} % right" for least in CORRECT), *(f"{least} % covered" for least in COVERED)]
    lines = []
    for judge in (1, 2):
        cells = []
        for name, rows in found.items():
            for z in dict.fromkeys(row["z"] for row in rows):
                those = [row for row in rows if row["z"] == z]
                best = (
                    max(those, key=lambda row: row[score][0])[score]
                    for score in (f"correct {judge}", f"coverage {judge}")
                )
                cells.append(
                    [name, z]
                    + [first_within(those, f"correct {judge}", least) for least in CORRECT]
                    + [first_within(those, f"coverage {judge}", least) for least in COVERED]
                    + [f"{value:.1f} ± {error:.1f}" for value, error in best]
                )
        lines += [f"Processor seconds by judge {judge}; -: not within {limit:.0f} s", ""]
        lines += [*table([*head, "best right, %", "best covered, %"], cells), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="digits.h5 and both judges, as the quickstart of digits makes them")
    parser.add_argument("--limit", type=float, default=600, help="processor seconds of a run")
    parser.add_argument("--trial", type=float, default=100, help="processor seconds of a trial")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=METHODS, help="this method; repeatable")
    options = parser.parse_args()
    torch.set_num_threads(1)
    prepare(options.folder)
    book = Book(options.folder / f"rows-{options.seed}.jsonl")
    val, test = (Exam(options.folder, part) for part in ("val", "test"))
    chosen: dict[str, Row] = {"": {}}
    found = {}
    marks = [mark for mark in MARKS if mark <= options.limit]
    for name, method in METHODS.items():
        if name not in (options.only or METHODS):
            continue

        def score(setting: Row, name: str = name, method: Method = method) -> float:
            asked = {**setting, "share": options.trial / QUICKSTART}
            rows = book.rows_of(
                f"trial {name} {json.dumps(setting)}", method.draw(val, options, asked, [options.trial])
            )
            return float(rows[-1]["correct 1"][0])

        chosen[name] = method.choose(chosen[method.like], score)
        say(f"{name}: {json.dumps(chosen[name])}")
        found[name] = book.rows_of(name, method.draw(test, options, chosen[name], marks))
        print(tables(found, options.limit), flush=True)


if __name__ == "__main__":
    main()
