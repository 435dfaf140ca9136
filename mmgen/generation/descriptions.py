"""What is asked of a model: attributes, captions, or both, from words as a person types them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions.expressions import Expression, is_expression, parse_expression
from mmgen.descriptions.queries import (
    AND,
    ANYTHING,
    Vocabulary,
    batch_of_captions,
    batch_of_queries,
    caption_of_codes,
    codes_of_caption,
    format_caption,
    format_query,
    format_values,
    parse_caption,
    parse_query,
    quoted,
)
from mmgen.descriptions.recombinations import Recombination, is_recombination, parse_recombination
from mmgen.results.naming import posterior_called

if TYPE_CHECKING:
    from mmgen.core.batch import Batch
    from mmgen.generation.open_model import OpenModel

__all__ = [
    "Descriptions",
    "as_words",
    "batch_of",
    "check_described",
    "check_read",
    "chosen_posterior",
    "complete",
    "describe",
    "is_caption",
    "nothing",
    "parse",
    "posterior_for",
]


@dataclass(frozen=True)
class Descriptions:
    """What is asked for: attributes, captions, or both where the captions spell the attributes.

    Attributes:
        codes: uint8 [Q, A], 255 where nothing is said.
        tokens: Word codes uint16 [Q, T]; None where there are no captions.
        expressions: Negation and alternatives, or what operators are to recombine, [Q]; None where a description is
            plain. ``codes`` then are what all alternatives have in common (what is given of a single one, nothing of
            several), or what a recombination means.
    """

    codes: np.ndarray
    tokens: np.ndarray | None = None
    expressions: tuple[Expression | Recombination | None, ...] = ()

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice) -> "Descriptions":
        tokens = None if self.tokens is None else self.tokens[rows]
        return Descriptions(self.codes[rows], tokens, self.expressions[rows])

    def expression(self, row: int) -> Expression | Recombination | None:
        """What one description is beyond attribute=value; None where it is plain."""
        return self.expressions[row] if self.expressions else None

    def key(self, row: int) -> tuple[int | str, ...]:
        """What the streams of randomness of one description are known by."""
        expression = self.expression(row)
        if expression is not None:
            return expression.key
        return tuple(int(code) for code in (self.codes if self.tokens is None else self.tokens)[row])

    def batch(self, loaded: "OpenModel", rows: int | slice, repeat: int = 1) -> "Batch":
        """Descriptions, each as often as wanted, as a condition of a model or an aggregate."""
        device = str(loaded.device)
        name = loaded.attributes.name if loaded.attributes is not None else "attributes"
        chosen = slice(rows, rows + 1) if isinstance(rows, int) else rows
        batch = batch_of_queries(np.repeat(self.codes[chosen], repeat, axis=0), name, device)
        text = loaded.text
        if self.tokens is None or text is None:
            return batch
        return batch | batch_of_captions(np.repeat(self.tokens[chosen], repeat, axis=0), text.name, device)

    def said(self, loaded: "OpenModel", row: int) -> tuple[str, ...]:
        """Modalities by which one description says something."""
        said = []
        if loaded.attributes is not None and ((self.codes[row] != UNKNOWN).any() or self.expression(row) is not None):
            said.append(loaded.attributes.name)
        if loaded.text is not None and self.tokens is not None:
            said.append(loaded.text.name)
        return tuple(said)

    def words(self, loaded: "OpenModel") -> list[str]:
        """Each description as a person would type it."""
        if any(self.expressions):
            every = Descriptions(self.codes).words(loaded)
            return [str(e) if e is not None else plain for e, plain in zip(self.expressions, every, strict=True)]
        text = loaded.text
        if self.tokens is not None and text is not None:
            return [format_caption(row, text) for row in self.tokens]
        if loaded.attributes is None:
            return ["nothing given"] * len(self)
        return [format_query(row, loaded.attributes) for row in self.codes]

    def values(self, loaded: "OpenModel") -> list[str]:
        """Each description as short as figures have it: a caption, or the values of the attributes alone."""
        info, text = loaded.attributes, loaded.text
        if info is None or any(self.expressions):
            return self.words(loaded)
        if self.tokens is None:
            return [format_values(row, info) for row in self.codes]
        captions = self.words(loaded)
        if text is None or text.slots or (self.codes == UNKNOWN).all():
            return captions
        said = [format_values(row, info) for row in self.codes]  # free text does not say them
        return [f"{caption} ({values})" for caption, values in zip(captions, said, strict=True)]


def complete(loaded: "OpenModel", codes: np.ndarray | None = None, tokens: np.ndarray | None = None) -> Descriptions:
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


def is_caption(text: str) -> bool:
    """Whether a description reads like a caption rather than attribute=value."""
    return "=" not in text and text.strip() not in ("", ANYTHING)


def as_words(description: "str | Mapping[str, str]") -> str:
    """A description in words: ``{"digit": "3"}`` as ``digit=3``."""
    if isinstance(description, str):
        return description
    return " ".join(f"{name}={quoted(value)}" for name, value in description.items())


def parse(loaded: "OpenModel", descriptions: Sequence[str]) -> Descriptions:
    """Descriptions as a person types them, all captions or all attribute=value.

    Of a guided model they may have NOT and OR, where there are operators AND, IN COMMON and IGNORE, and everywhere AND
    between descriptions, which elsewhere is giving both.

    Raises:
        UsageError: The model does not know the words, or captions and attributes are mixed.
    """
    text, info = loaded.text, loaded.attributes
    captions = [text is not None and is_caption(words) for words in descriptions]
    if any(captions) and not all(captions):
        raise UsageError("got captions and attribute=value together; describe everything in the same way")
    if any(captions) and text is not None:
        return complete(loaded, tokens=np.stack([parse_caption(words, text, info) for words in descriptions]))
    if info is None:
        if any(descriptions):
            raise UsageError(f"{loaded.path} knows no attributes, so it cannot be given a description")
        return Descriptions(np.zeros((len(descriptions), 0), np.uint8))
    read = [_parse_attributes(loaded, words, info) for words in descriptions]
    found, codes = tuple(expression for expression, _ in read), np.stack([codes for _, codes in read])
    if any(expression is not None for expression in found):
        return Descriptions(codes, expressions=found)
    return complete(loaded, codes)


def _parse_attributes(
    loaded: "OpenModel", words: str, info: Vocabulary
) -> tuple[Expression | Recombination | None, np.ndarray]:
    """What a description is beyond attribute=value, if anything, and its codes [A]."""
    if is_recombination(words):
        recombination = parse_recombination(words, info)
        if recombination.operators and loaded.operators and not loaded.guidance:
            return recombination, recombination.codes
        if recombination.operators - {AND} or (loaded.operators and recombination.operators):
            reason = f"guidance {loaded.tilt} has none" if loaded.operators else f"{loaded.path} has none"
            raise UsageError(f"'{words}' needs operators, and {reason}; {_instead(loaded, recombination)}")
        return None, recombination.codes  # nothing joins them, or nothing but that both are given
    if loaded.guidance and is_expression(words):
        expression = parse_expression(words, info)
        return expression, expression.codes
    return None, parse_query(words, info)


def _instead(loaded: "OpenModel", recombination: Recombination) -> str:
    """What can be done where there are no operators."""
    ways = ["give a plain description"]
    if recombination.mentioned.any():
        ways = [f"give what it means, '{recombination.plain}'"]
    if loaded.operators:
        ways.append("leave guidance out")
    elif not loaded.model.discrete_layers and not loaded.model.deterministic:  # these refuse whatever is fitted
        ways.append(
            f"draw from SCAN with operators: mmgen fit-aggregate {loaded.model_path} --family scan "
            "--set aggregate.family.operators=true"
        )
    return ", or ".join(ways)


def describe(loaded: "OpenModel", description: str | Mapping[str, str]) -> "Batch":
    """A description as a batch of one.

    Args:
        loaded: The model that knows the words.
        description: Attributes such as ``"digit=3 scale=big"`` or ``{"digit": "3"}``, the rest unknown; or, where the
            model knows text, a caption such as ``"large red rubber cube left small blue metal sphere"``.

    Raises:
        UsageError: An attribute, value or word does not exist; suggests the nearest.
    """
    words = as_words(description)
    if loaded.attributes is None and not (is_caption(words) and loaded.text is not None):
        raise UsageError(f"{loaded.path} knows no attributes, so it cannot be given a description")
    asked = parse(loaded, [words])
    if any(asked.expressions):
        raise UsageError(f"'{words}' is no plain description, and no batch holds another; draw with sample(...)")
    return batch_of(loaded, asked)


def batch_of(loaded: "OpenModel", asked: Descriptions) -> "Batch":
    """Descriptions as a batch: of a caption that spells nothing the caption alone, of anything else all of it."""
    batch = asked.batch(loaded, slice(None))
    spelt = loaded.text is not None and bool(loaded.text.slots)
    known = [loaded.attributes.name] if loaded.attributes is not None and (spelt or asked.tokens is None) else []
    return batch.select([*known, *([loaded.text.name] if loaded.text is not None else [])])


def posterior_for(loaded: "OpenModel", asked: Descriptions) -> str:
    """Where z comes from unless told: the fitted posterior, else the model's own; the prior where nothing is given.

    Raises:
        UsageError: Something is given, and nothing was fitted to descriptions.
    """
    described = any(asked.said(loaded, row) for row in range(len(asked)))
    if not described and loaded.given == "text":
        return "prior"
    posterior = loaded.default_posterior
    if described and not loaded.reads(posterior):
        raise UsageError(
            f"{loaded.path} draws the same z whatever is given; fit something to descriptions first: "
            f"mmgen fit-aggregate {loaded.model_path}{', or draw with guidance' if loaded.generated_words else ''}"
        )
    return posterior


def chosen_posterior(loaded: "OpenModel", asked: Descriptions, posterior: str | None = None) -> str:
    """Where z comes from, after all checks that need no work: what was chosen, else :func:`posterior_for`.

    Raises:
        UsageError: There is no such posterior, it reads nothing of a description, or guidance has no words to hold to.
    """
    check_described(loaded, asked)
    source = posterior_called(posterior) if posterior else posterior_for(loaded, asked)
    check_read(loaded, source, asked)
    return source


def check_described(loaded: "OpenModel", asked: Descriptions) -> None:
    """Refuse guidance where no words are given that it could hold to.

    Raises:
        UsageError: A description says nothing.
    """
    if loaded.guidance and not all(asked.said(loaded, row) for row in range(len(asked))):
        raise UsageError(
            f"guidance {loaded.tilt} got a description that says nothing, expected words to hold to; describe "
            "what to draw, or leave guidance out"
        )


def check_read(loaded: "OpenModel", posterior: str, asked: Descriptions) -> None:
    """Refuse descriptions of which a posterior would read nothing.

    Raises:
        UsageError: It says what the posterior reads.
    """
    reads = loaded.reads(posterior)
    names = asked.words(loaded)
    for expression in asked.expressions:
        if isinstance(expression, Recombination) and posterior != loaded.target:
            raise UsageError(
                f"'{expression}' got posterior '{posterior}', which has no operators, expected '{loaded.target}'; or "
                f"give what it means, '{expression.plain}'"
            )
    for row in range(len(asked)):
        said = asked.said(loaded, row)
        if not said or set(said) & set(reads):
            continue
        if not reads:
            raise UsageError(
                f"got the description '{names[row]}' for posterior '{posterior}' of {loaded.path}, which reads none: "
                f"leave the description out, or choose another of {', '.join(loaded.posteriors)}"
                f"{', or draw with guidance' if loaded.generated_words else ''}"
            )
        how = " or ".join(_how(loaded, name) for name in reads)
        raise UsageError(
            f"got the description '{names[row]}', which says {' and '.join(said)}, but posterior '{posterior}' of "
            f"{loaded.path} reads {' and '.join(reads)}: give {how}"
        )


def _how(loaded: "OpenModel", name: str) -> str:
    """How a description by a modality reads."""
    if loaded.attributes is not None and name == loaded.attributes.name:
        return f"attribute=value of {', '.join(loaded.attributes.names)}"
    return f"a whole caption, {' '.join(loaded.text.slots)}" if loaded.text and loaded.text.slots else "a caption"


def nothing(loaded: "OpenModel") -> Descriptions:
    """One description that says nothing."""
    width = len(loaded.attributes.names) if loaded.attributes is not None else 0
    return Descriptions(np.full((1, width), UNKNOWN, np.uint8))
