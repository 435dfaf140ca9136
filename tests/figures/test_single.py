"""Single pictures of ``mmgen sample``: a folder of PNG files, its names, ground and size; near copies left out."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mmgen.artifacts.pages import is_replaceable
from mmgen.core.errors import UsageError
from mmgen.evaluation import Evaluation, EvaluationSettings
from mmgen.figures.drawing.single import write_pictures
from mmgen.generation import draw, load
from mmgen.generation.descriptions import parse_descriptions
from mmgen.generation.draws import draw_on
from tests.generation.toy import loaded
from tests.program import exit_code


def test_a_folder_holds_the_same_pictures_as_python_draws_without_anything_around(
    views: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model, out = views / "all.safetensors", tmp_path / "out"
    typed = ["sample", model, "--given", "Red=yes", "--given", "Red=no", "-o", f"{out}/", "--device", "cpu"]
    assert exit_code(*typed, "-n", 2) == 0
    assert capfd.readouterr().out == f"{out}\n"
    names = ["Red-no-01.png", "Red-no-02.png", "Red-yes-01.png", "Red-yes-02.png"]
    assert sorted(path.name for path in tmp_path.rglob("*.png")) == names
    asked = parse_descriptions(load(model), ["Red=yes", "Red=no"])
    drawn = draw(load(model), asked, 2, posterior="own").means
    with Image.open(out / "Red-no-02.png") as one:
        seen = np.asarray(one).transpose(2, 0, 1) / 255
    np.testing.assert_allclose(seen, drawn[1, 1].clip(0, 1), atol=0.5 / 255 + 1e-6)
    assert exit_code(*typed) == 2 and "is there already; choose" in capfd.readouterr().err
    assert exit_code(*typed, "--overwrite", "--scale", 3, "--to", "mask", "-n", 1) == 0
    assert sorted(path.name for path in out.iterdir()) == ["Red-no-01.png", "Red-yes-01.png"]
    with Image.open(out / "Red-no-01.png") as one:
        assert one.size == (24, 24)
    (out / "mine.png").write_bytes(b"a photo")
    assert exit_code(*typed, "--overwrite") == 2
    assert "mine.png, which mmgen did not draw" in capfd.readouterr().err and len([*out.iterdir()]) == 3


@pytest.mark.parametrize("ending", ["jpg", "webp"])
def test_other_formats_say_that_mmgen_made_them(views: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"x.{ending}"
    for _ in range(2):  # the second replaces what mmgen made
        assert exit_code("sample", views / "all.safetensors", "-n", 2, "-o", out, "--device", "cpu") == 0
    with Image.open(out) as one:
        assert one.format == {"jpg": "JPEG", "webp": "WEBP"}[ending]
        again = one.convert("RGB")
    again.save(out)
    assert not is_replaceable(out, "picture")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scale", 4], "all-samples.png, expected a folder"),
        (["--clear-ground", "-o", "x.png"], "--clear-ground got the output x.png, expected a folder"),
        (["--clear-ground", "-o", "x/"], "is not said to be of see-through pictures"),
        (["--from", "edges", "--to", "mask", "--no-copies"], "got --no-copies too"),
    ],
)
def test_wrong_usage_is_one_sentence(
    views: Path, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert exit_code("sample", views / "all.safetensors", *arguments, "--device", "cpu") == 2
    error = capfd.readouterr().err
    assert message in error and len(error.strip().splitlines()) == 1 and not [*tmp_path.iterdir()]


def test_ground_is_cleared_and_names_are_of_words(tmp_path: Path) -> None:
    disc = np.full((1, 2, 3, 9, 9), 1.0, np.float32)
    disc[..., 2:7, 2:7] = 0.0
    disc[..., 4, 4] = 1.0  # a white eye, which is no ground
    disc[..., 1, 4] = 0.75  # a mixture of black and a quarter, at the edge
    write_pictures(tmp_path / "out", ["a=1 OR NOT b=x y"], {"image": disc, "mask": disc}, 2, "white")
    names = {f"a-1-OR-NOT-b-x-y-{n}-{kind}.png" for n in ("01", "02") for kind in ("image", "mask")}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    write_pictures(tmp_path / "one", [""], {"image": disc}, 1, "white")
    with Image.open(tmp_path / "one" / "any-01.png") as one:
        seen = np.asarray(one)
    assert seen[0, 0, 3] == 0 and seen[4, 4].tolist() == [255] * 4 and seen[2, 2].tolist() == [0, 0, 0, 255]
    assert seen[1, 4].tolist() == [0, 0, 0, 64]


def test_a_folder_that_fails_leaves_nothing_and_keeps_an_earlier_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        write_pictures(tmp_path / "new", ["x", "y"], {"image": np.zeros((2, 1, 2, 4, 4))}, 1, None)
    assert not [*tmp_path.iterdir()]


def test_draws_go_on_until_enough_are_no_copies() -> None:
    model = loaded()
    asked = parse_descriptions(model, ["colour=red", "size=big"])

    def some(n: int) -> object:
        return draw(model, asked, n, posterior="own")

    first, left_out = draw_on(some, 3, lambda drawn: np.arange(drawn.z.shape[1])[None] % np.array([[2], [3]]) == 0)  # type: ignore[arg-type]
    every = draw(model, asked, 12, posterior="own")
    np.testing.assert_array_equal(first.z, np.stack([every.z[0, [1, 3, 5]], every.z[1, [1, 2, 4]]]))
    np.testing.assert_array_equal(first.means[1], every.means[1, [1, 2, 4]])
    assert left_out == 3 + 2
    with pytest.raises(UsageError, match="only 1 of 48 pictures of description 2"):
        draw_on(some, 3, lambda drawn: np.arange(drawn.z.shape[1])[None] >= np.array([[9], [1]]))  # type: ignore[arg-type]


def test_copies_are_those_of_the_metric(views: Path) -> None:
    from mmgen.artifacts import Dataset

    model = load(views / "all.safetensors")
    with Dataset.open(model.dataset_path()) as data:
        training = Evaluation(model, data, None, ["own"], EvaluationSettings()).training_pictures
        assert training.are_copies(data.read_values("image", training.rows[:8], 0)).all()
        assert not training.are_copies(np.random.default_rng(0).random((8, 3, 16, 16), np.float32)).any()
