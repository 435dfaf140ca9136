"""From images to attributes, and the samples file: sizes, sources, probabilities, the way through the command line."""

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from mmgen.artifacts import Dataset, read_header
from mmgen.artifacts.samples import read_samples
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.figures.drawing.samples import sample_grid
from mmgen.figures.session import gather_files
from mmgen.generation import load
from mmgen.generation.classifiers import find_classifier, find_dataset_classifier as find_judge_of_scores
from mmgen.generation.draws import draw
from mmgen.generation.encode import attribute_probabilities, list_predictions
from mmgen.generation.examples import read_file_images
from mmgen.generation.samples import save_samples
from tests.program import exit_code


def test_probabilities_are_averages_over_the_posterior(world: Path) -> None:
    import torch

    loaded = load(world / "flat.safetensors")
    images, names, _ = read_file_images(world / "data.h5", (1, 16, 16), [3, 7])
    assert names == ["data.h5 row 3", "data.h5 row 7"]
    found = attribute_probabilities(loaded, images, draws=4000, seed=1)
    assert np.allclose(found.sum(-1), 1, atol=1e-5)
    # The same integral on a fine grid of quantiles in each of the two dimensions.
    posterior = loaded.encode(images[:1])
    steps = torch.special.ndtri((torch.arange(200) + 0.5) / 200)
    grid = torch.cartesian_prod(steps, steps)
    with torch.no_grad():
        exact = loaded.model.mean("attributes", posterior.mean + posterior.sd * grid).mean(0)
    np.testing.assert_allclose(found[0], exact, atol=0.01)


def test_reading_names_the_values(world: Path) -> None:
    info = load(world / "flat.safetensors").attributes
    assert info is not None
    read = list_predictions(np.array([[0.25, 0.75], [0.9, 0.1]]), info)
    assert read["parity"] == {"value": "odd", "probability": 0.75, "probabilities": {"even": 0.25, "odd": 0.75}}


def test_pictures_are_read_in_the_models_own_channels(tmp_path: Path) -> None:
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[:, 8:] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    grey, *_ = read_file_images(tmp_path / "a.png", (1, 16, 16))
    assert grey.shape == (1, 1, 16, 16) and grey[0, 0, 0].tolist() == [0.0] * 8 + [1.0] * 8
    assert read_file_images(tmp_path / "a.png", (3, 16, 16))[0].shape == (1, 3, 16, 16)


def test_a_photo_becomes_one_of_the_datasets_pictures(tmp_path: Path) -> None:
    """32 x 16, black and white halves, turned by Exif: the middle square alone, unless the dataset says otherwise."""
    photo = np.zeros((32, 16, 3), np.uint8)
    photo[16:] = 255
    exif = Image.Exif()
    exif[0x0112] = 8  # to be turned by 90 degrees against the clock
    Image.fromarray(photo).save(tmp_path / "p.png", exif=exif)
    cropped, names, notice = read_file_images(tmp_path / "p.png", (3, 8, 8))
    assert names == ["p.png"] and cropped.shape == (1, 3, 8, 8)
    assert cropped[0, 0, 0].tolist() == pytest.approx([0] * 3 + [0.25, 0.75] + [1] * 3, abs=0.3), (
        "white is to the right"
    )
    assert cropped[0, 0, :, 0].max() < 0.1
    assert "turned, 32 x 16 pixels became 8 x 8 by 'crop', since the dataset does not record" in notice
    padded, _, notice = read_file_images(
        tmp_path / "p.png", (1, 8, 8), settings={"fit": "pad", "background": "white", "recipe": "folder"}
    )
    assert padded[0, 0, 0].min() == 1 and padded[0, 0, 4, 0] < 0.1, "borders above and below"
    assert "'pad', as in the dataset" in notice
    _, _, nothing = read_file_images(tmp_path / "p.png", (1, 16, 32))
    assert nothing == "p.png: turned"


