"""Encodings beside the factors behind their examples, and how much each dimension says of each factor.

References:
    Isolating Sources of Disentanglement in Variational Autoencoders (Chen et al., 2018), arXiv:1802.04942, Section 4
    Challenging Common Assumptions in the Unsupervised Learning of Disentangled Representations (Locatello et al., 2019)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN

if TYPE_CHECKING:
    from torch import Tensor

    from mmgen.artifacts import Dataset, FactorInfo
    from mmgen.generation import TrainedModel
    from mmgen.models import Model


_MOST_VALUES = 100
"""Values of a factor; with more of them each would be seen too rarely."""
_FEWEST = 20
"""Examples."""
_FEWEST_OF_VALUE = 10
"""Examples of each value of a factor, half of which a repeat sees, and two thirds of these are learnt from."""
_SOURCE = ("source",)
"""How names of factors begin that number what an example was made from."""
_OF_FILES = {("width", "pixel"), ("height", "pixel")}
"""Names and units of factors that describe the file of a picture, before it was fitted, and not what it shows."""
_AT_ONCE = 4096
"""Examples that are read at a time."""
_PRUNED_BELOW = 0.05
"""Standard deviation of an encoding's mean below which a dimension says nothing (FactorVAE's published code)."""


@dataclass(frozen=True)
class Code:
    """Encodings of examples, with the values of their generative factors.

    Attributes:
        means: Means of q(z | image), float64 [N, D]; of a layer above the first, given one seeded draw of those below.
            Each label that is part of z is one column, the number of its likeliest value.
        factors: Numbers of values, int64 [N, K], each factor's from 0 without gaps.
        names: Names of the factors [K].
    """

    means: NDArray[np.float64]
    factors: NDArray[np.int64]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.means)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Code":
        return Code(self.means[rows], self.factors[rows], self.names)

    @cached_property
    def active(self) -> NDArray[np.int64]:
        """Return the numbers of the latent dimensions that vary between examples."""
        return np.flatnonzero(self.means.std(axis=0) >= _PRUNED_BELOW)

    @cached_property
    def _rows_by_value(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """For each factor, the rows sorted by its value, and where each value begins."""
        return [
            (np.argsort(column, kind="stable"), np.searchsorted(np.sort(column), np.arange(column.max() + 2)))
            for column in self.factors.T
        ]

    def draw_same_value(self, rows: NDArray[np.int64], factor: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw, for each of ``rows``, a random row that has the same value of a factor.

        Only a row that is alone with its value gets itself: pairs of a row with itself differ in nothing, and are the
        more frequent the more values a factor has, which would tell the factor.
        """
        order, first = self._rows_by_value[factor]
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        values = self.factors[rows, factor]
        low, high = first[values], first[values + 1]
        found = low + (rng.random(rows.shape) * (high - low - 1)).astype(np.int64)
        return order[np.where((found >= places[rows]) & (high - low > 1), found + 1, found)]

    def split_at_random(self, rng: np.random.Generator) -> tuple["Code", "Code"]:
        """Divide the examples at random into a training part of two thirds and a test part."""
        order = rng.permutation(len(self))
        first = round(2 / 3 * len(self))
        return self[order[:first]], self[order[first:]]


def encode_with_factors(
    dataset: "Dataset", loaded: "TrainedModel", factors: "Factors", seed: int, precision: str
) -> Code:
    """Encode examples of a dataset and return the encodings with the examples' generative factors.

    Args:
        dataset: Where the images are.
        loaded: The model.
        factors: The rows, and their factors.
        seed: Seed of pixels that are drawn in every view, and of the draws that means of layers are given.
        precision: Arithmetic of the encoder.
    """
    import torch

    from mmgen.core.seeding import torch_generator
    from mmgen.posteriors import means_in_slices
    from mmgen.training.batches import DatasetRows

    assert loaded.observation is not None
    source = DatasetRows(dataset, factors.rows, loaded.device, seed=seed)
    generator = torch_generator(seed, "layers of codes", device=loaded.device)
    means = []
    for start in range(0, len(source), _AT_ONCE):
        batch = source.batch(torch.arange(start, min(start + _AT_ONCE, len(source))))
        parts = means_in_slices(loaded.model, batch, (loaded.observation.name,), precision, generator)
        means += [_number_labels(loaded.model, mean).double().cpu().numpy() for _, mean in parts]
    return Code(np.concatenate(means), factors.values, factors.names)


