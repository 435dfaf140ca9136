"""The descriptions for which an evaluation draws pictures."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmgen.evaluation.queries import (
    Frequencies,
    Queries,
    fewest_dropped,
    make_caption_queries,
    make_plain_caption_queries,
    make_queries,
)
from mmgen.posteriors import CFG
from mmgen.results.naming import RETRIEVAL

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Questions"]


class Questions:
    """Maker of queries from the evaluated part of a split, in the form that the evaluated posteriors read.

    Args:
        evaluation: The evaluation.
    """

    def __init__(self, evaluation: "Evaluation") -> None:
        self._evaluation, self._loaded, self._settings = evaluation, evaluation.loaded, evaluation.settings

    @cached_property
    def codes(self) -> NDArray[np.uint8]:
        """Attribute codes uint8 [N, A] of all examples of the evaluated part."""
        return self._read_codes(self._settings.part)

    @cached_property
    def frequencies(self) -> Frequencies:
        """Distributions of attributes in the training part."""
        return Frequencies(self._read_codes("train"), self._evaluation.attributes.sizes)

    def _read_codes(self, part: str) -> NDArray[np.uint8]:
        return self._evaluation.dataset.read_attributes(self._evaluation.attributes.name, self._evaluation.rows(part))

    @property
    def hints(self) -> tuple[int, ...]:
        """Positions of the attributes that the classifier receives as input; no query leaves them out."""
        if not self._evaluation.has_judge:
            return ()
        names = self._evaluation.attributes.names
        return tuple(index for index, name in enumerate(names) if name in self._evaluation.judge.hints)

    @property
    def dropped(self) -> tuple[int, ...]:
        """Numbers of attributes that queries leave out: by default the fewest possible, and up to three more."""
        if self._settings.dropped is not None:
            return self._settings.dropped
        if self._loaded.text is not None and self._loaded.description_kind != "attributes":
            return (0,)
        count = len(self._evaluation.attributes.names)
        # At least one attribute is given; where no example has one, queries() raises.
        fewest = min(fewest_dropped(self.codes, self.hints), count - 1)
        return tuple(range(fewest, min(fewest + 4, count)))

    @property
    def whole_captions(self) -> bool:
        """True if a posterior or the decoder reads whole captions, from which no attribute can be left out.

        Captions that spell the attributes are completed.
        """
        text = self._loaded.text
        names = [name for name in self._evaluation.posteriors if name != RETRIEVAL]
        if text is not None and text.slots and any(self._loaded.posteriors[name].is_completing for name in names):
            return False
        if text is not None and text.name in self._loaded.model.conditional_on:
            return True
        by_words = self._loaded.guidance and self._loaded.guidance.method != CFG
        if by_words and self._evaluation.attributes.name not in self._loaded.likelihood.names:
            return True  # p(words | z) is of whole captions
        reading = [name for name in self._evaluation.posteriors if not self._evaluation.ignores_text(name)]
        return self._loaded.description_kind == "text" and bool(reading)

    @property
    def free_captions(self) -> bool:
        """True if a posterior reads captions in free words, which do not spell attributes."""
        text = self._loaded.text
        return self.whole_captions and text is not None and not text.slots

    def make_queries(self, dropped: int) -> Queries:
        """Make queries from the descriptions of the evaluated part without ``dropped`` of their attributes."""
        return make_queries(
            self.codes,
            dropped,
            never_dropped=self.hints,
            limit=self._settings.queries,
            captions=self._loaded.text is not None,
            seed=self._settings.seed,
        )

    def make_most_complete_queries(self) -> list[Queries]:
        """Make queries for each chosen number of attributes, else with as many as possible; or distinct captions."""
        text, attributes = self._loaded.text, self._loaded.attributes
        if text is not None and attributes is None:
            return [make_plain_caption_queries(self._read_tokens(), self._settings.queries, self._settings.seed)]
        if self.free_captions:
            return [self.make_caption_queries().merge_alike(self.hints)[0]]
        most = len(self._evaluation.attributes.names) - len(self.hints)
        chosen = self.dropped if self._settings.dropped is not None else self.dropped[:1]
        return [self.make_queries(number) for number in chosen if number <= most]

    def _read_tokens(self) -> NDArray[np.uint16]:
        assert self._loaded.text is not None
        return self._evaluation.dataset.read_text(self._loaded.text.name, self._evaluation.rows())

    def make_caption_queries(self) -> Queries:
        """Make queries from the captions of the evaluated part, with the attributes of each example."""
        settings, tokens = self._settings, self._read_tokens()
        return make_caption_queries(tokens, self.codes, required=self.hints, limit=settings.queries, seed=settings.seed)
