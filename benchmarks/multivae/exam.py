"""Descriptions that both sides of time to quality are asked for, and the scores of their pictures by two judges."""

from collections.abc import Generator
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from mmgen.artifacts import Dataset
from mmgen.classifier import load_classifier
from mmgen.core.seeding import torch_generator
from mmgen.evaluation.drawn import ClassifiedPictures
from mmgen.evaluation.queries import Frequencies, Queries, make_queries, weighted_mean
from mmgen.generation import TrainedModel
from mmgen.metrics.correctness import correctness_by_query
from mmgen.metrics.coverage import exact_coverage
from mmgen.posteriors import Completions

__all__ = ["ATTRIBUTES", "SPLIT", "WHOLE", "Exam"]

T = TypeVar("T")
Row = dict[str, Any]
SPLIT, ATTRIBUTES = "iid", "attributes"
WHOLE, PARTIAL = 12, 48
"""Pictures of each description with all words given, and of each with one left open."""
PARTIAL_QUERIES = 96


def finish(work: Generator[Any, None, T]) -> T:
    """Run a generator to its end and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            return stop.value


class Exam:
    """Descriptions of one part of the data, and scores of pictures of them by both judges."""

    def __init__(self, folder: Path, part: str) -> None:
        self.judges = [load_classifier(folder / name) for name in ("judge.safetensors", "second-judge.safetensors")]
        with Dataset.open(folder / "digits.h5") as data:
            info = data.attributes[ATTRIBUTES]
            codes = {name: data.read_attributes(ATTRIBUTES, data.split(SPLIT, name)) for name in ("train", part)}
        self.whole = make_queries(codes[part], 0)
        self.partial = make_queries(codes[part], 1, limit=PARTIAL_QUERIES)
        self.frequencies = Frequencies(codes["train"], info.sizes)
        self._completions = Completions.from_examples(codes["train"], info)

    @cached_property
    def asked(self) -> np.ndarray:
        """Whole descriptions uint8 [N, A], one a picture: those with open words are completed by training data."""
        generator = torch_generator(0, "completions", device="cpu")
        drawn = [self._completions.sample(row, PARTIAL, generator) for row in self.partial.codes]
        return np.concatenate([self.whole.codes.repeat(WHOLE, 0), *drawn])

    def of_pictures(self, pictures: np.ndarray) -> Row:
        """Score pictures uint8 [N, C, H, W] of :attr:`asked`."""
        images, asked = torch.from_numpy(pictures).float() / 255, torch.from_numpy(self.asked)
        scores = {}
        for number, judge in enumerate(self.judges, 1):
            pieces = zip(images.split(512), asked.split(512), strict=True)
            with torch.inference_mode():
                read = np.concatenate([judge.predict(some, words, "32-true").numpy() for some, words in pieces])
            split = len(self.whole) * WHOLE
            scores |= self._score(number, read[:split].reshape(-1, WHOLE, 4), read[split:].reshape(-1, PARTIAL, 4))
        return scores

    def of_model(self, loaded: TrainedModel, posterior: str) -> Row:
        """Score pictures that mmgen draws."""
        first = ClassifiedPictures(loaded, self.judges[0], 0)
        second = ClassifiedPictures(loaded, self.judges[1], 0, shared_with=first)
        scores = {}
        for number, drawn in enumerate((first, second), 1):
            read = [
                finish(drawn.classify_pictures(queries, posterior, n))
                for queries, n in ((self.whole, WHOLE), (self.partial, PARTIAL))
            ]
            scores |= self._score(number, *read)
        return scores

    def _score(self, judge: int, whole: np.ndarray, partial: np.ndarray) -> Row:
        def mean(name: str, values: np.ndarray, queries: Queries) -> Row:
            found = weighted_mean(values, queries.weights, 0)
            return {f"{name} {judge}": [round(found.value, 2), round(found.stderr or 0.0, 2)]}

        return {
            **mean("correct", 100 * correctness_by_query(self.whole.codes, whole), self.whole),
            **mean("correct, 3", 100 * correctness_by_query(self.partial.codes, partial), self.partial),
            **mean("coverage", exact_coverage(self.partial, partial, self.frequencies, 0).values, self.partial),
        }
