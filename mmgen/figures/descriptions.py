"""What is asked of a model: attributes, captions, or both, from words as a person types them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mmgen.errors import UsageError
from mmgen.notation import UNKNOWN
from mmgen.queries import (
    ANYTHING,
    batch_of_captions,
    batch_of_queries,
    caption_of_codes,
    codes_of_caption,
    format_caption,
    format_query,
    format_values,
    parse_caption,
    parse_query,
)

if TYPE_CHECKING:
    from mmgen.batch import Batch
    from mmgen.loading import Loaded

__all__ = ["Descriptions", "complete", "nothing", "parse"]


@dataclass(frozen=True)
class Descriptions:
    """What is asked for: attributes, captions, or both where the captions spell the attributes.

    Attributes:
        codes: uint8 [Q, A], 255 where nothing is said.
        tokens: Word codes uint16 [Q, T]; None where there are no captions.
    """

    codes: np.ndarray
    tokens: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice) -> "Descriptions":
        return Descriptions(self.codes[rows], None if self.tokens is None else self.tokens[rows])

    def batch(self, loaded: "Loaded", row: int, repeat: int = 1) -> "Batch":
        """One description as often as wanted, as a condition of a model or an aggregate."""
        from mmgen.batch import Batch

        device = str(loaded.device)
        name = loaded.attributes.name if loaded.attributes is not None else "attributes"
        batch = batch_of_queries(np.repeat(self.codes[row][None], repeat, axis=0), name, device)
        text = loaded.text
        if self.tokens is None or text is None:
            return batch
        captions = batch_of_captions(np.repeat(self.tokens[row][None], repeat, axis=0), text.name, device)
        return Batch({**batch.values, **captions.values}, {**batch.present, **captions.present})

    def words(self, loaded: "Loaded") -> list[str]:
        """Each description as a person would type it."""
        text = loaded.text
        if self.tokens is not None and text is not None:
            return [format_caption(row, text) for row in self.tokens]
        if loaded.attributes is None:
            return ["nothing given"] * len(self)
        return [format_query(row, loaded.attributes) for row in self.codes]

    def values(self, loaded: "Loaded") -> list[str]:
        """Each description as short as figures have it: a caption, or the values of the attributes alone."""
        info, text = loaded.attributes, loaded.text
        if info is None:
            return self.words(loaded)
        if self.tokens is None:
            return [format_values(row, info) for row in self.codes]
        captions = self.words(loaded)
        if text is None or text.slots or (self.codes == UNKNOWN).all():
            return captions
        said = [format_values(row, info) for row in self.codes]  # free text does not say them
        return [f"{caption} ({values})" for caption, values in zip(captions, said, strict=True)]


def complete(loaded: "Loaded", codes: np.ndarray | None = None, tokens: np.ndarray | None = None) -> Descriptions:
    """Descriptions for a model: captions say attributes, and whole attributes make captions, where words spell them.

    Args:
        loaded: The model that knows the words.
        codes: uint8 [Q, A]; by default what the captions spell.
        tokens: Word codes [Q, T]; by default what the codes spell, if they do.
    """
    text, info = loaded.text, loaded.attributes
    spelled = text is not None and info is not None and bool(text.slots)
    if codes is None:
        assert tokens is not None
        codes = np.full((len(tokens), len(info.names) if info is not None else 0), UNKNOWN, np.uint8)
        if spelled and text is not None and info is not None:
            codes = codes_of_caption(tokens, text, info)
    elif tokens is None and spelled and text is not None and info is not None:
        needed = [info.names.index(slot) for slot in text.slots]
        if (codes[:, needed] != UNKNOWN).all():
            tokens = caption_of_codes(codes, text, info)
    return Descriptions(codes, tokens)


def _is_caption(text: str) -> bool:
    """Whether a description reads like a caption rather than attribute=value."""
    return "=" not in text and text.strip() not in ("", ANYTHING)


def parse(loaded: "Loaded", given: Sequence[str]) -> Descriptions:
    """Descriptions as a person types them, all captions or all attribute=value.

    Raises:
        UsageError: The model does not know the words, or captions and attributes are mixed.
    """
    text, info = loaded.text, loaded.attributes
    captions = [text is not None and _is_caption(words) for words in given]
    if any(captions) and not all(captions):
        raise UsageError("got captions and attribute=value together; describe everything in the same way")
    if any(captions) and text is not None:
        return complete(loaded, tokens=np.stack([parse_caption(words, text, info) for words in given]))
    if info is None:
        if any(given):
            raise UsageError(f"{loaded.path} knows no attributes, so it cannot be given a description")
        return Descriptions(np.zeros((len(given), 0), np.uint8))
    return complete(loaded, np.stack([parse_query(words, info) for words in given]))


def nothing(loaded: "Loaded") -> Descriptions:
    """One description that says nothing."""
    width = len(loaded.attributes.names) if loaded.attributes is not None else 0
    return Descriptions(np.full((1, width), UNKNOWN, np.uint8))
