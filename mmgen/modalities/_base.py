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


ROWS = ""
"""Name of the array of a kind that stores one row for every example, under the modality's name in the file."""


@dataclass(frozen=True)
class StoredArray:
    """Number type and shape of an array that stores a modality in a dataset file.

    Attributes:
        dtype: Number type, as numpy calls it.
        shape: Shape of one row.
        rows: How many rows it has; None for one of every example of the dataset.
    """

    dtype: str
    shape: tuple[int, ...]
    rows: int | None = None


class Element(Protocol):
    """Protocol of a modality stored in an open file; methods raise ArtifactErrors for a damaged file."""

    @property
    def location(self) -> str:
        """File and place in it, for messages: "data.h5: /modalities/image"."""

    def text(self, name: str) -> str:
        """Return the text attribute called ``name``."""

    def shape(self, array: str = ROWS) -> tuple[int, ...]:
        """Return the shape of one of the modality's arrays as declared in the file, rows first."""


@dataclass(frozen=True)
class View:
    """Key that determines random parts of examples, such as drawn pixels: equal views give equal values.

    Attributes:
        rows: Function that returns the examples' row numbers in their dataset, int64 [B].
        key: Seed, and values that distinguish this view from others, such as the step.
    """

    rows: Callable[[], "Tensor"]
    key: tuple[int, *tuple[str | int, ...]]


