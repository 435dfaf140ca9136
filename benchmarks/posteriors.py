"""Every way from words to pictures over several seeds: the prior, q_true at each weight, q_agg, and guided ones.

p(z) is guided as well, by the same candidates without any fit; at w = 1 that is the model's exact p(z given words).

    python benchmarks/posteriors.py mnist-a.h5 runs/ --judge judge.safetensors --preset cremer/elbo-mnist-a-cpu

For each seed a model is trained; q_true is fitted with each text weight, and q_agg and the learned prior q(z) with the
same family, size and steps; all are scored by the same judge. ``{seed}`` in the paths of dataset and judge stands for
the seed. What is already there is not made again, so an interrupted run continues. Choose weights with ``--part val``,
another judge than the one that reports, and seeds of their own. The tables go to stdout as Markdown: means over seeds
± their standard deviation, and differences paired by seed.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Line = dict[str, Any]
BASES = ("aggregate", "learned-prior")
METRICS = ("correctness", "coverage", "precision", "recall", "fid")


def mmgen(*arguments: str) -> None:
    """Run one command; its stdout is a path or lines that were written to a file as well."""
    print("mmgen", *arguments, flush=True)
    subprocess.run(["mmgen", *arguments], stdout=subprocess.DEVNULL, check=True)


def make(path: Path, *arguments: str) -> Path:
    """Run a command that makes a file, unless the same command has made it already; return its path."""
    note, command = path.with_name(f"{path.name}.made-by"), shlex.join(arguments)
    if not path.exists():
        mmgen(*arguments, "-o", str(path))
        note.write_text(command)
    elif not note.exists() or note.read_text() != command:
        sys.exit(f"{path} was not made by: mmgen {command}; remove it, or take another folder")
    return path


def fitted(
    folder: Path, model: Path, weights: Iterable[str], seed: int, steps: int, bases: list[str]
) -> dict[str, Path]:
    """Everything that is fitted to a model, by the name of its file."""
    common = ("--steps", str(steps), "--seed", str(seed))
    files = {
        f"true-{weight}": make(
            folder / f"true-{weight}.safetensors",
            "fit-aggregate", str(model), "--target", "true", "--text-weight", weight, *common,
        )
        for weight in weights
    }  # fmt: skip
    for base, options in (("aggregate", ()), ("learned-prior", ("--given", "nothing"))):
        if base in bases:
            files[base] = make(folder / f"{base}.safetensors", "fit-aggregate", str(model), *options, *common)
    return files


def scores_of_seed(arguments: argparse.Namespace, seed: int) -> list[Line]:
    """All score lines of one seed."""
    folder: Path = arguments.folder / f"seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    dataset, judge = (str(path).replace("{seed}", str(seed)) for path in (arguments.dataset, arguments.judge))
    extra = [word for setting in arguments.set for word in ("--set", setting)]
    model = make(
        folder / "model.safetensors", "train", dataset, "--preset", arguments.preset, *extra, "--seed", str(seed)
    )
    files = fitted(folder, model, arguments.text_weights, seed, arguments.fit_steps, arguments.bases)
    guided = [word for weight in arguments.guidance for word in ("--guidance", weight)]
    questions = {name: (str(path), []) for name, path in files.items()}
    questions["prior"] = (str(model), ["--posterior", "prior"])
    weights = dict.fromkeys(["1", *(weight for weight in arguments.guidance if ":" not in weight)])
    questions["guided-prior"] = (
        str(model), ["--posterior", "prior", *(word for weight in weights for word in ("--guidance", weight))]
    )  # fmt: skip
    for base in arguments.bases:
        questions[f"guided-{base}"] = (str(files[base]), guided)
    if arguments.own:
        questions["own"] = (str(model), ["--posterior", "own"])
        questions["guided-own"] = (str(model), ["--posterior", "own", *guided])
    measured = [word for metric in arguments.metrics for word in ("--metric", metric)]
    lines: list[Line] = []
    for name, (path, options) in questions.items():
        out = make(
            folder / f"{name}-{arguments.part}-{Path(judge).stem}.jsonl",
            "eval", path, *options, *measured, "--judge", judge, "--part", arguments.part, "--seed", str(seed),
            "--given-count", arguments.given_count, "--draws", str(arguments.draws),
        )  # fmt: skip
        lines += [{"question": name} | json.loads(line) for line in out.read_text().splitlines()]
    return lines


def label(line: Line) -> str:
    """Return the label of a line's posterior for the rows of tables."""
    if line["question"] == "guided-prior" and line["guidance"] == 1:
        return "exact p(z given words)"
    weight = f" w={line['guidance']:g}" if line.get("guidance") else ""
    weight += f", {method}" if (method := line.get("guidance_method")) else ""
    return f"{line['question']}{weight}"


