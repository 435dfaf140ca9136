"""Examples from whose encodings figures of z start."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import format_caption, format_values
from mmgen.figures.plots._base import dataset_path_of
from mmgen.generation.decode import decode_means, drawable_pictures
from mmgen.generation.descriptions import Descriptions
from mmgen.generation.encode import encode_examples, encode_pictures
from mmgen.generation.examples import Examples, random_test_rows, read_examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mmgen.figures.session import Session


@dataclass(frozen=True)
class StartExamples:
    """Examples from which a figure starts, with the means of their posteriors over z.

    Attributes:
        session: The model that encoded them.
        examples: The examples.
        z: Means of their posteriors, [n, D].
        conditions: Modalities that the posteriors read: only the image if the model has such a posterior.
    """

    session: "Session"
    examples: Examples
    z: Tensor
    conditions: tuple[str, ...]

    def label(self, number: int) -> str:
        """Return the label of the example ``number``: its description, or without one its row in the dataset."""
        info, text, shown = self.session.model.attributes, self.session.model.text, self.examples
        if info is not None and shown.codes is not None and (shown.codes[number] != UNKNOWN).any():
            return format_values(shown.codes[number], info)
        if text is not None and shown.tokens is not None and (caption := format_caption(shown.tokens[number], text)):
            return caption
        return f"row {shown.rows[number]}"

    @property
    def name(self) -> str:
        """Name of the main modality, whose pictures the figure shows."""
        return self.session.model.observation.name if self.session.model.observation is not None else ""

    @property
    def pictures(self) -> np.ndarray:
        """Pictures [n, C, H, W] of the examples in the main modality."""
        assert self.session.model.observation is not None
        return self.session.model.observation.picture(self.examples.images)

    @property
    def condition(self) -> Batch | None:
        """Descriptions [n] of the examples for a model that decodes z with a description; None for others."""
        if not self.session.model.model.conditional_on:
            return None
        codes = self.examples.codes
        known = np.full((len(self.z), 0), UNKNOWN, np.uint8) if codes is None else codes
        return Descriptions(known, self.examples.tokens).batch(self.session.model, slice(None))

    def decode(self, number: int, z: Tensor) -> np.ndarray:
        """Decode z [..., D] to pictures [..., C, H, W], with the description of example ``number`` if needed."""
        model = self.session.model
        main = model.observation
        assert main is not None
        condition = None if self.condition is None else self.condition[slice(number, number + 1)]
        return main.pictures(decode_means(model, main.name, z, condition).cpu().numpy())


def encode_start_examples(session: "Session", rows: "Sequence[int]", count: int) -> StartExamples:
    """Read and encode the examples in ``rows`` of the model's dataset, by default ``count`` random test examples.

    Raises:
        UsageError: The model does not draw or encode images, or the data have no test examples.
        MissingParentError: The dataset is missing.
    """
    model = session.model
    main = model.observation
    if main is None or main.name not in drawable_pictures(model):
        raise UsageError(f"{session.group.model} draws no images, which this figure needs; use a model of images")
    path = dataset_path_of(session)
    with Dataset.open(path) as data:
        row_numbers = np.asarray(rows, np.int64)
        if not rows:
            row_numbers = random_test_rows(data, model.settings.data.split, count, session.seed)
        if not len(row_numbers):
            raise UsageError(
                f"{path} has no test examples to start from, expected at least one; choose rows with --dataset-row"
            )
        examples = read_examples(model, data, row_numbers)
    alone = model.model.has_posterior((main.name,))
    with torch.no_grad():
        q = encode_pictures(model, examples.images) if alone else encode_examples(model, examples)
    return StartExamples(session, examples, q.mean, (main.name,) if alone else model.encoder_inputs)
