"""Descriptions of pictures, parsed for a model: attributes, captions, or both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import mmgen.posteriors
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import (
    AND,
    NOT,
    OPERATORS,
    OR,
    Expression,
    attributes_to_caption,
    batch_of_captions,
    batch_of_queries,
    caption_to_attributes,
    format_caption,
    format_query,
    format_values,
    is_caption,
    parse as parse_words,
    parse_caption,
    quote_value,
    split_words,
)

if TYPE_CHECKING:
    from mmgen.core.batch import Batch
    from mmgen.generation.trained_model import TrainedModel


@dataclass(frozen=True)
class Descriptions:
    """Q descriptions of pictures as codes: of attributes, of the words of captions, or of both.

    Attributes:
        codes: Attribute codes uint8 [Q, A], 255 where unspecified; see :attr:`mmgen.descriptions.Expression.codes`.
        tokens: Word codes uint16 [Q, T]; None without captions.
        expressions: Trees of descriptions with operators, Q of them or none; None for a plain description.
        completed: The whole description of each of n draws, uint8 [Q, n, A], see
            :func:`mmgen.generation.latents.draw_completions`; None where descriptions are drawn as they are.
    """

    codes: np.ndarray
    tokens: np.ndarray | None = None
    expressions: tuple[Expression | None, ...] = ()
    completed: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice) -> "Descriptions":
        tokens = None if self.tokens is None else self.tokens[rows]
        completed = None if self.completed is None else self.completed[rows]
        return Descriptions(self.codes[rows], tokens, self.expressions[rows], completed)

    def repeat(self, times: int) -> "Descriptions":
        """Return each description ``times`` times in a row; operators such as OR are dropped."""
        tokens = None if self.tokens is None else np.repeat(self.tokens, times, axis=0)
        return Descriptions(np.repeat(self.codes, times, axis=0), tokens)

    def expression(self, row: int) -> Expression | None:
        """Return the syntax tree of the description in ``row`` if it has operators such as OR, else None."""
        return self.expressions[row] if self.expressions else None

    def stream_key(self, row: int) -> tuple[int | str, ...]:
        """Return the numbers and words that, with a seed, determine the random draws for the description in ``row``."""
        expression = self.expression(row)
        if expression is not None:
            return expression.key
        return tuple(int(code) for code in (self.codes if self.tokens is None else self.tokens)[row])

    def batch(self, loaded: "TrainedModel", rows: int | slice, repeat: int = 1) -> "Batch":
        """Convert the descriptions of ``rows``, each ``repeat`` times, to a batch that models and posteriors read."""
        device = str(loaded.device)
        name = loaded.attributes.name if loaded.attributes is not None else "attributes"
        chosen = slice(rows, rows + 1) if isinstance(rows, int) else rows
        batch = batch_of_queries(np.repeat(self.codes[chosen], repeat, axis=0), name, device)
        text = loaded.text
        if self.tokens is None or text is None:
            return batch
        return batch | batch_of_captions(np.repeat(self.tokens[chosen], repeat, axis=0), text.name, device)

    def is_open(self, row: int) -> bool:
        """Return True if the description in ``row`` leaves attributes open; a caption leaves none open."""
        return self.tokens is None and (bool((self.codes[row] == UNKNOWN).any()) or self.expression(row) is not None)

    def batch_of_draws(self, loaded: "TrainedModel", rows: slice, draws: slice) -> "Batch":
        """Convert the descriptions of ``rows``, as completed for each of ``draws``, to a batch: all of the first, then
        of the next.
        """
        if self.completed is None:
            return self.batch(loaded, rows, draws.stop - draws.start)
        whole = self.completed[rows, draws]
        return loaded.completions.batch(whole.reshape(-1, whole.shape[-1]), str(loaded.device))

    def modalities(self, loaded: "TrainedModel", row: int) -> tuple[str, ...]:
        """Return the names of the modalities (attributes, text) that the description in ``row`` specifies."""
        names = []
        if loaded.attributes is not None and ((self.codes[row] != UNKNOWN).any() or self.expression(row) is not None):
            names.append(loaded.attributes.name)
        if loaded.text is not None and self.tokens is not None:
            names.append(loaded.text.name)
        return tuple(names)

    def format_texts(self, loaded: "TrainedModel") -> list[str]:
        """Format each description as a person would type it."""
        info, text = loaded.attributes, loaded.text
        if self.tokens is not None and text is not None:
            return [format_caption(row, text) for row in self.tokens]
        if info is None:
            return ["nothing given"] * len(self)
        return [str(self.expression(row) or format_query(codes, info)) for row, codes in enumerate(self.codes)]

    def format_short_texts(self, loaded: "TrainedModel") -> list[str]:
        """Format each description for figures: a caption, or only the values of the attributes."""
        info, text = loaded.attributes, loaded.text
        if info is None or any(self.expressions):
            return self.format_texts(loaded)
        values = [format_values(row, info) for row in self.codes]
        if self.tokens is None:
            return values
        captions = self.format_texts(loaded)
        if text is None or text.slots or (self.codes == UNKNOWN).all():
            return captions
        return [f"{caption} ({each})" for caption, each in zip(captions, values, strict=True)]  # free text spells none


def complete_descriptions(
    loaded: "TrainedModel", codes: np.ndarray | None = None, tokens: np.ndarray | None = None
) -> Descriptions:
    """Make descriptions from codes of attributes or captions, and derive the missing ones if captions spell attributes.

    Args:
        loaded: The model with the vocabulary.
        codes: Attribute codes uint8 [Q, A]; by default those that the captions spell.
        tokens: Word codes [Q, T]; by default the captions of the codes, if all of them are known.
    """
    text, info = loaded.text, loaded.attributes
    spelled = text is not None and info is not None and bool(text.slots)
    if codes is None:
        assert tokens is not None
        codes = np.full((len(tokens), len(info.names) if info is not None else 0), UNKNOWN, np.uint8)
        if spelled and text is not None and info is not None:
            codes = caption_to_attributes(tokens, text, info)
    elif tokens is None and spelled and text is not None and info is not None:
        needed = [info.names.index(slot) for slot in text.slots]
        if (codes[:, needed] != UNKNOWN).all():
            tokens = attributes_to_caption(codes, text, info)
    return Descriptions(codes, tokens)


def format_description(description: "str | Mapping[str, str]") -> str:
    """Format a description as a person would type it: ``{"digit": "3"}`` as ``digit=3``."""
    if isinstance(description, str):
        return description
    return " ".join(f"{name}={quote_value(value)}" for name, value in description.items())


def parse_descriptions(loaded: "TrainedModel", descriptions: Sequence[str]) -> Descriptions:
    """Parse descriptions as a person types them: all captions, or all of the form attribute=value.

    NOT and OR are drawn by completion; SCAN with operators understands AND, IN COMMON and IGNORE. For other models AND
    joins the attributes of both sides.

    Raises:
        UsageError: The model lacks a word or an operator, or captions and attributes are mixed.
    """
    text, info = loaded.text, loaded.attributes
    captions = [_is_caption(loaded, words) for words in descriptions]
    if any(captions) and not all(captions):
        raise UsageError(
            "got captions and attribute=value together, expected descriptions of one form; "
            "give all as captions or all as attribute=value"
        )
    if any(captions) and text is not None:
        return complete_descriptions(
            loaded, tokens=np.stack([parse_caption(words, text, info) for words in descriptions])
        )
    if info is None:
        if any(descriptions):
            raise UsageError(f"{loaded.path} has no attributes, so it draws only without a description; leave it out")
        return Descriptions(np.zeros((len(descriptions), 0), np.uint8))
    trees = [parse_words(words, info) for words in descriptions]
    completed = (NOT, OR) if loaded.completes else ()
    supported = frozenset(loaded.operators if loaded.operators and not loaded.guidance else completed)
    for tree in trees:
        _check_operators(loaded, tree, supported if loaded.operators else supported | {AND})
    expressions = tuple(tree if tree.operators & supported else None for tree in trees)
    codes = np.stack([tree.codes for tree in trees])
    return Descriptions(codes, expressions=expressions) if any(expressions) else complete_descriptions(loaded, codes)


def _is_caption(loaded: "TrainedModel", description: str) -> bool:
    """Return True if a description is a caption; values of attributes alone are none where no text is read."""
    text, info, source = loaded.text, loaded.attributes, loaded.fitted or loaded.encoder
    if text is None or not is_caption(description):
        return False
    if info is None or source is None or text.name in source.reads:
        return True
    words = [word for word in split_words(description) if word not in (NOT, OR)]
    spells = bool(text.slots) and len(words) == text.length
    return spells or not {value for each in info.values for value in each}.issuperset(words)


def _check_operators(loaded: "TrainedModel", tree: Expression, supported: frozenset[str]) -> None:
    """Raise an error if a description has operators that no posterior of the model understands."""
    missing = tree.operators - supported
    if not missing:
        return
    if not missing.isdisjoint((NOT, OR)):
        way = "leave it out" if loaded.operators else f"leave --no-complete or {min(missing)} out"
        raise UsageError(
            f"got {min(missing)} in '{tree}', which is drawn by completing descriptions, as this posterior does not; "
            f"{way}"
        )
    ways = [
        f"give the equivalent '{tree.meaning}'"
        if tree.restricted_attributes.any()
        else "give a description without operators"
    ]
    if loaded.operators:
        ways.append("leave guidance out")
    elif (
        "scan" in mmgen.posteriors.names()
        and not loaded.model.discrete_layers
        and "density" in loaded.model.capabilities  # these refuse every fit
    ):
        ways.append(
            f"draw from SCAN with operators: mmgen fit-aggregate {loaded.model_path} --target scan "
            "--set aggregate.target.operators=true"
        )
    reason = f"guidance {loaded.guidance} has none" if loaded.operators else f"{loaded.path} has none"
    raise UsageError(f"'{tree}' needs operators, and {reason}; {', or '.join(ways)}")


def description_batch(loaded: "TrainedModel", description: str | Mapping[str, str]) -> "Batch":
    """Parse a description and return it as a batch of one.

    Args:
        loaded: The model with the vocabulary.
        description: Attributes such as ``"digit=3 scale=big"`` or ``{"digit": "3"}``, the rest unknown; or, for a
            model of text, a caption such as ``"large red rubber cube left small blue metal sphere"``.

    Raises:
        UsageError: An attribute, value or word does not exist; the message suggests the nearest.
    """
    words = format_description(description)
    if loaded.attributes is None and not (is_caption(words) and loaded.text is not None):
        raise UsageError(f"{loaded.path} has no attributes, so it draws only without a description; leave it out")
    descriptions = parse_descriptions(loaded, [words])
    check_is_plain(descriptions)
    return batch_of_descriptions(loaded, descriptions)


def check_is_plain(descriptions: Descriptions) -> None:
    """Raise an error if a description has operators, where it is no more than a row of codes.

    Raises:
        UsageError: It has.
    """
    for expression in descriptions.expressions:
        if expression is not None:
            raise UsageError(
                f"'{expression}' has operators, expected a description by attribute=value alone here; leave them out, "
                "or draw pictures from the description alone"
            )


def batch_of_descriptions(loaded: "TrainedModel", descriptions: Descriptions) -> "Batch":
    """Convert descriptions to a batch of attributes and captions, or of captions alone if they spell no attributes."""
    batch = descriptions.batch(loaded, slice(None))
    spelt = loaded.text is not None and bool(loaded.text.slots)
    known = [loaded.attributes.name] if loaded.attributes is not None and (spelt or descriptions.tokens is None) else []
    return batch.select([*known, *([loaded.text.name] if loaded.text is not None else [])])


def default_posterior(loaded: "TrainedModel", descriptions: Descriptions) -> str:
    """Return the name of the default posterior: a fitted one, else the encoder; for empty descriptions the prior.

    Raises:
        UsageError: A description is not empty, and the default posterior reads no descriptions.
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
    """Return the name of ``posterior``, or by default :func:`default_posterior`, for descriptions that were typed.

    Raises:
        UsageError: There is no such posterior, or guidance has an empty description that is not completed.
    """
    source = loaded.posteriors[posterior or default_posterior(loaded, descriptions)].name
    is_empty = not all(descriptions.modalities(loaded, row) for row in range(len(descriptions)))
    if loaded.guidance and is_empty and not loaded.completes_words_of(source):
        raise UsageError(
            f"guidance {loaded.guidance} got an empty description, expected at least one word; describe "
            "the picture, or leave guidance out"
        )
    return source


