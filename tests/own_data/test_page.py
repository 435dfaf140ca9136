"""The commands of docs/own-data.md, on pictures that were drawn: from a folder to a report."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from mmgen import make_data
from mmgen.artifacts import Dataset
from mmgen.cli._main import main
from mmgen.core.errors import UsageError
from tests.cli.test_docs import ROOT, command_lines
from tests.own_data._pictures import write_csv, write_folder
from tests.program import instead

PAGE = ROOT / "docs" / "own-data.md"
PIPELINE = [line for line in command_lines(PAGE) if line[0] != "quickstart" and line[1] not in ("hub", "coco-captions")]
STEPPED = ("train-classifier", "train", "fit-aggregate")


def typed(arguments: list[str]) -> None:
    if arguments[0] in STEPPED:
        arguments = instead(arguments if "--steps" in arguments else [*arguments, "--steps", ""], "--steps", "12")
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 0, arguments


@pytest.mark.filterwarnings("ignore")  # of matplotlib's and others', which are not what is looked at here
@pytest.mark.slow
def test_from_a_folder_to_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_folder(Path("pictures"), 120)
    assert [line[0] for line in PIPELINE] == [
        "make-data", "make-data", "train-classifier", "train", "fit-aggregate", "eval", "report", "explore",
    ]  # fmt: skip
    typed(PIPELINE[0])
    assert "attribute colour: blue 36, green 36, red 36, unknown 12" in capsys.readouterr().out
    assert [path.name for path in Path().iterdir()] == ["pictures"]
    for arguments in PIPELINE[1:]:
        typed(arguments)
    assert [json.loads(line) for line in Path("scores.jsonl").read_text().splitlines()]
    assert Path("report.html").stat().st_size > 10_000
    typed(["sample", "aggregate.safetensors", "--given", "colour=red", "-o", "sample.png"])


def test_the_table_of_the_page_is_read_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = PAGE.read_text(encoding="utf-8").split("```\nfile_name")[1].split("```")[0]
    write_folder(Path("p"), 22, table=False)
    rows = [
        {"file_name": f"{n:03d}.png", "colour": "blue", "shape": "square", "age": n, "text": "x"} for n in range(20)
    ]
    write_csv(Path("p/metadata.csv"), rows)
    with Path("p/metadata.csv").open("a") as file:
        file.write(table.split("\n", 1)[1])
    for n in (20, 21):
        shutil.move(f"p/{n:03d}.png", f"p/{n - 19:04d}.png")
    typed(["make-data", "folder", "p", "--bins", "age=5", "--size", "8", "--workers", "1", "-o", "d.h5"])
    with Dataset.open(Path("d.h5")) as data:
        info, rows_read = data.attributes["attributes"], data.read_attributes("attributes")
        at = sorted([*(row["file_name"] for row in rows), "0001.png", "0002.png"]).index("0001.png")
        words = [
            [values[c] if c != 255 else "" for c, values in zip(row, info.values, strict=True)] for row in rows_read
        ]
        assert [one[:2] for one in words[at : at + 2]] == [["red", "circle"], ["", "square"]]
        assert data.texts["text"].words(data.read_text("text")[at + 1]) == "one square quite small"


def test_the_command_in_the_file_makes_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the same content id."""
    monkeypatch.chdir(tmp_path)
    write_folder(Path("p"), 24)
    typed(["make-data", "folder", "p", "--size", "8", "--workers", "1"])
    with Dataset.open(Path("folder.h5")) as data:
        command, content = data.header.command, data.header.content_id
    assert command == "mmgen make-data folder p --size 8 --workers 1"
    typed([*command.split()[1:], "--overwrite"])
    with Dataset.open(Path("folder.h5")) as data:
        assert data.header.content_id == content


def test_a_notebook_makes_it_by_the_command_of_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pictures = write_folder(Path("my pictures"), 24)
    with make_data("folder", "own.h5", pictures=pictures, size=8, ignore=["colour"], workers=1, progress=False) as data:
        command, content = data.header.command, data.header.content_id
    assert command.startswith("mmgen make-data folder 'my pictures' ")
    typed([*shlex.split(command)[1:], "--overwrite"])
    with Dataset.open(Path("own.h5")) as data:
        assert data.header.content_id == content and data.attributes["attributes"].names == ("size",)
    with pytest.raises(UsageError, match="is there already"):  # pictures may have changed since
        make_data("folder", "own.h5", pictures=pictures, size=8, ignore=["colour"], workers=1, progress=False)
