"""Words that are left open, through every command that draws: what is completed, what is not, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen.artifacts import read_header, read_samples
from mmgen.commands.sample import Sample
from mmgen.generation import load
from mmgen.posteriors import load_aggregate
from mmgen.results.score import read_scores
from tests.program import exit_code


def test_samples_keep_the_words_that_were_completed(readers: Path, tmp_path: Path) -> None:
    file, out = readers / "elbo-attributes.safetensors", tmp_path / "s.h5"
    asked = ["--given", "colour=red", "--given", "NOT size=big", "--given", "colour=red size=big", "-n", "9"]
    assert exit_code("sample", file, *asked, "-o", out) == 0
    samples = read_samples(out)
    whole = samples.attributes_completed
    assert whole is not None and not (whole == 255).any()
    assert (whole[:9, 0] == 0).all() and (whole[9:18, 1] == 1).all() and (whole[18:] == 0).all()
    assert (whole[:18].min(0), whole[:18].max(0))[1].tolist() == [1, 1]
    assert samples.header.settings["completed"] is True
    first = load(file).sample("colour=red", 9, seed=0)
    np.testing.assert_array_equal(samples.images[:9], first.numpy())
    assert exit_code("sample", file, "--given", "colour=red", "--no-complete", "-n", "9", "-o", tmp_path / "p.h5") == 0
    assert read_samples(tmp_path / "p.h5").attributes_completed is None
    assert exit_code("sample", file, "--given", "colour=red size=big", "-n", "2", "-o", tmp_path / "w.h5") == 0
    assert read_samples(tmp_path / "w.h5").attributes_completed is None  # nothing was open


def test_a_fit_keeps_the_descriptions_of_its_training_examples(readers: Path) -> None:
    _, settings, aggregate = load_aggregate(readers / "elbo-attributes.safetensors")
    assert settings.aggregate.keep_all == 0.5 and aggregate.descriptions is not None
    rows, counts = aggregate.descriptions
    assert rows.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]] and counts.sum() <= 40
    model = load(readers / "elbo.safetensors")  # reads those of its dataset
    assert model.completions.rows.tolist() == rows.tolist() and model.completions.counts.tolist() == [10] * 4


def test_a_conditional_decoder_sees_completed_words(readers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(readers / "cvae.safetensors")
    seen: list[Any] = []
    decode = model.model.decode
    monkeypatch.setattr(
        model.model, "decode", lambda name, z, words=None: (seen.append(words), decode(name, z, words))[1]
    )
    assert not Sample(model.completing(False))._model.completes  # what the model was told holds
    completed = model.sample("colour=red", 20, posterior="prior", seed=0)
    (words,) = seen
    codes = words.values["attributes"].numpy()
    assert bool(words.present["attributes"].all()) and (codes[:, 0] == 0).all() and {*codes[:, 1].tolist()} == {0, 1}
    as_given = model.completing(False).sample("colour=red", 20, posterior="prior", seed=0)
    assert not bool(seen[1].present["attributes"].all()) and not completed.equal(as_given)


@pytest.mark.slow
def test_a_fit_to_whole_descriptions_reads_no_parts(
    readers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "whole.safetensors"
    few = [
        "--steps",
        "2",
        "--examples",
        "40",
        "--set",
        "aggregate.family.name=gaussian",
        "--set",
        "aggregate.keep_all=1",
    ]
    assert exit_code("fit-aggregate", readers / "elbo.safetensors", "--given", "attributes", *few, "-o", file) == 0
    capsys.readouterr()
    picture = tmp_path / "x.png"
    for command in (
        ["sample", file, "--given", "colour=red", "-o", picture],
        ["eval", file, "-m", "correctness", "--given-count", "1", "-o", tmp_path / "x.jsonl"],
    ):
        assert exit_code(*command, "--no-complete") in (1, 2)
        message = capsys.readouterr().err
        assert "was fitted to whole descriptions" in message or "judge" in message
    assert exit_code("sample", file, "--given", "colour=red size=big", "--no-complete", "-o", picture) == 0
    assert exit_code("sample", file, "--given", "colour=red", "-n", "2", "-o", tmp_path / "y.png") == 0


def test_scores_say_what_was_not_completed(readers: Path, tmp_path: Path) -> None:
    lines, asked = tmp_path / "s.jsonl", ["-m", "retrieval", "--number", "10", "--pool", "5"]
    assert exit_code("eval", readers / "labels.safetensors", *asked, "-p", "own", "--no-complete", "-o", lines) == 0
    own = [score for score in read_scores(lines) if score.posterior == "own"]
    assert own and all(score.as_given and score.source == "q(z|y), not completed" for score in own)
    whole = tmp_path / "w.jsonl"
    assert exit_code("eval", readers / "labels.safetensors", *asked, "-p", "own", "-o", whole) == 0
    assert not any("as_given" in json.loads(line) for line in whole.read_text().splitlines())


def test_damaged_descriptions_are_refused(readers: Path, tmp_path: Path) -> None:
    from mmgen.artifacts import read_checkpoint, write_checkpoint
    from mmgen.core.errors import ArtifactError

    header, tensors = read_checkpoint(readers / "elbo-attributes.safetensors", "aggregate")
    rows = tensors["described_rows"]
    for change in (
        {"described_rows": rows[:, :1].contiguous()},
        {"described_rows": rows.flatten()},
        {"described_counts": tensors["described_counts"][:-1].contiguous()},
        {"described_rows": tensors["described_rows"] + 7},
        {"described_counts": 0 * tensors["described_counts"]},
    ):
        file = tmp_path / "changed.safetensors"
        write_checkpoint(
            file, kind="aggregate", tensors={**tensors, **change}, settings=header.settings, seed=header.seed,
            parents=header.parents, facts=header.facts, command=header.command,
        )  # fmt: skip
        model = tmp_path / "elbo.safetensors"
        if not model.exists():
            model.symlink_to(readers / "elbo.safetensors")
        assert read_header(file).kind == "aggregate"
        with pytest.raises(ArtifactError, match="is damaged or was changed"):
            load(file).sample("colour=red", 2)
