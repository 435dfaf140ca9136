"""mmgen against MultiVae 1.0.3: examples per second in training, seconds per point of importance-weighted likelihoods.

Both sides train the same networks on the same images with Adam and the same batch, each through its own trainer, in
turns within one run; ratios are medians over rounds. ``run.sh`` makes both environments and calls this.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MMGEN_PYTHON = ROOT / ".venv/bin/python"
MULTIVAE_PYTHON = ROOT / ".venvs/multivae/bin/python"
OBJECTIVES = {"jmvae": "JMVAE", "mvae": "MVAE"}
PRECISIONS = ("auto", "32-true")
Row = dict[str, Any]


class Side:
    """One side in a process of its own, asked one thing at a time."""

    def __init__(self, python: Path, script: str, talk: Any) -> None:
        self.process = subprocess.Popen(
            [python, HERE / script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=talk, text=True, cwd=HERE
        )

    def ask(self, task: str, **request: Any) -> dict[str, Any]:
        """Send a request to one side and return its answer.

        Raises:
            SystemExit: The process ended without one.
        """
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps({"task": task, **request}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[1]} ended while asked for {task}; its messages are in {LOG}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


LOG = ROOT / "runs" / "multivae-benchmark.log"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def spread(values: list[float]) -> str:
    """Median and range, as people read it."""
    if max(values) < 10:
        return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def take_turns(ask_theirs: Callable[[], Row], ask_ours: Callable[[str, int], Row], rounds: int) -> Row:
    """Examples per second of both sides, round by round, and their ratios; networks must be of the same size.

    Args:
        ask_theirs: Trains on MultiVae's side.
        ask_ours: Trains on ours, given a precision and the number of the round.
        rounds: How many.
    """
    found: dict[str, list[float]] = {"multivae": [], **{p: [] for p in PRECISIONS}}
    parameters = set()
    for number in range(rounds):
        for side in found:
            answer = ask_theirs() if side == "multivae" else ask_ours(side, number)
            found[side].append(answer["examples_per_second"])
            parameters.add(answer["parameters"])
    assert len(parameters) == 1, f"the two sides have networks of different sizes: {parameters}"
    ratios = {f"ratio {p}": [b / a for a, b in zip(found["multivae"], found[p], strict=True)] for p in PRECISIONS}
    return {"parameters": parameters.pop(), "examples_per_second": found, **ratios}


def compare_training(
    ours: Side, theirs: Side, options: argparse.Namespace, files: dict[str, str]
) -> list[dict[str, Any]]:
    """One row per objective and network; sides take turns, round by round."""
    rows = []
    for network in options.networks:
        for objective in options.objectives:
            request = {
                "objective": objective,
                "network": network,
                "batch": options.batch,
                "steps": options.steps,
                "skip": options.skip,
            }

            def ask_ours(precision: str, number: int, request: Row = request) -> Row:
                name = f"{request['objective']}-{request['network']}"
                keep = {"keep": files[name]} if precision == "32-true" and number == 0 else {}
                return ours.ask("train", dataset=files["dataset"], precision=precision, **request, **keep)

            measured = take_turns(
                lambda request=request: theirs.ask("train", data=files["train"], workers=0, **request),
                ask_ours,
                options.rounds,
            )
            row = {"objective": objective, "network": network, **measured}
            found = measured["examples_per_second"]
            rows.append(row)
            say(
                f"{objective} {network}: {row['parameters']:,} parameters, "
                + ", ".join(f"{k} {spread(v)}" for k, v in found.items())
            )
    return rows


def compare_likelihoods(
    ours: Side, theirs: Side, options: argparse.Namespace, files: dict[str, str]
) -> list[dict[str, Any]]:
    """Seconds per point on the same trained weights, and how far apart the estimates are."""
    rows = []
    for network in options.networks:
        for objective in options.objectives:
            model, weights = files[f"{objective}-{network}"], files["weights"]
            ours.ask("export_weights", model=model, weights=weights)
            found: dict[str, list[float]] = {"multivae": [], **{p: [] for p in PRECISIONS}}
            for _ in range(options.rounds):
                theirs_answer = theirs.ask(
                    "likelihood",
                    test_data=files["test"],
                    weights=weights,
                    objective=objective,
                    network=network,
                    points=options.their_points,
                    samples=options.samples,
                    batch_size_K=options.batch_size_K,
                )
                found["multivae"].append(theirs_answer["seconds_per_point"])
                for precision in PRECISIONS:
                    answer = ours.ask(
                        "likelihood",
                        dataset=files["dataset"],
                        model=model,
                        points=options.points,
                        samples=options.samples,
                        precision=precision,
                    )
                    found[precision].append(answer["seconds_per_point"])
            row = {"objective": objective, "network": network, "seconds_per_point": found}
            if network == options.networks[0]:
                answer = ours.ask(
                    "likelihood",
                    dataset=files["dataset"],
                    model=model,
                    points=options.full_points,
                    samples=options.samples,
                    precision="auto",
                )
                row["full_seconds"] = answer["seconds_per_point"] * options.full_points
            check = ours.ask(
                "check", dataset=files["dataset"], model=model, points=options.their_points, samples=options.samples
            )
            for precision in PRECISIONS:
                row[f"ratio {precision}"] = [a / b for a, b in zip(found["multivae"], found[precision], strict=True)]
            difference = [a - b for a, b in zip(check["estimates"], theirs_answer["estimates"], strict=True)]
            row["difference_nats"] = statistics.mean(difference)
            row["difference_stderr"] = statistics.stdev(difference) / len(difference) ** 0.5
            rows.append(row)
            say(
                f"likelihood {objective} {network}: ms per point "
                + ", ".join(f"{k} {spread([1000 * s for s in v])}" for k, v in found.items())
                + f"; difference {row['difference_nats']:.2f} +- {row['difference_stderr']:.2f} nats"
            )
    return rows


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of a markdown table."""
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def tables(training: list[Row], likelihoods: list[Row], options: argparse.Namespace) -> str:
    """Both comparisons as markdown."""
    columns = ["MultiVae 1.0.3", "mmgen, fp32", "ratio", "mmgen, `--precision auto`", "ratio"]

    def speeds(row: Row, found: dict[str, list[float]]) -> list[str]:
        fp32, auto = spread(row["ratio 32-true"]), f"**{spread(row['ratio auto'])}**"
        return [spread(found["multivae"]), spread(found["32-true"]), fp32, spread(found["auto"]), auto]

    lines = [
        f"Training, examples/s, batch {options.batch}, steady state; median (range) of {options.rounds} rounds:",
        "",
        *table(
            ["model", "image network", "parameters", *columns],
            [
                [
                    OBJECTIVES[row["objective"]],
                    row["network"],
                    f"{row['parameters']:,}",
                    *speeds(row, row["examples_per_second"]),
                ]
                for row in training
            ],
        ),
        "",
        f"Importance-weighted log p(x, y), K = {options.samples}, ms per point (mmgen: {options.points} points; "
        f"MultiVae, which visits points one by one: the mean over {options.their_points} of them):",
        "",
    ]
    full = [
        f"All {options.full_points:,} points, {OBJECTIVES[row['objective']]} {row['network']}: mmgen "
        f"{row['full_seconds']:,.0f} s, MultiVae at its pace above "
        f"{statistics.median(row['seconds_per_point']['multivae']) * options.full_points:,.0f} s."
        for row in likelihoods
        if "full_seconds" in row
    ]
    return "\n".join(
        lines
        + table(
            ["model", "image network", *columns, "mmgen - MultiVae, nats"],
            [
                [
                    OBJECTIVES[row["objective"]],
                    row["network"],
                    *speeds(row, {k: [1000 * s for s in v] for k, v in row["seconds_per_point"].items()}),
                    f"{row['difference_nats']:.2f} +- {row['difference_stderr']:.2f}",
                ]
                for row in likelihoods
            ],
        )
        + ["", *full]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", default=["strided", "mlp", "dcgan"])
    parser.add_argument("--objectives", nargs="+", default=list(OBJECTIVES))
    parser.add_argument("--batch", type=int, default=64, help="examples per step (64 is VE's and MultiVae's default)")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--skip", type=int, default=50, help="steps before the time that counts; a multiple of 50")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=64, help="side of the images")
    parser.add_argument("--samples", type=int, default=1000, help="importance samples K")
    parser.add_argument("--points", type=int, default=100, help="test points of each round on mmgen's side")
    parser.add_argument(
        "--full-points", type=int, default=1000, help="test points of one more run, on the first network"
    )
    parser.add_argument("--their-points", type=int, default=20)
    parser.add_argument("--batch-size-K", type=int, default=100, help="MultiVae's batch_size_K (100 is its default)")
    parser.add_argument("--mnist", help="folder with MNIST's IDX files; scikit-learn's digits by default")
    parser.add_argument("--output", type=Path, default=ROOT / "runs" / "multivae.json")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    threads = int(os.environ.get("BENCHMARK_THREADS", os.cpu_count() or 1))
    with tempfile.TemporaryDirectory() as folder, LOG.open("w") as log:
        files = {name: f"{folder}/{name}" for name in ("train.npz", "test.npz", "weights.npz", "dataset.h5")}
        files = {name.split(".")[0]: path for name, path in files.items()}
        for network in options.networks:
            for objective in options.objectives:
                files[f"{objective}-{network}"] = f"{folder}/{objective}-{network}.safetensors"
        source = ["--mnist", options.mnist] if options.mnist else ["--source", "digits"]
        command = [
            ROOT / ".venv/bin/mmgen",
            "make-data",
            "mnist-a",
            *source,
            "--number",
            "20000",
            "--size",
            str(options.size),
        ]
        subprocess.run([*command, "-o", files["dataset"]], check=True, stdout=subprocess.DEVNULL, stderr=log)
        ours, theirs = Side(MMGEN_PYTHON, "our_side.py", log), Side(MULTIVAE_PYTHON, "their_side.py", log)
        ours.ask("export", dataset=files["dataset"], train=files["train"], test=files["test"])
        training = compare_training(ours, theirs, options, files)
        likelihoods = compare_likelihoods(ours, theirs, options, files)
        ours.close()
        theirs.close()
    settings = {k: str(v) if isinstance(v, Path) else v for k, v in vars(options).items()} | {"threads": threads}
    options.output.write_text(
        json.dumps({"settings": settings, "training": training, "likelihoods": likelihoods}, indent=1)
    )
    print(tables(training, likelihoods, options))


if __name__ == "__main__":
    main()
