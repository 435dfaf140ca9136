"""A list from outside the package is data: it starts nothing, leads nowhere, replaces nothing."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mmgen import data_recipes, experiments
from mmgen.cli._main import command_names, load_command
from mmgen.cli._members import parameters_of
from mmgen.core.errors import MmgenError, UsageError
from mmgen.experiments._foreign import COMMANDS, NAMES_PROGRAMS
from mmgen.experiments._plan import read_plan, script

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
[[scale.cpu.stage]]
why = {why}
makes = {makes}
command = '''{command}'''
"""


def listed(place: Path, command: str, **values: str) -> str:
    """The path of a list with one stage."""
    said = {"folder": "'out'", "makes": "'x.h5'", "why": "'w'", "title": "'t'", **values}
    path = place / "list.toml"
    path.write_text(HEAD.format(command=command, **said), encoding="utf-8")
    return str(path)


def refused(place: Path, command: str, **values: str) -> str:
    with pytest.raises(MmgenError) as raised:
        read_plan(listed(place, command, **values))
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_plain_list_is_taken(tmp_path: Path) -> None:
    command = "mmgen make-data two-objects --number 20 --set size=32 -o x.h5"
    assert read_plan(listed(tmp_path, command)).at("cpu").stage[0].typed == command
    for name in experiments.names():  # nor is anything refused that our own lists do
        (tmp_path / "own.toml").write_text(experiments.text_of(name), encoding="utf-8")
        assert read_plan(str(tmp_path / "own.toml")) == read_plan(name)


def options() -> list[tuple[str, str, Any]]:
    """Every option and argument of every command that a list may use."""
    found = [(name, opt, p) for name in COMMANDS for p in parameters_of(load_command(name)) for opt in p.opts]
    return list({(name, opt): (name, opt, p) for name, opt, p in found}.values())


PLACES = {"PATH", "FILE", "DIR", "DIR|ZIP", "FILES...", "ADDRESS", "SOURCE"}
NAMED = [
    (command, opt)
    for command, opt, p in options()
    if opt.startswith("-") and (p.metavar in PLACES or p.bare_type() == "Path")
]


@pytest.mark.parametrize(("command", "option"), NAMED, ids=[" ".join(pair) for pair in NAMED])
def test_no_option_that_names_a_place_leads_out(command: str, option: str, tmp_path: Path) -> None:
    """Nor does one that starts a program, however it is typed."""
    glue = "" if len(option) == 2 else "="
    for value in ("/tmp/evil", "../evil", "a/../../evil", "~/evil", "~root/evil", "tcp://host:8786", "x/.."):
        for typed in (f"{option} {value}", f"{option}{glue}{value}"):
            said = refused(tmp_path, f"mmgen {command} a {typed} -o x.h5")
            assert "a list from outside the package may not" in said
    if option.lstrip("-") in NAMES_PROGRAMS:
        for typed in (f"{option} here", f"{option}=here"):
            assert "a program or a place that runs code" in refused(tmp_path, f"mmgen {command} a {typed} -o x.h5")


def test_options_that_name_programs_are_known() -> None:
    """Whoever adds a path that is started has to say so here, and in the list of such names."""
    recipes = [data_recipes.get(name) for name in data_recipes.names()]
    fields = [pair for recipe in recipes for pair in recipe.model_fields.items()]
    paths = {name for name, field in fields if "Path" in str(field.annotation)}
    read = {"mnist", "amat", "celeba", "omniglot", "planetoid", "dsprites", "patches", "pictures", "render"}
    read |= {"landmarks", "metadata"}
    assert {name.replace("_", "-") for name in paths - read} == set(NAMES_PROGRAMS) - {"scheduler"}
    addresses = {opt for _, opt, p in options() if p.metavar == "ADDRESS"}
    assert addresses == {"--scheduler"}
    taken = {
        "--output",
        "-o",
        "--config",
        "--dataset",
        "--latents",
        "--judge",
        "--from",
        "--text-proposal",
        "--explore",
    }
    taken |= {f"--{name}" for name in read}
    assert {option for _, option in NAMED} == taken | {"--blender-python", "--scheduler"}


