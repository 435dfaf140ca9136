"""Parsing of descriptions for a model: attributes, captions, or both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import (
    AND,
    NOT,
    OPERATORS,
    OR,
    Expression,
    batch_of_captions,
    batch_of_queries,
    caption_of_codes,
    codes_of_caption,
    format_caption,
    format_query,
    format_values,
    is_caption,
    parse as parse_words,
    parse_caption,
    quoted,
)

if TYPE_CHECKING:
    from mmgen.core.batch import Batch
    from mmgen.generation.trained_model import TrainedModel

__all__ = [
    "Descriptions",
    "as_words",
    "batch_of",
    "check_described",
    "check_read",
    "select_posterior",
    "complete",
    "describe",
    "nothing",
    "parse",
    "posterior_for",
]


@dataclass(frozen=True)
class Descriptions:
    """Q descriptions: attributes, captions, or both where the captions spell the attributes.

    Attributes:
        codes: uint8 [Q, A], 255 where nothing is specified; see :attr:`mmgen.descriptions.Expression.codes`.
        tokens: Word codes uint16 [Q, T]; None where there are no captions.
        expressions: Trees with operators that are more than their codes, [Q]; None for plain descriptions.
    """

    codes: np.ndarray
    tokens: np.ndarray | None = None
    expressions: tuple[Expression | None, ...] = ()

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice) -> "Descriptions":
        tokens = None if self.tokens is None else self.tokens[rows]
        return Descriptions(self.codes[rows], tokens, self.expressions[rows])

    def repeat(self, times: int) -> "Descriptions":
        """Return each plain description so often in a row."""
        tokens = None if self.tokens is None else np.repeat(self.tokens, times, axis=0)
        return Descriptions(np.repeat(self.codes, times, axis=0), tokens)

    def expression(self, row: int) -> Expression | None:
        """Return the tree of one description; None if it is plain."""
        return self.expressions[row] if self.expressions else None

    def key(self, row: int) -> tuple[int | str, ...]:
        """Return the key of the streams of randomness of one description."""
        expression = self.expression(row)
        if expression is not None:
            return expression.key
        return tuple(int(code) for code in (self.codes if self.tokens is None else self.tokens)[row])

    def batch(self, loaded: "TrainedModel", rows: int | slice, repeat: int = 1) -> "Batch":
        """Return descriptions, each repeated, as a condition of a model or an aggregate."""
        device = str(loaded.device)
        name = loaded.attributes.name if loaded.attributes is not None else "attributes"
        chosen = slice(rows, rows + 1) if isinstance(rows, int) else rows
        batch = batch_of_queries(np.repeat(self.codes[chosen], repeat, axis=0), name, device)
        text = loaded.text
        if self.tokens is None or text is None:
            return batch
        return batch | batch_of_captions(np.repeat(self.tokens[chosen], repeat, axis=0), text.name, device)

    def modalities(self, loaded: "TrainedModel", row: int) -> tuple[str, ...]:
        """Return the modalities in which one description specifies something."""
        names = []
        if loaded.attributes is not None and ((self.codes[row] != UNKNOWN).any() or self.expression(row) is not None):
            names.append(loaded.attributes.name)
        if loaded.text is not None and self.tokens is not None:
            names.append(loaded.text.name)
        return tuple(names)

    def words(self, loaded: "TrainedModel") -> list[str]:
        """Return each description as a person would type it."""
        info, text = loaded.attributes, loaded.text
        if self.tokens is not None and text is not None:
            return [format_caption(row, text) for row in self.tokens]
        if info is None:
            return ["nothing given"] * len(self)
        return [str(self.expression(row) or format_query(codes, info)) for row, codes in enumerate(self.codes)]

    def values(self, loaded: "TrainedModel") -> list[str]:
        """Return each description in the short form of figures: a caption, or the values of the attributes alone."""
        info, text = loaded.attributes, loaded.text
        if info is None or any(self.expressions):
            return self.words(loaded)
        values = [format_values(row, info) for row in self.codes]
        if self.tokens is None:
            return values
        captions = self.words(loaded)
        if text is None or text.slots or (self.codes == UNKNOWN).all():
            return captions
        return [f"{caption} ({each})" for caption, each in zip(captions, values, strict=True)]  # free text spells none


def complete(loaded: "TrainedModel", codes: np.ndarray | None = None, tokens: np.ndarray | None = None) -> Descriptions:
    """Complete descriptions whose captions spell the attributes: captions give codes, complete codes give captions.

    Args:
        loaded: The model that knows the words.
        codes: uint8 [Q, A]; by default those that the captions spell.
        tokens: Word codes [Q, T]; by default those that spell the codes, if all are known.
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


def as_words(description: "str | Mapping[str, str]") -> str:
    """Return a description in words: ``{"digit": "3"}`` as ``digit=3``."""
    if isinstance(description, str):
        return description
    return " ".join(f"{name}={quoted(value)}" for name, value in description.items())


