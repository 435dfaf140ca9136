"""The base of kinds of data: description, storage, networks, and p(x | z).

Nothing here imports torch or h5py when it is imported: whoever reads a dataset knows all kinds, and needs no networks.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from mmgen.core.errors import SettingsError, UsageError
from mmgen.settings.config import Settings, validate

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

__all__ = ["ROWS", "Description", "Element", "Modality", "View", "StoredArray", "whole"]

ROWS = ""
"""Name of the one array of a kind that stores a row for every example: it stands under the modality's own name."""


@dataclass(frozen=True)
class StoredArray:
    """An array of a modality in a dataset file: its type and shape.

    Attributes:
        dtype: Number type, as numpy calls it.
        shape: Shape of one row.
        rows: How many rows it has; None for one of every example of the dataset.
    """

    dtype: str
    shape: tuple[int, ...]
    rows: int | None = None


class Element(Protocol):
    """A modality in an open file, whose description is being read; faults become ArtifactErrors."""

    @property
    def where(self) -> str:
        """File and element, for messages: "data.h5: /modalities/image"."""

    def text(self, name: str) -> str:
        """Return a text attribute."""

    def shape(self, array: str = ROWS) -> tuple[int, ...]:
        """Return shape of one of its arrays as the file declares it, rows first."""


@dataclass(frozen=True)
class View:
    """One reading of some examples: all that is drawn anew in every view is determined by it.

    Attributes:
        numbers: The examples' rows in their dataset, int64 [B]; computed where they are asked for.
        key: Seed, and what distinguishes this view from others (a step).
    """

    numbers: Callable[[], "Tensor"]
    key: tuple[int, *tuple[str | int, ...]]


class Description(Settings, ABC):
    """Description of a modality without a model: name, sizes and storage, in dataset files and settings.

    Fields of members are what is stored; a wrong value of one is a ValueError in words.
    """

    streamed: ClassVar[bool] = True
    """Whether rows are read batch by batch where all of them do not fit into memory, and not held where nobody wants
    them; small ones always are."""

    describes: ClassVar[bool] = False
    """Whether it is words about the other modalities, which are what posteriors are given before them."""

    files: ClassVar[tuple[str, ...]] = ()
    """Endings of the files that :meth:`write` makes, such as ".wav"; none by default."""

    kind: str
    """Name of the kind, a member of the room ``mmgen.modalities``."""
    name: str
    """Name of the modality."""

    # In a dataset file.

    @abstractmethod
    def arrays(self) -> dict[str, StoredArray]:
        """Return the arrays that it is stored as: :data:`ROWS` alone, or several by name."""

    @abstractmethod
    def texts(self) -> dict[str, str]:
        """Return all fields but kind and name as text attributes of the element."""

    @classmethod
    @abstractmethod
    def read(cls, name: str, element: Element) -> Self:
        """Return the description of the modality ``name`` out of a file.

        Raises:
            ArtifactError: What the file says is not whole; says how it differs.
        """

    def fault_beside(self, others: "Mapping[str, Description]") -> str:
        """Return a fault of this modality in combination with the dataset's others, in words; "" for none."""
        return ""

    @property
    def by_rows(self) -> bool:
        """True if every example has a row in an array; otherwise its value is its row's number."""
        return ROWS in self.arrays()

    @property
    def examples(self) -> int | None:
        """Number of examples, if the description determines it."""
        return None

    @property
    def numbers(self) -> int | None:
        """Number F of real numbers of a value with a joint density, as :meth:`tensors` returns them [B, F]."""
        return None

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one value in a batch; by default that of a stored row."""
        return self.arrays()[ROWS].shape

    @property
    def nats_per_bit(self) -> float | None:
        """Nats of log p per bit per pixel, F ln 2, if log p is reported so; else None."""
        return None

    def fault(self, stored: np.ndarray, array: str = ROWS) -> str:
        """Return the fault of stored rows, whose type and shape are right, in words; "" for none."""
        return ""

    def unpack(self, stored: np.ndarray) -> np.ndarray:
        """Convert rows as stored to rows as people see them."""
        return stored

    # In batches.

    def torch_rows(self, stored: np.ndarray) -> np.ndarray:
        """Convert stored rows to a type that torch computes with, for keeping in memory."""
        return stored

    def tensors(self, rows: "Tensor", view: View) -> tuple["Tensor", "Tensor"]:
        """Convert rows in memory to values and presence of a :class:`~mmgen.core.batch.Batch`, in one view."""
        return self.observed(rows)

    def shared(self, read: Callable[[str, str], np.ndarray], part: str | None) -> Mapping[str, np.ndarray]:
        """Return arrays that all examples share, by name: they become ``batch.shared["modality.name"]``.

        Args:
            read: A whole array as stored, of any modality of the dataset, given its name and the array's.
            part: The part of a split that the examples are, "train", "val" or "test"; None where they are of none.
        """
        return {}

    @abstractmethod
    def observed(self, values: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Convert observations as users pass them to values and presence: bool [B], or one for every part."""

    # For people.

    @property
    def picture_shape(self) -> tuple[int, int, int] | None:
        """(C, H, W) of what :meth:`picture` draws; None for a kind that cannot be shown."""
        return None

    def picture(self, values: np.ndarray) -> np.ndarray:
        """Draw values [n, *event_shape] as pictures float32 [n, C, H, W] from 0 to 1.

        Raises:
            UsageError: The kind cannot be shown.
        """
        raise UsageError(f"{self.name} is a {self.kind}, which has no picture; write values to a file of samples (.h5)")

    def pictures(self, values: np.ndarray) -> np.ndarray:
        """Draw values [..., *event_shape] as pictures [..., C, H, W]; see :meth:`picture`."""
        leading = values.shape[: values.ndim - len(self.event_shape)]
        drawn = self.picture(values.reshape(-1, *self.event_shape))
        return drawn.reshape(*leading, *drawn.shape[1:])

    def write(self, path: Path, values: np.ndarray) -> None:
        """Write values [n, *event_shape] to a file whose ending is one of :attr:`files`."""
        raise UsageError(
            f"{path} got a {self.kind}, which cannot be written in this format; use a file of samples (.h5)"
        )

    @property
    def classifier_sees_samples(self) -> bool:
        """True if an attribute classifier reads draws of p(x | z), as for binary data, and not means."""
        return False

    @classmethod
    def example(cls, count: int = 5) -> tuple[Self, np.ndarray]:
        """Return a small description and ``count`` stored rows, for tests of members.

        Raises:
            UsageError: The kind brings no example.
        """
        raise UsageError(f"{cls.__name__} has no example, which checks of members need; define its method example")

    # In a model.

    @abstractmethod
    def modality(self, likelihood: str | None = None) -> "Modality":
        """Return the modality, with p(x | z), of such data.

        Args:
            likelihood: A member of ``mmgen.likelihoods``; left out, what the kind has by default.

        Raises:
            SettingsError: The likelihood is none of such data.
        """

    @classmethod
    def network(cls) -> type[Any] | None:
        """Return the class of settings of the networks over such data, all with defaults; None without networks."""
        return None

    def networks(self, settings: Mapping[str, Any], where: str) -> Any:
        """Return the settings of networks over such data; None for a kind without networks.

        Args:
            settings: Plain values; what is left out has its default.
            where: The setting that holds them, for messages.

        Raises:
            SettingsError: A value is wrong.
        """
        schema = self.network()
        return None if schema is None else validate(schema, settings, where)

    def fits(self, other: "Description") -> bool:
        """Return True if a model of this description can read data of another description."""
        return self == other

    def in_words(self) -> str:
        """Return its size in words: "image 1x28x28"."""
        return self.name


