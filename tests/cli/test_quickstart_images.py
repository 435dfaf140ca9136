"""``mmgen quickstart --images``: settings by number and size, commands that can be typed, refusals, all of it."""

import csv
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen.artifacts.containers import write_checkpoint
from mmgen.cli import _own_pictures as own, _runs, quickstart
from mmgen.cli._main import command_names, load_command, main
from mmgen.cli._stages import create_output_folder
from mmgen.core.errors import MmgenError, UsageError
from mmgen.data_recipes import Survey
from mmgen.data_recipes.folder import Folder
from tests.own_data._pictures import rows_of, write_csv, write_folder
from tests.program import within


def survey_of(folder: Path) -> Survey:
    return Folder(pictures=folder).survey(0, 1).run()


def with_side(survey: Survey, side: int) -> Survey:
    """The survey of pictures of another size."""
    pictures = replace(survey.pictures, sizes=np.full_like(survey.pictures.sizes, side))
    return replace(survey, pictures=pictures)


def folder_with(tmp_path: Path, *columns: str) -> Path:
    pictures = write_folder(tmp_path / "my pictures", 40)
    rows = [{name: row[name] for name in ("file_name", *columns)} for row in rows_of(40)]
    write_csv(pictures / "metadata.csv", rows)
    return pictures


@pytest.mark.parametrize(
    ("number", "side", "pixels", "latent_size", "steps"),
    [
        (500, 64, 64, 32, 1750),
        (500, 47, 32, 32, 1750),
        (2000, 48, 64, 32, 1900),
        (20_000, 64, 64, 32, 2600),
        (20_000, 47, 32, 32, 3200),
    ],
)
def test_settings_follow_number_and_size(number: int, side: int, pixels: int, latent_size: int, steps: int) -> None:
    sizes = own.choose_sizes(number, side)
    assert (sizes.side, sizes.latent_size, sizes.model_steps) == (pixels, latent_size, steps)
    assert own.choose_sizes(number, side, quick=True).model_steps < 100
    for size in (32, 64):
        assert own.choose_sizes(number, side, size=size).side == size


@pytest.mark.parametrize(
    ("columns", "judged", "given"),
    [
        (("colour", "size", "text"), True, "colour=green size=large"),
        (("colour",), True, "colour=blue"),
        (("text",), False, "a large green square"),
    ],
)
def test_every_command_can_be_typed(tmp_path: Path, columns: tuple[str, ...], judged: bool, given: str) -> None:
    pictures = folder_with(tmp_path, *columns)
    found = survey_of(pictures)
    assert (found.number, found.side, bool(found.attributes), bool(found.captions)) == (
        40, 16, judged, "text" in columns,
    )  # fmt: skip
    planned = own.plan_stages(pictures, found, own.choose_sizes(found.number, found.side), seed=3)
    for stage in planned:
        name, *arguments = stage.arguments
        assert name in command_names() and arguments[-2:] == ["-o", stage.makes]
        assert stage.seed == (2 if stage.makes == "second-judge.safetensors" else 3)
        load_command(name).make_context(name, list(arguments))
    assert planned[0].settings["files"] == str(pictures)
    names = [stage.arguments[0] for stage in planned]
    assert names.count("train-classifier") == 2 * judged
    first = [name for name in names[: names.index("fit-aggregate") + 1] if name != "sample"]
    assert first == ["make-data", "train", "fit-aggregate"] and names[-1] == "report"
    asked = [stage.command_line for stage in planned if stage.arguments[0] == "eval"]
    decoded = [command for command in asked if "--metric reconstruction" in command]
    assert len(decoded) == 2 * judged and all("--part" in command for command in decoded)
    asked = [command for command in asked if command not in decoded]
    assert all(("--metric correctness" in command) == judged != ("--metric retrieval" in command) for command in asked)
    assert {stage.makes for stage in planned if stage.command == "eval"} < set(planned[-1].arguments)
    drawn = next(stage.arguments for stage in planned if stage.makes == "guided.png")
    assert given in [drawn[n + 1] for n, word in enumerate(drawn) if word == "--given"]
    assert drawn[drawn.index("--guidance") + 1] == ("cfg:1.5" if judged else "3")  # also where there are captions too


