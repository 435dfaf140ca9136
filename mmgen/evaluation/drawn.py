"""Pictures for descriptions, judged; drawn once and shared by all metrics that look at them."""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import caption_to_attributes, named_attributes
from mmgen.evaluation.queries import Queries
from mmgen.evaluation.retrieved import RetrievedPictures
from mmgen.evaluation.training_pictures import pool_pixels, to_bytes
from mmgen.generation.classifiers import classifier_reads_samples
from mmgen.generation.decode import DecodedPictures, decode_pictures, draw_words
from mmgen.generation.descriptions import Descriptions, complete_descriptions, empty_description
from mmgen.generation.latents import draw_completions, draw_latents
from mmgen.results.naming import RETRIEVAL

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation import TrainedModel


_QUERIES = 64
"""Queries whose latents are drawn before any of their pictures are."""


_Key = tuple[str, int, str]
"""Posterior, and number of attributes left out."""

PictureCount = Callable[[int], int]
"""Function from the number of queries to a number of pictures of each."""


def _no_pictures(queries: int) -> int:
    return 0


def _larger_count(one: PictureCount, other: PictureCount) -> PictureCount:
    return lambda queries: max(one(queries), other(queries))


class _CachedOutput:
    """Cache of a classifier's outputs for drawn pictures, extended as more pictures are drawn.

    Args:
        cache: Outputs so far, [Q, n, *] for each key.
        network: Function from images [n, C, H, W] and hints [n, A] to outputs [n, *].
        key: Posterior, and number of attributes left out.
        limit: Number of pictures of each query to classify in all.
    """

    def __init__(
        self, cache: dict[_Key, NDArray[Any]], network: Callable[[Tensor, Tensor], Tensor], key: _Key, limit: int
    ) -> None:
        self.cache, self.network, self.key, self.limit = cache, network, key, limit
        self.count = cache[key].shape[1] if key in cache else 0
        self.new: NDArray[Any] | None = None

    def classify(self, piece: DecodedPictures, first: int, inputs: Tensor, number: int) -> None:
        """Classify those pictures of ``piece`` that are not cached; its first picture has the number ``first``."""
        start, stop = (min(max(first + end, self.count), self.limit) for end in (piece.draws.start, piece.draws.stop))
        if start >= stop:
            return
        skip = first + piece.draws.start
        images = piece.classifier_input[:, start - skip : stop - skip]
        piece_inputs = inputs[piece.rows].repeat_interleave(images.shape[1], 0)
        output = self.network(images.flatten(0, 1), piece_inputs).reshape(*images.shape[:2], -1).cpu().numpy()
        if self.new is None:
            self.new = np.empty((number, self.limit - self.count, output.shape[-1]), output.dtype)
        self.new[piece.rows, start - self.count : stop - self.count] = output

    def append_output(self) -> None:
        """Append the outputs for new pictures to those for earlier ones in the cache."""
        assert self.new is not None
        before = self.cache.get(self.key)
        self.cache[self.key] = self.new if before is None else np.concatenate([before, self.new], axis=1)


