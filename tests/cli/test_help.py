"""Help says what its author wrote: brackets stay, values have names, defaults are true."""

import re
from typing import Annotated, Any

import pytest
import typer

from mmgen.cli import _main
from mmgen.commands import stage_class, stage_names
from mmgen.commands._base import Stage
from tests.generated import generated_page


def helped(*arguments: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERMINAL_WIDTH", "300")
    with pytest.raises(SystemExit) as left:
        _main.main([*arguments, "--help"])
    assert left.value.code == 0
    return capsys.readouterr().out


def test_square_brackets_are_text(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    import mmgen.cli._look

    def list_command(
        some: Annotated[
            str, typer.Option(metavar="NAME", help="From the extra x[faces], or [1, 2].", rich_help_panel="P [q]")
        ] = "",
    ) -> None:
        """Needs pip install 'x[dask]', [bold]not[/bold] more."""

    monkeypatch.setattr(mmgen.cli._look, "list_command", list_command)
    text = helped("list", monkeypatch=monkeypatch, capsys=capsys)
    for written in ("x[faces]", "[1, 2]", "P [q]", "x[dask]", "[bold]not[/bold]"):
        assert written in text


@pytest.mark.parametrize("command", _main.command_names())
def test_every_word_of_help_is_there(command: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    text = re.sub(r"[│\s]+", " ", helped(command, monkeypatch=monkeypatch, capsys=capsys))
    for parameter in _main.load_command(command).params:
        words = "" if parameter.hidden else " ".join((parameter.help or "").split())
        assert words[:60] in text, f"{command} {parameter.opts}"
    for odd in ("<bool>", "<str>", "<list", "<path>", "[default: (", str(2**63 - 1)):
        assert odd not in text, "types of the program, and bounds that nobody meets"
    assert "range" not in re.sub(r"within range|in range", "", " ".join(re.findall(r"<[^>]*>", text)))


def test_values_have_names_and_defaults_are_what_one_types() -> None:
    rows = [line for line in generated_page("commands.md").splitlines() if line.startswith("| `--")]
    assert len(rows) > 100
    for row in rows:
        spelling, default = row.split("`")[1], row.rstrip("| ").rsplit("| ", 1)[-1]
        assert not re.search(r"\b(int|float|str|bool|range)\b", spelling), row
        assert default not in ("`True`", "`False`") and not default.startswith("`("), row


@pytest.mark.parametrize(
    ("command", "first"),
    [("sample", {"given", "n", "output", "seed"}), ("eval", {"metric", "output", "queries", "overwrite"})],
)
def test_what_beginners_need_is_in_the_first_box(command: str, first: set[str]) -> None:
    parameters = [one for one in _main.load_command(command).params if one.param_type_name == "option"]
    assert {one.name for one in parameters if one.rich_help_panel is None} == first
    assert {one.rich_help_panel for one in parameters} == {None, "More"}
    assert all(one.rich_help_panel is None for one in _main.load_command("train").params)


def test_paragraphs_are_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Line ends of the source are none of help."""
    lines = [line.strip() for line in helped("quickstart", monkeypatch=monkeypatch, capsys=capsys).splitlines()]
    assert any(
        line.startswith("Runs the commands that you would type") and line.endswith('("quickstart").') for line in lines
    )


def test_defaults_of_a_settings_class_reach_help_pages_and_python(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from mmgen.evaluation import EvaluationSettings

    defaults = {
        name: str(field.default)
        for name, field in EvaluationSettings.model_fields.items()
        if name not in ("seed", "precision") and field.default not in (None, "")
    }
    assert set(defaults) >= {"samples", "number", "draws", "queries", "part", "protocol", "proposal", "pool"}
    help_text = re.sub(r"[│\s]+", " ", helped("eval", monkeypatch=monkeypatch, capsys=capsys))
    section = generated_page("commands.md").partition("\n## mmgen eval\n")[2].partition("\n## ")[0]
    rows = {line.split("`")[1].split()[0].strip(","): line for line in section.splitlines() if line.startswith("| `--")}
    python = generated_page("python.md")
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        assert re.search(rf"{option} (?:(?! --).)*\[default: {default}\]", help_text), option
        assert rows[option].endswith(f"| {default} |"), rows[option]
        assert re.search(rf"\n\* `{name}`: .*; {default} by default\.", python), name


@pytest.mark.parametrize("name", stage_names())
def test_stages_set_only_class_attributes_that_the_base_declares(name: str) -> None:
    """A misspelled ``shows_described_defaults`` would have no effect."""
    stage = stage_class(name)
    own = {attribute for attribute, hint in vars(stage)["__annotations__"].items() if "ClassVar" in str(hint)}
    assert own <= set(vars(Stage)), name