class Description(Settings, ABC):
    """Base of specifications of a modality: its name, sizes and storage, as in dataset files and settings.

    Fields of members are stored; a wrong value raises a ValueError.
    """

    streamed: ClassVar[bool] = True
    """Whether rows are read batch by batch if they do not fit into memory; False keeps them always in memory."""

    describes: ClassVar[bool] = False
    """Whether it describes the other modalities in words, as attributes and text do."""

    translates: ClassVar[bool] = False
    """Whether several of this kind alone are translations, each observed and described by the others, as text is."""

    joins_rows: ClassVar[bool] = False
    """Whether it joins the rows of a dataset, as a graph does, so that no example stands alone."""

    files: ClassVar[tuple[str, ...]] = ()
    """Endings of the files that :meth:`write` makes, such as ".wav"; none by default."""

    kind: str
    """Name of the kind, a member of the room ``mmgen.modalities``."""
    name: str
    """Name of the modality."""

    # In a dataset file.

    @abstractmethod
    def arrays(self) -> dict[str, StoredArray]:
        """Return type and shape of the arrays that store the modality, by name: :data:`ROWS` alone, or several."""

    @abstractmethod
    def text_attributes(self) -> dict[str, str]:
        """Return all fields except kind and name as text, in the form in which a dataset file stores them."""

    @classmethod
    @abstractmethod
    def read(cls, name: str, element: Element) -> Self:
        """Read the specification of the modality ``name`` from a dataset file.

        Raises:
            ArtifactError: The file's values are incomplete or wrong.
        """

    def find_conflict(self, others: "Mapping[str, Description]") -> str:
        """Return in words why this modality cannot stand beside the dataset's others; "" if it can."""
        return ""

    @property
    def has_rows(self) -> bool:
        """True if an array stores a row for every example; else an example's value is its row number in the dataset."""
        return ROWS in self.arrays()

    @property
    def examples(self) -> int | None:
        """Number of examples of the dataset, if the specification determines it (as a graph's nodes do); else None."""
        return None

    @property
    def number_count(self) -> int | None:
        """Number F of real numbers in one value, for kinds whose values are vectors with a density; else None."""
        return None

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of one example's value in a batch; by default that of a stored row."""
        return self.arrays()[ROWS].shape

    @property
    def nats_per_bit(self) -> float | None:
        """Nats of log p that are one bit per pixel, F ln 2; None for kinds whose log p is reported in nats alone."""
        return None

    def find_fault(self, stored: np.ndarray, array: str = ROWS) -> str:
        """Return in words a fault in the values of stored rows, whose type and shape are right; "" if there is none."""
        return ""

    def unpack(self, stored: np.ndarray) -> np.ndarray:
        """Convert stored rows to plain values, such as packed bits to pixels."""
        return stored

    # In batches.

    def torch_rows(self, stored: np.ndarray) -> np.ndarray:
        """Convert stored rows to a number type that torch supports, the form in which they stay in memory."""
        return stored

    def tensors(self, rows: "Tensor", view: View) -> tuple["Tensor", "Tensor"]:
        """Convert rows in memory to values and presence of a :class:`~mmgen.core.batch.Batch`; ``view`` fixes random
        parts.
        """
        return self.values_and_presence(rows)

    def shared_arrays(self, read: Callable[[str, str], np.ndarray], part: str | None) -> Mapping[str, np.ndarray]:
        """Return arrays that belong to no single example, such as edges: by name, for
        ``batch.shared["modality.name"]``.

        Args:
            read: Returns a stored array of the dataset, given the names of modality and array.
            part: Part of the split, "train", "val" or "test"; None for other rows.
        """
        return {}

    @abstractmethod
    def values_and_presence(self, values: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return values as batches hold them, and whether each is present: bool [B], or [B, A] for attributes."""

    # For people.

    @property
    def picture_shape(self) -> tuple[int, int, int] | None:
        """Shape (C, H, W) of the pictures that :meth:`picture` makes; None for a kind without pictures."""
        return None

    def picture(self, values: np.ndarray) -> np.ndarray:
        """Convert values [n, *event_shape] to pictures for the eye, float32 [n, C, H, W] from 0 to 1.

        Raises:
            UsageError: The kind has no pictures.
        """
        raise UsageError(f"{self.name} is a {self.kind}, which has no picture; write values to a file of samples (.h5)")

    def pictures(self, values: np.ndarray) -> np.ndarray:
        """Convert values with any leading axes [..., *event_shape] to pictures [..., C, H, W]; see :meth:`picture`."""
        leading = values.shape[: values.ndim - len(self.event_shape)]
        drawn = self.picture(values.reshape(-1, *self.event_shape))
        return drawn.reshape(*leading, *drawn.shape[1:])

    def write(self, path: Path, values: np.ndarray) -> None:
        """Write values [n, *event_shape] to a file of a usual format, one of the endings in :attr:`files`."""
        raise UsageError(
            f"{path} cannot hold values of {self.kind} data, expected a file of samples; use a name that ends in .h5"
        )

    def read_file(self, path: Path) -> tuple[np.ndarray, str]:
        """Read values [n, *event_shape] from a file of a usual format, and return a notice of changes, "" for none.

        Raises:
            UsageError: The kind has no such files, or this one cannot be read.
        """
        raise UsageError(
            f"cannot read {self.name}, which is of the kind {self.kind}, from {path}; give a dataset or samples (.h5)"
        )

    @property
    def classifier_reads_samples(self) -> bool:
        """True if attribute classifiers get draws of p(x | z), as for binary data; False if they get means."""
        return False

    @classmethod
    def example(cls, count: int = 5) -> tuple[Self, np.ndarray]:
        """Return a small specification and ``count`` stored rows of it, for the checks of :mod:`mmgen.testing`.

        Raises:
            UsageError: The kind defines no example.
        """
        raise UsageError(
            f"{cls.__name__} has no example data, which mmgen.testing needs; define its class method example"
        )

    # In a model.

    @abstractmethod
    def modality(self, likelihood: str | None = None) -> "Modality":
        """Return the :class:`Modality` of this specification, which has the density p(x | z).

        Args:
            likelihood: A member of ``mmgen.likelihoods``; by default that of the kind.

        Raises:
            SettingsError: The likelihood is not for such data.
        """

    @classmethod
    def network_settings_class(cls) -> type[Any] | None:
        """Return the settings class of encoder and decoder of this kind; None for a kind without networks."""
        return None

    def read_network_settings(self, settings: Mapping[str, Any], setting: str) -> Any:
        """Return checked settings of encoder and decoder of this kind; None for a kind without networks.

        Args:
            settings: Plain values; others have their defaults.
            setting: Name of the setting, for messages.

        Raises:
            SettingsError: A value is wrong.
        """
        schema = self.network_settings_class()
        return None if schema is None else validate(schema, settings, setting)

    def is_compatible(self, other: "Description") -> bool:
        """Return True if a model trained with this specification can read data of the other one."""
        return self == other

    def describe_size(self) -> str:
        """Return name and size in words: "image 1x28x28"."""
        return self.name


class Modality(ABC):
    """Base of modalities: one kind of observation, with the density p(x_m | z) and the networks that encode and decode
    it.
    """

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
        """Return a copy of the modality that can be generated, and its network [B, inputs] -> parameters of p(x | z).

        Args:
            inputs: Size of the decoder's input.
            network: Settings of networks, or a family of them, as the kind has them.
        """
        raise SettingsError(_missing_networks(self))

    def encoder(self, network: Any) -> tuple["nn.Module", int]:
        """Return a network that :meth:`features` applies to observations, and the number F of features."""
        raise SettingsError(_missing_networks(self))

    def features(self, encoder: "nn.Module", value: "Tensor", present: "Tensor") -> "Tensor":
        """Return features [B, F] of observations, computed by a network that :meth:`encoder` made."""
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
        """Return E[x | parameters] of an image; of attributes the probabilities [..., A, V], 0 for values they lack."""

    def typical(self, parameters: "Tensor") -> "Tensor":
        """Return the value that stands for p(x | parameters) where one is shown, [..., *event]: by default the mean."""
        return self.mean(parameters)

    @abstractmethod
    def sample(self, parameters: "Tensor", generator: "torch.Generator | None" = None) -> "Tensor":
        """Return a draw of x given the parameters: an image [..., C, H, W], or attribute codes int64 [..., A]."""


def _missing_networks(modality: Modality) -> str:
    """Return the message for a model that needs networks of a modality without any."""
    return (
        f"{modality.name} is a {modality.kind}, which has no networks, but the model needs some; choose a model for "
        "such data (model.name), or leave it out of the objective"
    )


def observed_modalities(modalities: Mapping[str, Description]) -> dict[str, Description]:
    """Return the modalities, by name, that are observed and not only descriptions: all but words and graphs.

    Where there is nothing but words, sentences in several languages are observed, each described by the others.
    """
    things = {name: each for name, each in modalities.items() if each.has_rows and not each.describes}
    languages = {name: each for name, each in modalities.items() if each.translates}
    return things or (languages if len(languages) > 1 else {})


def all_present(values: "Tensor") -> "Tensor":
    """Return presence [B] that is True for every one of B values."""
    import torch

    return torch.ones(len(values), dtype=torch.bool, device=values.device)
