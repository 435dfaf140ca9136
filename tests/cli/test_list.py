"""``mmgen list``."""

import json
from itertools import takewhile

import pytest

from mmgen import objectives
from mmgen.core.parsing import first_sentences
from mmgen.settings import presets
from mmgen.settings.plugins import first_sentence
from mmgen.settings.registry import list_registries


def test_json_names_every_member_with_a_sentence(run) -> None:
    done = run("list", "--json")
    assert done.returncode == 0
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(member["about"] for member in found), [m["name"] for m in found if not m["about"]]
    names = {kind: [m["name"] for m in found if m["kind"] == kind] for kind in {m["kind"] for m in found}}
    assert names["objective"] == objectives.names()
    assert names["preset"] == presets.preset_names()


def test_a_pipe_gets_lines_that_cut_works_on(run) -> None:
    done = run("list", "objectives")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [(kind, name) for kind, name, *_ in rows] == [("objective", name) for name in objectives.names()]
    assert all(about and origin == "mmgen" for _, _, about, origin in rows)


@pytest.mark.parametrize(
    ("typed", "kind"),
    [("families", "aggregate family"), ("Modalities", "modality"), ("targets", "fit target"), ("networks", "network")],
)
def test_a_kind_is_known_by_its_plural_and_by_one_of_its_words(run, typed: str, kind: str) -> None:
    assert {line.split("\t")[0] for line in run("list", typed).stdout.splitlines()} == {kind}


@pytest.mark.slow
def test_what_anything_is_said_to_be_is_whole_sentences() -> None:
    """No preset and no member is described by a sentence that breaks off where a line of its file ends."""
    for name in presets.preset_names():
        lines = takewhile(lambda line: line.startswith("#"), presets.read_preset(name).split("\n"))
        comment = " ".join(line.removeprefix("#").strip() for line in lines)
        assert comment.startswith(f"{presets.describe_preset(name)}."), presets.describe_preset(name)
    for room in list_registries():
        for member in room.members():
            about = member.about()
            assert about and about.count("(") == about.count(")"), about
            assert about.split()[-1] not in ("the", "a", "of", "and", "is", "by", "in", "all"), about


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Draws a picture.\n\nAnd more.", "Draws a picture"),
        ("Draws a picture. And\nmore.", "Draws a picture"),
        ("Draws a picture. Twice.\nAnd more.", "Draws a picture. Twice"),
        ("Draws\n    a picture. And more.", "Draws a picture"),
        ("After Fig. 2 of Lee et al. (2018), p.\n3: one. Two.", "After Fig. 2 of Lee et al. (2018), p. 3: one"),
        ("Without a stop\nanywhere", "Without a stop anywhere"),
        ("", ""),
    ],
)
def test_a_text_opens_with_whole_sentences(text: str, said: str) -> None:
    assert first_sentences(text) == said


def test_a_member_of_ones_own_is_described_by_a_whole_sentence() -> None:
    source = 'class Mine:\n    """Weighs the bound by\n    two. And more."""\n'
    assert first_sentence(source, "Mine") == "Weighs the bound by two"
