"""Pictures for descriptions, judged; drawn once and shared by all metrics that look at them."""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.batch import Batch
from mmgen.metrics._queries import Queries
from mmgen.notation import UNKNOWN
from mmgen.queries import batch_of_queries, codes_of_caption
from mmgen.seeding import torch_generator
from mmgen.training.precision import autocast

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.loading import Loaded

__all__ = ["Draws"]

_IMAGES = 512
"""Images per pass through decoder and judge."""


class Draws:
    """What the judge sees on pictures that a model draws.

    Pixels are sampled where the dataset's images are binary, since the judge learnt from binary images (VE Fig. 3);
    elsewhere the judge is shown the mean, since grey levels of the data are no draws of a Bernoulli variable.

    Args:
        loaded: The model.
        judge: Trained on the same kind of images.
        seed: Of all draws. Each posterior and each number of dropped attributes has its own stream.
        precision: Arithmetic of decoders and judge: auto, 32-true or bf16-mixed.
    """

    def __init__(self, loaded: "Loaded", judge: "Classifier", seed: int, precision: str = "auto") -> None:
        self.loaded = loaded
        self.judge = judge
        self.seed = seed
        self.precision = precision
        self._judged: dict[tuple[str, int], NDArray[np.uint8]] = {}
        self._features: dict[tuple[str, int], NDArray[np.float32]] = {}

    @property
    def sampled(self) -> bool:
        """Whether the judge is fed sampled pixels (else means)."""
        return self.loaded.image is not None and self.loaded.image.layout == "bits"

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
            device = str(self.loaded.device)
            generator = torch_generator(self.seed, "draws", posterior, queries.dropped, have, device=device)
            parts = []
            for start in range(0, len(queries), _IMAGES):
                rows = np.arange(start, min(start + _IMAGES, len(queries)))
                seen = yield from self._draw(queries.take(rows), posterior, n - have, generator, look)
                parts.append(seen)
            new = np.concatenate(parts)
            known = new if known is None else np.concatenate([known, new], axis=1)
            kept[key] = known
        assert known is not None
        return known

    def _draw(
        self,
        queries: Queries,
        posterior: str,
        n: int,
        generator: torch.Generator,
        look: Callable[[Tensor, Tensor], Tensor],
    ) -> Generator[float, None, NDArray[Any]]:
        """What ``look`` sees on new pictures [Q, n, *]."""
        loaded = self.loaded
        assert loaded.attributes is not None
        condition = loaded.describe_codes(queries.codes)
        told = torch.from_numpy(queries.codes)
        latents = loaded.latent_sampler(posterior)(condition, n, generator)  # [n, Q, D]
        verdicts = []
        for part in latents.split(max(1, _IMAGES // len(queries))):
            images = self.pictures(part, condition, generator)
            seen = look(images.flatten(0, 1), told.repeat(len(part), 1))
            verdicts.append(seen.reshape(*part.shape[:2], -1).transpose(0, 1).cpu())
            yield sum(seen.shape[1] for seen in verdicts) / n
        return torch.cat(verdicts, 1).numpy()

    def pictures(self, z: Tensor, condition: Batch, generator: torch.Generator) -> Tensor:
        """Images [n, Q, C, H, W] as the judge is to see them, from latents [n, Q, D]."""
        loaded = self.loaded
        assert loaded.image is not None
        seen = condition if loaded.model.conditional_on else None
        with autocast(loaded.device, self.precision):
            if self.sampled:
                return loaded.model.sample(loaded.image.name, z, generator, seen)
            return loaded.model.mean(loaded.image.name, z, seen)

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
        assert loaded.attributes is not None
        unknown = np.full((1, len(loaded.attributes.names)), UNKNOWN, np.uint8)
        nothing = batch_of_queries(unknown, loaded.attributes.name).to(loaded.device)
        generator = torch_generator(self.seed, "generated", posterior, device=str(loaded.device))
        latents = loaded.latent_sampler(posterior)(nothing, n, generator)  # [n, 1, D]
        seen, said = [], []
        for part in latents.split(_IMAGES):
            pictures = self.pictures(part, nothing, generator).flatten(0, 1)
            said.append(self._say(part, generator))
            seen.append(self.judge.predict(pictures, torch.from_numpy(said[-1]), self.precision).cpu().numpy())
        return np.concatenate(seen), np.concatenate(said)

    def _say(self, z: Tensor, generator: torch.Generator) -> NDArray[np.uint8]:
        """Words of latents [n, 1, D] as attribute codes uint8 [n, A]."""
        loaded, name = self.loaded, self._words
        assert loaded.attributes is not None and name is not None
        with autocast(loaded.device, self.precision):
            words = loaded.model.sample(name, z, generator).flatten(0, 1).cpu().numpy()
        if loaded.text is not None and name == loaded.text.name:
            return codes_of_caption(words, loaded.text, loaded.attributes)
        return words.astype(np.uint8)
