"""Lists of stages: they can be typed, what is there is used only if it fits, the paper's numbers stand beside ours."""

import re
import shlex
from pathlib import Path

import pytest

import mmgen.objectives
from mmgen import experiments
from mmgen.cli._main import command_names, load_command
from mmgen.core.errors import SettingsError, UsageError
from mmgen.experiments._plan import find_experiment, read_plan, select_rows, shell_script, use_dataset
from mmgen.experiments._seeds import set_seed
from mmgen.experiments._stages import Scale
from mmgen.settings.config import build_member
from mmgen.settings.extends import load_preset
from mmgen.settings.presets import preset_names as preset_names
from tests.experiments.files import stage as stage_of, write_data
from tests.generated import generated_page
from tests.worlds import added

PLANS = [(name, scale) for name in experiments.experiment_names() for scale in read_plan(name).scale]


@pytest.mark.slow_cases("wu-table2/mnist-paper")
@pytest.mark.parametrize(("name", "scale"), PLANS)
def test_every_command_can_be_typed_and_names_what_it_makes(name: str, scale: str) -> None:
    stages = read_plan(name).get_scale(scale).stage
    made: list[str] = []
    typed: set[str] = set()
    for stage in stages:
        command, *arguments = stage.arguments
        assert command in command_names()
        form = re.sub(
            r"\d+(?=\.\w+)|(?<=--seed )\d+", "N", stage.command_line
        )  # runs differ in seeds and names of files
        if form not in typed:
            load_command(command).make_context(command, list(arguments))
            typed.add(form)
        assert arguments[arguments.index("-o") + 1] == stage.makes
        files = {word for word in arguments if word.endswith((".h5", ".safetensors", ".jsonl"))}
        assert files - {stage.makes} <= set(made), "a stage uses only what earlier ones make"
        made.append(stage.makes)


@pytest.mark.parametrize("name", sorted({name.split("/")[0] for name in experiments.experiment_names()}))
def test_every_table_is_on_the_page_of_tables_and_in_help(name: str) -> None:
    docs = Path(__file__).parents[2] / "docs"
    assert name in (docs / "reproducing-tables.md").read_text().split("```")[1]
    assert re.search(rf"TABLE.*\b{name}, ", generated_page("commands.md"))


@pytest.mark.slow
def test_lists_that_share_a_folder_make_the_same_of_a_name() -> None:
    made: dict[str, str] = {}
    for name, scale in PLANS:
        part = read_plan(name).get_scale(scale)
        for stage in part.stage:
            assert made.setdefault(f"{part.folder}/{stage.makes}", stage.command_line) == stage.command_line


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_tables_share_data_judge_and_model(scale: str) -> None:
    one, two = (read_plan(f"cremer-table{number}").get_scale(scale) for number in (1, 2))
    assert one.folder == two.folder
    assert one.stage[:3] == two.stage[:3]


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_all_posteriors_of_table_1_are_treated_alike(scale: str) -> None:
    """q_true at every weight and q_agg, plain and guided: the same family, steps and questions; a file is a column."""
    stages = read_plan("cremer-table1").get_scale(scale).stage
    fits = [stage for stage in stages if stage.arguments[0] == "fit-aggregate"]
    asked = [stage for stage in stages if stage.arguments[0] == "eval"]
    (guided,) = (stage for stage in asked if "--guidance" in stage.command_line)
    asked.remove(guided)
    plain = guided.command_line.replace(" --guidance 3", "").replace(guided.makes, asked[-1].makes)
    assert plain == asked[-1].command_line, "the same posterior and questions"
    weight = re.compile(r" --text-weight (\S+)")
    weights = [found.group(1) for stage in fits if (found := weight.search(stage.command_line))]
    assert weights == (["training", "200", "1"] if scale == "cpu" else ["training", "1"])
    for group, ending in ((fits, ".safetensors"), (asked, ".jsonl")):
        same = {
            re.sub(r"(target|posterior) (true|aggregate)", r"\1 ANY", weight.sub("", stage.command_line))
            .replace(stage.makes, "OUT")
            .replace(fit.makes, "IN" if ending == ".jsonl" else "OUT")
            for stage, fit in zip(group, fits, strict=True)
        }
        assert len(same) == 1