def parse(loaded: "TrainedModel", descriptions: Sequence[str]) -> Descriptions:
    """Parse descriptions as a person types them, all captions or all attribute=value.

    A guided model answers NOT and OR, SCAN with operators AND, IN COMMON and IGNORE. Elsewhere AND gives both sides.

    Raises:
        UsageError: The model does not know the words or answer the operators, or captions and attributes are mixed.
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
    trees = [parse_words(words, info) for words in descriptions]
    answered = frozenset((NOT, OR) if loaded.guidance else loaded.operators)
    for tree in trees:
        _check_operators(loaded, tree, answered if loaded.operators else answered | {AND})
    expressions = tuple(tree if tree.operators & answered else None for tree in trees)
    codes = np.stack([tree.codes for tree in trees])
    return Descriptions(codes, expressions=expressions) if any(expressions) else complete(loaded, codes)


def _check_operators(loaded: "TrainedModel", tree: Expression, answered: frozenset[str]) -> None:
    """Refuse operators that the posterior cannot answer; the message names an alternative."""
    missing = tree.operators - answered
    if not missing:
        return
    if not missing.isdisjoint((NOT, OR)):
        raise UsageError(
            f"description has {min(missing)}, which only drawing with guidance above 0 understands; draw so, or leave "
            "it out"
        )
    ways = [f"give what it means, '{tree.meaning}'" if tree.mentioned.any() else "give a plain description"]
    if loaded.operators:
        ways.append("leave guidance out")
    elif not loaded.model.discrete_layers and "density" in loaded.model.capabilities:  # these refuse every fit
        ways.append(
            f"draw from SCAN with operators: mmgen fit-aggregate {loaded.model_path} --target scan "
            "--set aggregate.target.operators=true"
        )
    reason = f"guidance {loaded.guidance} has none" if loaded.operators else f"{loaded.path} has none"
    raise UsageError(f"'{tree}' needs operators, and {reason}; {', or '.join(ways)}")


def describe(loaded: "TrainedModel", description: str | Mapping[str, str]) -> "Batch":
    """Return a description as a batch of one.

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
    descriptions = parse(loaded, [words])
    if any(descriptions.expressions):
        raise UsageError(f"'{words}' is no plain description, and no batch holds another; draw with sample(...)")
    return batch_of(loaded, descriptions)


def batch_of(loaded: "TrainedModel", descriptions: Descriptions) -> "Batch":
    """Return descriptions as a batch; captions that spell no attributes stand there alone."""
    batch = descriptions.batch(loaded, slice(None))
    spelt = loaded.text is not None and bool(loaded.text.slots)
    known = [loaded.attributes.name] if loaded.attributes is not None and (spelt or descriptions.tokens is None) else []
    return batch.select([*known, *([loaded.text.name] if loaded.text is not None else [])])


def posterior_for(loaded: "TrainedModel", descriptions: Descriptions) -> str:
    """Return the default posterior: the fitted one, else the encoder's; the prior if nothing is described.

    Raises:
        UsageError: Something is given, and nothing was fitted to descriptions.
    """
    described = any(descriptions.modalities(loaded, row) for row in range(len(descriptions)))
    if not described and loaded.description_kind == "text":
        return "prior"
    posterior = loaded.posteriors.default
    if described and not loaded.reads(posterior):
        raise UsageError(
            f"{loaded.path} draws z from a posterior that reads no description; fit one that does: "
            f"mmgen fit-aggregate {loaded.model_path}{', or draw with guidance' if loaded.likelihood.names else ''}"
        )
    return posterior


def select_posterior(loaded: "TrainedModel", descriptions: Descriptions, posterior: str | None = None) -> str:
    """Return the named posterior, else the default of :func:`posterior_for`, after all cheap checks.

    Raises:
        UsageError: There is no such posterior, it reads nothing of a description, or guidance has no words to hold to.
    """
    check_described(loaded, descriptions)
    source = loaded.posteriors[posterior or posterior_for(loaded, descriptions)].name
    check_read(loaded, source, descriptions)
    return source


def check_described(loaded: "TrainedModel", descriptions: Descriptions) -> None:
    """Refuse guidance by an empty description.

    Raises:
        UsageError: A description specifies nothing.
    """
    if loaded.guidance and not all(descriptions.modalities(loaded, row) for row in range(len(descriptions))):
        raise UsageError(
            f"guidance {loaded.guidance} got an empty description, expected at least one word; describe "
            "what to draw, or leave guidance out"
        )


def check_read(loaded: "TrainedModel", posterior: str, descriptions: Descriptions) -> None:
    """Refuse descriptions in modalities that a posterior does not read.

    Raises:
        UsageError: It says what the posterior reads.
    """
    reads = loaded.reads(posterior)
    names = descriptions.words(loaded)
    for expression in descriptions.expressions:
        if (
            expression is not None
            and expression.operators & {*OPERATORS}
            and not loaded.posteriors[posterior].operators
        ):
            raise UsageError(
                f"'{expression}' got posterior '{posterior}', which has no operators, expected "
                f"'{loaded.posteriors.default}'; or give what it means, '{expression.meaning}'"
            )
    for row in range(len(descriptions)):
        described = descriptions.modalities(loaded, row)
        if not described or set(described) & set(reads):
            continue
        if not reads:
            raise UsageError(
                f"got the description '{names[row]}' for posterior '{posterior}' of {loaded.path}, which reads none: "
                f"leave the description out, or choose another of {', '.join(loaded.posteriors)}"
                f"{', or draw with guidance' if loaded.likelihood.names else ''}"
            )
        how = " or ".join(_how(loaded, name) for name in reads)
        raise UsageError(
            f"got the description '{names[row]}', which says {' and '.join(described)}, but posterior '{posterior}' of "
            f"{loaded.path} reads {' and '.join(reads)}: give {how}"
        )


def _how(loaded: "TrainedModel", name: str) -> str:
    """Return the form of a description by a modality."""
    if loaded.attributes is not None and name == loaded.attributes.name:
        return f"attribute=value of {', '.join(loaded.attributes.names)}"
    return f"a whole caption, {' '.join(loaded.text.slots)}" if loaded.text and loaded.text.slots else "a caption"


def nothing(loaded: "TrainedModel") -> Descriptions:
    """Return one description that specifies nothing."""
    width = len(loaded.attributes.names) if loaded.attributes is not None else 0
    return Descriptions(np.full((1, width), UNKNOWN, np.uint8))
