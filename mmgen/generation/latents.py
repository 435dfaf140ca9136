"""Draws of z for descriptions or examples; commands, Python and metrics share the same random streams.

Each description has its own streams of randomness, so its draws depend neither on other descriptions nor on the caller.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.artifacts.header import parse_json
from mmgen.core.errors import ArtifactError, MmgenError, UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import torch_generator
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.posteriors import Completions, Fitted, LayeredPosterior, read_described_codes

if TYPE_CHECKING:
    from mmgen.generation.descriptions import Descriptions
    from mmgen.generation.trained_model import TrainedModel


WORDS = "words.json"
"""File of an export with the words of its model."""
_AT_ONCE = 16_384
"""Number of draws of a description in one batch."""


def random_stream(
    seed: int, purpose: str, key: tuple[int | str, ...], earlier_draws: int = 0, *, device: str
) -> torch.Generator:
    """Return the random generator that a seed, a purpose ("latents", "pixels") and the key of a description determine.

    Args:
        seed: Seed of the draws.
        purpose: "completions", "latents", "pixels" or "words".
        key: Key of the description, from :meth:`~mmgen.generation.descriptions.Descriptions.key`.
        earlier_draws: Number of earlier draws; later ones have another stream.
        device: Device of the stream.
    """
    further = ("after", earlier_draws) if earlier_draws else ()
    return torch_generator(seed, purpose, *further, *key, device=device)


def draw_completions(
    loaded: "TrainedModel", posterior: str, descriptions: "Descriptions", count: int, seed: int, earlier_draws: int = 0
) -> "Descriptions":
    """Return descriptions with a whole one for each draw, where the posterior or the decoder reads their words.

    By the law of total probability draws of z, given whole descriptions that agree with a part, are draws given the
    part; see :class:`mmgen.posteriors.Completions`. Descriptions without open words stay as they are.

    Args:
        loaded: The model.
        posterior: Name of one of its posteriors.
        descriptions: The descriptions.
        count: Number of draws of each, n.
        seed: Seed of the draws.
        earlier_draws: Number of earlier draws of each.

    Raises:
        UsageError: The training descriptions are gone, or none of them satisfies an expression.
    """
    rows = range(len(descriptions))
    if descriptions.completed is not None or not any(descriptions.is_open(row) for row in rows):
        return descriptions
    if not loaded.posteriors[posterior].is_completing or not loaded.completes_words_of(posterior):
        check_reads_parts(loaded, posterior)
        return descriptions
    device, known = str(loaded.device), loaded.completions
    streams = [
        random_stream(seed, "completions", descriptions.stream_key(row), earlier_draws, device=device) for row in rows
    ]
    completed = [
        known.sample(descriptions.codes[row], count, streams[row], descriptions.expression(row)) for row in rows
    ]
    return replace(descriptions, completed=np.stack(completed))


@torch.no_grad()
def draw_latents(
    loaded: "TrainedModel", posterior: str, descriptions: "Descriptions", count: int, seed: int, earlier_draws: int = 0
) -> Tensor:
    """Draw z [Q, n, D] from a posterior: n draws for each of Q descriptions, whose open words are completed first.

    Descriptions are drawn one at a time, since the last digit of a flow's output depends on the batch size.

    Args:
        loaded: The model, guided or not.
        posterior: Name of one of its posteriors.
        descriptions: The descriptions.
        count: n.
        seed: Seed of the draws.
        earlier_draws: Number of earlier draws of each.
    """
    if loaded.guidance:  # the pool of candidates takes the seed of these draws
        loaded = loaded.guided(loaded.guidance, seed)
    device, source = str(loaded.device), loaded.posteriors[posterior]
    descriptions = draw_completions(loaded, posterior, descriptions, count, seed, earlier_draws)
    drawn = []
    for row in range(len(descriptions)):
        generator = random_stream(seed, "latents", descriptions.stream_key(row), earlier_draws, device=device)
        pieces = [slice(start, min(start + _AT_ONCE, count)) for start in range(0, count, _AT_ONCE)]
        if source.reads and descriptions.completed is not None and descriptions.is_open(row):
            only = slice(row, row + 1)
            parts = [source.draw_each(descriptions.batch_of_draws(loaded, only, piece), generator) for piece in pieces]
        else:
            words, given = descriptions.batch(loaded, row), source.condition_on(descriptions.expression(row))
            parts = [given.sample(words, piece.stop - piece.start, generator)[:, 0] for piece in pieces]
        drawn.append(torch.cat(parts))
    return torch.stack(drawn)


def draw_example_latents(
    loaded: "TrainedModel",
    posterior: DiagonalGaussian | LayeredPosterior,
    sources: Sequence[str],
    rows: Sequence[int],
    count: int,
    seed: int,
) -> Tensor:
    """Draw z [B, n, D]: n draws from the posterior [B, D] of each of B examples.

    Each example has its own stream, so its draws do not depend on the others.

    Args:
        loaded: The model.
        posterior: q(z | sources).
        sources: The modalities that it reads.
        rows: A number for each example, such as its row in a dataset, which selects its random stream.
        count: n.
        seed: Seed of the draws.
    """
    drawn = []
    for number, row in enumerate(rows):
        generator = random_stream(seed, "latents", (*sources, int(row)), device=str(loaded.device))
        drawn.append(posterior[slice(number, number + 1)].sample(generator, (count,))[:, 0])
    return torch.stack(drawn)


def can_complete(loaded: "TrainedModel", posterior: str) -> bool:
    """Return True if a posterior, or the decoder, reads attributes of which some may be left open."""
    if loaded.attributes is None or not loaded.posteriors[posterior].completes:
        return False
    spelled = (loaded.text.name,) if loaded.text is not None and loaded.text.slots else ()
    return bool({loaded.attributes.name, *spelled} & {*loaded.reads(posterior)})


def check_reads_parts(loaded: "TrainedModel", posterior: str) -> None:
    """Refuse descriptions with open words, as they are, for a posterior that was fitted to whole ones alone.

    Raises:
        UsageError: It was.
    """
    source = loaded.posteriors[posterior].unguided
    if isinstance(source, Fitted) and source.whole and not loaded.completes:
        raise UsageError(
            f"--no-complete got {loaded.path}, which was fitted to whole descriptions, expected a fit that has seen "
            "parts of them; leave it out, or fit again with --set aggregate.keep_all=0.5"
        )


def check_open_words(loaded: "TrainedModel") -> None:
    """Refuse descriptions with open words for models that read none.

    Raises:
        UsageError: Descriptions leave no attributes open.
    """
    name = loaded.attributes.name if loaded.attributes is not None else ""
    if name not in loaded.likelihood.names and not any(can_complete(loaded, each) for each in loaded.posteriors):
        raise UsageError(
            f"--no-complete got {loaded.path}, whose descriptions leave no attributes open, expected a model that "
            "reads attributes; leave it out"
        )


def read_completions(loaded: "TrainedModel") -> Completions:
    """Return the distribution of whole descriptions: as a fit keeps it in its file, or an export beside it, else from
    the model's dataset.

    Only descriptions with which the model was trained count.

    Raises:
        UsageError: The model has no attributes, or its dataset is gone.
        ArtifactError: The file holds descriptions that are none.
    """
    info = loaded.attributes
    if info is None:
        raise UsageError(f"{loaded.path} has no attributes, so there is nothing to complete; give a caption")
    kept = loaded.fitted.aggregate.descriptions if loaded.fitted is not None else None
    if kept is None:
        kept = _read_words(loaded)
    if kept is not None:
        rows, counts = kept
        fits = rows.ndim == 2 and rows.shape[1] == len(info.names) and counts.shape == rows.shape[:1]
        if not fits or info.find_fault(rows) or (counts < 1).any():
            raise ArtifactError(
                f"{loaded.path} or the {WORDS} beside it is damaged or was changed; make it again with mmgen "
                "fit-aggregate or mmgen export"
            )
        return Completions(rows, counts, info, loaded.text)
    try:
        with Dataset.open(loaded.dataset_path()) as dataset:
            codes: np.ndarray = read_described_codes(loaded.settings, dataset)
    except MmgenError as error:
        raise UsageError(
            f"open words of a description are completed from training descriptions, which cannot be read: {error}; or "
            "give every word, or use --no-complete"
        ) from None
    return Completions.from_examples(codes, info, loaded.text)


def write_words(loaded: "TrainedModel", folder: Path) -> dict[str, str]:
    """Write the words of a model, and the training descriptions by which open ones are completed, into a folder.

    Returns:
        The name of the file, with what it is.
    """
    assert loaded.attributes is not None
    words: dict[str, Any] = {
        "model": loaded.model_header.content_id,
        "attributes": dict(zip(loaded.attributes.names, loaded.attributes.values, strict=True)),
        "descriptions": [], "counts": [], "odds": 1.0,  # open words stay open
    }  # fmt: skip
    if loaded.fitted is None or loaded.posteriors[loaded.fitted.name].is_completing:
        known = loaded.completions
        rows = np.where(known.rows == UNKNOWN, -1, known.rows.astype(int))
        words |= {"descriptions": rows.tolist(), "counts": known.counts.tolist(), "odds": known.odds}
    (folder / WORDS).write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
    return {WORDS: "the words, and the training descriptions that complete a part of one"}


def _read_words(loaded: "TrainedModel") -> tuple[np.ndarray, np.ndarray] | None:
    """Return the training descriptions [N, A] beside an exported model, and their counts [N]; None without."""
    path = loaded.model_path.with_name(WORDS)
    if not path.is_file():
        return None
    words = parse_json(path.read_bytes(), str(path))
    if not isinstance(words, dict) or words.get("model") != loaded.model_header.content_id:
        return None  # of another model
    try:
        rows, counts = np.array(words["descriptions"]), np.array(words["counts"])
        return np.where(rows == -1, UNKNOWN, rows).astype(np.uint8), counts.astype(np.int64)
    except (KeyError, TypeError, ValueError, OverflowError):
        return np.zeros(0), np.zeros(1)  # which fit no attributes
