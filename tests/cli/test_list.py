"""``mmgen list``."""

import json

from mmgen import objectives, presets


def test_json_names_every_member_with_a_sentence(run) -> None:
    done = run("list", "--json")
    assert done.returncode == 0
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(member["about"] for member in found), [m["name"] for m in found if not m["about"]]
    names = {kind: [m["name"] for m in found if m["kind"] == kind] for kind in {m["kind"] for m in found}}
    assert names["objective"] == objectives.names()
    assert names["preset"] == presets.names()


def test_a_pipe_gets_lines_that_cut_works_on(run) -> None:
    done = run("list", "objectives")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [(kind, name) for kind, name, *_ in rows] == [("objective", name) for name in objectives.names()]
    assert all(about and origin == "mmgen" for _, _, about, origin in rows)


def test_unknown_kind(run) -> None:
    done = run("list", "objectiv")
    assert done.returncode == 2
    assert "did you mean 'objective'?" in done.stderr
