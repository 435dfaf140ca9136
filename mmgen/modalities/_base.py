"""The base classes of kinds of data: description, storage, networks, and p(x | z).

Importing it imports neither torch nor h5py, so that datasets can be read without them.
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

__all__ = ["ROWS", "Description", "Element", "Modality", "View", "StoredArray", "all_present"]

ROWS = ""
"""Name of the array of a kind that stores one row for every example, under the modality's name in the file."""


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
    """Protocol of a modality in an open file, from which its description is read; faults raise ArtifactErrors."""

    @property
    def where(self) -> str:
        """File and element, for messages: "data.h5: /modalities/image"."""

    def text(self, name: str) -> str:
        """Return a text attribute."""

    def shape(self, array: str = ROWS) -> tuple[int, ...]:
        """Return the shape of one of its arrays as declared in the file, rows first."""


@dataclass(frozen=True)
class View:
    """Key of the random parts of some examples, such as drawn pixels: equal views give equal values.

    Attributes:
        numbers: Returns the examples' rows in their dataset, int64 [B].
        key: Seed, and values that distinguish this view from others, such as the step.
    """

    numbers: Callable[[], "Tensor"]
    key: tuple[int, *tuple[str | int, ...]]


class Description(Settings, ABC):
    """Base of descriptions of a modality: name, sizes and storage, as in dataset files and settings.

    Fields of members are stored; a wrong value raises a ValueError.
    """

    streamed: ClassVar[bool] = True
    """Whether rows are read batch by batch if they do not fit into memory; False keeps them always in memory."""

    describes: ClassVar[bool] = False
    """Whether it describes the other modalities in words, as attributes and text do."""

    files: ClassVar[tuple[str, ...]] = ()
    """Endings of the files that :meth:`write` makes, such as ".wav"; none by default."""

    kind: str
    """Name of the kind, a member of the room ``mmgen.modalities``."""
    name: str
    """Name of the modality."""

    # In a dataset file.

    @abstractmethod
    def arrays(self) -> dict[str, StoredArray]:
        """Return type and shape of its arrays in a file by name: :data:`ROWS` alone, or several."""

    @abstractmethod
    def texts(self) -> dict[str, str]:
        """Return all fields but kind and name as text attributes of the element."""

    @classmethod
    @abstractmethod
    def read(cls, name: str, element: Element) -> Self:
        """Read the description of the modality ``name`` from a file.

        Raises:
            ArtifactError: The file's values are incomplete or wrong.
        """

    def find_conflict(self, others: "Mapping[str, Description]") -> str:
        """Describe a fault of this modality in combination with the dataset's others; "" if there is none."""
        return ""

    @property
    def by_rows(self) -> bool:
        """True if every example has a row in an array; otherwise its value is its row number."""
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

    def find_fault(self, stored: np.ndarray, array: str = ROWS) -> str:
        """Describe a fault of stored rows, whose type and shape are right; "" if there is none."""
        return ""

    def unpack(self, stored: np.ndarray) -> np.ndarray:
        """Convert stored rows to plain values, such as bits to pixels."""
        return stored

    # In batches.

    def torch_rows(self, stored: np.ndarray) -> np.ndarray:
        """Convert stored rows to a number type that torch supports, for memory."""
        return stored

    def tensors(self, rows: "Tensor", view: View) -> tuple["Tensor", "Tensor"]:
        """Convert rows in memory to values and presence of a :class:`~mmgen.core.batch.Batch`, in one view."""
        return self.values_and_presence(rows)

    def shared_arrays(self, read: Callable[[str, str], np.ndarray], part: str | None) -> Mapping[str, np.ndarray]:
        """Return arrays that all examples share, by name: they become ``batch.shared["modality.name"]``.

        Args:
            read: Returns a stored array of the dataset, given the names of modality and array.
            part: Part of the split, "train", "val" or "test"; None for other rows.
        """
        return {}

    @abstractmethod
    def values_and_presence(self, values: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Convert observations to values and presence for a batch; presence is bool [B], or [B, A] for attributes."""

    # For people.

    @property
    def picture_shape(self) -> tuple[int, int, int] | None:
        """Shape (C, H, W) of pictures by :meth:`picture`; None for a kind without pictures."""
        return None

    def picture(self, values: np.ndarray) -> np.ndarray:
        """Draw values [n, *event_shape] as pictures float32 [n, C, H, W] from 0 to 1.

        Raises:
            UsageError: The kind has no pictures.
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
            f"{path} cannot hold values of {self.kind} data, expected a file of samples; use a name that ends in .h5"
        )

    @property
    def classifier_reads_samples(self) -> bool:
        """True if attribute classifiers get draws of p(x | z), as for binary data; False if they get means."""
        return False

    @classmethod
    def example(cls, count: int = 5) -> tuple[Self, np.ndarray]:
        """Return a small description and ``count`` stored rows, for tests of members.

        Raises:
            UsageError: The kind defines no example.
        """
        raise UsageError(f"{cls.__name__} has no example, which checks of members need; define its method example")

    # In a model.

    @abstractmethod
    def modality(self, likelihood: str | None = None) -> "Modality":
        """Return the modality with p(x | z) for this description.

        Args:
            likelihood: A member of ``mmgen.likelihoods``; by default that of the kind.

        Raises:
            SettingsError: The likelihood is not for such data.
        """

    @classmethod
    def network(cls) -> type[Any] | None:
        """Return the class of settings of the networks over such data, all with defaults; None without networks."""
        return None

    def networks(self, settings: Mapping[str, Any], where: str) -> Any:
        """Return the settings of networks over such data; None for a kind without networks.

        Args:
            settings: Plain values; others have their defaults.
            where: Name of the setting, for messages.

        Raises:
            SettingsError: A value is wrong.
        """
        schema = self.network()
        return None if schema is None else validate(schema, settings, where)

    def is_compatible(self, other: "Description") -> bool:
        """Return True if a model of this description can read data of another description."""
        return self == other

    def in_words(self) -> str:
        """Return its size in words: "image 1x28x28"."""
        return self.name


class Modality(ABC):
    """Base of modalities: observations with their density p(x_m | z) and networks."""

    name: str
    """Its name in a :class:`~mmgen.core.batch.Batch` and in a dataset file."""
    kind: ClassVar[str]
    """The kind of its description."""
    is_independent: ClassVar[bool] = True
    """Whether an example's likelihood depends only on its own z; that of a graph's node depends on others' z too."""
    head_layers: ClassVar[int] = 1
    """Default number of hidden layers from features to q(z | x)."""

    # The first two are not abstract: a model built by hand needs neither.

    def decoder(self, inputs: int, network: Any) -> tuple["Modality", "nn.Module"]:
        """Return a modality for generation, and its network [B, inputs] -> parameters of p(x | z).

        Args:
            inputs: Size of the decoder's input.
            network: Settings of networks, or a family of them, as the kind has them.
        """
        raise SettingsError(_missing_networks(self))

    def encoder(self, network: Any) -> tuple["nn.Module", int]:
        """Return a network from observations to features [B, F] (see :meth:`features`), and F."""
        raise SettingsError(_missing_networks(self))

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


def _missing_networks(modality: Modality) -> str:
    return (
        f"{modality.name} is a {modality.kind}, which has no networks, but the model needs some; choose a model for "
        "such data (model.name), or leave it out of the objective"
    )


def all_present(values: "Tensor") -> "Tensor":
    """Return presence [B] of values that are all present."""
    import torch

    return torch.ones(len(values), dtype=torch.bool, device=values.device)