class Modality(ABC):
    """A kind of observation with its density p(x_m | z); the joint density is p(z) prod_m p(x_m | z)."""

    name: str
    """Its name in a :class:`~mmgen.core.batch.Batch` and in a dataset file."""
    kind: ClassVar[str]
    """The kind of its description."""
    alone: ClassVar[bool] = True
    """Whether an example's likelihood depends on its own z alone; that of a graph's node depends on others' z too."""
    head_layers: ClassVar[int] = 1
    """Hidden layers from features to q(z | x), where the settings of a model do not say."""

    # Not abstract, the first two: what a model is put together from by hand needs neither.

    def decoder(self, inputs: int, network: Any) -> tuple["Modality", "nn.Module"]:
        """Return a network [B, inputs] -> parameters of p(x | z), and the modality as it is generated with it.

        Args:
            inputs: Size of what the decoder sees.
            network: Settings of networks, or a family of them, as the kind has them.
        """
        raise SettingsError(_without_network(self))

    def encoder(self, network: Any) -> tuple["nn.Module", int]:
        """Return a network from observations to features [B, F] (see :meth:`features`), and F."""
        raise SettingsError(_without_network(self))

    def features(self, encoder: "nn.Module", value: "Tensor", present: "Tensor") -> "Tensor":
        """Return features [B, F] of observations, by a network that :meth:`encoder` made."""
        found: Tensor = encoder(value)
        return found

    @abstractmethod
    def log_prob(self, parameters: "Tensor", value: "Tensor", present: "Tensor") -> "Tensor":
        """Return log p(value | parameters) in nats [...]; unknown values are integrated out and contribute 0.

        Args:
            parameters: Decoder output [..., B, *event].
            value: [B, *event].
            present: [B] or, for attributes, [B, A].
        """

    @abstractmethod
    def mean(self, parameters: "Tensor") -> "Tensor":
        """Return E[x | parameters] for an image; for attributes the probabilities [..., A, V], 0 beyond a value's
        range.
        """

    @abstractmethod
    def sample(self, parameters: "Tensor", generator: "torch.Generator | None" = None) -> "Tensor":
        """Return a draw: an image [..., C, H, W], or attribute codes int64 [..., A]."""


def _without_network(modality: Modality) -> str:
    return (
        f"{modality.name} is a {modality.kind}, which has no networks of its own, but the model asks for some; choose "
        "one made for such data (model.name), or leave it out of the objective"
    )


def whole(values: "Tensor") -> "Tensor":
    """Return presence [B] of values that are all present."""
    import torch

    return torch.ones(len(values), dtype=torch.bool, device=values.device)