class ClassifiedPictures:
    """Drawer of pictures from a model that caches a classifier's outputs for them.

    Pixels are sampled where the dataset's images are binary, since the judge learnt from binary images (VE Fig. 3);
    elsewhere the judge is shown the mean, since grey levels of the data are no draws of a Bernoulli variable.

    Args:
        loaded: The model.
        judge: Attribute classifier, trained on the same kind of images; None if only pixels are compared.
        seed: Seed of all draws. Each description has its own streams.
        precision: Arithmetic of decoders and judge: auto, 32-true or bf16-mixed.
        shared_with: Pictures of the same model and seed for another judge: all judges classify each new picture.
        retrieved: Training pictures that stand in for drawn ones where the posterior is ``RETRIEVAL``; None without.
    """

    def __init__(
        self,
        loaded: "TrainedModel",
        judge: "Classifier | None",
        seed: int,
        precision: str = "auto",
        shared_with: "ClassifiedPictures | None" = None,
        retrieved: RetrievedPictures | None = None,
    ) -> None:
        self.loaded = loaded
        self._judge = judge
        self._retrieved = retrieved
        self.seed = seed
        self.precision = precision
        self._judged: dict[_Key, NDArray[Any]] = {}
        self._confidences: dict[_Key, NDArray[Any]] = {}
        self._confidence_count: PictureCount = _no_pictures
        self._features: dict[_Key, NDArray[Any]] = {}
        self._feature_count: PictureCount = _no_pictures
        self._pixels: dict[bool, dict[_Key, NDArray[Any]]] = (
            {False: {}, True: {}} if shared_with is None else shared_with._pixels
        )
        self._pixel_counts: dict[bool, PictureCount] = dict.fromkeys(self._pixels, _no_pictures)
        self._classifiers: list[ClassifiedPictures] = [] if shared_with is None else shared_with._classifiers
        if judge is not None:
            self._classifiers.append(self)

    @property
    def judge(self) -> "Classifier":
        """The attribute classifier."""
        assert self._judge is not None, "the metric does not declare that it needs an attribute classifier"
        return self._judge

    @property
    def sampled(self) -> bool:
        """True if the classifier receives sampled pixels, False if it receives the mean of each pixel."""
        return classifier_reads_samples(self.loaded)

    @property
    def pixels(self) -> str:
        """Return the kind of pixels that the classifier receives: "sampled" or "mean"."""
        return "sampled" if self.sampled else "mean"

    def store_features(self, count: PictureCount) -> None:
        """Store, from now on, the classifier's features of the first ``count(Q)`` pictures of each of Q queries."""
        self._feature_count = _larger_count(self._feature_count, count)

    def store_confidences(self, count: PictureCount) -> None:
        """Store, from now on, how sure the classifier is of the first ``count(Q)`` pictures of each of Q queries."""
        self._confidence_count = _larger_count(self._confidence_count, count)

    def store_pixels(self, count: PictureCount, whole: bool = False) -> None:
        """Store, from now on, the pixels of the first ``count(Q)`` pictures of each of Q queries, as
        :meth:`compute_pixels` returns them.
        """
        self._pixel_counts[whole] = _larger_count(self._pixel_counts[whole], count)

    @torch.inference_mode()
    def classify_pictures(self, queries: Queries, posterior: str, n: int) -> Generator[float, None, NDArray[np.uint8]]:
        """Draw at least ``n`` pictures of each query and return the attributes that the classifier predicts.

        Pictures of earlier calls are used again, and only the missing ones are drawn.

        Args:
            queries: What to draw; the same queries each time for the same number of dropped attributes.
            posterior: Where z comes from.
            n: Pictures of each query, at least.

        Yields:
            Fraction done.

        Returns:
            Codes uint8 [Q, n', A] with n' >= n.
        """
        key = posterior, queries.dropped, queries.part
        outputs = [_CachedOutput(pictures._judged, pictures._predict, key, n) for pictures in self._classifiers]
        for pictures in self._classifiers:
            if count := min(n, pictures._feature_count(len(queries))):
                outputs.append(_CachedOutput(pictures._features, pictures.judge.features, key, count))
            if count := min(n, pictures._confidence_count(len(queries))):
                outputs.append(_CachedOutput(pictures._confidences, pictures._confide, key, count))
        for whole, number in self._pixel_counts.items():
            outputs.append(self._pixel_output(key, min(n, number(len(queries))), whole))
        yield from self._classify_new(outputs, queries, posterior)
        return self._judged[key]

    @torch.inference_mode()
    def compute_features(self, queries: Queries, posterior: str, n: int) -> Generator[float, None, NDArray[np.float32]]:
        """Draw at least ``n`` pictures of each query and return the classifier's features [Q, n', F]."""
        key = posterior, queries.dropped, queries.part
        outputs = [_CachedOutput(pictures._features, pictures.judge.features, key, n) for pictures in self._classifiers]
        yield from self._classify_new(outputs, queries, posterior)
        return self._features[key]

    @torch.inference_mode()
    def compute_confidences(
        self, queries: Queries, posterior: str, n: int
    ) -> Generator[float, None, NDArray[np.float32]]:
        """Draw at least ``n`` pictures of each query and return how sure the classifier is of each attribute, from 0
        to 1 [Q, n', A].
        """
        key = posterior, queries.dropped, queries.part
        yield from self._classify_new([_CachedOutput(self._confidences, self._confide, key, n)], queries, posterior)
        return self._confidences[key]

    @torch.inference_mode()
    def compute_pixels(
        self, queries: Queries, posterior: str, n: int, whole: bool = False
    ) -> Generator[float, None, NDArray[Any]]:
        """Draw at least ``n`` pictures of each query and return their pixels [Q, n', F]: float32, pooled to at most
        16 x 16, or uint8 of the ``whole`` pictures.
        """
        key = posterior, queries.dropped, queries.part
        yield from self._classify_new([self._pixel_output(key, n, whole)], queries, posterior)
        return self._pixels[whole][key]

    def _pixel_output(self, key: _Key, limit: int, whole: bool) -> _CachedOutput:
        kept = to_bytes if whole else pool_pixels
        return _CachedOutput(self._pixels[whole], lambda images, _: kept(images), key, limit)

    def _predict(self, images: Tensor, inputs: Tensor) -> Tensor:
        return self.judge.predict(images, inputs, self.precision)

    def _confide(self, images: Tensor, inputs: Tensor) -> Tensor:
        return self.judge.confidence(images, inputs, self.precision)

    def _classify_new(
        self, outputs: "Sequence[_CachedOutput]", queries: Queries, posterior: str
    ) -> Generator[float, None, None]:
        """Draw the pictures that some classifier lacks, and classify them."""
        incomplete = [output for output in outputs if output.count < output.limit]
        if not incomplete:
            return
        first, most = min(output.count for output in incomplete), max(output.limit for output in incomplete)
        inputs = torch.from_numpy(queries.codes)
        for piece in self.draw_pictures(queries, posterior, most - first, first):
            for output in incomplete:
                output.classify(piece, first, inputs, len(queries))
            yield (piece.rows.stop - 1 + piece.draws.stop / (most - first)) / len(queries)
        for output in incomplete:
            output.append_output()

    def draw_pictures(self, queries: Queries, posterior: str, n: int, have: int = 0) -> Iterator[DecodedPictures]:
        """Draw pictures number ``have`` to ``n`` of each query, in pieces; ``mmgen sample`` draws the same ones.

        Args:
            queries: What to draw.
            posterior: Where z comes from, or ``RETRIEVAL``.
            n: Pictures of each query.
            have: How many of each there are already.
        """
        if posterior == RETRIEVAL and self._retrieved is not None:
            yield from self._retrieved.draw_pictures(queries, n, have)
            return
        loaded = self.loaded
        assert loaded.observation is not None
        # Captions in free words are asked for alone: their examples' attributes are what pictures are compared with.
        all_descriptions = (
            complete_descriptions(loaded, queries.codes)
            if queries.tokens is None
            else complete_descriptions(loaded, tokens=queries.tokens)
        )
        for start in range(0, len(queries), _QUERIES):
            asked = all_descriptions[start : start + _QUERIES]
            descriptions = draw_completions(loaded, posterior, asked, n, self.seed, have)
            z = draw_latents(loaded, posterior, descriptions, n, self.seed, have)
            pieces = decode_pictures(
                loaded, loaded.observation.name, z, descriptions, self.seed,
                sampled=self.sampled, earlier_draws=have, precision=self.precision,
            )  # fmt: skip
            for piece in pieces:
                rows = slice(piece.rows.start + start, piece.rows.stop + start)
                yield DecodedPictures(rows, piece.draws, piece.means, piece.sampled)

    @property
    def _word_modality(self) -> str | None:
        """The generated text or attributes that the classifier can check; None without."""
        loaded = self.loaded
        if loaded.model.conditional_on:
            return None
        offered = [loaded.text if loaded.text is not None and loaded.text.slots else None, loaded.attributes]
        if loaded.text is not None and loaded.attributes is not None:
            every_word = np.arange(len(loaded.text.vocabulary))[None]
            offered.append(loaded.text if (self._read_names(every_word) != UNKNOWN).any() else None)
        return next((part.name for part in offered if part is not None and part.name in loaded.model.modalities), None)

    @property
    def says_few(self) -> bool:
        """True if the words are free text, which names some of the attributes."""
        text = self.loaded.text
        return text is not None and not text.slots and self._word_modality == text.name

    @property
    def generates_words(self) -> bool:
        """True if the model generates text or attributes that the classifier can compare with pictures."""
        return self._word_modality is not None

    @torch.inference_mode()
    def classify_generated(self, posterior: str, n: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Draw pictures and words from the same z; return the predicted attributes of the former and those of the
        latter.

        Hints of the classifier are the generated words (CK 5.4); a word at a wrong position is ``UNKNOWN``, as is an
        attribute that free text does not name.

        Returns:
            Codes uint8 [n, A] of the pictures, and of the words.
        """
        loaded = self.loaded
        assert loaded.attributes is not None and loaded.observation is not None
        descriptions = empty_description(loaded)
        z = draw_latents(loaded, posterior, descriptions, n, self.seed)
        words = self._generate_words(z, descriptions)
        predicted = []
        for piece in decode_pictures(
            loaded, loaded.observation.name, z, descriptions, self.seed, sampled=self.sampled, precision=self.precision
        ):
            inputs = torch.from_numpy(words[piece.draws])
            predicted.append(
                self.judge.predict(piece.classifier_input.flatten(0, 1), inputs, self.precision).cpu().numpy()
            )
        return np.concatenate(predicted), words

    def _generate_words(self, z: Tensor, descriptions: Descriptions) -> NDArray[np.uint8]:
        """Generate words from latents [1, n, D], as attribute codes uint8 [n, A]."""
        loaded, name = self.loaded, self._word_modality
        assert loaded.attributes is not None and name is not None
        words = draw_words(loaded, name, z, descriptions, self.seed, self.precision)[0].cpu().numpy()
        if loaded.text is not None and name == loaded.text.name:
            spelled = bool(loaded.text.slots)
            return caption_to_attributes(words, loaded.text, loaded.attributes) if spelled else self._read_names(words)
        return words.astype(np.uint8)

    def _read_names(self, tokens: NDArray[np.generic]) -> NDArray[np.uint8]:
        """Return codes uint8 [..., A]: yes where a text [..., T] names an attribute of the values yes and no."""
        text, attributes = self.loaded.text, self.loaded.attributes
        assert text is not None and attributes is not None
        yes = [words.index("yes") if {*words} == {"yes", "no"} else UNKNOWN for words in attributes.values]
        return np.where(named_attributes(tokens, text, attributes), np.array(yes, np.uint8), np.uint8(UNKNOWN))
