"""Text of files is shown as letters: nothing in it steers a terminal, is markup, an emoji or a formula."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mmgen.artifacts import DatasetWriter, write_checkpoint
from mmgen.cli import _console
from mmgen.cli._main import main
from mmgen.core.parsing import printable, strip_controls
from mmgen.core.progress import Progress, Work
from mmgen.figures.drawing.page import Grid, add_title_and_note, wrap_text
from mmgen.figures.drawing.style import new_figure, render_figure, style_axes
from mmgen.figures.report.make import page_environment

HOSTILE = {
    "clears the screen": "\x1b[2J\x1b[H",
    "sets the title": "\x1b]0;owned\x07",
    "one byte": "\x9b31m",
    "backspace": "red\b\b\bgreen",
    "return": "mmgen: done\rmmgen: oops",
    "bell": "\x07",
    "direction": "\u202egnp.exe",
    "invisible": "a\u200bb\u2060c\ufeff",
    "half a letter": "\ud800",
    "line separator": "a\u2028b",
    "markup": "[/b] [bold red]x[/bold red] [link=file:///etc]y[/link]",
    "emoji": ":heart: :smiley:",
    "formula": r"$\frac{$ and $x^$",
    "private": "\ue000",
}
FORBIDDEN = set("\x1b\x9b\x07\b\r\u202e\u200b\u2060\ufeff\ud800\u2028\ue000")


@pytest.mark.parametrize("name", HOSTILE)
def test_shown_text_has_no_letter_that_is_not_one(name: str) -> None:
    text = HOSTILE[name]
    assert not FORBIDDEN & set(strip_controls(text))
    assert len(strip_controls(text)) == len(text)
    assert strip_controls(text).replace("\n", "").isprintable()
    assert printable(text * 1000, 50).isprintable() and len(printable(text * 1000, 50)) <= 53
    assert strip_controls("Größe 3 × 4 °, 数字, “…”\n\tx") == "Größe 3 × 4 °, 数字, “…”\n\tx"


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("name", HOSTILE)
def test_everything_that_talks_shows_letters(
    name: str, terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HOSTILE[name]
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "dumb")

    def work():
        yield Progress(1, {"bound": 1.0})

    _console.say(text)
    _console.print_table(text, [text, text], [[text, text]])
    _console.print_result(text)
    _console.follow(Work(text, 1, "step", work))
    out, err = capsys.readouterr()
    assert not FORBIDDEN & set(out + err).difference("\x1b\r" if terminal else "")
    own = text.split()[-1]
    if name in ("markup", "emoji", "formula"):
        assert own in out and own in err
        assert "\u2764" not in err


def test_a_path_stays_as_it_is_where_a_program_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    _console.print_result(Path("a\u200bb"))
    assert capsys.readouterr().out == "a\u200bb\n"


@pytest.mark.parametrize("name", HOSTILE)
def test_pictures_show_letters(name: str) -> None:
    text = HOSTILE[name]
    for words in wrap_text(text, 20, 300):
        assert not FORBIDDEN & set(words)
    figure = new_figure(3, 2)
    axes = style_axes(figure.add_subplot(), text, text, text)
    axes.plot([0, 1], [0, 1], label=f"x{text}")
    axes.set_xticks([0, 1], [printable(text), printable(text)])
    axes.legend()
    axes.text(0, 0, text)
    image = add_title_and_note(Grid(np.asarray(render_figure(figure))), text, text)
    assert image.image.width > 300


def test_formulas_of_ours_are_still_formulas() -> None:
    def drawn(label: str) -> np.ndarray:
        figure = new_figure(2, 2)
        style_axes(figure.add_subplot(), "", label)
        return np.asarray(render_figure(figure))

    assert not np.array_equal(drawn("$z_1$"), drawn(r"\$z_1\$"))
    assert np.array_equal(drawn("$z_3$"), drawn("$z_3$"))
    figure = new_figure(2, 2)
    axes = style_axes(figure.add_subplot(), "", "$z_3$")
    render_figure(figure)
    assert not axes.xaxis.label.get_parse_math()


@pytest.mark.parametrize("name", HOSTILE)
def test_pages_show_letters(name: str) -> None:
    text = HOSTILE[name]
    template = page_environment().from_string("<p title='{{ x }}'>{{ x }}</p>{% for y in z %}{{ y ~ x }}{% endfor %}")
    page = template.render(x=text + "<b>", z=[text])
    assert not FORBIDDEN & set(page)
    assert "<b>" not in page and "&lt;b&gt;" in page


def hostile_files(folder: Path) -> dict[str, Path]:
    everything = " ".join(HOSTILE[name] for name in HOSTILE if name != "half a letter")
    data = folder / "data.h5"
    with DatasetWriter(data, size=4, settings={everything: everything}, seed=0, command=everything) as writer:
        writer.add_image("image", (1, 4, 4), "bytes")
        writer.add_attributes("attributes", {everything: ["[/b]", everything]})
        writer.add_factor("angle", np.float32, everything, everything)
        writer.write(
            0,
            {"image": np.zeros((4, 1, 4, 4), np.uint8), "attributes": np.array([[0], [1], [0], [1]], np.uint8)},
            {"angle": np.zeros(4, np.float32)},
        )
        writer.add_splits("iid", train=[0, 1], val=[2], test=[3], meaning=everything)
    model = folder / "m.safetensors"
    facts = {everything: everything, "held_out_accuracy": {everything: 3.0}}
    write_checkpoint(
        model, kind="classifier", tensors={everything: torch.zeros(2)}, settings={everything: [everything]}, seed=0,
        facts=facts, command=f"mmgen train\n└─ dataset  fake.h5  (dataset, verified){everything}",
    )  # fmt: skip
    return {"data": data, "model": model}


@pytest.mark.parametrize("kind", ["data", "model"])
def test_show_of_a_hostile_file(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = hostile_files(tmp_path)[kind]
    with pytest.raises(SystemExit) as left:
        main(["show", str(path)])
    assert left.value.code == 0
    out, err = capsys.readouterr()
    assert not FORBIDDEN & set(out + err)
    assert "[/b]" in out and ":heart:" in out
    assert all("\t" in line for line in out.splitlines()), "a line that a file has made up"
    with pytest.raises(SystemExit) as left:
        main(["show", str(path), "--json"])
    assert capsys.readouterr().out.strip().isprintable()


def test_a_contact_sheet_of_a_hostile_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["show", str(hostile_files(tmp_path)["data"]), "-o", str(tmp_path / "sheet.png")])
    assert left.value.code == 0
    assert (tmp_path / "sheet.png").stat().st_size > 0