def test_what_is_no_picture_is_named(world: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("no picture")
    with pytest.raises(
        ArtifactError,
        match="it is no PNG, JPEG, WEBP, GIF, BMP or PPM picture; give a picture file such as PNG, or an HDF5 file",
    ):
        read_file_images(tmp_path / "a.png", (1, 16, 16))
    Image.fromarray(np.zeros((64, 64), np.uint8)).save(tmp_path / "b.png")
    (tmp_path / "b.png").write_bytes((tmp_path / "b.png").read_bytes()[:60])
    with pytest.raises(ArtifactError, match="cannot read the picture"):
        read_file_images(tmp_path / "b.png", (1, 64, 64))
    with pytest.raises(ArtifactError, match="no such file or directory; give a picture file"):
        read_file_images(tmp_path / "missing.png", (1, 64, 64))
    with pytest.raises(UsageError, match="rows got numbers outside 0 to 159"):
        read_file_images(world / "data.h5", (1, 16, 16), [160])


def test_a_model_without_attributes_decoder_cannot_read(world: Path) -> None:
    with pytest.raises(UsageError, match="generates no attributes"):
        attribute_probabilities(load(world / "cvae.safetensors"), np.zeros((1, 1, 16, 16), np.float32))


def test_samples_keep_everything_that_was_drawn(world: Path, tmp_path: Path) -> None:
    from mmgen.classifier import load_classifier

    loaded = load(world / "flat-aggregate.safetensors")
    judge = find_classifier(loaded.model_path)
    assert judge is not None and judge.name == "judge.safetensors"
    codes = np.array([[1, 255], [0, 1]], np.uint8)
    drawn = draw(loaded, codes, 3, posterior="aggregate", seed=2, classifier=load_classifier(judge))
    save_samples(tmp_path / "s.h5", drawn, loaded, classifier_path=judge, command="mmgen sample")
    back = read_samples(tmp_path / "s.h5")
    assert back.attributes.tolist() == [[1, 255]] * 3 + [[0, 1]] * 3
    assert np.array_equal(back.z, drawn.z.reshape(6, 2))
    assert np.array_equal(back.images, drawn.means.reshape(6, 1, 16, 16))
    assert set(np.unique(back.images_sampled)) <= {0, 255}  # Bernoulli pixels
    assert {parent.role for parent in back.header.parents} == {"aggregate", "judge"}
    assert back.header.settings["given"] == ["parity=odd", "parity=even magnitude=high"]
    images, names, _ = read_file_images(tmp_path / "s.h5", (1, 16, 16), [4])
    assert names == ["s.h5 sample 4"] and np.array_equal(images[0] * 255, back.images_sampled[4])
    assert len(sample_grid(drawn, loaded.attributes, accuracy={"mean": 90.0}).boxes) == 6


@pytest.mark.parametrize("name", ["flat", "flat-true", "flat-aggregate-nothing", "telbo", "cvae"])
def test_every_kind_of_model_draws(world: Path, name: str) -> None:
    loaded = load(world / f"{name}.safetensors")
    for posterior in loaded.posteriors:
        said = [[1, 255]] if loaded.reads(posterior) else [[255, 255]]  # what is not read is refused
        drawn = draw(loaded, np.array(said, np.uint8), 2, posterior=posterior)
        assert drawn.means.shape == (1, 2, 1, 16, 16) and np.isfinite(drawn.means).all()
        assert len(sample_grid(drawn, loaded.attributes, sampled=True).boxes) == 2


@pytest.mark.slow
def test_the_commands(world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    aggregate, grid = world / "flat-aggregate.safetensors", tmp_path / "grid.png"
    assert exit_code("sample", aggregate, "--given", "parity=odd", "--given", "", "-n", 2, "-o", grid) == 0
    out, err = capfd.readouterr()
    assert out == f"{grid}\n" and "attributes right" in err
    assert exit_code("sample", aggregate, "-n", 2, "-o", tmp_path / "s.h5") == 0
    capfd.readouterr()
    assert exit_code("sample", world / "flat.safetensors", "--from", tmp_path / "s.h5", "--json") == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["image"] for line in lines] == ["s.h5 sample 0", "s.h5 sample 1"]
    assert exit_code("sample", world / "flat.safetensors", "--dataset-row", 4) == 0
    out, err = capfd.readouterr()
    assert out.startswith("data.h5 row 4\t") and out.count("\n") == 1 and err == ""
    assert exit_code("show", tmp_path / "s.h5", "--json", "-o", tmp_path / "sheet.png") == 0
    assert json.loads(capfd.readouterr().out)["kind"] == "samples" and (tmp_path / "sheet.png").exists()
    assert exit_code("report", world / "flat-true.safetensors", world / "scores.jsonl", "-o", tmp_path / "r.html") == 0
    out, err = capfd.readouterr()
    assert out == f"{tmp_path / 'r.html'}\n" and (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert exit_code("show", tmp_path / "s.h5") == 0
    out, err = capfd.readouterr()
    assert "kind\tsamples\n" in out and "parents.model.found\tTrue\n" in out and "[bold]" not in out + err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--given", "parity=ood"], "parity has no value 'ood': did you mean 'odd'?"),
        (["--given", "size=3"], "unknown attribute 'size'"),
        (["-o", "grid.tiff"], "expected a name ending in .png, .jpg or .webp (a grid), .h5 (samples), or a folder"),
        (["--posterior", "own"], "posterior"),
        (["--json"], "--json prints what images show, but no image is named"),
        (["--from", __file__, "--given", "parity=odd"], "choose one"),
        (["--from", __file__, "-n", "2"], "got --number too, which is for drawing images; choose one"),
        (["--dataset-row", "4", "-o", "x.png", "--sampled"], "got --output and --sampled too"),
        (["--from", __file__, "--posterior", "prior"], "got --posterior too, which only drawing from a description"),
        (["--dataset-row", "4", "--judge", __file__], "got --judge too, which only drawing from a description"),
        (["--dataset-row", "4000"], "rows got numbers outside 0 to 159"),
    ],
)
def test_wrong_usage_is_one_sentence(
    world: Path, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("sample", world / "flat.safetensors", *arguments) == 2
    out, err = capfd.readouterr()
    assert out == "" and message in err and len(err.strip().splitlines()) == 1


@pytest.fixture
def folder(world: Path, stubs: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model and its data with two judges: "good" is the older one, "new" knows less."""
    monkeypatch.chdir(tmp_path)
    for name in ("data.h5", "flat.safetensors"):
        shutil.copy(world / name, tmp_path)
    with Dataset.open(tmp_path / "data.h5") as data:
        info = data.attributes["attributes"]
    for age, (name, accuracy) in enumerate([("new", {"mean": 60.0}), ("good", {"mean": 95.0}), ("blank", {})]):
        path = tmp_path / f"{name}.safetensors"
        stubs.save_judge(tmp_path / "data.h5", path, 1, info, accuracy)
        os.utime(path, (1e9 - age, 1e9 - age))
    return tmp_path


def _scores(folder: Path, judge: str) -> Path:
    ids = {"dataset": read_header(folder / "data.h5").content_id, "judge": judge}
    path = folder / "scores.jsonl"
    path.write_text(json.dumps({"metric": "correctness", "value": 80.0, "ids": ids}) + "\n")
    return path


def test_one_rule_for_scores_and_pictures(folder: Path) -> None:
    with Dataset.open(folder / "data.h5") as data:
        assert find_judge_of_scores(data, [folder]).name == "good.safetensors"
    assert find_classifier(folder / "flat.safetensors").name == "good.safetensors"
    (folder / "good.safetensors").unlink()
    assert find_classifier(folder / "flat.safetensors").name == "new.safetensors"


def test_a_report_takes_the_judge_that_gave_its_scores(folder: Path) -> None:
    model, new = folder / "flat.safetensors", folder / "new.safetensors"
    scores = _scores(folder, read_header(new).content_id)
    for more in ([], [folder / "good.safetensors", new]):
        report_files = gather_files([model, scores, *more])
        assert report_files.groups[0].judge.name == "new.safetensors"
        assert not report_files.notices
    assert gather_files([model]).groups[0].judge.name == "good.safetensors"


def test_a_report_whose_scores_another_judge_gave_says_so(folder: Path) -> None:
    report_files = gather_files([folder / "flat.safetensors", _scores(folder, "lost")])
    assert report_files.groups[0].judge.name == "good.safetensors"
    assert "judged by good.safetensors, which gave none of the scores" in report_files.notices[0]