def _number_labels(model: "Model", mean: "Tensor") -> "Tensor":
    """Replace a one-hot label in encodings [N, D] by one column with its number."""
    import torch

    from mmgen.modalities.attributes import Attributes

    if not model.discrete_layers:
        return mean
    labels = [model.modalities[name] for name in model.latent_modalities]
    sizes = [size for modality in labels if isinstance(modality, Attributes) for size in modality.sizes]
    found = []
    for name, layer in model.latent.split(mean).items():
        if name in model.discrete_layers:
            layer = torch.stack([one.argmax(-1) for one in layer.split(sizes, -1)], -1).to(mean.dtype)
        found.append(layer)
    return torch.cat(found, -1)


@dataclass(frozen=True)
class Factors:
    """The values of generative factors for some rows of a dataset.

    Attributes:
        rows: The rows of which all factors are known, int64 [N].
        values: Numbers of their values, int64 [N, K], from 0 without gaps.
        names: Names [K].
    """

    rows: NDArray[np.int64]
    values: NDArray[np.int64]
    names: tuple[str, ...]


def read_factors(
    dataset: "Dataset", rows: NDArray[np.int64], names: Sequence[str] | None = None, require_all: bool = True
) -> Factors:
    """Read the generative factors of dataset rows: attributes, and stored factors that have few values.

    Left out are factors with one value or more than 100, those that are no whole numbers, and where none are asked for
    by name also numbers of the source and sizes of picture files. Rows with a value that fewer than 10 of them have are
    left out; a factor of which more than half the rows would be is none.

    Args:
        dataset: An open dataset.
        rows: Rows, ascending; those with an unknown attribute are left out.
        names: Names of the factors; all that can be used by default.
        require_all: Whether ``rows`` are all that there are, so that no more of them can be advised.

    Raises:
        UsageError: There are fewer than two, or a wanted one is none.
    """
    found, known = _read_columns(dataset, rows, names)
    found = {name: column for name, column in found.items() if _is_usable(column[known])}
    if missing := [name for name in names or () if name not in found]:
        raise _unusable_names_error(dataset, rows, missing)
    while not (frequent := _have_frequent_values([column[known] for column in found.values()], int(known.sum()))).all():
        known[known] = frequent  # may make values of other factors rare
    used = {name: np.unique(column[known], return_inverse=True)[1] for name, column in found.items()}
    used = {name: numbered for name, numbered in used.items() if numbered.max(initial=0) > 0}
    if len(used) < max(2, len(names or ())) or known.sum() < _FEWEST:
        if names is not None and len(used) == len(set(names)) == 1:
            advice = "name a second with --factor"
        else:
            advice = f"use {'a larger dataset' if require_all else 'more --encodings'}, or one with factors"
            advice += ", such as mmgen make-data dsprites"
        raise UsageError(
            f"disentanglement needs at least two factors and {_FEWEST} examples, {_FEWEST_OF_VALUE} of each value, "
            f"got {len(used)} ({', '.join(used) or 'none'}) and {known.sum():,} in {dataset.path}; {advice}"
        )
    return Factors(rows[known], np.stack(list(used.values()), 1).astype(np.int64), tuple(used))


def _read_columns(
    dataset: "Dataset", rows: NDArray[np.int64], names: Sequence[str] | None
) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.bool_]]:
    """Read all whole-number columns that may be factors, and which rows have a value in each."""
    found: dict[str, NDArray[np.int64]] = {}
    known = np.ones(len(rows), bool)
    for name, info in dataset.attributes.items():
        codes = dataset.read_attributes(name, rows)
        for column, attribute in zip(codes.T, info.names, strict=True):
            if names is None or attribute in names:
                found[attribute] = column.astype(np.int64)
                known &= column != UNKNOWN
    for name in dataset.factors:
        if name in found or (_is_source_factor(dataset.factors[name]) if names is None else name not in names):
            continue
        column = dataset.read_factor(name)[rows]
        if column.ndim == 1 and column.dtype.kind in "iu":
            found[name] = column.astype(np.int64)
    return found, known


def _unusable_names_error(dataset: "Dataset", rows: NDArray[np.int64], missing: Sequence[str]) -> UsageError:
    """Return an error for names that are no factors of these rows; it lists the factors."""
    names = [name for info in dataset.attributes.values() for name in info.names]
    usable = []
    for name in dict.fromkeys([*names, *dataset.factors]):
        found, known = _read_columns(dataset, rows, [name])
        if name not in missing and name in found and _is_usable(found[name][known]):
            usable.append(name)
    expected = f"expected some of {', '.join(usable)}" if usable else "but the dataset has none"
    return UsageError(
        f"--factor got {missing[0]}, {expected}: attributes or whole numbers with 2 to {_MOST_VALUES} values in "
        f"{dataset.path}, which {_FEWEST_OF_VALUE} examples or more of the {len(rows):,} have each"
    )


def _is_source_factor(factor: "FactorInfo") -> bool:
    """Return True for a factor that names the file or picture that an example was made from."""
    return factor.name.startswith(_SOURCE) or (factor.name, factor.unit) in _OF_FILES


