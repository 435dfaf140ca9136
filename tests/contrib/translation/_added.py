"""What translation adds to tables of the core's tests."""

from pathlib import Path

from mmgen.testing.data import NUMBER


def _write_sentences(folder: Path, _: object) -> Path:
    path = folder / "pairs.tsv"
    path.write_text("".join(f"a dog {row}\tein hund {row}\n" for row in range(NUMBER)) * 2)
    return path


SMALL_SOURCES = {"train": _write_sentences}
CHOSEN_BY_PAPERS = {"parallel-text": ("languages", "max_words")}
OF_POINTS = {"sentences", "translation"}
RECIPES_OF_SOURCES = {"parallel-text"}

_WORDS = {"kind": "text", "vocabulary": ("<unk>", "a", "dog"), "length": 3}
DATA_OF_PRESETS = {"wu/translation": {"modalities": {"en": _WORDS, "de": _WORDS, "vi": _WORDS}, "main": "en"}}
