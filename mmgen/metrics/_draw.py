"""Pictures for descriptions, judged; drawn once and shared by all metrics that look at them."""

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.generation.decode import Piece, draw_words, pictures
from mmgen.generation.descriptions import Descriptions, complete, nothing
from mmgen.generation.judge import sees_samples
from mmgen.generation.latents import draw_latents
from mmgen.metrics._queries import Queries
from mmgen.queries import codes_of_caption

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation.open_model import OpenModel

__all__ = ["JudgedPictures"]

_QUERIES = 64
"""Queries whose latents are drawn before any of their pictures are."""


class JudgedPictures:
    """What the judge sees on pictures that a model draws.

    Pixels are sampled where the dataset's images are binary, since the judge learnt from binary images (VE Fig. 3);
    elsewhere the judge is shown the mean, since grey levels of the data are no draws of a Bernoulli variable.

    Args:
        loaded: The model.
        judge: Trained on the same kind of images.
        seed: Seed of all draws. Each description has its own streams.
        precision: Arithmetic of decoders and judge: auto, 32-true or bf16-mixed.
    """

    def __init__(self, loaded: "OpenModel", judge: "Classifier", seed: int, precision: str = "auto") -> None:
        self.loaded = loaded
        self.judge = judge
        self.seed = seed
        self.precision = precision
        self._judged: dict[tuple[str, int], NDArray[np.uint8]] = {}
        self._features: dict[tuple[str, int], NDArray[np.float32]] = {}

    @property
    def sampled(self) -> bool:
        """Whether the judge is fed sampled pixels (else means)."""
        return sees_samples(self.loaded)

    @torch.inference_mode()
    def judged(self, queries: Queries, posterior: str, n: int) -> Generator[float, None, NDArray[np.uint8]]:
        """What the judge says about ``n`` or more pictures of each query.

        Pictures drawn for an earlier question are used again, and only the missing ones are drawn.

        Args:
            queries: What to draw; the same queries each time for the same number of dropped attributes.
            posterior: Where z comes from.
            n: Pictures of each query, at least.

        Yields:
            Fraction done.

        Returns:
            Codes uint8 [Q, n', A] with n' >= n.
        """
        return (yield from self._looked_at(self._judged, self._read, queries, posterior, n))

    @torch.inference_mode()
    def features(self, queries: Queries, posterior: str, n: int) -> Generator[float, None, NDArray[np.float32]]:
        """The judge's features [Q, n', F] of ``n`` or more pictures of each query; arguments as of :meth:`judged`."""
        return (yield from self._looked_at(self._features, self.judge.features, queries, posterior, n))

    def _read(self, images: Tensor, told: Tensor) -> Tensor:
        return self.judge.predict(images, told, self.precision)

    def _looked_at(
        self,
        kept: dict[tuple[str, int], NDArray[Any]],
        look: Callable[[Tensor, Tensor], Tensor],
        queries: Queries,
        posterior: str,
        n: int,
    ) -> Generator[float, None, NDArray[Any]]:
        """What ``look`` sees on ``n`` or more pictures of each query [Q, n', *], of which ``kept`` may have some."""
        key = (posterior, queries.dropped)
        known = kept.get(key)
        have = 0 if known is None else known.shape[1]
        if have < n:
            told = torch.from_numpy(queries.codes)
            new: NDArray[Any] | None = None
            for piece in self.pictures(queries, posterior, n - have, have):
                images = piece.seen
                asked = told[piece.rows].repeat_interleave(images.shape[1], 0)
                seen = look(images.flatten(0, 1), asked).reshape(*images.shape[:2], -1).cpu().numpy()
                if new is None:
                    new = np.empty((len(queries), n - have, seen.shape[-1]), seen.dtype)
                new[piece.rows, piece.draws] = seen
                yield (piece.rows.stop - 1 + piece.draws.stop / (n - have)) / len(queries)
            assert new is not None
            known = new if known is None else np.concatenate([known, new], axis=1)
            kept[key] = known
        assert known is not None
        return known

    def pictures(self, queries: Queries, posterior: str, n: int, have: int = 0) -> Iterator[Piece]:
        """n pictures of each query, a bounded number at a time: those that ``mmgen sample`` draws of the same seed.

        Args:
            queries: What to draw.
            posterior: Where z comes from.
            n: Pictures of each query.
            have: How many of each there are already.
        """
        loaded = self.loaded
        assert loaded.image is not None
        # Captions in free words are asked for alone: their examples' attributes are what pictures are compared with.
        every = complete(loaded, queries.codes) if queries.tokens is None else complete(loaded, tokens=queries.tokens)
        for start in range(0, len(queries), _QUERIES):
            asked = every[start : start + _QUERIES]
            z = draw_latents(loaded, posterior, asked, n, self.seed, have)
            pieces = pictures(
                loaded, loaded.image.name, z, asked, self.seed,
                sampled=self.sampled, have=have, precision=self.precision,
            )  # fmt: skip
            for piece in pieces:
                rows = slice(piece.rows.start + start, piece.rows.stop + start)
                yield Piece(rows, piece.draws, piece.means, piece.sampled)

    @property
    def _words(self) -> str | None:
        """The modality whose words can be compared with what the judge sees: text or attributes; None without one."""
        loaded = self.loaded
        if loaded.model.conditional_on:
            return None
        offered = [loaded.text if loaded.text is not None and loaded.text.slots else None, loaded.attributes]
        return next((part.name for part in offered if part is not None and part.name in loaded.model.modalities), None)

    @property
    def says_words(self) -> bool:
        """Whether the model generates words that the judge can be compared with."""
        return self._words is not None

    @torch.inference_mode()
    def generated(self, posterior: str, n: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Pictures and words of the same z: what the judge sees, and the words, both uint8 [n, A] (CK Table 2).

        A judge that is told words is told the generated ones (CK 5.4); a word where none belongs is ``UNKNOWN``.
        """
        loaded = self.loaded
        assert loaded.attributes is not None and loaded.image is not None
        asked = nothing(loaded)
        z = draw_latents(loaded, posterior, asked, n, self.seed)
        said = self._say(z, asked)
        seen = []
        for piece in pictures(
            loaded, loaded.image.name, z, asked, self.seed, sampled=self.sampled, precision=self.precision
        ):
            told = torch.from_numpy(said[piece.draws])
            seen.append(self.judge.predict(piece.seen.flatten(0, 1), told, self.precision).cpu().numpy())
        return np.concatenate(seen), said

    def _say(self, z: Tensor, asked: Descriptions) -> NDArray[np.uint8]:
        """Words of latents [1, n, D] as attribute codes uint8 [n, A]."""
        loaded, name = self.loaded, self._words
        assert loaded.attributes is not None and name is not None
        words = draw_words(loaded, name, z, asked, self.seed, self.precision)[0].cpu().numpy()
        if loaded.text is not None and name == loaded.text.name:
            return codes_of_caption(words, loaded.text, loaded.attributes)
        return words.astype(np.uint8)
