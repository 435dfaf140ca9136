"""All objectives on MNIST-A after the same training time: correctness and coverage of what is drawn from words.

    python benchmarks/objectives.py mnist-a.h5 runs/ --minutes 15 --judge judge.safetensors

Each objective gets the networks, the optimiser and the KL warm-up of vedantam/telbo-mnist-a-cpu and the same minutes on
the same number of threads. To each model q_true(z|y), with the weight of training and with 1, and q_agg(z|y) are fitted
with the same family, capacity and steps. Runs that are already there are not repeated. The table goes to stdout as
Markdown.
"""

import argparse
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

IMAGES_ONLY = "VAE (image only)"
# --objective drops the preset's own objective settings; the presets' warm-up is said again.
WARMUP = ("--set", "objective.kl_warmup_steps=4000")
ROW_SETTINGS: dict[str, Sequence[str]] = {
    IMAGES_ONLY: ("--objective", "elbo", "--set", 'objective.modalities=["image"]', *WARMUP),
    "elbo, q(z given x) (CK Eq. 2)": ("--objective", "elbo", "--set", "objective.attributes_weight=50", *WARMUP),
    "CVAE": ("--objective", "cvae", *WARMUP),
    "TELBO": ("--preset", "vedantam/telbo-mnist-a-cpu"),
    "JMVAE": ("--preset", "vedantam/jmvae-mnist-a-cpu"),
    "BiVCCA": ("--preset", "vedantam/bivcca-mnist-a-cpu"),
}


def mmgen(*arguments: str) -> str:
    """Run one command and return what it printed on stdout."""
    done = subprocess.run(["mmgen", *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def train(dataset: Path, folder: Path, name: str, minutes: float, steps: int) -> Path:
    """Train a model with one objective, and return its checkpoint."""
    slug = "".join(c if c.isalnum() else "-" for c in name.split(" (")[0].lower()).strip("-")
    out = folder / f"{slug}.safetensors"
    preset = [] if "--preset" in ROW_SETTINGS[name] else ["--preset", "vedantam/telbo-mnist-a-cpu"]
    limits = ["--minutes", str(minutes), "--steps", str(steps)]
    mmgen("train", str(dataset), *preset, *ROW_SETTINGS[name], *limits, "-o", str(out))
    return out


def scores(name: str, model: Path, judge: Path, fit_steps: int, draws: int) -> list[dict[str, object]]:
    """Scores of p(z), of the model's own q(z|y) if it has one, of q_true at two weights and of q_agg."""
    lines: list[dict[str, object]] = []
    common = ["--judge", str(judge), "--metric", "correctness", "--metric", "coverage", "--json", "--draws", str(draws)]
    # Without a decoder of words there is no p(z|words) to approach; a CVAE's is p(z), whatever the weight.
    targets = [["aggregate"]] if name == IMAGES_ONLY else [["true"], ["aggregate"]]
    if name not in (IMAGES_ONLY, "CVAE"):
        targets.insert(1, ["true", "--text-weight", "1"])
    fits = [
        mmgen("fit-aggregate", str(model), "--target", *target, "--steps", str(fit_steps)).strip() for target in targets
    ]
    for path in [str(model), *fits]:
        text = mmgen("eval", path, *common, "--protocol", "paper")
        lines += [json.loads(line) for line in text.splitlines()]
    return lines


def table(rows: dict[str, list[dict[str, object]]]) -> str:
    """Markdown: correctness with 4 attributes given, and paper coverage with 3 given, for each posterior."""
    columns = [
        ("own", "own"),
        ("true", "q_true, weight of training"),
        ("exact", "q_true(w = 1), exact"),
        ("aggregate", "q_agg"),
    ]
    head = ["objective"]
    for _, title in columns:
        head += [f"{title}: correctness, 4 given", f"{title}: coverage (paper), 3 given"]
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, lines in rows.items():
        cells = [name]
        # A model's own way from words to latents is its q(z|y); a CVAE's is its prior, for its decoder sees the words.
        own = "prior" if name == "CVAE" else "own"
        for column, _ in columns:
            posterior = {"own": own, "exact": "true"}.get(column, column)
            for metric, given in (("correctness", 4), ("coverage", 3)):
                found = [
                    line
                    for line in lines
                    if (line["metric"], line["given"], line["posterior"]) == (metric, given, posterior)
                ]
                # Of two q_true the one with the weight of training was measured first.
                found = [line for line in found if line["text_weight"] == 1] if column == "exact" else found[:1]
                cells.append(f"{found[0]['value']:.1f} ± {found[0]['stderr']:.1f}" if found else "-")
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--judge", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=15.0)
    # Far more than 15 minutes hold: the clock ends every run, and the learning rate follows it.
    parser.add_argument("--steps", type=int, default=1_000_000, help="upper limit of the schedule")
    parser.add_argument("--fit-steps", type=int, default=6_000)
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--only", nargs="*", help="names of rows")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows = {}
    for name in arguments.only or ROW_SETTINGS:
        model = train(arguments.dataset, arguments.folder, name, arguments.minutes, arguments.steps)
        rows[name] = scores(name, model, arguments.judge, arguments.fit_steps, arguments.draws)
        (arguments.folder / "scores.jsonl").write_text(
            "".join(json.dumps({"row": row, **line}) + "\n" for row, lines in rows.items() for line in lines)
        )
    print(table(rows))


if __name__ == "__main__":
    main()