def test_the_weight_of_the_published_runs_is_that_of_the_models_training() -> None:
    """CK's published code fits q_true with the weight of the words in training, 200; beta is 1 in both presets."""
    for name, trained in (("cremer/two-objects", 200), ("cremer/two-objects-cpu", 100)):
        objective = build_member(mmgen.objectives, load_preset(name)["objective"], "objective")
        assert objective.training_weight("text") == trained
    columns = {column.name: column for column in read_plan("cremer-table1").table[0].column}
    assert columns["q_true(w = 200), as published"].text_weight == 200


WU = [name for name in experiments.experiment_names() if name.startswith("wu-table2/")]


@pytest.mark.parametrize("scale", ["cpu", "paper"])
@pytest.mark.parametrize("name", WU)
def test_models_of_a_table_are_treated_alike(name: str, scale: str) -> None:
    """Same data, schedule, weight of labels and questions; each by a preset that there is, every row a file."""
    plan = read_plan(name)
    stages = plan.get_scale(scale).stage[1:]
    trained, scored = stages[::2], stages[1::2]
    rows = [row.name for row in plan.table[0].row]
    assert [stage.of for stage in trained] == [stage.of for stage in scored] == rows
    for table in plan.table:
        assert [(row.name, row.scores) for row in table.row] == [(row, f"{row.lower()}.jsonl") for row in rows]
    commands: set[str] = set()
    weights: set[str] = set()
    for stage in trained:
        preset = stage.arguments[stage.arguments.index("--preset") + 1]
        assert preset in preset_names()
        command = stage.command_line.replace(preset, "PRESET").replace(f"{stage.of.lower()}.safe", "MODEL.safe")
        # The weight of labels is a setting of the objective, and its name is not the same in all.
        weight = re.compile(r" --set objective\.(?:weights\.attributes|attributes_weight)=(\S+)")
        if stage.of not in ("VAE", "CVAE"):  # in these no label is explained
            weights.add(",".join(weight.findall(command)))
        commands.add(weight.sub("", command))
    assert len(commands) == 1
    assert len(weights) == 1
    asked = {stage.command_line.replace("auto", "image").replace(f"{stage.of.lower()}.", "MODEL.") for stage in scored}
    assert len(asked) == 1
    assert [stage.of for stage in scored if "--proposal auto" in stage.command_line] == (
        ["CVAE"] if "CVAE" in rows else []
    )


def test_numbers_of_wu_and_goodman_fit_together() -> None:
    """WG Tables 1 to 3: joint variances of a model are near its marginal ones, log p(x1) > log p(x1,x2) by no more than
    a nat or five, and MVAE has as many parameters as BiVCCA."""
    assert len(WU) == 5
    for name in WU:
        likelihoods, variances, parameters = ({row.name: row.paper for row in t.row} for t in read_plan(name).table)
        for model in ("JMVAE", "MVAE"):
            marginal, joint, conditional = likelihoods[model]
            assert 0 < marginal - joint < 6 < conditional - joint + 6
            assert variances[model][1] / variances[model][0] == pytest.approx(1.04, abs=0.06)
        assert parameters["MVAE"] == parameters["MVAE-Q"] == parameters["BiVCCA"]
        assert parameters["VAE"] < parameters["MVAE"] < parameters["JMVAE"]
    rows = {row.name: row.paper for row in read_plan("wu-table2/binary-mnist").table[0].row}
    assert (rows["MVAE"][0], rows["JMVAE"][0], rows["VAE"][0]) == (-86.026, -86.305, -86.313)