def test_the_gaps_of_a_grid_are_drawn_and_counted(tmp_path: Path) -> None:
    pictures = folder_with(tmp_path, "colour", "size")
    rows = [{name: row[name] for name in ("file_name", "colour", "size")} for row in rows_of(40)]
    write_csv(pictures / "metadata.csv", [{**row, "size": "small"} if row["colour"] == "red" else row for row in rows])
    found = survey_of(pictures)
    sizes = own.choose_sizes(found.number, found.side)
    (drawn,) = [stage for stage in own.plan_stages(pictures, found, sizes, 0) if stage.makes == own.GAPS]
    assert drawn.settings["given"] == ["colour=red size=large"]
    assert own.gaps_sentence(found) == "1 of 6 combinations have no picture"
    alone = survey_of(folder_with(tmp_path / "alone", "colour"))
    assert own.gaps_sentence(alone) == "" and all(
        stage.makes != own.GAPS for stage in own.plan_stages(pictures, alone, sizes, 0)
    )


def test_the_model_gets_most_of_the_time(tmp_path: Path) -> None:
    """However few the minutes are; what measures it has shares of that, and a model of few steps less."""
    found = with_side(survey_of(folder_with(tmp_path, "colour")), 64)
    chosen = own.choose_sizes(300, 64)
    for jobs, share in ((2, 0.6), (1, 0.5)):
        for minutes in (1, 10, 20):
            sizes = own.scale_sizes(chosen, found, jobs, minutes=minutes)
            assert sizes.clock == share * minutes
            asked = {one.makes: one.settings.get("minutes") for one in own.plan_stages(tmp_path, found, sizes, 0)}
            limits = [asked[f"{name}.safetensors"] for name in ("model", "plain-cvae", "second-judge", "judge")]
            assert limits == pytest.approx([sizes.clock / part for part in (1, 3, 4, 6)], abs=0.01)
            both = max(limits[1], sum(limits[2:])) if jobs == 2 else sum(limits[1:])
            assert limits[0] + both < minutes, "there is time for the rest"
    said = own.describe_plan(found, own.scale_sizes(chosen, found, 2, minutes=10), chosen.model_steps)
    assert "in 6.0 minutes, usually 1,730 steps" in said
    without = own.scale_sizes(chosen, found, 2, steps=0)
    assert without.judge_steps == 200 and without.clock is None
    few = own.scale_sizes(chosen, found, 2, steps=1500)
    assert (few.model_steps, few.judge_steps, few.second_judge_steps) == (1500, 750, 500)


