"""Parallel text: sentences with their translations, each language a modality.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 7: English and Vietnamese
"""

import hashlib
import re
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from mmgen.core.errors import DataError
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Workers
from mmgen.data_recipes._parallel import (
    EncodedLanguage,
    Tokens,
    encode_language,
    read_parallel_text,
    sentence_groups,
)
from mmgen.data_recipes._splits import PARTS, Parts, split_by_group

__all__ = ["ParallelText"]

_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,19}")
_TAKEN = ("attributes", "image", "text")  # names that mean other modalities
_LEAST = 20  # sentences


class ParallelText(Recipe):
    """Sentences in two or more languages from the user's own files, line by line translations of one another.

    Each language is a text modality of its own name. The first word of each vocabulary is ``<unk>``, which stands for
    all rare words; the end of a sentence counts as a word.
    """

    train: Annotated[Path, Field(exclude=True)]
    """Common beginning of the files' names, to which .LANGUAGE or .LANGUAGE.gz is added; or a tab-separated file."""

    val: Annotated[Path | None, Field(exclude=True)] = None
    """The same of the validation part; left out together with test, parts are drawn from the training files."""

    test: Annotated[Path | None, Field(exclude=True)] = None
    """The same of the test part."""

    languages: tuple[str, ...] = ("en", "de")
    """Names of the languages: the endings of files, or the columns in order."""

    tokens: Tokens = "spaces"
    """What words are: split at spaces, for text that is tokenised, or lower-cased with marks as words of their own."""

    max_words: Annotated[int, Field(ge=1, le=1000)] = 40
    """Words after which a sentence is cut off."""

    min_count: Annotated[int, Field(ge=1)] = 5
    """Occurrences in training sentences that a word needs; rarer ones become <unk>."""

    number: Annotated[int | None, Field(ge=20)] = None
    """Use only the first sentences of the training files."""

    name: ClassVar[str] = "parallel-text"

    @model_validator(mode="after")
    def _check_settings(self) -> Self:
        names = self.languages
        wrong = [name for name in names if not _LANGUAGE.fullmatch(name) or name in _TAKEN]
        if len(names) < 2 or len({name.casefold() for name in names}) < len(names) or wrong:
            raise ValueError(
                f"languages got {', '.join(names) or 'none'}, expected two or more distinct names of letters, digits, "
                f"_ and -, none of them {', '.join(_TAKEN)}; name them as en,de"
            )
        if (self.val is None) != (self.test is None):
            raise ValueError("got one of --val and --test, expected both or neither; give the other one too")
        return self

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 2048, command: str = ""
    ) -> Work[Path]:
        sentences, part, sha256 = self._read_parts()
        scheme, meaning, parts = self._split(sentences, part, seed)
        encoded = {
            name: encode_language(name, lines, parts["train"], self.tokens, self.max_words, self.min_count)
            for name, lines in sentences.items()
        }
        size = len(part)
        shares = ", ".join(f"{len(parts[name]):,} {name}" for name in PARTS)

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            settings = {"recipe": self.name, **self.model_dump(), "number": size, "source_sha256": sha256}
            with DatasetWriter(path, size=size, settings=settings, seed=seed, command=command) as writer:
                for name, language in encoded.items():
                    writer.add_text(name, language.vocabulary, language.codes.shape[1])
                writer.add_factor("line", "int32", "", "number of the sentence in its file, from 0")
                line = np.concatenate([np.arange(np.count_nonzero(part == code)) for code in range(len(PARTS))])
                for start in range(0, size, chunk):
                    rows = slice(start, min(start + chunk, size))
                    columns = {name: language.codes[rows] for name, language in encoded.items()}
                    writer.write(start, columns, {"line": line[rows].astype(np.int32)})
                    yield Progress(rows.stop)
                writer.add_splits(scheme, **parts, meaning=meaning)
            return path

        return Work(f"making {self.name}", size, "sentence", write_dataset, [*_notes(encoded), f"parts: {shares}"])

    def _read_parts(self) -> tuple[dict[str, list[str]], np.ndarray, str]:
        """Return sentences by language, the part [N] that each is from, and a hash of all files."""
        sentences: dict[str, list[str]] = {name: [] for name in self.languages}
        digest = hashlib.sha256()
        counts: list[int] = []
        for path in (self.train, self.val, self.test):
            if path is None:
                continue
            lines, sha256 = read_parallel_text(path, self.languages)
            limit = self.number if path is self.train else None
            for name, each in lines.items():
                sentences[name] += each[:limit]
            counts.append(len(sentences[name]) - sum(counts))
            digest.update(sha256.encode())
        if counts[0] < _LEAST:
            raise DataError(
                f"{self.train} has {counts[0]} sentences, expected at least {_LEAST}; give files with more of them"
            )
        return sentences, np.repeat(np.arange(len(counts)), counts), digest.hexdigest()

    def _split(self, sentences: dict[str, list[str]], part: np.ndarray, seed: int) -> tuple[str, str, Parts]:
        """Return name, meaning and rows of the split scheme."""
        if self.test is not None:
            parts = {name: np.flatnonzero(part == code) for code, name in enumerate(PARTS)}
            return "official", "training, validation and test files", parts
        groups = sentence_groups(list(sentences.values()))
        return (
            "iid",
            "85/5/10 % of the sentences; those that share a translation stay in one part",
            split_by_group(groups, int(groups.max()) + 1, seed, "iid"),
        )


def _notes(encoded: dict[str, EncodedLanguage]) -> list[str]:
    return [language.note for language in encoded.values()]
