"""Parallel text: sentences with their translations, each language a modality.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 7: English and Vietnamese
"""

import hashlib
import re
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from mmgen.core.errors import DataError, clip
from mmgen.core.foreign import CannotReadError, open_unpacked, read_unpacked
from mmgen.core.plain_text import NotTextError, decode_text
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Rows, Workers, chunk_indices, write_rows
from mmgen.data_recipes._streams import PARTS, Parts, split_by_group
from mmgen.descriptions import DOTTED_I, normalise_text
from mmgen.modalities.text import TextDescription

__all__ = ["ParallelText"]

Tokens = Literal["spaces", "marks"]

_MOST_BYTES = 2**29  # unpacked, of one file
_MOST_LETTERS = 20_000  # of one sentence
_MOST_WORDS = 65_535  # codes are uint16, and one of them is the padding
_TOKEN = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*|[^\w\s]|_")


def read_parallel_text(path: Path, languages: Sequence[str]) -> tuple[dict[str, list[str]], str]:
    """Read sentences by language, and a hash of the bytes that were read.

    Args:
        path: A tab-separated file, whose first columns are the languages in order; or the common beginning of
            line-aligned files, to which a dot and the language are added ("train" for train.en and train.de.gz).
        languages: Names of the languages.

    Raises:
        DataError: A file is missing, cannot be read, is no text, or sentences are empty or do not align.
    """
    digest = hashlib.sha256()
    if path.is_file():
        rows = [line.split("\t") for line in _read_lines(path, digest)]
        for number, row in enumerate(rows, 1):
            if len(row) < len(languages) or len(row) != len(rows[0]):
                raise DataError(
                    f"{path} has {len(row)} columns in line {number:,}, expected a sentence of each of "
                    f"{', '.join(languages)} with tabs between them, and as many columns in all lines; save the table "
                    "as tab-separated text (UTF-8), or give files with a sentence in each line"
                )
        if {cell.strip().casefold() for cell in rows[0]} >= {name.casefold() for name in languages}:
            raise DataError(f"{path} names the columns in its first line, expected sentences alone; take it out")
        columns = {name: [row[place] for row in rows] for place, name in enumerate(languages)}
        return {name: _clean_lines(lines, path, name) for name, lines in columns.items()}, digest.hexdigest()
    sentences = {}
    for name in languages:
        found = _find_file(path, name)
        sentences[name] = _clean_lines(_read_lines(found, digest), found, name)
    counts = {name: len(lines) for name, lines in sentences.items()}
    if len(set(counts.values())) > 1:
        listed = " and ".join(f"{count:,} of {name}" for name, count in counts.items())
        raise DataError(
            f"the lines of {path}.* do not align: there are {listed}, expected equally many, line by line translations "
            "of one another; give files whose lines belong together"
        )
    return sentences, digest.hexdigest()


def _find_file(path: Path, language: str) -> Path:
    for name in (f"{path.name}.{language}", f"{path.name}.{language}.gz"):
        if (path.parent / name).is_file():
            return path.parent / name
    raise DataError(
        f"there is no {path}.{language} or {path}.{language}.gz, expected a text file with a sentence in each line for "
        "each of --languages; give the files' common beginning without the language, or one tab-separated file"
    )


def _read_lines(path: Path, digest: "hashlib._Hash") -> list[str]:
    """Return the lines of a text file without line ends."""
    try:
        with open_unpacked(path) as file:
            data = bytes(read_unpacked(file, _MOST_BYTES + 1))
    except CannotReadError as error:
        raise DataError(f"cannot read {path}: {error}; check the path, or get the file again") from None
    if len(data) > _MOST_BYTES:
        raise DataError(f"{path} unpacks to more than {_MOST_BYTES:,} bytes, which is too much; give a part of it")
    digest.update(hashlib.sha256(data).digest())
    try:
        text = decode_text(data)
    except NotTextError as error:
        raise DataError(f"cannot read {path}: {error}") from None
    lines = text.rstrip("\n").split("\n")
    if lines == [""]:
        raise DataError(f"{path} is empty, expected a sentence in each line; get the file again")
    return lines


def _clean_lines(lines: Sequence[str], path: Path, language: str) -> list[str]:
    """Return sentences with composed accents and single spaces; refuse empty and endless ones, markup and numbers."""
    clean = [" ".join(normalise_text(line).split()) for line in lines]
    wrong = (
        (f"more than {_MOST_LETTERS:,} letters", [len(line) > _MOST_LETTERS for line in lines]),
        ("no words", [not line for line in clean]),
        ("markup", [line.startswith("<") and line.endswith(">") for line in clean]),
    )
    for what, each in wrong:
        if any(each):
            more = f" and {sum(each) - 1:,} more lines" if sum(each) > 1 else ""
            raise DataError(
                f"line {each.index(True) + 1:,}{more} of {path} ({language}) {'has' if not more else 'have'} {what}, "
                "expected a sentence; take such lines out of all languages"
            )
    is_id = 10 * len({*clean}) >= 9 * len(clean)  # of cells in one piece with a digit, nearly all of them distinct
    numbers = sum(
        not any(map(str.isalpha, line)) or (is_id and " " not in line and any(map(str.isdigit, line))) for line in clean
    )
    if 2 * numbers >= len(clean):
        raise DataError(
            f"{numbers:,} of {len(clean):,} lines of {path} ({language}) are numbers or ids, expected sentences; of a "
            "table leave out such columns, and name --languages in the order of its columns"
        )
    return clean