def column(line: Line) -> str:
    return f"{line['quantity']}, {line['given']} given" if line.get("given") is not None else str(line["quantity"])


def spread(values: list[float]) -> str:
    """Mean ± standard deviation over seeds."""
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else "-"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def tables(by_seed: dict[int, list[Line]]) -> str:
    """Values over seeds, and how much each guided posterior is above each q_true, seed by seed."""
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    columns: dict[str, None] = {}
    for seed, lines in by_seed.items():
        for line in lines:
            if line["value"] is not None and line["protocol"] != "paper":
                found[label(line)][column(line)][seed] = line["value"]
                columns[column(line)] = None
    rows = [[name, *(spread(list(cells[c].values())) for c in columns)] for name, cells in found.items()]
    parts = [f"{len(by_seed)} seeds, mean ± standard deviation", markdown(["drawn from", *columns], rows)]
    differences = []
    for one in (name for name in found if name.startswith("guided") or name == "aggregate"):
        for other in (name for name in found if name.startswith("true")):
            cells = []
            for c in columns:
                shared = found[one][c].keys() & found[other][c].keys()
                cells.append(spread([found[one][c][seed] - found[other][c][seed] for seed in sorted(shared)]))
            differences.append([f"{one} minus {other}", *cells])
    parts += ["Differences, paired by seed", markdown(["", *columns], differences), effective(by_seed)]
    return "\n\n".join(parts)


def effective(by_seed: dict[int, list[Line]]) -> str:
    """How many candidates count: of a draw, or in a pool, whose draws repeat where that is not above their number."""
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for line in (line for lines in by_seed.values() for line in lines):
        if "candidates" in (told := line.get("details", {}).get("guidance", {})):
            found[label(line)].append(told)
    keys = {name: f"{name}_effective_sample_size" for name in ("smallest", "median")}
    rows = [
        [name, *(f"{min(one[key] for one in told):,.0f}" for key in (*keys.values(), "candidates"))]
        for name, told in found.items()
    ]
    return "Effective candidates, the least over scores\n\n" + markdown(["", *keys, "candidates"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--judge", type=Path, required=True)
    parser.add_argument("--preset", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the training")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--text-weights", nargs="+", default=["1", "training"], help="of q_true")
    parser.add_argument(
        "--bases", nargs="+", default=list(BASES), choices=BASES, help="what is fitted to encodings, and guided"
    )
    parser.add_argument(
        "--guidance", nargs="+", default=["1", "3", "10"], help="weights of guided posteriors, such as 3 or cfg:0.5"
    )
    parser.add_argument("--own", action="store_true", help="the model's own q(z|y) too, for objectives that have one")
    parser.add_argument("--metrics", nargs="+", default=list(METRICS))
    parser.add_argument("--part", choices=("val", "test"), default="test")
    parser.add_argument("--given-count", default="4,3,2,1")
    parser.add_argument("--fit-steps", type=int, default=6_000)
    parser.add_argument("--draws", type=int, default=24)
    arguments = parser.parse_args()
    print(tables({seed: scores_of_seed(arguments, seed) for seed in arguments.seeds}))


if __name__ == "__main__":
    main()
