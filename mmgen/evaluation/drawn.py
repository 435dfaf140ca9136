"""Pictures for descriptions, judged; drawn once and shared by all metrics that look at them."""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.descriptions import codes_of_caption
from mmgen.evaluation.queries import Queries
from mmgen.generation.decode import Piece, draw_words, pictures
from mmgen.generation.descriptions import Descriptions, complete, nothing
from mmgen.generation.judge import sees_samples
from mmgen.generation.latents import draw_latents

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation import TrainedModel

__all__ = ["JudgedPictures"]

_QUERIES = 64
"""Queries whose latents are drawn before any of their pictures are."""


_Key = tuple[str, int]
"""Posterior, and number of attributes left out."""


class _Look:
    """What a judge sees in those of a query's pictures that it has not looked at yet.

    Args:
        kept: What it has seen, [Q, n, *] for each key.
        see: Images [n, C, H, W] and codes [n, A] that it may be told, to what it sees [n, *].
        key: Posterior, and number of attributes left out.
        most: How many pictures of each query it is to see in all.
    """

    def __init__(
        self, kept: dict[_Key, NDArray[Any]], see: Callable[[Tensor, Tensor], Tensor], key: _Key, most: int
    ) -> None:
        self.kept, self.see, self.key, self.most = kept, see, key, most
        self.have = kept[key].shape[1] if key in kept else 0
        self.new: NDArray[Any] | None = None

    def at(self, piece: Piece, first: int, told: Tensor, number: int) -> None:
        """Look at those pictures of a piece that are new, the first of its numbering being the ``first`` of a query."""
        start, stop = (min(max(first + end, self.have), self.most) for end in (piece.draws.start, piece.draws.stop))
        if start >= stop:
            return
        skip = first + piece.draws.start
        images = piece.for_classifier[:, start - skip : stop - skip]
        asked = told[piece.rows].repeat_interleave(images.shape[1], 0)
        seen = self.see(images.flatten(0, 1), asked).reshape(*images.shape[:2], -1).cpu().numpy()
        if self.new is None:
            self.new = np.empty((number, self.most - self.have, seen.shape[-1]), seen.dtype)
        self.new[piece.rows, start - self.have : stop - self.have] = seen

    def keep(self) -> None:
        """Put what is new behind what was seen before."""
        assert self.new is not None
        before = self.kept.get(self.key)
        self.kept[self.key] = self.new if before is None else np.concatenate([before, self.new], axis=1)


class JudgedPictures:
    """What the judge sees on pictures that a model draws.

    Pixels are sampled where the dataset's images are binary, since the judge learnt from binary images (VE Fig. 3);
    elsewhere the judge is shown the mean, since grey levels of the data are no draws of a Bernoulli variable.

    Args:
        loaded: The model.
        judge: Trained on the same kind of images.
        seed: Seed of all draws. Each description has its own streams.
        precision: Arithmetic of decoders and judge: auto, 32-true or bf16-mixed.
        beside: What another judge sees of the same model and seed: all look at a picture when one of them asks for it.
    """

    def __init__(
        self,
        loaded: "TrainedModel",
        judge: "Classifier",
        seed: int,
        precision: str = "auto",
        beside: "JudgedPictures | None" = None,
    ) -> None:
        self.loaded = loaded
        self.judge = judge
        self.seed = seed
        self.precision = precision
        self._judged: dict[_Key, NDArray[Any]] = {}
        self._features: dict[_Key, NDArray[Any]] = {}
        self._features_of = 0
        self._company: list[JudgedPictures] = [] if beside is None else beside._company
        self._company.append(self)

    @property
    def sampled(self) -> bool:
        """Whether the judge is fed sampled pixels (else means)."""
        return sees_samples(self.loaded)

    @property
    def pixels(self) -> str:
        """Kind of pixels that the classifier sees: "sampled" or "mean"."""
        return "sampled" if self.sampled else "mean"

    def keep_features(self, n: int) -> None:
        """Keep features of the first ``n`` pictures of a query when its pictures are drawn to be judged."""
        self._features_of = max(self._features_of, n)

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
        key = posterior, queries.dropped
        looks = [_Look(one._judged, one._read, key, n) for one in self._company]
        looks += [
            _Look(one._features, one.judge.features, key, min(n, one._features_of))
            for one in self._company
            if one._features_of
        ]
        yield from self._show(looks, queries, posterior)
        return self._judged[key]

    @torch.inference_mode()
    def features(self, queries: Queries, posterior: str, n: int) -> Generator[float, None, NDArray[np.float32]]:
        """The judge's features [Q, n', F] of ``n`` or more pictures of each query; arguments as of :meth:`judged`."""
        key = posterior, queries.dropped
        looks = [_Look(one._features, one.judge.features, key, n) for one in self._company]
        yield from self._show(looks, queries, posterior)
        return self._features[key]

    def _read(self, images: Tensor, told: Tensor) -> Tensor:
        return self.judge.predict(images, told, self.precision)

    def _show(self, looks: "Sequence[_Look]", queries: Queries, posterior: str) -> Generator[float, None, None]:
        """Draw the pictures that somebody has not looked at yet, and have them looked at."""
        missing = [look for look in looks if look.have < look.most]
        if not missing:
            return
        first, most = min(look.have for look in missing), max(look.most for look in missing)
        told = torch.from_numpy(queries.codes)
        for piece in self.pictures(queries, posterior, most - first, first):
            for look in missing:
                look.at(piece, first, told, len(queries))
            yield (piece.rows.stop - 1 + piece.draws.stop / (most - first)) / len(queries)
        for look in missing:
            look.keep()

    def pictures(self, queries: Queries, posterior: str, n: int, have: int = 0) -> Iterator[Piece]:
        """n pictures of each query, a bounded number at a time: those that ``mmgen sample`` draws of the same seed.

        Args:
            queries: What to draw.
            posterior: Where z comes from.
            n: Pictures of each query.
            have: How many of each there are already.
        """
        loaded = self.loaded
        assert loaded.observation is not None
        # Captions in free words are asked for alone: their examples' attributes are what pictures are compared with.
        every = complete(loaded, queries.codes) if queries.tokens is None else complete(loaded, tokens=queries.tokens)
        for start in range(0, len(queries), _QUERIES):
            asked = every[start : start + _QUERIES]
            z = draw_latents(loaded, posterior, asked, n, self.seed, have)
            pieces = pictures(
                loaded, loaded.observation.name, z, asked, self.seed,
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
        assert loaded.attributes is not None and loaded.observation is not None
        asked = nothing(loaded)
        z = draw_latents(loaded, posterior, asked, n, self.seed)
        said = self._say(z, asked)
        seen = []
        for piece in pictures(
            loaded, loaded.observation.name, z, asked, self.seed, sampled=self.sampled, precision=self.precision
        ):
            told = torch.from_numpy(said[piece.draws])
            seen.append(self.judge.predict(piece.for_classifier.flatten(0, 1), told, self.precision).cpu().numpy())
        return np.concatenate(seen), said

    def _say(self, z: Tensor, asked: Descriptions) -> NDArray[np.uint8]:
        """Words of latents [1, n, D] as attribute codes uint8 [n, A]."""
        loaded, name = self.loaded, self._words
        assert loaded.attributes is not None and name is not None
        words = draw_words(loaded, name, z, asked, self.seed, self.precision)[0].cpu().numpy()
        if loaded.text is not None and name == loaded.text.name:
            return codes_of_caption(words, loaded.text, loaded.attributes)
        return words.astype(np.uint8)