def sentence_groups(sentences: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Return for each example [N] the number of its group: examples that share a sentence in any language.

    Example:
        >>> sentence_groups([["a", "a", "b"], ["x", "y", "z"]]).tolist()
        [0, 0, 1]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = len(sentences[0])
    edges = []
    for lines in sentences:
        first: dict[str, int] = {}
        edges.append(np.array([first.setdefault(line, row) for row, line in enumerate(lines)]))
    start, end = np.tile(np.arange(size), len(edges)), np.concatenate(edges)
    graph = coo_array((np.ones(len(start), np.int8), (start, end)), shape=(size, size))
    groups: NDArray[np.int64] = connected_components(graph, directed=False)[1].astype(np.int64)
    return groups


@dataclass(frozen=True)
class EncodedLanguage:
    """Sentences of one language as codes of words, with the vocabulary.

    Attributes:
        vocabulary: ``<unk>``, then all words, the commonest first.
        codes: uint16 [N, T], T words in the longest; the size of the vocabulary after the last word.
        note: A line for people.
    """

    vocabulary: list[str]
    codes: NDArray[np.uint16]
    note: str


def encode_language(
    name: str,
    sentences: Sequence[str],
    training: NDArray[np.int64],
    tokens: Tokens,
    max_words: int,
    min_count: int,
) -> EncodedLanguage:
    """Encode sentences by the words that training sentences have ``min_count`` times.

    Args:
        name: The language, for messages.
        sentences: All N sentences.
        training: Rows from which words are counted.
        tokens: How sentences are split into words, see :func:`split_sentence`.
        max_words: Words after which a sentence is cut off.
        min_count: Occurrences that a word needs; rarer ones become ``<unk>``.

    Raises:
        DataError: There are no such words, or too many.
    """
    rows = [list(split_sentence(line, tokens)) for line in sentences]
    counts = Counter(word for row in training for word in rows[row])
    counts.pop(TextDescription.unknown, None)
    frequent = sorted((word for word, count in counts.items() if count >= min_count), key=lambda w: (-counts[w], w))
    if not frequent or len(frequent) >= _MOST_WORDS:
        raise DataError(
            f"{len(frequent):,} different words of {name} occur {min_count} times in training sentences, expected 1 to "
            f"{_MOST_WORDS - 1:,}; choose another --min-count"
        )
    vocabulary = [TextDescription.unknown, *frequent]
    code = {word: number for number, word in enumerate(vocabulary)}
    length = min(max_words, max(map(len, rows)))
    codes = np.full((len(rows), length), len(vocabulary), np.uint16)
    for row, words in enumerate(rows):
        short = words[:length]
        codes[row, : len(short)] = [code.get(word, 0) for word in short]
    cut, longest = sum(len(row) > max_words for row in rows), max(map(len, rows))
    unknown = np.count_nonzero(codes == 0) / np.count_nonzero(codes < len(vocabulary))
    return EncodedLanguage(vocabulary, codes, _describe_language(name, vocabulary, codes, unknown, cut, longest))


def split_sentence(line: str, tokens: Tokens) -> Iterator[str]:
    """Yield the words of a sentence, split at spaces alone, or in lower case with marks as words of their own.

    Example:
        >>> list(split_sentence("Two men's hats, red.", "marks")), list(split_sentence("two men &apos;s", "spaces"))
        (['two', "men's", 'hats', ',', 'red', '.'], ['two', 'men', '&apos;s'])
    """
    if tokens == "spaces":
        yield from line.split()
    else:
        yield from _TOKEN.findall(line.lower().replace(DOTTED_I, "i"))


def _describe_language(
    name: str, vocabulary: Sequence[str], codes: NDArray[np.uint16], unknown: float, cut: int, longest: int
) -> str:
    words = (codes < len(vocabulary)).sum(1)
    first = clip(" ".join(vocabulary[code] for code in codes[0, : words[0]]), 60)
    ends = f"; {cut:,} cut after {codes.shape[1]} (the longest has {longest})" if cut else ""
    rare = f"{100 * unknown:.2g} % of all {TextDescription.unknown}"
    return f'{name}: {len(vocabulary):,} words, {rare}; {words.mean():.1f} in a sentence{ends}, such as "{first}"'


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
        size, notes = len(part), _notes(encoded)
        pairs = [*zip(*sentences.values(), strict=True)]
        learnt = {pairs[row] for row in parts["train"]}
        for name in PARTS[1:]:
            if known := sum(pairs[row] in learnt for row in parts[name]):
                notes.append(f"{known:,} of {len(parts[name]):,} sentences of {name} are in train too: scores flatter")
        shares = ", ".join(f"{len(parts[name]):,} {name}" for name in PARTS)

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            settings = {"recipe": self.name, **self.model_dump(), "number": size, "source_sha256": sha256}
            with DatasetWriter(path, size=size, settings=settings, seed=seed, command=command) as writer:
                for name, language in encoded.items():
                    writer.add_text(name, language.vocabulary, language.codes.shape[1])
                writer.add_factor("line", "int32", "", "number of the sentence in its file, from 0")
                line = np.concatenate([np.arange(np.count_nonzero(part == code)) for code in range(len(PARTS))])
                line = line.astype(np.int32)
                chunks = (
                    Rows({name: language.codes[rows] for name, language in encoded.items()}, {"line": line[rows]})
                    for rows in chunk_indices(size, chunk)
                )
                yield from write_rows(writer, chunks)
                writer.add_splits(scheme, **parts, meaning=meaning)
            return path

        return Work(f"making {self.name}", size, "sentence", write_dataset, [*notes, f"parts: {shares}"])

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
