"""Data of sentences alone: each language is observed and described by the others, from commands to files."""

from pathlib import Path

import numpy as np
import pytest
import torch

import mmgen
from mmgen.artifacts import Dataset, read_samples
from mmgen.cli._main import main
from mmgen.contrib.translation.testing.cases import small_translation_evaluation
from mmgen.core.errors import SettingsError, UsageError
from mmgen.generation import load
from mmgen.modalities.text import TextDescription
from mmgen.models import DataSettings
from mmgen.settings.config import validate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    small = small_translation_evaluation(tmp_path_factory.mktemp("sentences") / "0")
    return small.dataset.path.parent


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(one) for one in arguments])
    return int(left.value.code or 0)


def test_languages_are_observed_and_described_by_one_another() -> None:
    texts = [TextDescription(name=name, vocabulary=("a", "b"), length=2) for name in ("en", "de", "fr")]
    data = DataSettings.from_descriptions(*texts)
    assert list(data.observed) == ["en", "de", "fr"]
    assert data.observation is texts[0] and data.text is texts[1]
    other = DataSettings.from_descriptions(*texts, main="de")
    assert other.observation is not None and other.observation.name == "de" and other.text is texts[0]
    alone = DataSettings.from_descriptions(texts[0])
    assert not alone.observed and alone.observation is None and alone.text is texts[0]
    with pytest.raises(SettingsError, match="main got 'nl', expected"):
        validate(DataSettings, {"modalities": {each.name: each for each in texts}, "main": "nl"})


def test_a_description_in_one_language_is_written_in_the_other(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = folder / "model.safetensors"
    out = tmp_path / "drawn.txt"
    assert run("sample", model, "--given", "other1 other2", "-n", 3, "-o", out) == 0
    lines = out.read_text(encoding="utf-8").splitlines()
    vocabulary = {"<unk>", *(f"one{word}" for word in range(5))}
    assert len(lines) == 3 and set(" ".join(lines).split()) <= vocabulary
    samples = tmp_path / "drawn.h5"
    assert run("sample", model, "--given", "other1 other2", "-n", 3, "-o", samples) == 0
    stored = read_samples(samples)
    words = Dataset.open(folder / "data.h5").texts["one"]
    assert [words.words(row) for row in stored.images] == lines
    assert (
        run("sample", model, "--from", "one", "--to", "other", "-n", 1, "--dataset-row", 3, "-o", tmp_path / "t.txt")
        == 0
    )
    assert "traceback" not in capsys.readouterr().err.lower()


def test_sentences_of_a_file_are_translated_line_by_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, text, out = folder / "model.safetensors", tmp_path / "mine.txt", tmp_path / "yours.txt"
    text.write_text("one0 One1\none2 dragon one3 one4\n", encoding="utf-8")
    assert run("sample", model, "--from", f"one={text}", "--to", "other", "-n", 2, "-o", out) == 0
    said = capsys.readouterr().err
    assert "1 words of mine.txt are not in the data and became <unk>; 1 sentences were cut after 3 words" in said
    assert len(out.read_text(encoding="utf-8").splitlines()) == 4
    described = load(model).observed["one"]
    codes, _ = described.read_file(text)
    assert codes.tolist() == [[1, 2, 6], [3, 0, 4]]
    for wrong, message in ((b"one0\n\none1\n", "line 2 of .* is empty"), (b"\xff\xfa", "cannot read")):
        text.write_bytes(wrong)
        with pytest.raises(UsageError, match=message):
            described.read_file(text)
    plain = TextDescription(vocabulary=("a", "b"), length=2)
    text.write_text("a c\n", encoding="utf-8")
    with pytest.raises(UsageError, match="got 'c', which is no word of the data"):
        plain.read_file(text)


def test_the_library_translates_codes(folder: Path) -> None:
    loaded = load(folder / "model.safetensors")
    with Dataset.open(folder / "data.h5") as data:
        codes = data.read_values("other", np.arange(4))
    drawn = loaded.translate({"other": codes}, target="one")
    z = loaded.model.posterior(
        mmgen.core.batch.Batch({"other": torch.from_numpy(codes)}, {"other": torch.ones(4, dtype=torch.bool)}),
        ("other",),
    ).mean
    with torch.no_grad():
        expected = loaded.model.sample("one", z, greedy=True)
    assert torch.equal(drawn.long(), expected)


@pytest.mark.parametrize("language", ["one", "other", "text"])
def test_a_posterior_is_fitted_to_each_language(folder: Path, tmp_path: Path, language: str) -> None:
    fitted = tmp_path / "fit.safetensors"
    quick = ("--set", "training.steps=4", "--set", "training.validate_every=4", "--set", "training.batch=16")
    assert run("fit-aggregate", folder / "model.safetensors", "--given", language, *quick, "-o", fitted) == 0
    loaded = load(fitted)
    assert loaded.fitted is not None
    assert loaded.fitted.reads == ({"text": "other"}.get(language, language),)
    assert (
        run("eval", fitted, "--metric", "translation", "--number", 5, "--samples", 4, "-o", tmp_path / "s.jsonl") == 0
    )


@pytest.mark.slow
def test_pages_and_figures_of_sentences(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = folder / "model.safetensors"
    assert run("plot", "translations", model, "--number", 2, "-o", tmp_path / "t.png") == 0
    assert (tmp_path / "t.png").stat().st_size > 1000
    assert run("report", model, "-o", tmp_path / "report.html") == 0
    assert "Sentences and their translations" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert run("show", model) == 0
    for figure in ("reconstructions", "text-to-image", "interpolation"):
        capsys.readouterr()
        assert run("plot", figure, model, "-o", tmp_path / "x.png") in (1, 2)
        assert capsys.readouterr().err.splitlines()[-1].startswith("mmgen: ")
    assert run("plot", "translations", model, "--to", "nl", "-o", tmp_path / "x.png") == 2
