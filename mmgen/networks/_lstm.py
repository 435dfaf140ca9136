"""Long short-term memory: the cell, and a reader of captions in both directions.

References:
    Long Short-Term Memory (Hochreiter, Schmidhuber, 1997), with forget gates (Gers et al., 2000), without peepholes
    Generating Images from Captions with Attention (Mansimov et al., 2016), arXiv:1511.02793, Section 3.1
"""

import torch
from torch import Tensor, nn

from mmgen.likelihoods import full_precision

__all__ = ["CaptionReader", "LstmCell", "LstmState"]

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