def test_a_table_of_several_datasets(tmp_path: Path) -> None:
    assert find_experiment("wu-table2", "mnist") == ("wu-table2/mnist", None)
    assert find_experiment("cremer-table1", "my.h5") == ("cremer-table1", Path("my.h5"))
    assert find_experiment("wu-table2/mnist", None) == ("wu-table2/mnist", None)
    for recipe in ("fashion-mnist", "celeba-words", "two-objects", "toy"):
        write_data(tmp_path / f"{recipe}.h5", recipe=recipe)
    own = tmp_path / "fashion-mnist.h5"
    assert find_experiment("wu-table2", str(own)) == ("wu-table2/fashion-mnist", own)
    faces, scenes = tmp_path / "celeba-words.h5", tmp_path / "two-objects.h5"
    assert find_experiment("cremer-table1", "celeba-words") == ("cremer-table1/celeba-words", None)
    assert find_experiment("cremer-table1", str(faces)) == ("cremer-table1/celeba-words", faces)
    assert find_experiment("cremer-table1", str(scenes)) == ("cremer-table1", scenes)
    with pytest.raises(UsageError, match=r"a dataset of the recipe 'toy', expected one of binary-mnist"):
        find_experiment("wu-table2", str(tmp_path / "toy.h5"))
    several = dict.fromkeys(name.split("/")[0] for name in experiments.experiment_names() if "/" in name)
    usual = [find_experiment(table, None) for table in several]
    own = ["cremer-table1", "cremer-table2", "wu-figure3/binary-mnist", "wu-table2/binary-mnist"]
    expected = sorted([*own, *(name for names in added("USUAL_DATASETS") for name in names)])
    assert usual == [(name, None) for name in expected]
    with pytest.raises(UsageError, match=r"--data got 'mnst', expected"):
        find_experiment("wu-table2", "mnst")


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_text_likelihoods_of_cremer_and_kushman_are_through_a_posterior_of_the_text(scale: str) -> None:
    """Their Table 2 has ten importance weights, z from q(z|x) for pictures and from q(z|y) for captions."""
    plan = read_plan("cremer-table2")
    rows = {(row.quantity, row.protocol): row.paper for row in plan.table[0].row if row.metric == "log-likelihood"}
    assert rows["log p(y)", "importance-text"] == (-19.43, -17.40)
    assert rows["log p(x)", "importance"] == (75715.36, 75726.15)
    assert rows["log p(y)", "importance"] == rows["log p(x)", "bound"] == ()
    assert ("log p(y)", "bound") not in rows
    *stages, scored = plan.get_scale(scale).stage
    asked = dict(zip(scored.arguments, scored.arguments[1:], strict=False))
    assert (asked["--samples"], asked["--proposal"]) == ("10", "image")
    (fitted,) = [stage for stage in stages if stage.makes == asked["--text-proposal"]]
    assert "--given text" in fitted.command_line
    # The same file as Table 1 makes, so that both share it.
    assert fitted.command_line in [stage.command_line for stage in read_plan("cremer-table1").get_scale(scale).stage]


def test_script_is_what_would_be_run(tmp_path: Path) -> None:
    plan = read_plan("cremer-table2")
    scale = plan.get_scale("cpu")
    lines = shell_script(plan, scale, tmp_path / "a b").splitlines()
    assert [line for line in lines if line.startswith("mmgen")] == [stage.command_line for stage in scale.stage]
    assert f"cd {shlex.quote(str(tmp_path / 'a b'))}" in lines
    assert all(line == "" or line[0] == "#" or line.split()[0] in ("set", "mkdir", "cd", "mmgen") for line in lines)


def test_a_dataset_of_ones_own_takes_the_place_of_the_lists(tmp_path: Path) -> None:
    scale = use_dataset(read_plan("cremer-table1").get_scale("cpu"), tmp_path / "my scenes.h5")
    assert scale.stage[0].makes == "judge.safetensors"
    assert scale.stage[0].arguments[1] == str(tmp_path / "my scenes.h5")
    assert not any("two-objects.h5" in stage.arguments for stage in scale.stage)


@pytest.mark.parametrize(("name", "scale"), PLANS)
def test_another_seed_is_every_commands_but_the_datasets(name: str, scale: str) -> None:
    listed = read_plan(name).get_scale(scale)
    if len({stage.seed for stage in listed.stage if stage.is_data}) > 1:
        with pytest.raises(UsageError, match="sets the seed of each run itself"):
            set_seed(listed, 7)
        return
    seeded = set_seed(listed, 7)
    assert seeded.folder == f"{listed.folder}-seed7"
    assert set_seed(listed, 0) == listed
    for before, after in zip(listed.stage, seeded.stage, strict=True):
        if before.is_data or before.seed is None:
            assert after == before
        else:
            assert after.seed == 7
            assert shlex.split(after.command_line) == shlex.split(before.command_line.replace("--seed 0", "--seed 7"))
    assert sum(stage.seed == 7 for stage in seeded.stage) >= 4
    plots = Scale(about="", folder="f", stage=[stage_of("plot", "c.png", figure="contours", files="m.h5")])
    with pytest.raises(UsageError, match="--seed got 7, but no stage of this experiment has a seed"):
        set_seed(plots, 7)


