"""Text: a sentence of at most T words of a vocabulary, or several of which each view draws one."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.plain_text import NotTextError, decode_text
from mmgen.descriptions import normalise_text, unknown_word_message
from mmgen.modalities._base import ROWS, Description, Element, Modality, StoredArray, View, all_present
from mmgen.modalities._stored import MAX_NAMES, are_distinct_texts, element_json

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from mmgen.likelihoods.autoregressive import Autoregressive, Speaker
    from mmgen.likelihoods.word_set import WordSet
    from mmgen.networks import TextNetwork

__all__ = ["TextDescription"]


_MOST_BYTES = 2**26  # of a file of sentences
MAX_WORDS = 65535  # codes are uint16, and one of them is the padding
_MOST_CAPTIONS = 1000


class TextDescription(Description):
    """Specification of sentences; rows are uint16 word codes [n, T], padded with the size of the vocabulary.

    With K > 1 captions rows are [n, K, T]; those that an example lacks are empty and come last. A view in training
    draws one of an example's captions; other views, and evaluations, have the first.
    """

    streamed: ClassVar[bool] = False
    describes: ClassVar[bool] = True
    translates: ClassVar[bool] = True
    files: ClassVar[tuple[str, ...]] = (".txt",)
    unknown: ClassVar[str] = "<unk>"
    """The word that stands for all words outside a vocabulary, if the vocabulary has it."""

    kind: Literal["text"] = "text"
    name: str = "text"
    vocabulary: tuple[str, ...]
    """The V words; a word's code is its position."""
    length: Annotated[int, Field(ge=1)]
    """T, words in the longest sentence; a shorter one is padded at its end."""
    slots: tuple[str, ...] = ()
    """Attribute that each position spells, length T; empty for free text."""
    captions: Annotated[int, Field(ge=1, le=_MOST_CAPTIONS)] = 1
    """K, captions of an example at most."""

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        if not 1 <= len(self.vocabulary) == len(set(self.vocabulary)) <= MAX_WORDS:
            raise ValueError(
                f"the vocabulary of text '{self.name}' got {len(self.vocabulary)} words, "
                f"{len(set(self.vocabulary))} of them distinct, expected 1 to {MAX_WORDS} distinct words; name each "
                "word once"
            )
        if self.slots and not len(set(self.slots)) == len(self.slots) == self.length:
            raise ValueError(
                f"text '{self.name}' got slots {', '.join(self.slots)}, expected {self.length} distinct slots, one for "
                "each word of a sentence; or leave slots out"
            )
        return self

    @property
    def padding(self) -> int:
        """Code of padding, "no word": V."""
        return len(self.vocabulary)

    def words(self, codes: np.ndarray) -> str:
        """Convert a row of word codes [T] to a sentence.

        Example:
            >>> import numpy as np
            >>> TextDescription(vocabulary=("red", "cube"), length=3).words(np.array([0, 1, 2], np.uint16))
            'red cube'
        """
        return " ".join(self.vocabulary[int(code)] for code in codes if code < self.padding)

    def arrays(self) -> dict[str, StoredArray]:
        shape = (self.length,) if self.captions == 1 else (self.captions, self.length)
        return {ROWS: StoredArray("uint16", shape)}

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one sentence, (T,)."""
        return (self.length,)

    def text_attributes(self) -> dict[str, str]:
        return {"vocabulary": json.dumps(self.vocabulary), "slots": json.dumps(self.slots)}

    @classmethod
    def read(cls, name: str, element: Element) -> "TextDescription":
        shape, words, slots = element.shape(), element_json(element, "vocabulary"), element_json(element, "slots")
        captions, length = (1, shape[1]) if len(shape) == 2 else shape[1:] if len(shape) == 3 else (1, 0)
        if not 1 <= captions <= _MOST_CAPTIONS:
            raise ArtifactError(
                f"{element.location} has {captions} captions an example, expected 1 to {_MOST_CAPTIONS}; make the file "
                "again"
            )
        if not are_distinct_texts(words, 1, MAX_WORDS):
            raise ArtifactError(
                f"{element.location} has no vocabulary of 1 to {MAX_WORDS} distinct words; make the file again"
            )
        if not length or not (slots == [] or (are_distinct_texts(slots, 1, MAX_NAMES) and len(slots) == length)):
            raise ArtifactError(
                f"{element.location} does not name one attribute for each of its {length} words; make the file again"
            )
        return cls(name=name, vocabulary=tuple(words), length=length, slots=tuple(slots), captions=captions)

    def find_fault(self, stored: np.ndarray, array: str = ROWS) -> str:
        padded = stored == self.padding
        if (stored > self.padding).any() or (padded[..., :-1] > padded[..., 1:]).any():
            return "a code is no word, or padding stands before a word"
        if stored.ndim == 3 and (padded[:, :-1, 0] > padded[:, 1:, 0]).any():
            return "an empty caption stands before another"
        return ""

    def unpack(self, stored: np.ndarray) -> np.ndarray:
        """Return the first caption [n, T] of each example."""
        return stored if stored.ndim == 2 else stored[:, 0]

    def write(self, path: Path, values: np.ndarray) -> None:
        """Write word codes [n, T] as sentences to a text file, one a line."""
        path.write_text("".join(f"{self.words(row)}\n" for row in values), encoding="utf-8")

    def read_file(self, path: Path) -> tuple[np.ndarray, str]:
        """Read sentences, one a line with spaces between words, as codes float32 [n, T].

        Words outside the vocabulary become ``<unk>`` where it has that word, and long sentences are cut off; a notice
        counts both.

        Raises:
            UsageError: It is no text, has an empty line, or a word that is unknown to a vocabulary without ``<unk>``.
        """
        try:
            lines = decode_text(read_file(path, _MOST_BYTES)).removesuffix("\n").split("\n")
        except (CannotReadError, NotTextError) as error:
            raise UsageError(f"cannot read {path}: {error}; give a text file, one sentence a line") from None
        code = {word: number for number, word in enumerate(self.vocabulary)}
        codes = np.full((len(lines), self.length), self.padding, np.float32)
        unknown, cut = 0, 0
        for row, line in enumerate(lines):
            words = normalise_text(line).split()
            if not words:
                raise UsageError(f"line {row + 1} of {path} is empty, expected a sentence; take the line out")
            known = [word if word in code else word.lower() for word in words[: self.length]]
            strange = next((word for word in known if word not in code), None)
            if strange is not None and self.unknown not in code:
                raise UsageError(unknown_word_message(f"line {row + 1} of {path}", strange, self.vocabulary))
            codes[row, : len(known)] = [code.get(word, code.get(self.unknown)) for word in known]
            unknown, cut = unknown + sum(word not in code for word in known), cut + (len(words) > self.length)
        notice = f"{unknown:,} words of {path.name} are not in the data and became {self.unknown}" if unknown else ""
        long = f"{cut:,} sentences were cut after {self.length} words" if cut else ""
        return codes, "; ".join(filter(None, (notice, long)))

    def torch_rows(self, stored: np.ndarray) -> np.ndarray:
        """Convert word codes to int32, since torch hardly supports uint16."""
        return stored.astype(np.int32)

    def tensors(self, rows: "Tensor", view: View) -> tuple["Tensor", "Tensor"]:
        """Convert rows in memory to sentences [B, T]; of several, a view in training draws one by its key."""
        if rows.dim() == 2:
            return self.values_and_presence(rows)
        from mmgen.core.views import draw_choices, view_key

        seed, *which = view.key
        if not which:
            return self.values_and_presence(rows[:, 0])
        counts = (rows[:, :, 0] != self.padding).sum(1).clamp(min=1)
        chosen = draw_choices(counts, view.rows(), view_key(seed, self.name, *which))
        index = chosen[:, None, None].expand(-1, 1, rows.shape[2])
        return self.values_and_presence(rows.gather(1, index)[:, 0])

    def values_and_presence(self, values: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return word codes [B, T] as int64, all present."""
        return values.long(), all_present(values)

    @classmethod
    def example(cls, count: int = 5) -> tuple[Self, np.ndarray]:
        """Return the specification of sentences of one or two words, and rows of it."""
        described = cls(vocabulary=("big", "red"), length=2)
        return described, np.stack([np.arange(count) % 2, np.arange(count) % 3], 1).astype(np.uint16)

    @classmethod
    def network_settings_class(cls) -> type[Any]:
        from mmgen.networks import TextNetwork

        return TextNetwork

    def modality(self, likelihood: str | None = None) -> "Text":
        return Text(self.name, self.vocabulary, self.length, self.slots)

    def is_compatible(self, other: Description) -> bool:
        """Return True if sentences have the same vocabulary and length; slots and numbers of captions may differ."""
        mine = (self.vocabulary, self.length)
        return isinstance(other, TextDescription) and mine == (other.vocabulary, other.length)

    def describe_size(self) -> str:
        several = f", up to {self.captions} for each example" if self.captions > 1 else ""
        return f"{self.name} of at most {self.length} words{several}"


