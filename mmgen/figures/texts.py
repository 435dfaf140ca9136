"""Images and texts of a model's own making: decoded from encodings of examples, or from draws, and judged."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.errors import UsageError
from mmgen.figures.draws import Draws, check_judge, judge_images
from mmgen.figures.tiles import Tile
from mmgen.figures.words import Text
from mmgen.queries import TextVocabulary, Vocabulary, codes_of_caption
from mmgen.seeding import numpy_generator

if TYPE_CHECKING:
    import torch

    from mmgen.classifier import Classifier
    from mmgen.gaussian import DiagonalGaussian
    from mmgen.loading import Loaded
    from mmgen.models._settings import TextDescription

__all__ = [
    "Examples",
    "Spoken",
    "Verdicts",
    "caption",
    "encode",
    "examples",
    "generated_text",
    "speak",
    "spoken_tiles",
    "verdicts",
]

_CHUNK = 64


@dataclass(frozen=True)
class Examples:
    """Rows of a dataset.

    Attributes:
        rows: Where they are, int [n].
        images: float32 [n, C, H, W] in [0, 1].
        tokens: Word codes uint16 [n, T].
        codes: Attribute codes uint8 [n, A]; A is 0 where the data have none.
    """

    rows: np.ndarray
    images: np.ndarray
    tokens: np.ndarray
    codes: np.ndarray

    def first(self, count: int) -> "Examples":
        """Only ``count`` of them."""
        return Examples(self.rows[:count], self.images[:count], self.tokens[:count], self.codes[:count])


@dataclass(frozen=True)
class Spoken:
    """What was decoded from n latents.

    Attributes:
        images: Means of p(image|z), float32 [n, C, H, W].
        tokens: Draws from p(text|z), word codes int64 [n, T].
        probabilities: p(word_t | z, words before) for those draws, float32 [n, T, V + 1].
    """

    images: np.ndarray
    tokens: np.ndarray
    probabilities: np.ndarray

    @property
    def texts(self) -> list[Text]:
        """The draws with their distributions."""
        return [Text(tokens, table) for tokens, table in zip(self.tokens, self.probabilities, strict=True)]


@dataclass(frozen=True)
class Verdicts:
    """What a judge makes of images and the texts that came with them.

    Attributes:
        wrong: Bool [n]: at least one word that the judge says is another.
        remarks: What it sees instead, "" where it agrees.
        right: Words that match, and words compared; those that the judge is told are not.
    """

    wrong: np.ndarray
    remarks: list[str]
    right: tuple[int, int]


def generated_text(loaded: "Loaded") -> "TextDescription":
    """The text that a model generates.

    Raises:
        UsageError: It generates none, or no images.
    """
    text = loaded.text
    if text is None or text.name not in loaded.model.decoders or loaded.image is None:
        raise UsageError(
            f"{loaded.path} does not generate images and text, which this figure shows; train a model of both, "
            "for example with mmgen train two-objects.h5 --preset cremer/two-objects-cpu"
        )
    return text


def examples(loaded: "Loaded", dataset: Path, part: str, count: int, seed: int) -> Examples:
    """Some examples of a part of the data, drawn at random: "train", "val" or "test"."""
    text, image = generated_text(loaded), loaded.image
    assert image is not None
    with Dataset.open(dataset) as data:
        every = data.split(loaded.settings.data.split, part)
        chosen = numpy_generator(seed, "examples", part).permutation(len(every))[:count]
        rows = np.sort(every[chosen])
        images = data.read_pixels(image.name, rows)
        tokens = data.read_text(text.name, rows)
        info = loaded.attributes
        codes = data.read_attributes(info.name, rows) if info is not None else np.zeros((len(rows), 0), np.uint8)
    return Examples(rows, images, tokens, codes)


def encode(loaded: "Loaded", shown: Examples) -> "DiagonalGaussian":
    """Posteriors [n, D] of examples, given what the model's decoders were trained with: q(z|x) or q(z|x,y)."""
    import torch

    from mmgen.gaussian import DiagonalGaussian

    parts = []
    for start in range(0, len(shown.images), _CHUNK):
        rows = slice(start, start + _CHUNK)
        codes = shown.codes[rows] if shown.codes.shape[1] else None
        parts.append(loaded.encode(shown.images[rows], codes, shown.tokens[rows]))
    mean = torch.cat([part.mean.float() for part in parts])
    return DiagonalGaussian(mean, torch.cat([part.log_sd.float() for part in parts]))


