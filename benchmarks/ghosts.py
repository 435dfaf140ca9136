"""Planted ghosts: which measures see blends of two real pictures among drawn ones.

    python benchmarks/ghosts.py aggregate.safetensors --judge judge.safetensors --judge second-judge.safetensors
        [--posterior retrieval] [--share 0,10,30] [--given-count 2,1] [--queries 40] [--draws 24] [--sheet ghosts.png]

A ghost is the average of two training pictures that fit the description and differ in a word that it leaves open. Each
drawn picture is replaced by one with the probability --share. Everything else is as `mmgen eval` does it: the same
metrics, of the same descriptions, beside real pictures. `--posterior retrieval` plants them among training pictures.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from mmgen import load
from mmgen.artifacts import Dataset
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation import Evaluation, EvaluationSettings
from mmgen.evaluation.queries import Queries
from mmgen.evaluation.retrieved import RetrievedPictures
from mmgen.generation.classifiers import load_classifiers
from mmgen.metrics import dropped_counts, evaluate_with_classifiers
from mmgen.results.score import Score

METRICS = ("agreement", "precision", "recall", "coverage")
MOST = 4096
"""Pictures of a description, at most."""


class Ghosts:
    """Replaces drawn pictures of an evaluation by blends.

    Args:
        evaluation: The evaluation.
        share: Probability of each picture to be replaced, from 0 to 1.
    """

    def __init__(self, evaluation: Evaluation, share: float) -> None:
        self.evaluation, self.share = evaluation, share
        self.draw = evaluation.drawn_pictures.draw_pictures
        self.rows = evaluation.training_pictures.rows
        self.real = RetrievedPictures(evaluation.dataset, evaluation.loaded, self.rows, seed=1)
        self.codes = evaluation.dataset.read_attributes(evaluation.attributes.name)

    def draw_pictures(self, queries: Queries, posterior: str, n: int, have: int = 0) -> Iterator[Any]:
        """Yield drawn pictures, some of them blends; as :meth:`ClassifiedPictures.draw_pictures`."""
        for piece in self.draw(queries, posterior, n, have):
            means = piece.means.clone()
            for place, query in enumerate(range(*piece.rows.indices(len(queries)))):
                planted = numpy_generator(0, "ghosts", *queries.codes[query]).random(MOST) < self.share
                chosen = np.flatnonzero(planted[have + piece.draws.start : have + piece.draws.stop])
                if len(chosen):
                    means[place, chosen] = self.blend(queries.select(np.array([query])), len(chosen), piece.draws.start)
            yield replace(piece, means=means)

    def blend(self, query: Queries, n: int, have: int) -> torch.Tensor:
        """Return n averages [n, C, H, W] of two training pictures of a description that differ in an open word."""
        rows = self.real.find_rows(query, 8 * n, 8 * have)[0]
        is_open = query.codes[0] == UNKNOWN
        pairs = [(a, b) for a, b in pairwise(rows) if (self.codes[a] != self.codes[b])[is_open].any()]
        pairs = [pairs[number % len(pairs)] for number in range(n)]
        name = self.evaluation.loaded.observation.name
        read = {row: self.evaluation.dataset.read_values(name, np.array([row]), 0)[0] for pair in pairs for row in pair}
        return torch.from_numpy(np.stack([(read[a].astype(np.float32) + read[b]) / 2 for a, b in pairs]))


def evaluate_planted(arguments: argparse.Namespace, share: float) -> list[Score]:
    """Return scores by both judges of pictures among which a share are ghosts."""
    loaded = load(arguments.model)
    judges = load_classifiers(arguments.judge, loaded.device)
    dropped = dropped_counts([int(count) for count in arguments.given_count.split(",")], loaded)
    settings = EvaluationSettings(queries=arguments.queries, draws=arguments.draws, dropped=tuple(dropped or ()))
    posterior = arguments.posterior or loaded.posteriors.default
    with Dataset.open(loaded.dataset_path()) as dataset:
        evaluation = Evaluation(loaded, dataset, judges[0], (posterior,), settings)
        ghosts = Ghosts(evaluation, share)
        evaluation.drawn_pictures.draw_pictures = ghosts.draw_pictures  # type: ignore[method-assign]  # for all metrics
        works = evaluate_with_classifiers(evaluation, METRICS, judges[1:])
        if arguments.sheet and share:
            queries = evaluation.questions.make_queries(dropped[0])
            blends = torch.stack([ghosts.blend(queries.select(np.array([query])), 8, 0) for query in range(4)])
            sheet = blends.permute(0, 3, 1, 4, 2).flatten(2, 3).flatten(0, 1)  # [4 H, 8 W, C]
            Image.fromarray((255 * sheet).byte().numpy()).save(arguments.sheet)
        return [score for work in works for score in work.run()]


def main() -> None:
    """Print a table: a row for each share and number of given words."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--judge", type=Path, action="append", required=True)
    parser.add_argument("--posterior", default="")
    parser.add_argument("--share", default="0,10,30")
    parser.add_argument("--given-count", default="2,1")
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--sheet", type=Path)
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    print("| given | ghosts | agreement | sure | precision | recall | coverage |\n|---|---|---|---|---|---|---|")
    real: dict[tuple[int | None, str], str] = {}
    for share in map(float, arguments.share.split(",")):
        scores = [score for score in evaluate_planted(arguments, share / 100) if score.protocol != "pooled"]
        for given in dict.fromkeys(score.given for score in scores):
            cells = {}
            for score in scores:
                if score.given == given:
                    cells.setdefault(score.quantity, []).append(f"{score.value:.1f} ± {score.stderr or 0:.1f}")
                    if "ceiling" in score.details:
                        real.setdefault((given, score.quantity), []).append(f"{score.details['ceiling']:.1f}")
            row = [", ".join(cells.get(name, [])) for name in ("agreement", "sure", *METRICS[1:])]
            print(f"| {given} | {share:g} % | {' | '.join(row)} |", flush=True)
    for given in dict.fromkeys(given for given, _ in real):
        row = [", ".join(dict.fromkeys(real.get((given, name), []))) for name in ("agreement", "sure", *METRICS[1:])]
        print(f"| {given} | real pictures | {' | '.join(row)} |")


if __name__ == "__main__":
    main()