class Text(Modality):
    """Sentences of words with codes 0 .. V-1; code V is padding, "no word", at the end of a sentence only.

    Decoder outputs are contexts [..., F], from which a network over words (the speaker) generates sentences. Where the
    likelihood is of sets of words they are a logit for each word [..., V].

    Args:
        name: Name in the dataset file.
        vocabulary: The V words.
        length: T, words in the longest sentence.
        slots: Attribute that each position spells, length T; empty for free text.
        speaker: The network over words, part of the decoder; None where sentences are only conditioned on.
        likelihood: Of sentences by default, or of sets of words.
    """

    kind: ClassVar[str] = "text"

    def __init__(
        self,
        name: str,
        vocabulary: tuple[str, ...],
        length: int,
        slots: tuple[str, ...] = (),
        speaker: "Speaker | nn.Module | None" = None,
        likelihood: "Autoregressive | WordSet | None" = None,
    ) -> None:
        from mmgen.likelihoods.autoregressive import Autoregressive

        self.name = name
        self.vocabulary = vocabulary
        self.length = length
        self.slots = slots
        self.likelihood = likelihood or Autoregressive(len(vocabulary))
        self._speaker = speaker

    def with_speaker(self, speaker: "Speaker") -> "Text":
        """Return a copy with a decoder over words, by which sentences can be generated."""
        return Text(self.name, self.vocabulary, self.length, self.slots, speaker)

    def decoder(self, inputs: int, network: "TextNetwork") -> tuple["Text", "nn.Module"]:
        from mmgen.networks import BagDecoder, TextDecoder

        if network.decoder == "bag":
            from mmgen.likelihoods.word_set import WordSet

            bag, likelihood = BagDecoder(inputs, len(self.vocabulary), network), WordSet(len(self.vocabulary))
            return Text(self.name, self.vocabulary, self.length, self.slots, bag, likelihood), bag
        speaker = TextDecoder(inputs, len(self.vocabulary), network)
        return self.with_speaker(speaker), speaker

    def encoder(self, network: "TextNetwork") -> tuple["nn.Module", int]:
        from mmgen.networks import text_encoder

        made = text_encoder(len(self.vocabulary), network)
        return made, made.features

    @property
    def padding(self) -> int:
        """Code of padding, "no word": V."""
        return len(self.vocabulary)

    @property
    def speaker(self) -> "Any":
        """The decoder that generates words one by one."""
        assert self._speaker is not None, "this text was described for conditioning, not for generating"
        return self._speaker

    def log_prob(self, parameters: "Tensor", value: "Tensor", present: "Tensor") -> "Tensor":
        """Return log p(sentence | context) [..., B] of contexts [..., B, F] and codes [B, T]; 0 for examples without a
        sentence.
        """
        return self.likelihood.log_prob(self.speaker, parameters, value).masked_fill(~present, 0.0)

    def mean(self, parameters: "Tensor") -> "Tensor":
        """Return word probabilities [..., T, V+1] along the likeliest sentence, since sentences have no mean."""
        return self.probabilities(parameters, self.sample(parameters, greedy=True))

    def typical(self, parameters: "Tensor") -> "Tensor":
        """Return the sentence [..., T] with the likeliest word at every step."""
        return self.sample(parameters, greedy=True)

    def sample(
        self, parameters: "Tensor", generator: "torch.Generator | None" = None, greedy: bool = False
    ) -> "Tensor":
        """Draw a sentence for each context, codes int64 [..., T]; with ``greedy`` take the likeliest word at every
        step.
        """
        return self.likelihood.sample(self.speaker, parameters, self.length, generator, greedy)

    def probabilities(self, parameters: "Tensor", tokens: "Tensor") -> "Tensor":
        """Return p(word_t | words before t, context) [..., T, V+1]; after the end padding has probability 1."""
        return self.likelihood.probabilities(self.speaker, parameters, tokens)

    def likeliest(self, parameters: "Tensor") -> "Tensor":
        """Return the likeliest sentences [B, T], averaged over S draws of contexts [S, B, F]."""
        return self.likelihood.likeliest(self.speaker, parameters, self.length)

    def compare(self, true: "Tensor", predicted: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return which words two texts [B, T] share, and which either has: bool [B, P], by place or by word."""
        return self.likelihood.compare(true, predicted)
