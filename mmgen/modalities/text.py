"""Text: a sentence of at most T words of a vocabulary."""

import torch
from torch import Tensor

from mmgen.likelihoods.autoregressive import Autoregressive, Speaker
from mmgen.modalities._base import Modality

__all__ = ["Text"]


class Text(Modality):
    """Codes 0 .. V-1 are words; V, the padding, is "no word" and stands only at the end of a sentence.

    Decoder outputs are contexts [..., F], from which the speaker makes sentences word by word.

    Args:
        name: Name in the dataset file.
        vocabulary: The V words.
        length: T, words in the longest sentence.
        slots: Attribute that each position spells, length T; empty for free text.
        speaker: The network over words, part of the decoder; None where sentences are only conditioned on.
    """

    def __init__(
        self,
        name: str,
        vocabulary: tuple[str, ...],
        length: int,
        slots: tuple[str, ...] = (),
        speaker: Speaker | None = None,
    ) -> None:
        self.name = name
        self.vocabulary = vocabulary
        self.length = length
        self.slots = slots
        self.likelihood = Autoregressive(len(vocabulary))
        self._speaker = speaker

    def spoken_by(self, speaker: Speaker) -> "Text":
        """The same with a network over words, so that sentences can be generated."""
        return Text(self.name, self.vocabulary, self.length, self.slots, speaker)

    @property
    def padding(self) -> int:
        """Code of "no word": V."""
        return len(self.vocabulary)

    @property
    def speaker(self) -> Speaker:
        """The network over words."""
        assert self._speaker is not None, "this text was described for conditioning, not for generating"
        return self._speaker

    def log_prob(self, parameters: Tensor, value: Tensor, present: Tensor) -> Tensor:
        """log p(sentence | context) [..., B]: contexts [..., B, F], codes [B, T]; 0 where there is no sentence."""
        return self.likelihood.log_prob(self.speaker, parameters, value).masked_fill(~present, 0.0)

    def mean(self, parameters: Tensor) -> Tensor:
        """Sentences have no mean: the probabilities [..., T, V+1] of each word along the likeliest words so far."""
        return self.probabilities(parameters, self.sample(parameters, greedy=True))

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None, greedy: bool = False) -> Tensor:
        """A sentence for each context, codes int64 [..., T]; the likeliest word at every step if ``greedy``."""
        return self.likelihood.sample(self.speaker, parameters, self.length, generator, greedy)

    def probabilities(self, parameters: Tensor, tokens: Tensor) -> Tensor:
        """p(word_t | words before t, context) [..., T, V+1]; after the end padding has probability 1."""
        return self.likelihood.log_probabilities(self.speaker.logits(parameters, tokens), tokens).exp()
