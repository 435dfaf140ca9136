"""An experiment file from outside the package is data: it starts nothing, leads nowhere, replaces nothing."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mmgen import data_recipes, experiments
from mmgen.cli._main import command_names, load_command
from mmgen.cli._members import all_parameters
from mmgen.commands import stage_class
from mmgen.core.errors import MmgenError, UsageError
from mmgen.experiments import _matrix
from mmgen.experiments._plan import REFUSED, read_plan, shell_script
from mmgen.experiments._stages import stage_commands
from tests.worlds import added

HEAD = """
title = {title}
source = "s"
dataset = "d"
[[table]]
column = [{{ name = "c" }}]
row = [{{ name = "r" }}]
[scale.cpu]
about = "a"
folder = {folder}
[[stage]]
why = {why}
makes = {makes}
{settings}
"""
PLAIN = 'command = "make-data"\nrecipe = "two-objects"\n'
FOLDER = 'command = "make-data"\nrecipe = "folder"\n'


def listed(place: Path, settings: str, **values: str) -> str:
    """The path of a list with one stage."""
    said = {"folder": "'out'", "makes": "'x.h5'", "why": "'w'", "title": "'t'", **values}
    path = place / "list.toml"
    path.write_text(HEAD.format(settings=settings, **said), encoding="utf-8")
    return str(path)


def refused(place: Path, settings: str, **values: str) -> str:
    with pytest.raises(MmgenError) as raised:
        read_plan(listed(place, settings, **values))
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.slow
def test_a_plain_list_is_taken(tmp_path: Path) -> None:
    plan = read_plan(listed(tmp_path, PLAIN + "number = 20\nset.size = 32"))
    assert (
        plan.get_scale("cpu").stage[0].command_line == "mmgen make-data two-objects --number 20 --set size=32 -o x.h5"
    )
    ours = [name for name in experiments.experiment_names() if not experiments.lacking_commands(name)]
    for name in ours:  # nor is anything refused that our own lists do
        (tmp_path / "own.toml").write_text(experiments.experiment_text(name), encoding="utf-8")
        assert read_plan(str(tmp_path / "own.toml")) == read_plan(name)


def options() -> list[tuple[str, str, Any]]:
    """Every option and argument of every command that a list may use."""
    found = [(name, opt, p) for name in stage_commands() for p in all_parameters(load_command(name)) for opt in p.opts]
    return list({(name, opt): (name, opt, p) for name, opt, p in found}.values())


PLACES = {"PATH", "FILE", "DIR", "DIR|ZIP", "FILES...", "ADDRESS", "SOURCE"}
NAMED = [
    (command, opt)
    for command, opt, p in options()
    if opt.startswith("--") and (p.metavar in PLACES or p.bare_type() == "Path")
]


@pytest.mark.parametrize(("command", "option"), NAMED, ids=[" ".join(pair) for pair in NAMED])
def test_no_setting_that_names_a_place_leads_out(command: str, option: str, tmp_path: Path) -> None:
    """Nor does one that starts a program."""
    key = option.removeprefix("--").replace("-", "_")
    recipes = [name for name in data_recipes.names() if key in data_recipes.get(name).model_fields]
    head = f'command = "{command}"\n' + (f'recipe = "{recipes[0]}"\n' if command == "make-data" and recipes else "")
    for value in ("/tmp/evil", "a/../../evil", "tcp://host:8786"):
        for typed in (json.dumps(value), json.dumps(["plain", value])):
            said = refused(tmp_path, f"{head}{key} = {typed}")
            assert "an experiment from outside the package may not" in said or "got the key 'output'" in said
    if key in REFUSED:
        assert f"says {key}, and that {REFUSED[key]}" in refused(tmp_path, f'{head}{key} = "here"')


def test_options_that_name_programs_are_known() -> None:
    """Whoever adds a path that is started has to say so here, and in the list of such names."""
    recipes = [data_recipes.get(name) for name in data_recipes.names()]
    fields = [pair for recipe in recipes for pair in recipe.model_fields.items()]
    paths = {name for name, field in fields if "Path" in str(field.annotation)}
    read = {"mnist", "amat", "celeba", "dsprites", "pictures", "render", "landmarks", "metadata"}
    read |= read.union(*added("PATHS_OF_RECIPES"))
    assert paths == read
    addresses = {opt for _, opt, p in options() if p.metavar == "ADDRESS"}
    assert addresses == {"--scheduler"}
    taken = {"--output", "--config", "--dataset", "--latents", "--judge", "--from", "--text-proposal", "--explore"}
    taken |= {f"--{name.replace('_', '-')}" for name in read} | {"--report"}
    assert {option for _, option in NAMED} <= taken | {"--scheduler"}


@pytest.mark.parametrize(
    "settings",
    [
        'scheduler = "evil"', 'set.scheduler = "evil"', 'set."keep-state" = "evil"', 'set."scheduler=x" = "evil"',
        'set.mnist = "/etc"', "set.render = '\"../x\"'", 'set.code = "evil.py"',
        'scheduler = "here"', 'set.training.log_to = ["wandb"]', 'set."training.log_to" = "wandb"',
        'set.a = { b = [{ log_to = "x" }] }', 'set.mnist = "\\u002fetc"',
        'metadata = "sub\\u002f..\\u002f..\\u002fx.csv"',
        "metadata = '\"\\u002fetc\"'", "set.a = [{ b = '\\u007e/x' }]", 'set.a = [{ b = "~/x" }]', "output = 'o.h5'",
        'set."a=/etc" = 1', 'metadata = "C:/x"', 'metadata = "x,file:/etc"', "metadata = 'a\\b'",
    ],
)  # fmt: skip
def test_settings_are_looked_through(settings: str, tmp_path: Path) -> None:
    said = refused(tmp_path, (FOLDER if settings.startswith("metadata") else PLAIN) + settings)
    assert "an experiment from outside the package may not" in said or "got the key 'output'" in said


@pytest.mark.parametrize("setting", ["overwrite", "resume", "keep_state"])
def test_a_list_does_not_decide_over_files_that_were_there(setting: str, tmp_path: Path) -> None:
    command = "train" if setting != "overwrite" else "report"
    makes = repr("x.safetensors" if command == "train" else "x.html")
    said = refused(tmp_path, f'command = "{command}"\n{setting} = true', makes=makes)
    assert f"says {setting}, and that" in said
    deciding = {name.replace("-", "_") for command in stage_commands() for name in stage_class(command).not_recorded}
    assert deciding - {"progress"} <= set(REFUSED)


@pytest.mark.parametrize(
    "command", [name for name in command_names() if name not in stage_commands()] + ["list;", "--version"]
)
def test_other_commands_are_not_a_lists(command: str, tmp_path: Path) -> None:
    assert f"unknown command '{command}'" in refused(tmp_path, f'command = "{command}"')


@pytest.mark.parametrize("setting", ['given = "a\\u0000b"', 'model = "a\\u0000b"', 'posterior = ["a\\u0000b"]'])
def test_a_character_that_no_command_takes(setting: str, tmp_path: Path) -> None:
    said = refused(tmp_path, f'command = "sample"\n{setting}\n')
    assert "expected texts without the character 0; leave it out" in said


def test_names_and_rows_fill_in_nothing_that_is_not_looked_at(tmp_path: Path) -> None:
    """Text is looked at as it is when all names are filled in; and it stays small."""
    text = FOLDER + 'metadata = "{a}{b}/x"\n[let]\na = "."\nb = "."\n'
    assert "says '../x', which leads out" in refused(tmp_path, text)
    text = FOLDER + 'metadata = "{a}"\nset.mnist = "{c}"\n[let]\na = "x"\nb = 1\nc = ["/etc"]\n'
    assert "says '/etc', which leads out" in refused(tmp_path, text)
    long = FOLDER + f'metadata = "{"{a}" * 100}"\n[let]\na = "{"x" * 1000}"\n'
    assert "has more than 20,000 letters when it is filled in" in refused(tmp_path, long)
    many = PLAIN + 'each = ["a", "b", "c"]\n[each]\na = 1000\nb = 1000\nc = 1000\n'
    assert "a times b times c are more than 2,000 rows" in refused(tmp_path, many)
    base = 'extends = "wu-table2/mnist"\nlet.make-data.scheduler = "tcp:x"\n'
    (tmp_path / "over.toml").write_text(base)
    with pytest.raises(UsageError, match="says scheduler, and that names a place"):
        read_plan(str(tmp_path / "over.toml"))


def test_lists_of_lists_are_refused_before_they_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes would stand for words without end: 200 lists of 200 lists of 200 lists of 200 words."""
    monkeypatch.setattr(_matrix, "_MOST_FILLED", 200_000)  # a tenth, a second less
    many = "of more than 200,000 letters when they are filled in; write fewer"
    a, b, c, given = (str([word] * 200) for word in ("x", "{a}", "{b}", "{c}"))
    nested = f'each = "m"\ngiven = {given}\n[let]\na = {a}\n[scale.cpu.let]\nb = {b}\n[each.m.one]\nc = {c}\n'
    assert many in refused(tmp_path, PLAIN + nested)
    assert many in refused(tmp_path, PLAIN + nested.replace(given, '"{c} and more"'))
    repeated = f'each = "r"\ngiven = {["{a}"] * 300}\n[let]\na = "{"x" * 19_000}"\n[each]\nr = 1000\n'
    assert many in refused(tmp_path, PLAIN + repeated)


