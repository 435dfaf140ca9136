"""Networks of attribute classifiers: their base, a classifier with what it predicts, and its training task."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.classifier._augment import Augmentation
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError, check_finite
from mmgen.core.notation import UNKNOWN
from mmgen.modalities import Description
from mmgen.objectives import Bound
from mmgen.training.precision import autocast
from mmgen.training.task import ALONE, Task


class ClassifierNetwork(nn.Module, ABC):
    """Base of networks that predict attributes of an example, with one output layer (head) for each attribute.

    Args:
        event_shape: Shape of every value; (C, H, W) of an image.
        sizes: Number of values V of every predicted attribute, in order.
        hint_size: Width of the one-hot attributes that are inputs besides the image; 0 for none.
    """

    def __init__(self, event_shape: tuple[int, ...], sizes: tuple[int, ...], hint_size: int = 0) -> None:
        super().__init__()
        self.event_shape = event_shape
        self.sizes = sizes
        self.hint_size = hint_size

    @classmethod
    def for_description(
        cls, described: "Description", sizes: tuple[int, ...], hint_size: int = 0
    ) -> "ClassifierNetwork":
        """Build the network for a modality with the specification ``described``; by default only for images.

        Raises:
            UsageError: The network does not read such data.
        """
        if described.picture_shape != described.event_shape:
            raise UsageError(
                f"--network got a network for images, but {described.name} is a {described.kind}; use --network encoder"
            )
        return cls(described.event_shape, sizes, hint_size)

    @abstractmethod
    def features(self, images: Tensor, hints: Tensor | None = None) -> Tensor:
        """Return the last hidden layer [B, F], the input of the heads, after its non-linearity and before dropout.

        Args:
            images: Values [B, *event_shape], such as images [B, C, H, W] in [0, 1].
            hints: Attributes that are inputs, one-hot [B, hint_size], zeros where unknown; None without such inputs.
        """

    @abstractmethod
    def logits(self, features: Tensor) -> list[Tensor]:
        """Compute logits [B, V] of every predicted attribute from features [B, F]; affine apart from dropout."""

    def forward(self, images: Tensor, hints: Tensor | None = None) -> list[Tensor]:
        """Compute logits [B, V] of every predicted attribute; arguments are as in :meth:`features`."""
        return self.logits(self.features(images, hints))


def append_planes(images: Tensor, hints: Tensor | None) -> Tensor:
    """Append each number of ``hints`` [B, X] to images [B, C, H, W] as a constant channel: [B, C + X, H, W]."""
    if hints is None or not hints.shape[1]:
        return images
    planes = hints.to(images.dtype)[:, :, None, None].expand(-1, -1, *images.shape[2:])
    return torch.cat([images, planes], 1)


_CHUNK = 512
"""Images per pass of :meth:`Classifier.predict`: activations of 64x64 images stay within the caches."""


class Classifier(nn.Module):
    """Attribute classifier: predicts the value of each attribute of a picture or another example.

    Some attributes may be hints, which it reads instead of predicting them: which of two objects a description names
    first is no property of the picture, but follows from the relation that the description uses (CK 5.4).

    Args:
        network: From this room; its heads are the predicted attributes, in order.
        described: The data that it reads.
        names: Attribute names.
        values: The words of every attribute.
        network_name: Name of the network in this room ("vedantam").
        hints: Names of the attributes that it reads as input.
    """

    def __init__(
        self,
        network: ClassifierNetwork,
        described: Description,
        names: tuple[str, ...],
        values: tuple[tuple[str, ...], ...],
        network_name: str = "",
        hints: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # not in its stubs
        self.described = described
        self.names = names
        self.values = values
        self.network_name = network_name
        self.hints = hints
        self.accuracy: dict[str, float] = {}
        """Held-out accuracy in percent by predicted attribute, and their "mean"; with hints also "words", which counts
        the hints as right. Empty while it has not been measured."""
        self.content_id = ""
        """Content id of the file that it was loaded from."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values V of every attribute."""
        return tuple(len(words) for words in self.values)

    @property
    def predicted(self) -> list[int]:
        """Positions of the attributes that the classifier predicts; it receives the others as hints."""
        return [index for index, name in enumerate(self.names) if name not in self.hints]

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def one_hot(self, codes: Tensor) -> Tensor:
        """Return the hints among the codes [B, A] in one-hot form; zeros where a code is unknown."""
        parts = []
        for index, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            if name in self.hints:  # one column more for what is unknown, then left out
                parts.append(F.one_hot(codes[:, index].long().clamp(0, size), size + 1)[:, :size])
        return torch.cat(parts, 1).float() if parts else codes.new_zeros(len(codes), 0, dtype=torch.float32)

    def forward(self, images: Tensor, hints: Tensor | None = None) -> list[Tensor]:
        """Compute logits [B, V] of every predicted attribute in float32.

        Args:
            images: [B, C, H, W] in [0, 1].
            hints: Codes [B, A], of which only the hints are read; None if they are unknown.
        """
        answers = [logits.float() for logits in self.network(*self._inputs(images, hints))]
        if not self.training:
            check_finite(torch.cat(answers, 1), "answers of this judge")
        return answers

    def _inputs(self, images: Tensor, hints: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the network's inputs: the values, and the hints among codes [B, A] in one-hot form."""
        if not self.hints:
            described = None
        elif hints is None:
            described = self.one_hot(torch.full((len(images), len(self.names)), UNKNOWN, device=images.device))
        else:
            described = self.one_hot(hints)
        return images.contiguous(memory_format=torch.channels_last) if images.dim() == 4 else images, described

    @torch.inference_mode()
    def features(self, images: Tensor, hints: Tensor | None = None) -> Tensor:
        """Compute the features in which real and drawn examples are compared: the inputs of the last linear layer.

        Args:
            images: [B, C, H, W] in [0, 1], any float type; sampled pixels where the dataset's are binary.
            hints: Codes uint8 [B, A], of which only the hints are read; 255 is unknown. None: all are unknown.

        Returns:
            [B, F] on the classifier's device, always fp32: distances between like pictures are small differences.

        Raises:
            UsageError: The images have another shape than those that the classifier was trained on.
        """
        parts = self._read(
            images, hints, lambda chunk, codes: self.network.features(*self._inputs(chunk.float(), codes))
        )
        check_finite(parts, "features of this judge")
        return parts.float()

    @torch.inference_mode()
    def predict(self, images: Tensor, hints: Tensor | None = None, precision: str = "auto") -> Tensor:
        """Predict the most probable value of every attribute.

        Args:
            images: [B, C, H, W] in [0, 1], any float type; sampled pixels where the dataset's are binary.
            hints: Codes uint8 [B, A], of which only the hints are read; 255 is unknown. None: all are unknown.
            precision: Arithmetic of the network: auto, 32-true or bf16-mixed.

        Returns:
            Codes uint8 [B, A] on the classifier's device; hints are copied.

        Raises:
            UsageError: The images have another shape than those that the classifier was trained on.
        """
        answer = torch.full((len(images), len(self.names)), UNKNOWN, dtype=torch.uint8, device=self.device)
        if hints is not None:
            keep = [index for index, name in enumerate(self.names) if name in self.hints]
            answer[:, keep] = hints.to(self.device, torch.uint8)[:, keep]
        read = self._read_logits(images, answer, precision, lambda logits: logits.argmax(1))
        answer[:, self.predicted] = read.to(torch.uint8)
        return answer

    @torch.inference_mode()
    def confidence(self, images: Tensor, hints: Tensor | None = None, precision: str = "auto") -> Tensor:
        """Return the probability [B, A] of what :meth:`predict` predicts, by the classifier itself; 1 for hints.

        Args:
            images: As for :meth:`predict`.
            hints: As for :meth:`predict`.
            precision: Arithmetic of the network: auto, 32-true or bf16-mixed.
        """
        answer = torch.ones(len(images), len(self.names), device=self.device)
        read = self._read_logits(images, hints, precision, lambda logits: logits.softmax(1).amax(1))
        answer[:, self.predicted] = read.to(answer.dtype)
        return answer

    def _read_logits(
        self, images: Tensor, hints: Tensor | None, precision: str, reading: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return a reading [B] of the logits [B, V] of each predicted attribute, [B, predicted]."""
        if not len(images):  # not every layer takes an empty batch
            return torch.zeros(0, len(self.predicted), device=self.device)
        with autocast(self.device, precision):
            return self._read(
                images, hints, lambda chunk, codes: torch.stack([reading(part) for part in self(chunk, codes)], 1)
            )

    def _read(self, images: Tensor, hints: Tensor | None, network: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Return what ``network`` makes of images and codes, some at a time and in evaluation mode."""
        if tuple(images.shape[1:]) != self.network.event_shape:
            got, expected = ("x".join(map(str, shape)) for shape in (images.shape[1:], self.network.event_shape))
            raise UsageError(
                f"the classifier got {self.described.kind}s of {got}, expected {expected}: use a classifier of the "
                f"dataset of these {self.described.kind}s"
            )
        known = torch.full((len(images), len(self.names)), UNKNOWN, dtype=torch.uint8) if hints is None else hints
        was_training = self.training
        self.eval()
        try:
            parts = [
                network(chunk.to(self.device), codes.to(self.device))
                for chunk, codes in zip(images.split(_CHUNK), known.split(_CHUNK), strict=True)
            ]
        finally:
            self.train(was_training)
        return torch.cat(parts)


def log_probability(logits: list[Tensor], values: Tensor, present: Tensor) -> Tensor:
    """Return log p(attribute | image) in nats [B, A]; 0 where the attribute is unknown."""
    parts = [-F.cross_entropy(part, values[:, index], reduction="none") for index, part in enumerate(logits)]
    return torch.stack(parts, 1).masked_fill(~present, 0.0)


class ClassifierTask(Task):
    """Training task that maximises log p(attributes | image, hints) over the attributes that are known.

    Args:
        classifier: What is trained.
        observed: Name of the modality that it reads.
        attributes: Name of the attributes modality.
        augmentation: Changes of an example that keep its description true, made in training only.
    """

    def __init__(
        self,
        classifier: Classifier,
        observed: str = "image",
        attributes: str = "attributes",
        augmentation: Augmentation | None = None,
    ) -> None:
        super().__init__()
        self.classifier = classifier
        self.observed = observed
        self.quantity = f"log p(labels|{observed})"
        self.attributes = attributes
        self.augmentation = augmentation

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """Return the log-likelihood of the known attributes [B] in nats, with one term per attribute."""
        images, present = batch.values[self.observed], batch.present[self.attributes]
        codes = batch.values[self.attributes].masked_fill(~present, UNKNOWN)
        if self.augmentation is not None and step is not None:
            images, codes = self.augmentation(images, codes)
        logits = self.classifier(images, codes)
        asked = codes[:, self.classifier.predicted]
        known = asked != UNKNOWN
        parts = log_probability(logits, asked.masked_fill(~known, 0), known)
        names = [self.classifier.names[index] for index in self.classifier.predicted]
        terms = {f"log p({name}|{self.observed})": parts[:, index] for index, name in enumerate(names)}
        return Bound(parts.sum(1), terms, is_bound=True)

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.classifier.network.state_dict())