@pytest.mark.parametrize(("taken", "queries"), [(59, 40), (61, own.FEW_QUERIES)])
def test_when_time_is_over_all_scores_take_fewer_descriptions(
    taken: int, queries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is decided when the first is measured, so that they can be compared; trainings stay as they are."""
    found = survey_of(folder_with(tmp_path, "colour"))
    sizes = own.scale_sizes(own.choose_sizes(300, 64), found, 2, minutes=1)
    planned = own.plan_stages(tmp_path, found, sizes, 0)
    now = [1000.0 + taken]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for end, expected in ((1060.0, queries), (None, 40)):
        now[0] = 1000.0 + taken
        adapt = quickstart._measure_less_after(end)
        became = []
        for stage in planned:
            became.append(adapt(stage))
            now[0] += stage.command == "eval"
        scored = [one for one in became if one.command == "eval" and one.settings.get("queries") not in (None, [])]
        assert len(scored) == 3 and {one.settings["queries"] for one in scored} == {expected}
        assert [one for one in became if one not in scored] == [one for one in planned if one.makes not in
                                                                {each.makes for each in scored}]  # fmt: skip
    said = capsys.readouterr().err
    assert ("scores take 12 descriptions of each length instead of 40" in said) == (queries == own.FEW_QUERIES)


@pytest.mark.parametrize(("steps", "advice"), [(250, "--minutes 33 would do"), (2041, "--minutes 5 would"), (2042, "")])
def test_a_model_of_less_than_half_its_steps_is_the_first_advice(
    steps: int, advice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.safetensors"
    write_checkpoint(model, kind="model", tensors={}, settings={}, seed=0, facts={"step": steps})
    quickstart._say_few_steps(model, 4083, 2)
    said = capsys.readouterr().err
    assert (f"{steps:,} of its usual 4,083 steps" in said) == bool(advice) and advice in said


def test_of_several_captions_the_first_is_drawn(tmp_path: Path) -> None:
    pictures = write_folder(tmp_path / "pictures", 40)
    rows = [{"file_name": row["file_name"], "text": text} for row in rows_of(40) for text in (row["text"], "A square.")]
    write_csv(pictures / "metadata.csv", rows)
    found = survey_of(pictures)
    assert found.captions is not None
    assert found.captions.most == 2
    asked = own.frequent_descriptions(found)
    assert asked[0] == "a square"
    assert all(words.endswith("square") for words in asked)


def test_of_equally_frequent_descriptions_those_are_drawn_that_differ_most() -> None:
    rows = [[a, b] for a in range(3) for b in range(3)]
    assert own._most_frequent_rows(rows) == [(0, 0), (1, 1), (2, 2)]
    assert own._most_frequent_rows([[0, 1], *rows]) == [(0, 1), (1, 0), (2, 2)]


def test_what_shrinking_costs_is_said_with_what_to_type_and_the_size_reaches_the_data(tmp_path: Path) -> None:
    pictures = folder_with(tmp_path, "colour")
    found = with_side(survey_of(pictures), 64)
    small, large = (own.choose_sizes(found.number, found.side, size=size) for size in (32, 64))
    said = own.describe_plan(found, small, small.model_steps)
    assert "shrunk to 32 pixels, which costs detail" in said and "--size 64 keeps more of it" in said
    assert "shrunk" not in own.describe_plan(found, large, large.model_steps)
    assert "shrunk" not in own.describe_plan(with_side(found, 40), small, 1), "there is little to lose"
    for sizes, size in ((small, "32"), (large, "64")):
        made = own.plan_stages(pictures, found, sizes, 0)[0].arguments
        assert made[made.index("--size") + 1] == size


def test_steps_and_minutes_reach_the_plan(tmp_path: Path) -> None:
    pictures = folder_with(tmp_path, "colour")
    found = survey_of(pictures)
    sizes = own.choose_sizes(500, 64)
    planned = own.plan_stages(pictures, found, own.scale_sizes(sizes, found, 2, steps=321), 0)
    steps = {one.makes: one.settings["steps"] for one in planned if one.command == "train"}
    assert steps == {"model.safetensors": 321, "plain-cvae.safetensors": 321}
    assert not any("--minutes" in one.arguments for one in planned), "the same steps on any machine"
    timed = own.plan_stages(pictures, found, own.scale_sizes(sizes, found, 2, minutes=1), 0)
    trained = [one for one in timed if one.command.startswith("train")]
    assert len(trained) == 4 and all("--minutes" in one.arguments for one in trained)


def test_the_folder_keeps_its_commands_and_takes_no_others(tmp_path: Path) -> None:
    pictures, folder = folder_with(tmp_path, "colour"), tmp_path / "made"
    found = survey_of(pictures)
    sizes = own.choose_sizes(found.number, found.side)
    planned = own.plan_stages(pictures, found, sizes, 0)
    own.check_folder_is_unused(folder, planned, found)
    with create_output_folder(folder):
        own.write_commands(folder, planned, found)
    assert all(stage.command_line in (folder / "commands.sh").read_text() for stage in planned)
    own.check_folder_is_unused(folder, planned, found)
    with pytest.raises(UsageError, match="other pictures, words or settings"):
        own.check_folder_is_unused(folder, own.plan_stages(pictures, found, sizes, 1), found)
    write_csv(
        pictures / "metadata.csv",
        [
            {**row, "colour": "red" if n % 2 else "blue"}
            for n, row in enumerate({k: r[k] for k in ("file_name", "colour")} for r in rows_of(40))
        ],
    )
    with pytest.raises(UsageError, match="other pictures, words or settings"):
        own.check_folder_is_unused(folder, planned, survey_of(pictures))
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "own.h5").touch()
    with pytest.raises(UsageError, match=r"holds own\.h5"):
        own.check_folder_is_unused(tmp_path / "else", planned, found)


def test_pictures_without_words_or_that_cannot_be_read_and_a_folder_among_them_are_refused(tmp_path: Path) -> None:
    bare, told = write_folder(tmp_path / "bare", 24, table=False), folder_with(tmp_path, "colour")
    broken = folder_with(tmp_path / "broken", "colour")
    (broken / "007.png").write_bytes(b"no picture")
    for pictures, output, said in (
        (bare, "q", "describes no picture"),
        (told, told / "q", "use another --output"),
        (broken, "q", "leave them out with --drop-unreadable"),
    ):
        done = within(tmp_path, "quickstart", "--images", pictures, "--quick", "-o", output)
        assert done.returncode in (1, 2) and said in " ".join(done.stderr.split())
    assert not (tmp_path / "q").exists() and not (told / "q").exists()
    found = Folder(pictures=broken, drop_unreadable=True).survey(0, 1).run()
    sizes = own.choose_sizes(found.number, found.side, quick=True)
    dropping, refusing = (own.plan_stages(broken, found, sizes, 0, one) for one in ({"drop_unreadable": True}, {}))
    assert found.number == 39 and dropping[1:] == refusing[1:]
    assert [word for word in dropping[0].arguments if word not in refusing[0].arguments] == ["--drop-unreadable"]


@pytest.mark.parametrize("part", ["train", "test"])
def test_a_part_of_which_nothing_is_known_is_refused_before_any_work(tmp_path: Path, part: str) -> None:
    pictures = folder_with(tmp_path, "colour", "size")
    unknown = set(survey_of(pictures).parts[part].tolist())
    rows = [{name: row[name] for name in ("file_name", "colour", "size")} for row in rows_of(40)]
    write_csv(
        pictures / "metadata.csv",
        [{**row, "colour": "", "size": ""} if n in unknown else row for n, row in enumerate(rows)],
    )
    done = within(tmp_path, "quickstart", "--images", pictures, "--quick")
    assert done.returncode == 2 and not (tmp_path / "my pictures-quickstart-quick").exists()
    assert f"none of the {len(unknown)} pictures of the part '{part}' has a known attribute" in done.stderr


def test_options_of_make_data_folder_reach_survey_and_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them, but for those that the quickstart has itself; a path is found from the folder of the run too."""
    pictures = folder_with(tmp_path, "colour", "size", "text")
    (pictures / "metadata.csv").rename(tmp_path / "other.csv")
    monkeypatch.chdir(tmp_path)
    typed = [
        "--attributes",
        "colour,size",
        "--metadata",
        "other.csv",
        "--unknown",
        "red,blue",
        "--fit",
        "pad",
        "--grey",
    ]
    with pytest.raises(SystemExit) as left:
        main(["quickstart", "--images", str(pictures), "--quick", "--dry-run", *typed])
    told = capsys.readouterr()
    assert left.value.code == 0, told.err
    assert "taken as unknown: " in told.err and "with attributes colour, size" in " ".join(told.err.split())
    expected = [str(tmp_path / "other.csv") if word == "other.csv" else word for word in typed]
    made = shlex.split(next(line for line in told.out.splitlines() if line.startswith("mmgen make-data")))
    assert {*expected} < {*made} and made[made.index("--attributes") + 1] == "colour,size"
    options = [one.opts[0] for one in load_command("quickstart").params]
    assert {f"--{name.replace('_', '-')}" for name in Folder.model_fields} - {"--pictures"} < {*options}
    assert len({*options}) == len(options)
    larger = own.larger_command(
        pictures, with_side(survey_of(pictures), 64), own.Sizes(32, 8, 9), {"grey": True, "ignore": ("a",)}
    )
    assert larger.endswith("my pictures' --size 64 --grey --ignore a")
    with pytest.raises(SystemExit):
        main(["quickstart", "--grey"])
    assert "--grey is for your own pictures; name them with --images DIR" in " ".join(capsys.readouterr().err.split())


def test_what_is_left_out_is_said_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pictures = folder_with(tmp_path, "colour")
    rows = [
        {"file_name": row["file_name"], "colour": row["colour"], "who": f"p{n}"} for n, row in enumerate(rows_of(40))
    ]
    write_csv(pictures / "metadata.csv", rows[:-1])
    for command in (
        ["quickstart", "--images", "{}", "--quick", "--dry-run"],
        ["make-data", "folder", "{}", "--dry-run"],
    ):
        with pytest.raises(SystemExit):
            main([word.format(pictures) for word in command])
        told = capsys.readouterr()
        said = " ".join((told.out + told.err).split())
        assert "left out: column 'who': it has 39 different values in 39 pictures, expected at least 3" in said
        assert "left out: 1 picture that no table names: '039.png'" in said


@pytest.mark.parametrize("files", [(), ("metadata.csv",)])
def test_a_first_command_that_fails_leaves_no_folder(
    tmp_path: Path, files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder goes with its script of commands, so that the pictures may be mended; not where more is in it."""
    pictures, folder = folder_with(tmp_path, "colour"), tmp_path / "new" / "made"
    (pictures / "007.png").write_bytes(b"no picture")
    ran = []

    def run_command(arguments: list[str], *_: Any, **__: Any) -> str:
        ran.append(arguments)
        for name in files:
            (folder / name).touch()
        raise MmgenError("no room is left")

    monkeypatch.setattr(_runs, "run_command", run_command)
    done = within(
        tmp_path, "quickstart", "--images", pictures, "--drop-unreadable", "--quick", "--jobs", 1, "-o", folder
    )
    assert done.returncode == 1 and "no room is left" in done.stderr and "Found 39 pictures" in done.stderr
    assert len(ran) == 1 and "--drop-unreadable" in ran[0]
    assert folder.parent.exists() == folder.exists() == bool(files)
    assert (folder / own.COMMAND_FILE).exists() == bool(files)


@pytest.mark.parametrize("what", ["folder", "pipe"])
def test_what_is_no_file_of_commands_is_refused(tmp_path: Path, what: str) -> None:
    found = survey_of(folder_with(tmp_path, "colour"))
    planned = own.plan_stages(
        tmp_path / "pictures", found, own.choose_sizes(found.number, found.side, quick=True), seed=0
    )
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "commands.sh").mkdir() if what == "folder" else os.mkfifo(folder / "commands.sh")
    with pytest.raises(
        UsageError, match=r"commands\.sh holds no commands: it is a (folder|device or a pipe), expected a file"
    ):
        own.check_folder_is_unused(folder, planned, found)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_examples_known_in_part_alone_come_to_a_report(tmp_path: Path) -> None:
    """Colours of some pictures and sizes of the others, both of none."""
    pictures = write_folder(tmp_path / "half", 160, table=False)
    rows = [
        {**row, "colour": "" if n % 2 else row["colour"], "size": ("small", "large")[n // 2 % 2] if n % 2 else ""}
        for n, row in enumerate({k: r[k] for k in ("file_name", "colour")} for r in rows_of(160))
    ]
    write_csv(pictures / "metadata.csv", rows)
    done = within(tmp_path, "quickstart", "--images", pictures, "--quick", "-o", "made", "--jobs", 1)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "made/report.html\n" and "all right" in " ".join(done.stderr.split())
    for name in ("guided.png", "explore.html", "report.html"):
        assert (tmp_path / "made" / name).stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of matplotlib's and others', which are not what is looked at here
@pytest.mark.parametrize("columns", [("colour",), ("colour", "size", "text"), ("text",)])
def test_all_of_it_at_tiny_steps(
    tmp_path: Path, columns: tuple[str, ...], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pictures = folder_with(tmp_path, *columns)
    for again in (False, True):
        with pytest.raises(SystemExit) as left:
            main(["quickstart", "--images", str(pictures), "--quick"])
        told = capfd.readouterr()
        assert left.value.code == 0, told.err
        assert told.out == "my pictures-quickstart-quick/report.html\n"
        assert ("took " in told.err) != again
        assert "Plan, by number and size of pictures: 32 x 32 pixels" in " ".join(told.err.split())
        assert ("all right" if "colour" in columns else "R@1") in told.err
    assert "by text, but posterior" not in (tmp_path / "my pictures-quickstart-quick" / "report.html").read_text(
        "utf-8"
    )
    for name in ("guided.png", "explore.html", "report.html"):
        assert (tmp_path / "my pictures-quickstart-quick" / name).stat().st_size > 1000
    with (pictures / "metadata.csv").open() as file:
        assert len(list(csv.reader(file))) == 41
