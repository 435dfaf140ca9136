"""Words of tables: those for unknown, and values that are spelled in two ways."""

from pathlib import Path

import pytest

from tests.own_data._tables import COLOURS, NAMES, N, contents, values


def test_one_set_of_words_for_unknown(tmp_path: Path) -> None:
    words = ["", "?", "*", "any", "unknown", "NA", "N/A", "nan", "None", "null", "-", "missing", "#N/A", "<NA>"]
    rows = [f"{name},{words[n] if n < len(words) else COLOURS[n]}" for n, name in enumerate(NAMES)]
    text = "\n".join(["file_name,colour", *rows])
    made = contents(tmp_path, {"metadata.csv": text})
    assert made.attributes == {"colour": ["blue", "red"]}
    assert values(made) == [""] * len(words) + COLOURS[len(words) :]
    said = [line for line in made.notes if "taken as unknown" in line]
    assert any("'NA' 1, 'N/A' 1, 'nan' 1" in line and "--unknown" in line for line in said)
    assert any("'unknown' 1" in line and "rename it" in line for line in said)
    made = contents(tmp_path, {"metadata.csv": text}, unknown=("NA", "red"))
    assert {"None", "null", "-"} < {*made.attributes["colour"]} and "red" not in made.attributes["colour"]


def test_words_for_unknown_are_nobody_and_no_caption(tmp_path: Path) -> None:
    rows = [
        f"{name},{'unknown' if n % 2 else f'p{n}'},{'nan' if n == 3 else 'a thing'}" for n, name in enumerate(NAMES)
    ]
    made = contents(tmp_path, {"metadata.csv": "\n".join(["file_name,who,text", *rows])}, group="who")
    assert len(made.parts["train"]) > 12, "twelve pictures of nobody in particular are no group"
    assert made.captions is not None and made.captions.vocabulary == ["a", "thing"]


SPELLED = {
    "case": (["Red", "red"], "'Red' and 'red' differ in case only; fix the table if they are one"),
    "hyphens": (["dark red", "dark-red"], "'dark red' and 'dark-red' differ in case, spaces or hyphens only"),
    "width": (["red", "\uff52\uff45\uff44"], "differ in how their letters are written only"),
    "numbers": (["1", "1.0"], "'1' and '1.0' are one number"),
    "zeros": (["01", "1"], "'01' and '1' are one number"),
    "decimal commas": (["1,5", "1.5"], "'1,5' and '1.5' are one number"),
    "thousands": (["1,000", "1000"], "'1,000' and '1000' are one number"),
    "signs about them": (["red", "red."], "'red' and 'red.' differ in signs about them only"),
}


@pytest.mark.parametrize("case", SPELLED)
def test_values_that_are_spelled_twice_are_named(case: str, tmp_path: Path) -> None:
    words, says = SPELLED[case]
    text = "\n".join(["file_name,colour", *(f'{name},"{[*words, "x2"][n % 3]}"' for n, name in enumerate(NAMES))])
    assert any(says in line for line in contents(tmp_path, {"metadata.csv": text}).notes)


def test_yes_and_no_in_several_words_are_named(tmp_path: Path) -> None:
    text = "\n".join(
        ["file_name,hat", *(f"{name},{('yes', 'True', '1', 'no')[n % 4]}" for n, name in enumerate(NAMES))]
    )
    said = contents(tmp_path, {"metadata.csv": text}).notes
    assert "  hat: '1' and 'True' and 'yes' say the same; fix the table if they are one" in said


def test_values_that_are_not_one_are_not(tmp_path: Path) -> None:
    text = "\n".join(
        [
            "file_name,colour",
            *(f"{name},{('1', '-1', '1_0', '10', 'A', 'A-', '+', '+-')[n % 8]}" for n, name in enumerate(NAMES)),
        ]
    )
    assert not any("fix the table" in line for line in contents(tmp_path, {"metadata.csv": text}).notes)


def test_a_value_called_as_totals_are_is_a_value(tmp_path: Path) -> None:
    rows = [f"{'average' if n == N - 1 else 'slim'},{name}" for n, name in enumerate(NAMES)]
    made = contents(tmp_path, {"metadata.csv": "\n".join(["build,file_name", *rows])})
    assert values(made, "build")[-1] == "average"
