"""The pages tell the truth: every command is described, every command line in them can be parsed."""

import re
import shlex
from pathlib import Path

import pytest

from mmgen.cli._main import command_names, load_command
from mmgen.core.errors import MmgenError
from mmgen.core.worlds import CONTRIB
from mmgen.experiments import find_experiment
from mmgen.settings import plugins
from mmgen.settings.presets import preset_names
from tests.generated import MADE, generated_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])


def command_lines(page: Path) -> list[list[str]]:
    """Arguments of each ``mmgen ...`` in the page's fenced blocks, pipes taken apart."""
    found: list[list[str]] = []
    for label, block in re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M):
        if label not in ("", "sh", "bash", "console"):
            continue
        for line in block.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars="|>&;")
            lexer.whitespace_split = True
            stage: list[str] = []
            for word in [*lexer, "|"]:
                if word.strip("|>&;"):
                    stage.append(word)
                else:
                    if stage[:1] == ["mmgen"]:
                        found.append(stage[1:])
                    stage = []
    return found


def test_generated_pages_hold_every_command_and_defaults_in_words() -> None:
    page = generated_page("commands.md")
    assert all(f"\n## mmgen {name}\n" in page for name in command_names())
    assert re.search(r"^\| `--given-count .*\| all, and 1, 2 and 3 fewer \|$", page, re.M)
    assert "`model.latent_size`" in generated_page("settings.md")


@pytest.mark.parametrize("command", command_names())
def test_readme_names_each_command(command: str) -> None:
    assert f"`mmgen {command}" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_line_in_a_page_can_be_typed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_files", {})
    monkeypatch.setenv(plugins.CODE_VARIABLE, "")
    monkeypatch.chdir(tmp_path)
    if blocks := re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M):
        Path("mine.py").write_text(blocks[0])  # make-data reads the options of a recipe in it
    for arguments in command_lines(page):
        if arguments[0].startswith("-") or "[OPTIONS]" in arguments:
            continue
        try:
            assert arguments[0] in command_names(), f"{page.name}: mmgen {shlex.join(arguments)}"
            load_command(arguments[0]).make_context(arguments[0], arguments[1:])
        except (AssertionError, MmgenError):
            if CONTRIB.is_dir():
                raise
            pytest.skip(f"mmgen {shlex.join(arguments)} needs a world that is not here")


@pytest.mark.skipif(not CONTRIB.is_dir(), reason="the papers' own worlds are not here")
def test_every_command_of_the_papers_page_is_known_with_what_it_names() -> None:
    """Commands parse, and tables of reproduce and presets exist; rows without a command say that there is none."""
    rows = [line for line in (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    commands = [shlex.split(typed) for row in rows for typed in re.findall(r"`mmgen ([^`]*)`", row)]
    assert len(commands) > 40
    for name, *arguments in commands:
        load_command(name).make_context(name, list(arguments))
        if name == "reproduce":
            assert find_experiment(arguments[0], arguments[2] if arguments[1:] else None)
        if "--preset" in arguments:
            assert arguments[arguments.index("--preset") + 1] in preset_names()
    assert all(
        row.rstrip("| ").endswith("none")
        for row in rows
        if "`" not in row and "| section" not in row and "| slide" not in row
    )


def test_readme_opens_with_the_two_commands() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S | re.M)
    assert [line.split("#")[0].strip() for line in blocks[0].splitlines()] == ["make quickstart", "make test"]


def anchors(page: Path) -> list[str]:
    """What GitHub calls the headings of a page, in their order."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    found: list[str] = []
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.append(next(name for n in range(99) if (name := f"{slug}-{n}" if n else slug) not in found))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", page.read_text(encoding="utf-8")):
        if Path(target).name not in MADE:  # the site's build checks those
            assert anchor in anchors(page.parent / target if target else page), (
                f"{page.name} links to {target}#{anchor}"
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target and Path(target).name not in MADE:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
