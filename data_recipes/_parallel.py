"""Reader for parallel text: line-aligned files of several languages, or one tab-separated file; gzipped or not."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError, clip
from mmgen.core.foreign import CannotReadError, open_unpacked, read_unpacked
from mmgen.core.plain_text import NotTextError, decode_text
from mmgen.descriptions import normalise_text
from mmgen.modalities.text import TextDescription

__all__ = ["EncodedLanguage", "Tokens", "encode_language", "read_parallel_text", "sentence_groups"]

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
            if len(row) < len(languages):
                raise DataError(
                    f"{path} has {len(row)} columns in line {number:,}, expected a sentence of each of "
                    f"{', '.join(languages)} with tabs between them; save the table as tab-separated text (UTF-8), or "
                    "give files with a sentence in each line"
                )
        if [cell.strip() for cell in rows[0]] == [*languages]:
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
            "of one another; get the files again"
        )
    return sentences, digest.hexdigest()


def _find_file(path: Path, language: str) -> Path:
    for name in (f"{path.name}.{language}", f"{path.name}.{language}.gz"):
        if (path.parent / name).is_file():
            return path.parent / name
    raise DataError(
        f"there is no {path}.{language} or {path}.{language}.gz, expected a file of sentences for each of --languages; "
        "give the files' common beginning without the language, or one tab-separated file"
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
    if 0 < data.count(b"\n") < text.count("\n"):
        line = next(number for number, one in enumerate(data.split(b"\n"), 1) if b"\r" in one.removesuffix(b"\r"))
        raise DataError(
            f"line {line:,} of {path} has a carriage return inside, which would shift all lines behind it; make it a "
            "space"
        )
    lines = text.rstrip("\n").split("\n")
    if lines == [""]:
        raise DataError(f"{path} is empty, expected a sentence in each line; get the file again")
    return lines


def _clean_lines(lines: Sequence[str], path: Path, language: str) -> list[str]:
    """Return sentences with composed accents and single spaces; refuse empty and endless ones, and markup."""
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
        yield from _TOKEN.findall(line.lower())


def _describe_language(
    name: str, vocabulary: Sequence[str], codes: NDArray[np.uint16], unknown: float, cut: int, longest: int
) -> str:
    words = (codes < len(vocabulary)).sum(1)
    first = clip(" ".join(vocabulary[code] for code in codes[0, : words[0]]), 60)
    ends = f"; {cut:,} cut after {codes.shape[1]} (the longest has {longest})" if cut else ""
    rare = f"{100 * unknown:.2g} % of all {TextDescription.unknown}"
    return f'{name}: {len(vocabulary):,} words, {rare}; {words.mean():.1f} in a sentence{ends}, such as "{first}"'
