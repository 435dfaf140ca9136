"""Parallel text: words and parts as they stand in files, and sources that are refused in a sentence."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from mmgen.artifacts import Dataset
from mmgen.contrib.translation.data_recipes import parallel_text
from mmgen.contrib.translation.data_recipes.parallel_text import ParallelText, split_sentence
from mmgen.core.errors import DataError, SettingsError
from mmgen.settings.config import validate

NOUNS = ("dog", "cat", "ball", "house", "tree")
GERMAN = {"dog": "hund", "cat": "katze", "ball": "ball", "house": "haus", "tree": "baum"}


def pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """English and German sentences of one to three nouns."""
    generator = np.random.default_rng(seed)
    rows = [[NOUNS[word] for word in generator.integers(0, 5, 1 + row % 3)] for row in range(count)]
    return [("a " + " and ".join(row), "ein " + " und ".join(GERMAN[noun] for noun in row)) for row in rows]


def write_aligned(folder: Path, stem: str, rows: list[tuple[str, str]], packed: bool = False) -> Path:
    for place, language in enumerate(("en", "de")):
        data = "".join(f"{row[place]}\n" for row in rows).encode()
        name = f"{stem}.{language}"
        (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(data) if packed else data)
    return folder / stem


def write_table(folder: Path, rows: list[tuple[str, str]]) -> Path:
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{one}\t{other}\tCC BY, somebody\n" for one, other in rows))
    return path


def make(path: Path, **settings: object) -> Dataset:
    validate(ParallelText, settings).make(path).run()
    return Dataset.open(path)


@pytest.mark.parametrize("packed", [False, True])
def test_sentences_are_the_lines_of_the_files(tmp_path: Path, packed: bool) -> None:
    rows = [pairs(60), [("a dog", "ein hund"), ("a zebra", "ein zebra")], [("a cat", "eine katze")]]
    places = [write_aligned(tmp_path, stem, each, packed) for stem, each in zip("abc", rows, strict=True)]
    with make(tmp_path / "x.h5", **dict(zip(("train", "val", "test"), places, strict=True))) as dataset:
        assert set(dataset.texts) == {"en", "de"} and dataset.schemes == ["official"]
        assert [len(dataset.split("official", part)) for part in ("train", "val", "test")] == [60, 2, 1]
        every = [pair for part in rows for pair in part]
        for place, language in enumerate(("en", "de")):
            info, codes = dataset.texts[language], dataset.read_text(language)
            assert info.vocabulary[0] == "<unk>"
            known = [" ".join(w if w in info.vocabulary else "<unk>" for w in pair[place].split()) for pair in every]
            assert [info.words(row) for row in codes] == known
        english = dataset.texts["en"]
        assert english.words(dataset.read_text("en")[61]) == "a <unk>", "words are counted in training sentences"
        assert dataset.read_factor("line").tolist() == [*range(60), 0, 1, 0]


def test_a_table_is_divided_so_that_no_sentence_is_in_two_parts(tmp_path: Path) -> None:
    rows = pairs(400)
    with make(tmp_path / "x.h5", train=write_table(tmp_path, rows), min_count=1) as dataset:
        parts = {part: dataset.split("iid", part) for part in ("train", "val", "test")}
        assert sum(map(len, parts.values())) == 400 and all(len(each) for each in parts.values())
        for place in (0, 1):
            sets = [{rows[row][place] for row in each} for each in parts.values()]
            assert not sets[0] & sets[1] and not sets[0] & sets[2] and not sets[1] & sets[2]


def test_sentences_of_val_and_test_that_train_has_are_told(tmp_path: Path) -> None:
    places = [write_aligned(tmp_path, stem, rows) for stem, rows in (("a", pairs(60)), ("b", [("a cow", "eine kuh")]))]
    work = validate(ParallelText, {"train": places[0], "val": places[1], "test": places[0]}).make(tmp_path / "x.h5")
    assert "60 of 60 sentences of test are in train too: scores flatter" in work.notes
    assert not any("of val are in train" in note for note in work.notes)


def test_rare_words_and_long_sentences(tmp_path: Path) -> None:
    rows = [*pairs(40), ("Once upon a TIME, it's red", "es war einmal")]
    table = write_table(tmp_path, rows)
    parts = {"train": table, "val": table, "test": table}
    with make(tmp_path / "x.h5", **parts, min_count=1, max_words=4, tokens="marks") as dataset:
        english = dataset.texts["en"]
        assert english.length == 4 and "it's" in english.vocabulary and "," in english.vocabulary
        assert english.words(dataset.read_text("en")[40]) == "once upon a time"
    assert [*split_sentence("İSTANBUL, İyi", "marks")] == ["istanbul", ",", "iyi"]
    with make(tmp_path / "y.h5", **parts, min_count=40) as dataset:
        assert dataset.texts["en"].vocabulary == ("<unk>", "a")


def test_the_content_depends_on_text_and_not_on_packing(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir(), (tmp_path / "packed").mkdir()
    plain = write_aligned(tmp_path / "plain", "a", pairs(40))
    packed = write_aligned(tmp_path / "packed", "a", pairs(40), packed=True)
    with make(tmp_path / "x.h5", train=plain) as one, make(tmp_path / "y.h5", train=packed) as other:
        assert one.header.content_id == other.header.content_id


@pytest.mark.parametrize(
    ("english", "german", "message"),
    [
        (b"a dog\n" * 40, b"ein hund\n" * 39, "do not align: there are 40 of en and 39 of de"),
        (
            b"a dog\n" * 40,
            b"ein hund\n" * 30 + b" \t\n" + b"ein hund\n" * 9,
            "line 31 of .*a.de .de. has no words, expected",
        ),
        (b"a dog\n" * 40, b"ein h\xfcnd\n" * 40, "a.de: it is no text in UTF-8 .line 1 has the byte 0xFC"),
        (b"a dog\n" * 40, b"", "a.de is empty"),
        (b"a dog\n" * 4, b"ein hund\n" * 4, "has 4 sentences, expected at least 20"),
        (b"a dog\n" * 40, gzip.compress(b"ein hund\n" * 40, mtime=0)[:30], "damaged or truncated gzip"),
        (b"a dog\n" * 40, b"ein hund \0\n" * 40, "zero character"),
        (b"a dog\n" * 40, b"ein " * 6000 + b"\n" + b"ein hund\n" * 39, "line 1 of .* has more than 20,000 letters"),
        (b"a dog\n" * 40, b"ein\nhund\n" * 40, "do not align"),
        (
            b"a dog\n" * 40,
            b"3 4.5\n" * 30 + b"ein hund\n" * 10,
            "30 of 40 lines of .*a.de .de. are numbers or ids, expected",
        ),
        (
            b"a dog\n" * 40,
            b"".join(b"0x%x\n" % number for number in range(40)),
            "40 of 40 lines of .*a.de .de. are numbers or ids, expected",
        ),
        (b"a dog\n" * 40, b"<url>x</url>\n" * 2 + b"ein hund\n" * 38, "line 1 and 1 more lines of .* have markup"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, english: bytes, german: bytes, message: str) -> None:
    (tmp_path / "a.en").write_bytes(english)
    (tmp_path / "a.de").write_bytes(german)
    with pytest.raises(DataError, match=message):
        make(tmp_path / "x.h5", train=tmp_path / "a")
    assert not (tmp_path / "x.h5").exists()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("de\ten\n" + "ein hund\ta dog\n" * 40, "names the columns in its first line"),
        ("a dog\tein hund\n" * 30 + "a dog\tein hund\ta cat\n" + "a dog\tein hund\n" * 9, "has 3 columns in line 31"),
    ],
)
def test_a_table_of_other_columns_is_refused(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "a.tsv").write_text(rows)
    with pytest.raises(DataError, match=message):
        make(tmp_path / "x.h5", train=tmp_path / "a.tsv")


def test_a_newline_alone_ends_a_sentence(tmp_path: Path) -> None:
    """A carriage return, or what else some programs take for the end of a line, shifts no sentence."""
    rows = [(f"dog {number}", f"hund {number}") for number in range(40)]
    inside = {3: ("en", "\r"), 9: ("de", "\r"), 20: ("en", "\u2028"), 30: ("de", "\x0c")}
    for place, language in enumerate(("en", "de")):
        lines = [row[place] for row in rows]
        for number, (changed, end) in inside.items():
            lines[number] = lines[number].replace(" ", end) if changed == language else lines[number]
        (tmp_path / f"a.{language}").write_bytes("".join(f"{line}\r\n" for line in lines).encode())
    with make(tmp_path / "x.h5", **dict.fromkeys(("train", "val", "test"), tmp_path / "a"), min_count=1) as dataset:
        for place, language in enumerate(("en", "de")):
            assert [dataset.texts[language].words(row) for row in dataset.read_text(language)] == 3 * [
                r[place] for r in rows
            ]


def test_a_packed_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_text, "_MOST_BYTES", 10_000)
    write_aligned(tmp_path, "a", pairs(40))
    (tmp_path / "a.de").unlink()
    (tmp_path / "a.de.gz").write_bytes(gzip.compress(b"ein hund\n" * 100_000))
    with pytest.raises(DataError, match="unpacks to more than 10,000 bytes"):
        make(tmp_path / "x.h5", train=tmp_path / "a")


def test_a_table_with_too_few_columns_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path, pairs(30))
    path.write_text(path.read_text() + "alone\n")
    with pytest.raises(DataError, match="has 1 columns in line 31, expected a sentence of each of en, de"):
        make(tmp_path / "x.h5", train=path)
    with pytest.raises(DataError, match=r"no .*nowhere.en or .*nowhere.en.gz"):
        make(tmp_path / "x.h5", train=tmp_path / "nowhere")


@pytest.mark.parametrize("languages", [["en"], ["en", "EN"], ["en", "text"], ["en", "d/e"]])
def test_wrong_languages_are_refused(tmp_path: Path, languages: list[str]) -> None:
    with pytest.raises(SettingsError, match="expected two or more distinct names"):
        validate(ParallelText, {"train": tmp_path / "a", "languages": languages})


def test_one_of_val_and_test_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="one of --val and --test"):
        validate(ParallelText, {"train": tmp_path / "a", "val": tmp_path / "b"})
