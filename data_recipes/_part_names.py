"""Names of parts of a split in folders, columns of tables and splits of the hub."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

__all__ = ["PARTS", "possible_part_names", "part_of", "parts_of", "split_name"]

PARTS = ("train", "val", "test")

_WORDS = {
    "train": (
        "train", "training", "trn", "trainingsdaten", "entrainement", "entraînement", "apprentissage", "entrenamiento",
        "treino", "treinamento", "addestramento", "训练", "訓練", "学習",
    ),
    "val": (
        "val", "valid", "validation", "validate", "validating", "dev", "validierung", "validacion", "validación",
        "validacao", "validação", "validazione", "验证", "驗證", "検証",
    ),
    "test": (
        "test", "testing", "tst", "eval", "evaluation", "holdout", "heldout", "hold out", "held out", "unseen",
        "testen", "testdaten", "teste", "prueba", "pruebas", "测试", "測試", "テスト",
    ),
}  # fmt: skip
"""The words of Hugging Face's imagefolder, and others that people use, in some languages."""

_PART_OF_WORD = {word: part for part, words in _WORDS.items() for word in words}

_FILLER_WORDS = (
    "set", "sets", "split", "part", "data", "dataset", "image", "images", "img", "imgs", "picture", "pictures", "pic",
    "pics", "photo", "photos", "file", "files", "sample", "samples", "example", "examples", "集", "数据", "数据集",
)  # fmt: skip
"""Words beside those without further meaning: training_set, train-images, testdata."""

_JOINED = {word + more: part for word, part in _PART_OF_WORD.items() for more in _FILLER_WORDS} | _PART_OF_WORD
_TOKENS = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def split_name(name: str) -> tuple[str, tuple[str, ...]]:
    """Split a name into the part that it contains ("" if none or several) and its other words."""
    name = unicodedata.normalize("NFC", name)  # macOS takes letters with accents apart
    words = _TOKENS.findall(name.casefold())
    if not any(word in _JOINED for word in words):  # else tEsT would be taken apart
        words = [word.casefold() for word in _TOKENS.findall(_HUMP.sub(" ", name))]
    pairs = [" ".join(pair) for pair in pairwise(words)]
    if pair := next((pair for pair in pairs if pair in _PART_OF_WORD), ""):
        at = pairs.index(pair)
        words[at : at + 2] = [pair]
    meanings = {_JOINED[word] for word in words if word in _JOINED}
    rest = tuple(word for word in words if word not in _JOINED and word not in _FILLER_WORDS)
    return (meanings.pop() if len(meanings) == 1 else ""), rest


def part_of(name: str) -> str:
    """Return the part, train, val or test, that a name means; "" if it has words such as colours besides.

    Example:
        >>> [part_of(name) for name in ("Validation", "training_set", "01_train", "val2017", "TestSet", "held-out")]
        ['val', 'train', 'train', 'val', 'test', 'test']
        >>> [part_of(name) for name in ("red", "trained", "contest", "valley", "test tubes", "seg_train", "trainval")]
        ['', '', '', '', '', '', '']
    """
    part, rest = split_name(name)
    return part if not rest else ""


def parts_of(names: Iterable[str]) -> dict[str, str]:
    """Return the part that each of the names means; {} unless all of them mean parts.

    Either each means a part by itself, or all have the same further words.

    Example:
        >>> parts_of(["seg_train", "seg_test"])
        {'seg_train': 'train', 'seg_test': 'test'}
        >>> parts_of(["train stations", "test tubes"])
        {}
    """
    apart = {name: split_name(name) for name in names}
    parts = {name: part for name, (part, _) in apart.items()}
    rests = {rest for _, rest in apart.values()}
    alike = len(rests) == 1 and (rests == {()} or len({*parts.values()}) > 1)
    return parts if alike and all(parts.values()) else {}


def possible_part_names(names: Iterable[str]) -> list[str]:
    """Return the names that may mean parts, if others among the names do not.

    They mean a part by themselves, or differ only in the part.

    Example:
        >>> possible_part_names(["bus", "car", "train"]), possible_part_names(["seg_train", "seg_test", "seg_pred"])
        (['train'], ['seg_train', 'seg_test'])
        >>> possible_part_names(["train stations", "test tubes"])
        []
    """
    names = list(names)
    alike: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for name in names:
        part, rest = split_name(name)
        if part:
            alike[rest].add(part)
    return [name for name in names if part_of(name) or _differs_only_in_part(*split_name(name), alike)]


def _differs_only_in_part(part: str, rest: tuple[str, ...], alike: dict[tuple[str, ...], set[str]]) -> bool:
    return bool(part) and len(alike[rest]) > 1