@pytest.mark.parametrize(
    "words",
    [
        "--set blender_python=../evil", "--set=blender_python=evil", '--set "blender_python = evil"',
        "--set mnist=/etc",
        """--set 'celeba="/etc"'""", "--set 'render=\"../x\"'", "--overwrite", "--code evil.py", "--code=evil.py",
        "--log-to wandb", "--log-to=wandb", "--set training.log_to=wandb",
        "-o ../x.h5", "-o /x.h5", "-o other.h5",
        "--output=other.h5", "-oother.h5", "-o--other", "--title -oother.h5",
        """--set 'training={"log\\u005fto"=["wandb"]}'""", """'--set=training={"log\\u005fto"=["wandb"]}'""",
        """--set 'metadata="sub\\u002f..\\u002f..\\u002fx.csv"'""", """'--metadata="\\u002fetc"'""",
        """--set 'a=[{b=["\\u007e/x"]}]'""", """--set 'a={"blender\\u005fpython"="x"}'""",
        "--config cfg.toml", "--config=cfg.toml",
    ],
)  # fmt: skip
def test_settings_and_outputs_too(words: str, tmp_path: Path) -> None:
    assert "a list from outside the package may not" in refused(
        tmp_path, f"mmgen make-data two-objects -o x.h5 {words}"
    )


@pytest.mark.parametrize("words", ["hub owner/name", "--seed 1 hub folder"])
def test_nothing_is_downloaded_that_a_list_names(words: str, tmp_path: Path) -> None:
    assert "makes data by hub, which downloads whatever" in refused(tmp_path, f"mmgen make-data {words} -o x.h5")
    fetching = [name for name in data_recipes.names() if data_recipes.get(name).fetches_anything]
    assert fetching == ["hub"]


@pytest.mark.parametrize("command", [name for name in command_names() if name not in COMMANDS] + ["list;", "--version"])
def test_other_commands_are_not_a_lists(command: str, tmp_path: Path) -> None:
    assert f"is mmgen {command!r}" in refused(tmp_path, f"mmgen {command} -o x.h5")


@pytest.mark.parametrize("folder", ["/tmp/x", "../x", "a/../../x", "~", "~/x", "", "."])
def test_its_folder_is_below(folder: str, tmp_path: Path) -> None:
    assert "has the folder" in refused(tmp_path, "mmgen make-data mnist -o x.h5", folder=repr(folder))


@pytest.mark.parametrize("makes", ["/x.h5", "../x.h5", "x", ".bashrc", "-x.h5", "x.py", "a/../../x.h5"])
def test_what_it_makes_is_one_of_our_files(makes: str, tmp_path: Path) -> None:
    assert repr(makes) in refused(tmp_path, f"mmgen make-data mnist -o {makes}", makes=repr(makes))


@pytest.mark.parametrize("field", ["why", "folder", "makes"])
def test_control_characters_are_refused(field: str, tmp_path: Path) -> None:
    said = refused(tmp_path, "mmgen make-data mnist -o x.h5", **{field: '"a\\u001b[31mb"'})
    assert "control character '\\x1b'" in said and "\x1b" not in said


def test_a_printed_script_runs_mmgen_and_nothing_else(tmp_path: Path) -> None:
    """Titles, reasons and words with line breaks and what a shell takes for commands, given to a shell."""
    nasty = "x\ntouch EVIL; $(touch EVIL) `touch EVIL` ' \""
    words = f"mmgen make-data mnist --set a={shlex.quote(nasty)} --source $(touch${{IFS}}EVIL) ; touch EVIL -o x.h5"
    reason = '"""w\ntouch EVIL\n$(touch EVIL)"""'
    plan = read_plan(listed(tmp_path, words, why=reason, title=reason))
    text = script(plan, plan.at("cpu"), tmp_path / "out; touch EVIL")
    (tmp_path / "mmgen").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$LOG"\n')
    (tmp_path / "mmgen").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LOG": str(tmp_path / "log")}
    subprocess.run(["sh"], input=text, text=True, check=True, cwd=tmp_path, env=environment, timeout=60)
    assert not list(tmp_path.rglob("EVIL*"))
    assert (tmp_path / "log").read_text() == "\n".join(shlex.split(words)[1:]) + "\n"


def test_the_command_says_it_in_one_sentence_and_starts_nothing(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    from mmgen.cli._main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "evil").chmod(0o755)
    path = listed(tmp_path, "mmgen make-data two-objects --renderer blender --blender-python ../evil -o x.h5")
    with pytest.raises(SystemExit) as left:
        main(["reproduce", path])
    out, err = capsys.readouterr()
    assert (left.value.code, out, err.count("\n")) == (UsageError.exit_code, "", 1)
    assert not (tmp_path / "ran").exists() and not (tmp_path / "out").exists()
