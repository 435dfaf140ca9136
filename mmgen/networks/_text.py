"""Networks over sentences: recurrent units over words.

References:
    Long Short-Term Memory (Hochreiter, Schmidhuber, 1997), with forget gates (Gers et al., 2000), without peepholes
    Generating Images from Captions with Attention (Mansimov et al., 2016), arXiv:1511.02793, Section 3.1

A word's share in the gates of the unit is a table with a row per word, computed once; z's share is computed once per
z. So a step costs one product with the state, however many latents are asked about the same sentences.

References:
    Learning Phrase Representations using RNN Encoder-Decoder (Cho et al., 2014), arXiv:1406.1078
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Section 5.1
"""

from typing import Annotated, Literal

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.likelihoods import full_precision
from mmgen.networks._base import ACTIVATIONS

LstmState = tuple[Tensor, Tensor]
"""Output h and cell c, [R, H] each."""


class LstmCell(nn.Module):
    """Cell of long short-term memory with one bias.

    Args:
        inputs: Width of the input; 0 where its part of the gates is added from outside.
        hidden: H.
        learned_start: Whether the first output h is a parameter, not zeros; the first cell is zeros.
    """

    def __init__(self, inputs: int, hidden: int, learned_start: bool = False) -> None:
        super().__init__()
        self.hidden = hidden
        self.gates = nn.Linear(inputs + hidden, 4 * hidden)
        self.first = nn.Parameter(torch.zeros(hidden)) if learned_start else None

    def start(self, rows: int) -> LstmState:
        """Return the state of ``rows`` sequences before their first element."""
        zeros = self.gates.weight.new_zeros(rows, self.hidden)
        return (zeros if self.first is None else zeros + self.first), zeros

    def forward(self, parts: list[Tensor], state: LstmState, added: Tensor | None = None) -> LstmState:
        """Return the next state, given parts of the input [R, ...] side by side.

        Args:
            parts: The input.
            state: The state before.
            added: Further terms of the gates [R, 4 H].
        """
        h, c = state
        gates = full_precision(self.gates(torch.cat([*parts, h], -1)))
        if added is not None:
            gates = gates + added
        # Order of the gates: input, forget, output, then the proposal.
        opened = gates[..., : 3 * self.hidden].sigmoid()
        proposal = gates[..., 3 * self.hidden :].tanh()
        i, f, o = opened.chunk(3, -1)
        c = torch.addcmul(f * c, i, proposal)
        return o * c.tanh(), c


