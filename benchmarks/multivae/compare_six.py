"""MVAE with six image modalities and one random subset per step (WG Section 6): mmgen against MultiVae 1.0.3.

Examples (of six pictures each) per second in training. Both sides train the same networks on the same pictures with
Adam and the same batch, each through its own trainer, in turns within one run; ratios are medians over rounds.
``run.sh six`` makes both environments and calls this.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

from compare import LOG, MMGEN_PYTHON, MULTIVAE_PYTHON, ROOT, Row, Side, say, spread, table, take_turns


def compare(ours: Side, theirs: Side, options: argparse.Namespace, files: dict[str, str]) -> list[Row]:
    """One row per network; sides take turns, round by round."""
    rows_made = max(options.batch * options.steps, 256)
    made = ours.ask("make_six", dataset=files["dataset"], train=files["train"], rows=rows_made, size=options.size)
    colours = made["colours"]
    objective = {"modalities": list(colours), "weights": {}, "subsets": 1}
    rows = []
    for network in options.networks:
        request = {
            "objective": "mvae",
            "network": network,
            "batch": options.batch,
            "steps": options.steps,
            "skip": options.skip,
        }

        def ask_ours(precision: str, _: int, request: Row = request) -> Row:
            return ours.ask(
                "train",
                dataset=files["dataset"],
                precision=precision,
                options=objective,
                split="iid",
                log_every=options.skip,
                **request,
            )

        measured = take_turns(
            lambda request=request: theirs.ask(
                "train", data=files["train"], workers=options.workers, colours=colours, **request
            ),
            ask_ours,
            options.rounds,
        )
        row: Row = {"network": network, **measured}
        found = measured["examples_per_second"]
        rows.append(row)
        say(
            f"six modalities, {network}: {row['parameters']:,} parameters, "
            + ", ".join(f"{k} {spread(v)}" for k, v in found.items())
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", default=["strided", "convolutional", "mlp"])
    parser.add_argument("--batch", type=int, default=50, help="examples per step (WG: 50)")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--skip", type=int, default=10, help="steps before the time that counts; divides --steps")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=64, help="side of the images")
    parser.add_argument("--workers", type=int, default=0, help="loader processes of MultiVae (0 is its default)")
    parser.add_argument("--output", type=Path, default=ROOT / "runs" / "multivae-six.json")
    options = parser.parse_args()
    if options.steps % options.skip or options.steps <= options.skip:
        parser.error(f"--steps got {options.steps}, expected a multiple of --skip {options.skip}, and more than it")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, LOG.open("w") as log:
        files = {"dataset": f"{folder}/six.h5", "train": f"{folder}/six.npz"}
        ours, theirs = Side(MMGEN_PYTHON, "our_side.py", log), Side(MULTIVAE_PYTHON, "their_side.py", log)
        found = compare(ours, theirs, options, files)
        ours.close()
        theirs.close()
    settings = {k: str(v) if isinstance(v, Path) else v for k, v in vars(options).items()}
    settings["threads"] = int(os.environ.get("BENCHMARK_THREADS", os.cpu_count() or 1))
    options.output.write_text(json.dumps({"settings": settings, "training": found}, indent=1))
    columns = ["MultiVae 1.0.3", "mmgen, fp32", "ratio", "mmgen, `--precision auto`", "ratio"]
    lines = []
    for row in found:
        speeds = row["examples_per_second"]
        cells = [spread(speeds["multivae"]), spread(speeds["32-true"]), spread(row["ratio 32-true"])]
        cells += [spread(speeds["auto"]), f"**{spread(row['ratio auto'])}**"]
        lines.append([row["network"], f"{row['parameters']:,}", *cells])
    print(
        f"MVAE, six image modalities of {options.size}x{options.size} (12 channels), k = 1: examples/s in training, "
        f"batch {options.batch}, steady state; median (range) of {options.rounds} rounds:\n"
    )
    print("\n".join(table(["image network", "parameters", *columns], lines)))


if __name__ == "__main__":
    main()