def _is_usable(column: NDArray[np.int64]) -> bool:
    """Return True if a factor has several values, not too many, and most of them are frequent."""
    values, counts = np.unique(column, return_counts=True)
    many = counts[counts >= _FEWEST_OF_VALUE]
    return len(values) <= _MOST_VALUES and len(many) >= 2 and 2 * int(many.sum()) >= len(column)


def _have_frequent_values(columns: Sequence[NDArray[np.int64]], count: int) -> NDArray[np.bool_]:
    """Return bool [count]: True for rows whose values of all columns are frequent."""
    frequent = np.ones(count, bool)
    for column in columns:
        _, of, counts = np.unique(column, return_inverse=True, return_counts=True)
        frequent &= counts[of] >= _FEWEST_OF_VALUE
    return frequent


BINS = 20
"""Bins of each dimension, of equal width (Locatello et al., 2019)."""
LEAST = 0.1
"""Normalised mutual information, above what chance gives, from which a dimension is said to follow a factor: a tenth of
what there is to know of it."""
GAP = 0.2
"""How much more a dimension has of a factor than the next one, where the factor is said to be found. A dimension of its
own has up to 1, two factors turned by 45 degrees against two dimensions have 0; between them the choice is ours."""


def relative_information(code: Code) -> NDArray[np.float64]:
    """Compute I(v; z) / H(v) [D, K] for each latent dimension z and factor v, from 0 to 1; 0 for a constant factor."""
    return np.stack([_information_on_factor(code, factor) for factor in range(len(code.names))], axis=1)


def chance_information(code: Code) -> NDArray[np.float64]:
    """Return the expected I(v; z) / H(v) [K] of a dimension of pure noise: (bins - 1)(values - 1) / 2N H(v).

    To the leading order in 1/N (Miller, 1955): 0.01 for the 40 angles of dSprites and N = 10,000, 0.03 for N = 3,000.
    """
    found = []
    for column in code.factors.T:
        share = np.bincount(column) / len(column)
        share = share[share > 0]
        entropy = -(share * np.log(share)).sum()
        found.append((BINS - 1) * (len(share) - 1) / (2 * len(column) * entropy) if entropy > 0 else 0.0)
    return np.array(found)


def _information_on_factor(code: Code, factor: int) -> NDArray[np.float64]:
    """Compute I(v; z) / H(v) [D] for each latent dimension z and one factor v."""
    values = code.factors[:, factor]
    share = np.bincount(values) / len(values)
    entropy = -(share[share > 0] * np.log(share[share > 0])).sum()
    if not entropy > 0:
        return np.zeros(code.means.shape[1])
    found = []
    for column in code.means.T:
        edges = np.histogram_bin_edges(column, BINS)
        binned = np.digitize(column, edges[1:-1])
        joint = np.zeros((BINS, len(share)))
        np.add.at(joint, (binned, values), 1 / len(values))
        independent = joint.sum(1, keepdims=True) * joint.sum(0)
        some = joint > 0
        found.append((joint[some] * np.log(joint[some] / independent[some])).sum() / entropy)
    return np.array(found)


@dataclass(frozen=True)
class LeadingDimension:
    """The latent dimension that has the most information on a factor.

    Attributes:
        factor: Name of the factor.
        dimension: Position in z.
        information: I(v; z) / H(v), of 1.
        gap: How much more that is than what the next dimension has of the factor.
        exclusive: Whether the dimension has less of every other factor.
    """

    factor: str
    dimension: int
    information: float
    gap: float
    exclusive: bool

    @property
    def has_own_dimension(self) -> bool:
        """Return True if one dimension has clearly more information on the factor than the next, by :data:`GAP`."""
        return self.exclusive and self.gap >= GAP


def leading_dimensions(information: NDArray[np.float64], names: Sequence[str]) -> list[LeadingDimension]:
    """Find the latent dimension with the most information on each factor.

    Args:
        information: I(v; z) / H(v) [D, K].
        names: The K factors.

    Example:
        >>> x, y = leading_dimensions(np.array([[0.8, 0.1], [0.1, 0.3], [0.0, 0.25]]), ["x", "y"])
        >>> x.dimension, x.has_own_dimension, y.dimension, y.exclusive, y.has_own_dimension
        (0, True, 1, True, False)
    """
    leading = []
    for factor, name in enumerate(names):
        column = information[:, factor]
        dimension = int(column.argmax())
        others = np.delete(column, dimension)
        gap = float(column[dimension] - others.max(initial=0.0))
        exclusive = bool(np.delete(information[dimension], factor).max(initial=-1.0) < column[dimension])
        leading.append(LeadingDimension(name, dimension, float(column[dimension]), gap, exclusive))
    return leading
