"""Prints a table's rows from folders of ``mmgen reproduce rivals-digits --seed N``: means and deviations over them.

``python benchmarks/rivals.py FOLDER FOLDER ...``; of ``rivals-cdsprites`` and ``rivals-strided`` as well. The last
column is the worst pair of words that any of the runs draws, by either judge.
"""

import statistics
import sys
from pathlib import Path

from mmgen.results.score import Score, read_scores

MODELS = {
    "elbo": "ELBO", "cvae": "conditional VAE, beta 10", "cvae-1": "conditional VAE, beta 1", "jmvae": "JMVAE",
    "telbo": "TELBO", "mvae": "MVAE", "mvtcae": "MVTCAE", "crmvae": "CRMVAE", "mopoe": "MoPoE, beta 0.1",
    "mopoe-1": "MoPoE, beta 1", "mmvae": "MMVAE", "mmvae-plus": "MMVAE+", "mmvm": "MMVM",
    "jnf": "JNF (ELBO, RealNVP)", "mld": "MLD",
}  # fmt: skip
PARTS = {"own": "own, or p(z)", "agg": "q_agg", "cfg": "q_agg, guided"}
COLUMNS = (("correctness", -1, "all_right"), ("coverage", 3, ""), ("recall", 3, ""), ("agreement", 3, ""))
"""Metric, words given (-1: all), field; recall and the others leave some words open."""


def cell(runs: list[list[Score]], metric: str, given: int, field: str) -> str:
    """Mean and standard deviation over runs of a score by each judge, the first judge first."""
    means = []
    for judge in range(2):
        values = []
        for scores in runs:
            words = max(s.given or 0 for s in scores) if given < 0 else given
            found = [s for s in scores if (s.metric, s.quantity, s.given) == (metric, metric, words)]
            found = [s for s in found if s.protocol in ("exact", "description", "")]
            if len(found) > judge:
                values.append(float(found[judge].details[field]) if field else found[judge].value)
        if values:
            spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
            means.append(f"{statistics.mean(values):.1f}{spread}")
    return ", ".join(means)


def worst(runs: list[list[Score]]) -> str:
    """The pair of words that is right least often in any of the runs, by either judge and number of words."""
    found = [s.details for scores in runs for s in scores if s.metric == "correctness" and "worst_pair" in s.details]
    least = min(found, key=lambda details: float(details["worst_pair"]), default=None)
    return "" if least is None else f"{float(least['worst_pair']):.0f} {least['worst_pair_name']}"


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]]
    for file, model in MODELS.items():
        for part, source in PARTS.items():
            files = [folder / f"{file}-{part}.jsonl" for folder in folders]
            if not all(one.exists() for one in files):
                continue
            runs = [read_scores(one) for one in files]
            cells = [model, source, *(cell(runs, *column) for column in COLUMNS), worst(runs)]
            print("  [" + ", ".join(f'"{text}"' for text in cells) + "],")


if __name__ == "__main__":
    main()