def speak(loaded: "Loaded", z: "torch.Tensor", generator: "torch.Generator", greedy: bool = False) -> Spoken:
    """Images, texts and their word distributions for z [n, D].

    Args:
        loaded: The model.
        z: Latents.
        generator: Of the words.
        greedy: The likeliest word at every step instead of a draw.
    """
    import torch

    text, image = generated_text(loaded), loaded.image
    assert image is not None
    model = loaded.model
    images, tokens, tables = [], [], []
    with torch.inference_mode():
        for part in z.split(_CHUNK):
            images.append(model.mean(image.name, part).float().cpu())
            said = model.sample(text.name, part, generator, greedy=greedy)
            tokens.append(said.cpu())
            tables.append(model.word_probabilities(text.name, part, said).float().cpu())
    return Spoken(torch.cat(images).numpy(), torch.cat(tokens).numpy(), torch.cat(tables).numpy())


def verdicts(loaded: "Loaded", judge: "Classifier | None", spoken: Spoken) -> Verdicts:
    """Compare what the judge sees in images with the texts generated from the same z (CK Section 5.4).

    The judge is told the words that do not follow from the picture, the relation, as they were generated. A word that
    is none of its position's is wrong. Without a judge, or for free text, nothing is wrong.
    """
    text, info = generated_text(loaded), loaded.attributes
    count = len(spoken.tokens)
    if judge is None or info is None or not text.slots:
        return Verdicts(np.zeros(count, bool), [""] * count, (0, 0))
    check_judge(loaded, judge)
    said = codes_of_caption(spoken.tokens, text, info)
    seen = judge_images(judge, spoken.images, said)
    compared = [info.names.index(slot) for slot in text.slots if slot not in judge.told]
    differs = said[:, compared] != seen[:, compared]
    remarks = []
    for row, different in zip(seen, differs, strict=True):
        words = [info.values[a][row[a]] for a, other in zip(compared, different, strict=True) if other]
        remarks.append(f"judge: {', '.join(words)}" if words else "")
    return Verdicts(differs.any(1), remarks, (int((~differs).sum()), differs.size))


def spoken_tiles(drawn: Draws, row: int, text: TextVocabulary, info: Vocabulary | None, sampled: bool) -> list[Tile]:
    """Images drawn for one description with the texts that came with them; words that were not asked for stand out.

    Args:
        drawn: From a model that generates texts.
        row: Which description.
        text: The text that it generates.
        info: The attributes' words, for what the judge sees instead.
        sampled: Show draws from p(image|z) instead of its means.
    """
    assert drawn.words is not None
    wanted = caption(drawn.asked_words[row], text) if drawn.asked_words is not None else []
    tiles = []
    for i, image in enumerate((drawn.sampled if sampled else drawn.means)[row]):
        said = caption(drawn.words[row, i], text)
        marked = [bool(wanted) and (place >= len(wanted) or wanted[place] != word) for place, word in enumerate(said)]
        wrong, remark = False, ""
        if drawn.judged is not None and drawn.wrong is not None and info is not None:
            wrong = bool(drawn.wrong[row, i])
            remark = drawn.remark(row, i, info)
        tiles.append(Tile(image, said or ["–"], marked, wrong, remark))
    return tiles


def caption(tokens: np.ndarray, text: TextVocabulary) -> list[str]:
    """The words of a text [T], one string for each."""
    return [text.vocabulary[int(code)] for code in tokens if code < len(text.vocabulary)]