class CaptionReader(nn.Module):
    """Reader of captions [B, L] in both directions, which gives a state of 2 H numbers for each word.

    Both directions read the words of the same caption. Padding leaves the state as it is, so that reading backwards
    starts at the last word.

    Args:
        words: V; code V is padding.
        hidden: H.
        embedding: Width of word vectors; None: each word is an input of its own.
        learned_start: Whether the first output, that of both directions, is a parameter.
    """

    def __init__(self, words: int, hidden: int, embedding: int | None = None, learned_start: bool = False) -> None:
        super().__init__()
        self.words, self.features = words, 2 * hidden
        self.embedding = None if embedding is None else nn.Embedding(words, embedding)
        width = words if embedding is None else embedding
        self.inputs = nn.ModuleList(nn.Linear(width, 4 * hidden, bias=False) for _ in range(2))
        self.cells = nn.ModuleList(LstmCell(0, hidden) for _ in range(2))
        self.first = nn.Parameter(torch.zeros(hidden)) if learned_start else None

    def forward(self, codes: Tensor, present: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return states [B, L, 2 H] of words, the last states of both directions [B, 2 H], and where words are [B, L].

        Args:
            codes: Codes of words [B, L].
            present: Whether there is a caption [B]; one that is absent has no words.
        """
        is_word = (codes < self.words) & present[:, None]
        codes = codes.masked_fill(~is_word, 0)
        ahead = self._read(0, codes, is_word)
        back = self._read(1, codes.flip(1), is_word.flip(1))
        states = torch.cat([torch.stack(ahead, 1), torch.stack(back[::-1], 1)], -1)
        last = torch.cat([ahead[-1], back[-1]], -1) * is_word.any(1, keepdim=True)
        return states, last, is_word

    def _read(self, direction: int, codes: Tensor, is_word: Tensor) -> list[Tensor]:
        """Return the output [B, H] after each place, read from the first to the last."""
        inputs, cell = self.inputs[direction], self.cells[direction]
        assert isinstance(inputs, nn.Linear) and isinstance(cell, LstmCell)
        # index_select has a deterministic, cheap backward on few rows, unlike advanced indexing.
        if self.embedding is None:
            gates = inputs.weight.T.index_select(0, codes.flatten())
        else:
            gates = inputs(self.embedding.weight.index_select(0, codes.flatten()))
        gates = gates.reshape(*codes.shape, -1)
        h, c = cell.start(len(codes))
        h = h if self.first is None else h + self.first
        outputs = []
        for t, mask in enumerate(is_word.unsqueeze(-1).unbind(1)):
            new_h, new_c = cell([], (h, c), gates[:, t])
            h, c = torch.where(mask, new_h, h), torch.where(mask, new_c, c)
            outputs.append(h)
        return outputs


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class TextNetwork:
    """Settings of the networks that encode and decode sentences; widths are CK's (Section 5.1)."""

    embedding: Annotated[int, Field(ge=1)] = 64
    """Width of the embedding of a word."""
    hidden: Annotated[int, Field(ge=1)] = 200
    """Width of the recurrent state, or of the features of a bag of words."""
    head: Annotated[int, Field(ge=1)] = 200
    """Width of the fully connected layers from the decoder's state to the next word."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the head's features, and of the encoder's output, that are dropped in training."""
    word_dropout: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the words before the next one that are hidden from the decoder in training, so that it needs z (Bowman
    et al., 2016: 0.25 to 0.38); 1 for a decoder that sees none. Sentences are scored with all words."""
    encoder: Literal["recurrent", "bag"] = "recurrent"
    """How sentences are read: "recurrent", word by word, or "bag", as a sum of words without order, which needs fewer
    captions to learn from."""
    decoder: Literal["recurrent", "bag"] = "recurrent"
    """What p(text | z) is of: "recurrent", sentences of words in order, or "bag", sets of words without order, in which
    each word of the vocabulary is present by a probability of its own; exact for attributes in random order."""
    bidirectional: bool = False
    """Whether the encoder also reads sentences backwards; the two last states are added up (WG on MultiMNIST)."""
    batch_norm: bool = True
    """Whether the head's layers are followed by batch norm."""
    activation: Literal["elu", "relu", "silu"] = "relu"
    """Non-linearity of the head."""

    def __post_init__(self) -> None:
        if self.bidirectional and self.encoder == "bag":
            raise ValueError("bidirectional got true with encoder 'bag', which has no direction; leave one of them out")
        if self.word_dropout and self.decoder == "bag":
            raise ValueError("word_dropout is for decoder 'recurrent', and 'bag' reads no words; leave one of them out")


class _RecurrentUnit(nn.Module):
    """Gated recurrent unit that gets its input gates ready-made, as a sum of parts from the word and from z.

    Args:
        symbols: How many have a vector here; None where vectors are those of another unit.
        settings: Widths.
    """

    def __init__(self, symbols: int | None, settings: TextNetwork) -> None:
        super().__init__()
        self.hidden = settings.hidden
        if symbols is not None:
            self.embedding = nn.Embedding(symbols, settings.embedding)
        self.word = nn.Linear(settings.embedding, 3 * settings.hidden)
        self.state = nn.Linear(settings.hidden, 3 * settings.hidden)

    def word_gates(self, vectors: Tensor | None = None) -> Tensor:
        """Return each word's part of the input gates [symbols, 3 H], from its embedding or from ``vectors`` [symbols,
        E].
        """
        share: Tensor = self.word(self.embedding.weight if vectors is None else vectors)
        return share

    def forward(self, gates: Tensor, state: Tensor) -> Tensor:
        """Return the next state [..., H] from input gates [..., 3 H] and the state [..., H]."""
        from_state = self.state(state)
        size = self.hidden
        both = (gates[..., : 2 * size] + from_state[..., : 2 * size]).sigmoid()
        reset, keep = both.split(size, -1)
        proposal = torch.addcmul(gates[..., 2 * size :], reset, from_state[..., 2 * size :]).tanh()
        return torch.lerp(proposal, state, keep)


class TextEncoder(nn.Module):
    """Encoder of sentences [B, T]: the state [B, H] of a recurrent network after the last word.

    Args:
        words: V; code V is padding.
        settings: Widths.
    """

    def __init__(self, words: int, settings: TextNetwork) -> None:
        super().__init__()
        self.words = words
        self.features = settings.hidden
        self.unit = _RecurrentUnit(words + 1, settings)
        self.reverse = _RecurrentUnit(None, settings) if settings.bidirectional else None
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        with torch.autocast(tokens.device.type, enabled=False):
            length = (tokens < self.words).sum(1)
            order = length.argsort(descending=True, stable=True)
            length = length.index_select(0, order)
            tokens = tokens.index_select(0, order)
            state = self._read_words(self.unit, self.unit.word_gates(), tokens)
            if self.reverse is not None:
                places = (length.unsqueeze(1) - 1 - torch.arange(tokens.shape[1], device=tokens.device)) % len(
                    tokens[0]
                )
                backwards = tokens.gather(1, places)
                table = self.reverse.word_gates(self.unit.embedding.weight)
                state = state + self._read_words(self.reverse, table, backwards)
            return self.dropout(state.index_select(0, order.argsort()))

    def _read_words(self, unit: _RecurrentUnit, table: Tensor, tokens: Tensor) -> Tensor:
        """Return the state [B, H] after the last word of sentences, the longest first; padding takes no time."""
        is_word = (tokens < self.words).t()
        sizes = [size for size in is_word.sum(1).tolist() if size]
        # index_select has a deterministic, cheap backward on few rows, unlike advanced indexing.
        gates = table.index_select(0, tokens.t()[is_word]).split(sizes) if sizes else ()
        state = table.new_zeros(len(tokens), self.features)
        for step in gates:
            size = len(step)
            state = torch.cat([unit(step, state[:size]), state[size:]])
        return state


class BagEncoder(nn.Module):
    """Encoder of sentences [B, T] without order: features [B, H] of the sum of word vectors over root of their number.

    Words are added up in the order of their codes, so that other orders give the same features to the last bit.

    Args:
        words: V; code V is padding.
        settings: Widths.
    """

    def __init__(self, words: int, settings: TextNetwork) -> None:
        super().__init__()
        self.words = words
        self.features = settings.hidden
        self.embedding = nn.Embedding(words + 1, settings.embedding)
        self.layer = nn.Linear(settings.embedding, settings.hidden)
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        with torch.autocast(tokens.device.type, enabled=False):
            tokens = tokens.sort(1).values
            is_word = (tokens < self.words).unsqueeze(-1).to(self.embedding.weight.dtype)
            # index_select has a deterministic, cheap backward on few rows, unlike advanced indexing.
            vectors = self.embedding.weight.index_select(0, tokens.flatten()).reshape(*tokens.shape, -1)
            total = (is_word * vectors).sum(1) / is_word.sum(1).clamp_min(1).sqrt()
            features: Tensor = self.dropout(self.layer(total))
            return features


def text_encoder(words: int, settings: TextNetwork) -> TextEncoder | BagEncoder:
    """Return an encoder of sentences over ``words`` words, as ``settings.encoder`` says."""
    return BagEncoder(words, settings) if settings.encoder == "bag" else TextEncoder(words, settings)


class TextDecoder(nn.Module):
    """Decoder from z to words: a recurrent network reads z and the previous word, three layers predict the next.

    Calling it gives the context, z's share in the gates at every step [..., 3 H]; :meth:`logits`, :meth:`start` and
    :meth:`step` make words of it (a :class:`~mmgen.likelihoods.autoregressive.Speaker`). Always in full precision.

    Args:
        inputs: Width of what is decoded: z, or what a shared decoder makes of it.
        words: V.
        settings: Widths.
    """

    def __init__(self, inputs: int, words: int, settings: TextNetwork) -> None:
        super().__init__()
        self.words = words
        self.word_dropout = settings.word_dropout
        self.unit = _RecurrentUnit(words + 2, settings)  # the words, padding, and what stands before the first word
        self.context = nn.Linear(inputs, 3 * settings.hidden, bias=False)
        self.head = _Head(settings, words + 1)

    def forward(self, z: Tensor) -> Tensor:
        """Return the context [..., 3 H] of z [..., D]: its part of the recurrent unit's gates at every step."""
        with torch.autocast(z.device.type, enabled=False):
            context: Tensor = self.context(full_precision(z))
            return context

    def start(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state before the first word, zeros [..., H], and the code that stands before the first word."""
        state = context.new_zeros(*context.shape[:-1], self.unit.hidden)
        return state, torch.full((1,) * (context.dim() - 1), self.words + 1, device=context.device)

    def step(self, context: Tensor, state: Tensor, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next state [..., H] and the logits [..., V+1] of the next word, given the previous word's code."""
        with torch.autocast(context.device.type, enabled=False):
            state = self.unit(context + self.unit.word_gates()[previous], state)
            return state, self.head(state)

    def logits(self, context: Tensor, previous: Tensor, sizes: list[int]) -> Tensor:
        """Return the logits [N, V+1] of the words of R sentences, the longest first, in the order of their steps.

        Args:
            context: Of each sentence [R, 3 H].
            previous: Code of the word before each word [N]: of all sentences at the first step, then at the second.
            sizes: How many sentences have a word at each step, falling; N in all.
        """
        with torch.autocast(context.device.type, enabled=False):
            if self.training and self.word_dropout:
                # A hidden word is read as padding, which never stands before a word.
                is_hidden = torch.rand(previous.shape, device=previous.device) < self.word_dropout
                is_hidden[: sizes[0]] = False
                previous = previous.masked_fill(is_hidden, self.words)
            state = self.start(context)[0]
            states = []
            for gates in self.unit.word_gates().index_select(0, previous).split(sizes):
                context, state = context[: len(gates)], state[: len(gates)]
                state = self.unit(context + gates, state)
                states.append(state)
            return self.head(torch.cat(states))


class BagDecoder(nn.Module):
    """Decoder from z [..., D] to a logit for each word [..., V], by one hidden layer. Always in full precision.

    Args:
        inputs: Width of what is decoded: z, or what a shared decoder makes of it.
        words: V.
        settings: Widths.
    """

    def __init__(self, inputs: int, words: int, settings: TextNetwork) -> None:
        super().__init__()
        self.hidden = nn.Linear(inputs, settings.head)
        self.activation = ACTIVATIONS[settings.activation]()
        self.dropout = nn.Dropout(settings.dropout)
        self.last = nn.Linear(settings.head, words)

    def forward(self, z: Tensor) -> Tensor:
        with torch.autocast(z.device.type, enabled=False):
            logits: Tensor = self.last(self.dropout(self.activation(self.hidden(full_precision(z)))))
            return logits


class _Head(nn.Module):
    """Three dense layers with a residual connection, batch norm and dropout, from states [..., H] to logits."""

    def __init__(self, settings: TextNetwork, classes: int) -> None:
        super().__init__()
        width = settings.head
        self.first = nn.Linear(settings.hidden, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, classes)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) if settings.batch_norm else nn.Identity() for _ in range(2))
        self.activation = ACTIVATIONS[settings.activation]()
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, state: Tensor) -> Tensor:
        flat = state.flatten(0, -2)
        one = self.activation(self.norms[0](self.first(flat)))
        two = one + self.activation(self.norms[1](self.second(self.dropout(one))))
        result: Tensor = self.last(self.dropout(two))
        return result.reshape(*state.shape[:-1], -1)