def check_posterior_reads(loaded: "TrainedModel", posterior: str, descriptions: Descriptions) -> None:
    """Raise an error if a posterior does not read the modalities or operators of the descriptions.

    Raises:
        UsageError: The posterior reads no modality of a description; the message lists those that it reads.
    """
    reads = loaded.reads(posterior)
    names = descriptions.format_texts(loaded)
    for expression in descriptions.expressions:
        if (
            expression is not None
            and expression.operators & {*OPERATORS}
            and not loaded.posteriors[posterior].operators
        ):
            raise UsageError(
                f"posterior '{posterior}' understands no operators, got '{expression}'; draw from "
                f"'{loaded.posteriors.default}', or give the equivalent '{expression.meaning}'"
            )
    for row in range(len(descriptions)):
        described = descriptions.modalities(loaded, row)
        if not described or set(described) & set(reads):
            continue
        if descriptions.is_open(row) and loaded.completes_words_of(posterior):
            continue  # its captions spell the attributes
        if not reads:
            raise UsageError(
                f"got the description '{names[row]}' for posterior '{posterior}' of {loaded.path}, which reads no "
                f"descriptions: leave the description out, or choose another of {', '.join(loaded.posteriors)}"
                f"{', or draw with guidance' if loaded.likelihood.names else ''}"
            )
        forms = " or ".join(_format_of_description(loaded, name) for name in reads)
        raise UsageError(
            f"got the description '{names[row]}' by {' and '.join(described)}, but posterior '{posterior}' of "
            f"{loaded.path} reads {' and '.join(reads)}: give {forms}"
        )


def _format_of_description(loaded: "TrainedModel", modality: str) -> str:
    """Return an example of a description in this modality, for a message."""
    if loaded.attributes is not None and modality == loaded.attributes.name:
        return f"attribute=value of {', '.join(loaded.attributes.names)}"
    return f"a whole caption, {' '.join(loaded.text.slots)}" if loaded.text and loaded.text.slots else "a caption"


def empty_description(loaded: "TrainedModel") -> Descriptions:
    """Return one description that specifies nothing."""
    width = len(loaded.attributes.names) if loaded.attributes is not None else 0
    return Descriptions(np.full((1, width), UNKNOWN, np.uint8))
