"""The drawn pictures that are nearest to training pictures, beside them, and the same of held-out pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.training_pictures import (
    NearestTraining,
    find_nearest,
    pool_pixels,
    read_pooled_pixels,
    training_blocks,
)
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.tables import Tile, TileRow, tile_table
from mmgen.figures.plots._base import PlotOptions, accepts, dataset_path_of, select_descriptions
from mmgen.figures.session import Session, Source
from mmgen.generation.classifiers import classifier_reads_samples
from mmgen.generation.descriptions import empty_description
from mmgen.generation.draws import draw

__all__ = ["copies"]

_PAIRS = 5
_PICTURES = 480
"""Pictures drawn from each posterior, and held-out pictures at most."""


@dataclass(frozen=True)
class _Candidates:
    """Pictures [n, C, H, W] of one origin, and its name."""

    name: str
    pictures: NDArray[np.float32]


@accepts("descriptions", "number", "guidance")
def copies(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw the pictures with the smallest relative distance to a training picture, above it, for each posterior.

    Raises:
        UsageError: The dataset is missing, or holds no held-out pictures.
    """
    session = sessions[0]
    model, name = session.model, _main_modality(session)
    sources = [source for source in session.sources if not source.folded] or session.priors[:1]
    drawn = [_Candidates(source.name, _draw_candidates(session, source, options)) for source in sources]
    with Dataset.open(dataset_path_of(session)) as data:
        split = model.settings.data.split
        training = data.split(split, "train", real=True)
        rows = np.setdiff1d(data.split(split, "test"), training)
        rows = numpy_generator(session.seed, "held-out pictures").permutation(rows)[:_PICTURES]
        if not len(rows) or not len(training):
            raise UsageError(
                f"the dataset of {session.group.model} has no training or no test pictures, but this figure compares "
                "both; use a dataset with both"
            )
        read = partial(data.read_values, name, seed=session.seed)
        every = [*drawn, _Candidates("Test pictures, new to the model", read(rows))]
        points = [pool_pixels(torch.from_numpy(each.pictures)).numpy() for each in every]
        pooled = partial(read_pooled_pixels, data, name, seed=session.seed)
        near = find_nearest(np.concatenate(points), training_blocks(data, training, pooled))
        table, start = [], 0
        for each in every:
            part = near[start : start + len(each.pictures)]
            chosen = np.argsort(part.relative, kind="stable")[: options.number or _PAIRS]
            table += _pair_rows(
                session, each, part, chosen, [read(part.rows[index : index + 1])[0] for index in chosen]
            )
            start += len(each.pictures)
    counted = " and ".join(f"{len(each.pictures):,}" for each in every)
    note = (
        f"Those of {counted} pictures with the smallest relative distance: the distance of pixels, averaged to at most "
        "16 x 16, to the nearest training picture, divided by the mean distance to the 2nd to 50th nearest. 0 is a "
        f"copy. Metric copies measures how many are nearer than test pictures are. Seed {session.seed}."
    )
    return Picture("Nearest training pictures", note, tile_table(table))


def _main_modality(session: Session) -> str:
    """Return the name of the modality that is compared; refuse models without pictures."""
    observation = session.model.observation
    if observation is None or observation.picture_shape is None:
        raise UsageError(
            f"{session.group.model} draws no pictures, which this figure compares; use a model of pictures"
        )
    return observation.name


def _draw_candidates(session: Session, source: Source, options: PlotOptions) -> NDArray[np.float32]:
    """Draw about 480 pictures [n, C, H, W] from a posterior, in the form in which metrics examine them."""
    descriptions = (
        empty_description(source.loaded)
        if source.given == "nothing"
        else select_descriptions(session, replace(options, number=None), _PICTURES)
    )
    count = -(-_PICTURES // len(descriptions))
    draws = draw(source.loaded, descriptions, count, posterior=source.posterior, seed=session.seed)
    pictures = draws.sampled if classifier_reads_samples(source.loaded) else draws.means
    return pictures.reshape(-1, *pictures.shape[2:])


def _pair_rows(
    session: Session,
    candidates: _Candidates,
    near: NearestTraining,
    chosen: NDArray[np.int64],
    training_pictures: list[NDArray[np.float32]],
) -> list[TileRow]:
    """Return a row of pictures and a row of their nearest training pictures."""
    assert session.model.observation is not None
    as_pictures = session.model.observation.pictures
    top = [Tile(as_pictures(candidates.pictures[index][None])[0]) for index in chosen]
    below = [
        Tile(as_pictures(picture[None])[0], ["distance", f"{near.relative[index]:.2f}"])
        for index, picture in zip(chosen, training_pictures, strict=True)
    ]
    return [TileRow(candidates.name, [top]), TileRow("Nearest training pictures", [below])]