@pytest.mark.parametrize("folder", ["/tmp/x", "../x", "a/../../x", "~", "~/x", "", ".", "a\0b"])
def test_its_folder_is_below(folder: str, tmp_path: Path) -> None:
    assert "has the folder" in refused(tmp_path, PLAIN, folder=json.dumps(folder))


@pytest.mark.parametrize("makes", ["/x.h5", "../x.h5", "x", ".bashrc", "-x.h5", "x.py", "a/../../x.h5"])
def test_what_it_makes_is_one_of_our_files(makes: str, tmp_path: Path) -> None:
    assert repr(makes) in refused(tmp_path, PLAIN, makes=repr(makes))


def test_a_printed_script_runs_mmgen_and_nothing_else(tmp_path: Path) -> None:
    """Titles, reasons and words with line breaks and what a shell takes for commands, given to a shell."""
    nasty = "x\ntouch EVIL; $(touch EVIL) `touch EVIL` ' \""
    settings = f"set.a = {json.dumps(nasty)}\nrender = '$(touch${{IFS}}EVIL)'\nfiles = [';', 'touch', 'EVIL']"
    reason = '"""w\ntouch EVIL\n$(touch EVIL)"""'
    plan = read_plan(listed(tmp_path, PLAIN + settings.replace("\\n", "\\n"), why=reason, title=reason))
    stage = plan.get_scale("cpu").stage[0]
    text = shell_script(plan, plan.get_scale("cpu"), tmp_path / "out; touch EVIL")
    (tmp_path / "mmgen").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$LOG"\n')
    (tmp_path / "mmgen").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LOG": str(tmp_path / "log")}
    subprocess.run(["sh"], input=text, text=True, check=True, cwd=tmp_path, env=environment, timeout=60)
    assert not list(tmp_path.rglob("EVIL*"))
    assert (tmp_path / "log").read_text() == "\n".join(stage.arguments) + "\n"


def test_the_command_says_it_in_one_sentence_and_starts_nothing(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    from mmgen.cli._main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "evil").chmod(0o755)
    path = listed(tmp_path, PLAIN + 'scheduler = "../evil"')
    with pytest.raises(SystemExit) as left:
        main(["reproduce", path])
    out, err = capsys.readouterr()
    assert (left.value.code, out, err.count("\n")) == (UsageError.exit_code, "", 1)
    assert not (tmp_path / "ran").exists() and not (tmp_path / "out").exists()