def test_faults_of_a_list_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'cremer-table"):
        read_plan("cremer-table")
    with pytest.raises(UsageError, match=r"unknown scale 'gpu'.*cpu, paper"):
        read_plan("cremer-table1").get_scale("gpu")
    own = tmp_path / "mine.toml"
    text = experiments.experiment_text("cremer-table1")
    own.write_text(text)
    assert read_plan(str(own)) == read_plan("cremer-table1")
    own.write_text(text.replace("makes =", "maks =", 1))
    with pytest.raises(SettingsError, match="got 'maks', did you mean 'makes'"):
        read_plan(str(own))
    own.write_text(text.replace('"make-data"', '"rm"', 1))
    with pytest.raises(SettingsError, match="unknown command 'rm'"):
        read_plan(str(own))
    plain = re.sub(r'(?m)^published = .*\n|published = "[^"]*",', "", text)
    own.write_text(plain.replace("row = [\n    {", "row = [\n    { paper = [72.75],", 1))
    with pytest.raises(SettingsError, match="has 1 published numbers, expected 5"):
        read_plan(str(own))


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_rows_of_burda_differ_in_what_the_table_says_and_nothing_else(scale: str) -> None:
    """One dataset, the same questions; k and bound are those of the row; second stages begin with first ones."""
    plan = read_plan("burda-table1")
    stages = plan.get_scale(scale).stage[1:]
    trained, scored = stages[::2], stages[1::2]
    rows = [row.name for row in plan.table[0].row]
    assert [stage.of for stage in trained] == [stage.of for stage in scored] == rows
    asked = {stage.command_line.replace(stage.makes.removesuffix(".jsonl"), "MODEL") for stage in scored}
    assert len(asked) == 1
    made = {stage.makes: stage.of for stage in trained}
    for stage in trained:
        words = stage.arguments
        kind, k = stage.of.split("continued as ")[-1].removesuffix(", two layers").split(", k = ")
        chosen = load_preset(words[words.index("--preset") + 1])
        ladder = "hierarchical-vae" if stage.of.endswith("two layers") else "multimodal-vae"
        assert chosen["model"].get("name", "multimodal-vae") == ladder
        assert chosen["objective"]["name"] == {"VAE": "elbo", "IWAE": "iwae"}[kind]
        assert f"objective.samples={k}" in words
        if "continued" in stage.of:
            assert made[words[words.index("--from") + 1]] == stage.of.split(", continued")[0]


def test_a_row_brings_what_it_begins_with() -> None:
    scale = select_rows(read_plan("burda-table1").get_scale("cpu"), ["IWAE, k = 50, continued as VAE, k = 1"])
    assert [stage.makes for stage in scale.stage] == [
        "mnist.h5", "iwae-50.safetensors", "iwae-then-vae.safetensors", "iwae-then-vae.jsonl",
    ]  # fmt: skip


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_objectives_of_vedantams_figure_are_treated_alike(scale: str) -> None:
    """Same data, split, preset but for the objective, judge and questions; coverage as they measured it."""
    plan = read_plan("vedantam-figure4")
    commands: set[str] = set()
    for model in ("telbo", "jmvae", "bivcca"):
        own = [stage for stage in plan.get_scale(scale).stage if stage.of.lower() == model]
        assert len(own) == 4
        for stage in own:
            words = stage.arguments
            if "--preset" in words:
                assert words[words.index("--preset") + 1] in preset_names()
        commands.add("\n".join(stage.command_line.replace(model, "MODEL") for stage in own))
    assert len(commands) == 1
    (text,) = commands
    assert "--protocol paper" in text and "--given-count 4,3,2,1" in text
    assert "--split iid-paper" in text and "--split compositional" in text
    first, second = plan.table
    assert [len(row.paper) for row in first.row] == 7 * [3] and [len(row.paper) for row in second.row] == [3]
