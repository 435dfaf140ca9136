"""Several kinds of pictures and texts in samples, contact sheets and on the command line."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from mmgen.artifacts import Dataset, write_samples
from mmgen.artifacts.samples import read_samples
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.figures.drawing.page import FRAME, Grid, convert_to_rgb
from mmgen.figures.drawing.samples import sample_grid, translation_grid
from mmgen.figures.drawing.style import WRONG, hex_to_rgb
from mmgen.figures.report.show import draw_contact_sheet
from mmgen.generation import TrainedModel, load
from mmgen.generation.descriptions import parse_descriptions
from mmgen.generation.draws import draw
from mmgen.generation.samples import save_samples
from mmgen.generation.translations import (
    draw_translations,
    parse_translation_start,
    read_paired_examples,
    read_start_pictures,
)
from mmgen.modalities.text import TextDescription
from tests.program import exit_code
from tests.small_data import write_small

NAMES = ("image", "edges", "mask")


@pytest.fixture(scope="module")
def model(views: Path) -> TrainedModel:
    return load(views / "all.safetensors")


def _shown(grid: Grid, box: tuple[int, int, int, int]) -> np.ndarray:
    left, top, right, bottom = box
    return np.asarray(grid.image)[top:bottom, left:right]


def _is(grid: Grid, number: int, image: np.ndarray) -> bool:
    """Whether a box shows an image, to one level of rounding."""
    factor = round(112 / image.shape[-1])
    expected = convert_to_rgb(image).repeat(factor, 0).repeat(factor, 1)
    shown = _shown(grid, grid.boxes[number])
    return shown.shape == expected.shape and bool(np.abs(shown.astype(int) - expected).max() <= 1)


# Draws of several kinds of pictures.


def test_pictures_of_the_same_z_lie_beside_each_other(model: TrainedModel) -> None:
    asked = parse_descriptions(model, ["Red=yes", "Red=no"])
    drawn = draw(model, asked, 3, posterior="own", targets=["image", "mask"], seed=5)
    assert list(drawn.pictures()) == ["image", "mask"]
    with torch.no_grad():
        masks = model.model.mean("mask", torch.from_numpy(drawn.z)).numpy()
    np.testing.assert_allclose(drawn.pictures()["mask"], masks, atol=5e-3)  # bf16, where the processor has it
    alone = draw(model, asked, 3, posterior="own", seed=5)
    assert np.array_equal(alone.means, drawn.means) and np.array_equal(alone.sampled, drawn.sampled)
    grid = sample_grid(drawn, model.attributes)
    pictures = drawn.pictures()
    expected = [pictures[name][row][z] for row in range(2) for z in range(3) for name in ("image", "mask")]
    assert len(grid.boxes) == len(expected) and all(_is(grid, i, image) for i, image in enumerate(expected))
    tops = [box[1] + box[3] for box in grid.boxes]  # twice the middles
    assert tops[0:6:2] == tops[1:6:2]


def test_only_the_main_picture_is_judged(model: TrainedModel, views: Path) -> None:
    info = model.attributes
    assert info is not None

    class Nay:
        names, values, hints, described = info.names, info.values, (), model.observation
        device = torch.device("cpu")

        def predict(self, images: torch.Tensor, hints: torch.Tensor) -> torch.Tensor:
            assert images.shape[1:] == (3, 16, 16)
            return 1 - hints

    asked = parse_descriptions(model, ["Red=yes Large=no"])
    drawn = draw(model, asked, 2, posterior="own", targets=["image", "edges"], classifier=Nay())
    grid = sample_grid(drawn, model.attributes)
    pixels = np.asarray(grid.image)
    frames = [(pixels[top - FRAME, left - FRAME] == hex_to_rgb(WRONG)).all() for left, top, *_ in grid.boxes]
    assert frames == [True, False, True, False]
    assert draw(model, asked, 2, posterior="own", targets=["edges"], classifier=Nay()).predicted is None
    with pytest.raises(UsageError, match="unknown modality 'masc': did you mean 'mask'"):
        draw(model, asked, 1, posterior="own", targets=["masc"])


def test_each_example_has_its_own_draws(model: TrainedModel, views: Path) -> None:
    shown = read_paired_examples(model, views / "data.h5", 4, seed=0)
    drawn = draw_translations(model, shown, ["edges"], ["image", "mask"], 5, seed=1)
    assert drawn.means.shape == (4, 5, 3, 16, 16) and drawn.further["mask"][0].shape == (4, 5, 1, 8, 8)
    fewer = read_paired_examples(model, views / "data.h5", 4, seed=0, rows=[int(shown.rows[2])])
    again = draw_translations(model, fewer, ["edges"], ["image"], 5, seed=1)
    np.testing.assert_allclose(again.z[0], drawn.z[2], atol=1e-5)  # whatever else is drawn
    posterior = model.encode({"edges": shown.pictures["edges"]})
    many = draw_translations(model, shown, ["edges"], ["mask"], 4000)
    np.testing.assert_allclose(many.z.mean(1), posterior.mean, atol=0.1)
    np.testing.assert_allclose(many.z.std(1), posterior.sd, rtol=0.1)
    grid = translation_grid(shown, ["edges"], drawn)
    given, truth = shown.pictures["edges"], shown.pictures["image"]
    expected = [image for row in range(4) for image in (given[row], truth[row], *drawn.means[row])]
    assert len(grid.boxes) == 4 * (1 + 1 + 5) * 2
    assert all(_is(grid, i, image) for i, image in enumerate(expected))


# Samples files.


def test_samples_keep_every_kind_of_picture(model: TrainedModel, views: Path, tmp_path: Path) -> None:
    shown = read_paired_examples(model, views / "data.h5", 3, seed=0)
    drawn = draw_translations(model, shown, ["mask"], ["edges", "image"], 2)
    save_samples(tmp_path / "s.h5", drawn, model, start={"from": ["mask"], "pictures": shown.names})
    back = read_samples(tmp_path / "s.h5")
    assert back.image == "edges" and list(back.further) == ["image"]
    assert np.array_equal(back.images, drawn.means.reshape(6, 1, 16, 16))
    assert np.array_equal(back.further["image"][0], drawn.further["image"][0].reshape(6, 3, 16, 16))
    assert back.further["image"][1].dtype == np.uint8
    assert back.header.settings["from"] == ["mask"] and back.header.settings["pictures"] == shown.names
    sheet = draw_contact_sheet(tmp_path / "s.h5", count=4)
    assert len(sheet.boxes) == 8
    assert all(
        _is(sheet, 2 * i, back.images[i]) and _is(sheet, 2 * i + 1, back.further["image"][0][i]) for i in range(4)
    )


def test_damaged_samples_of_several_kinds_are_refused(tmp_path: Path) -> None:
    common = {"attributes": np.zeros((2, 0), np.uint8), "z": np.zeros((2, 1), np.float32), "settings": {}, "seed": 0}
    images = np.zeros((2, 1, 4, 4), np.float32)
    further = {"mask": (images, np.zeros((2, 1, 4, 4), np.uint8))}
    write_samples(tmp_path / "s.h5", images=images, further=further, image="image", **common)
    with h5py.File(tmp_path / "s.h5", "a") as file:
        del file["images_sampled.mask"]
    with pytest.raises(ArtifactError, match="damaged"):
        read_samples(tmp_path / "s.h5")
    with pytest.raises(ValueError, match="'a b' is no valid name of a modality"):
        write_samples(tmp_path / "t.h5", images=images, further={"a b": further["mask"]}, **common)
    odd = {"mask": (images, np.zeros((2, 1, 2, 2), np.uint8))}
    write_samples(tmp_path / "u.h5", images=images, further=odd, **common)
    with pytest.raises(ArtifactError, match="its arrays do not fit together"):
        read_samples(tmp_path / "u.h5")
    info = TextDescription(name="text", vocabulary=("a", "b"), length=2)
    wrong = np.array([[2, 0], [0, 1]], np.uint16)  # a word after the end
    write_samples(tmp_path / "v.h5", images=images, text=wrong, text_info=info, **common)
    with pytest.raises(ArtifactError, match="its arrays do not fit together"):
        read_samples(tmp_path / "v.h5")


WORDS = ("zero", "one", "two")


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory, stubs: SimpleNamespace) -> Path:
    """A folder with data.h5 of images and free text without attributes, and model.safetensors of both."""
    folder = tmp_path_factory.mktemp("spoken")
    generator = np.random.default_rng(0)
    tokens = np.full((60, 3), 3, np.uint16)
    for row in tokens:
        row[: generator.integers(1, 4)] = generator.integers(0, 3)
    images = np.repeat(60 * tokens[:, :1, None, None], 256, axis=1).reshape(60, 1, 16, 16).astype(np.uint8)
    write_small(folder / "data.h5", {"image": images, "text": tokens}, None, (WORDS, ()), (40, 10), recipe="words")
    objective = {"name": "mvae", "modalities": ["image", "text"], "weights": {}}
    networks = {"text_network": {"embedding": 4, "hidden": 8, "head": 8}}
    stubs.train_tiny(folder / "data.h5", folder / "model.safetensors", objective, **networks)
    return folder


def test_samples_keep_the_texts_that_were_drawn_and_asked_for(spoken: Path, tmp_path: Path) -> None:
    model = load(spoken / "model.safetensors")
    drawn = draw(model, parse_descriptions(model, ["one one", "two"]), 4, posterior="own")
    save_samples(tmp_path / "s.h5", drawn, model)
    back = read_samples(tmp_path / "s.h5")
    assert back.text_info == TextDescription(name="text", vocabulary=WORDS, length=3) and back.info is None
    assert drawn.words is not None and np.array_equal(back.text, drawn.words.reshape(8, 3))
    assert back.text_asked.tolist() == [[1, 1, 3]] * 4 + [[2, 3, 3]] * 4
    assert len(draw_contact_sheet(tmp_path / "s.h5", count=5).boxes) == 5


def test_sheets_of_free_text_have_the_words_under_the_pictures(spoken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmgen.figures.report import show

    seen = []
    monkeypatch.setattr(show, "image_grid", lambda images, **rest: seen.append((images, rest)))
    draw_contact_sheet(spoken / "data.h5", count=7, seed=3)
    with Dataset.open(spoken / "data.h5") as data:
        tokens = data.read_text("text")
        images = data.read_image("image").astype(np.float32) / 255
    for image, caption in zip(seen[0][0], seen[0][1]["captions"], strict=True):
        rows = np.flatnonzero((images == image).all((1, 2, 3)))
        assert caption in [" ".join(WORDS[code] for code in tokens[row] if code < 3) for row in rows]


# Contact sheets.


def test_a_sheet_of_a_dataset_shows_all_its_pictures_of_an_example(views: Path) -> None:
    sheet = draw_contact_sheet(views / "data.h5", count=4, seed=1)
    assert len(sheet.boxes) == 12
    with Dataset.open(views / "data.h5") as data:
        images = {name: data.read_image(name) for name in NAMES}
    row = next(row for row in range(100) if _is(sheet, 0, images["image"][row]))
    assert _is(sheet, 1, images["edges"][row]) and _is(sheet, 2, images["mask"][row])
    assert sheet.boxes[0][1] == sheet.boxes[1][1]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("big", {0}),
        ("size=big", {0}),
        ("NOT size=big", {1}),
        ("size=huge", "huge"),
        ("anything", {0, 1}),
    ],
)
def test_a_sheet_of_the_examples_of_a_description(tmp_path: Path, given: str, expected: set[int] | str) -> None:
    codes = np.array([[0], [1], [1], [0], [1], [UNKNOWN]], np.uint8)
    columns = {"image": np.zeros((6, 1, 8, 8), np.uint8), "attributes": codes}
    write_small(tmp_path / "d.h5", columns, {"size": ("big", "small")})
    if isinstance(expected, str):
        with pytest.raises(UsageError, match=expected):
            draw_contact_sheet(tmp_path / "d.h5", given=given)
        return
    sheet = draw_contact_sheet(tmp_path / "d.h5", given=given)
    assert len(sheet.boxes) == sum(code in expected for code in (0, 1, 1, 0, 1)) + (given == "anything")


def test_a_sheet_of_the_captions_with_all_words(spoken: Path) -> None:
    with Dataset.open(spoken / "data.h5") as data:
        tokens = data.read_text("text")
    fitting = int((tokens == WORDS.index("one")).any(1).sum())
    sheet = draw_contact_sheet(spoken / "data.h5", count=1000, given="one")
    assert 0 < len(sheet.boxes) == fitting < len(tokens)
    for words, said in (("nothing", "unknown word 'nothing'"), ("one two", "no example of .* is 'one two'")):
        with pytest.raises(UsageError, match=said):
            draw_contact_sheet(spoken / "data.h5", given=words)


# The command line.


def test_starting_points(model: TrainedModel, views: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        parse_translation_start(model, "edges").sources == ("edges",)
        and parse_translation_start(model, "edges").file is None
    )
    assert parse_translation_start(model, "edges+mask").sources == ("edges", "mask")
    start = parse_translation_start(model, "mask=sketch.png")
    assert (start.sources, start.file) == (("mask",), Path("sketch.png"))
    assert parse_translation_start(model, "x/photo.png").sources == ("image",)
    (tmp_path / "edges").touch()
    assert parse_translation_start(model, "edges").file is None and parse_translation_start(
        model, "./edges"
    ).file == Path("edges")
    with pytest.raises(UsageError, match="unknown modality 'mas': did you mean 'mask'"):
        parse_translation_start(model, "edges+mas")
    Image.fromarray(np.full((8, 8), 255, np.uint8)).save(tmp_path / "sketch.png")
    shown = read_start_pictures(model, start, 8, 0)
    assert list(shown.pictures) == ["mask"] and shown.pictures["mask"].shape == (1, 1, 8, 8)
    shown = read_start_pictures(model, parse_translation_start(model, f"mask={views / 'data.h5'}"), 8, 0, [3, 4])
    with Dataset.open(views / "data.h5") as data:
        assert np.array_equal(shown.pictures["mask"] * 255, data.read_image("mask", np.array([3, 4])))


@pytest.mark.slow
def test_sample_draws_one_kind_of_picture_from_another(
    views: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model, out = views / "all.safetensors", tmp_path / "s.h5"
    options = ["--device", "cpu", "--seed", 3]
    assert (
        exit_code("sample", model, "--from", "edges", "--to", "image", "--to", "mask", "-n", 2, "-o", out, *options)
        == 0
    )
    assert capfd.readouterr().out == f"{out}\n"
    back, loaded = read_samples(out), load(model)
    shown = read_paired_examples(loaded, views / "data.h5", 8, seed=3)
    drawn = draw_translations(loaded, shown, ["edges"], ["image", "mask"], 2, seed=3)
    assert np.array_equal(back.images, drawn.means.reshape(16, 3, 16, 16))
    assert np.array_equal(back.further["mask"][0], drawn.further["mask"][0].reshape(16, 1, 8, 8))
    picture = tmp_path / "s.png"
    assert exit_code("sample", model, "--from", f"mask={out}", "--to", "image", "-n", 1, "-o", picture, *options) == 0
    assert exit_code("sample", model, "--to", "mask", "--given", "Red=yes", "-n", 3, "-o", picture, *options) == 0
    assert (
        exit_code("sample", model, "--from", "edges", "--given", "Red=yes", "--to", "image", "-o", picture, *options)
        == 0
    )
    capfd.readouterr()
    assert exit_code("sample", model, "--from", "edges+mask", "--dataset-row", 5, "--json", *options) == 0
    read = json.loads(capfd.readouterr().out)
    assert read["image"] == "data.h5 row 5" and set(read["attributes"]) == {"Large", "Red"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "edges", "--to", "masc"], "unknown modality 'masc': did you mean 'mask'?"),
        (["--from", "egdes", "--to", "mask"], "unknown modality 'egdes': did you mean 'edges'?"),
        (["--from", "edges", "--given", "Red=yes"], "choose one, or name with --to the kind of picture to draw"),
        (["--from", "edges", "--to", "mask", "--json"], "name images with --from or --dataset-row, and leave out --to"),
        (["--from", "edges", "--to", "mask", "--given", "Red=yes", "--given", "Red=no"], "got 2 descriptions"),
        (
            ["--from", "edges", "--to", "mask", "--posterior", "prior", "--judge", __file__],
            "got --posterior and --judge too",
        ),
        (["--from", "edges", "--to", "mask", "-o", "x.gif"], "expected a name ending in .png"),
    ],
)
def test_wrong_usage_is_one_sentence(
    views: Path, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("sample", views / "all.safetensors", *arguments, "--device", "cpu") == 2
    out, err = capfd.readouterr()
    assert out == "" and message in err and len(err.strip().splitlines()) == 1


def test_the_documented_example_runs(views: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "figures.md").read_text(encoding="utf-8")
    section = page.split("## Pictures from pictures")[1].split("\n## ")[0]
    shutil.copy(views / "all.safetensors", tmp_path / "transforms.safetensors")
    shutil.copy(views / "data.h5", tmp_path / "transforms.h5")
    monkeypatch.chdir(tmp_path)
    found: dict[str, torch.Tensor] = {}
    exec(section.split("```python\n")[1].split("```")[0], found)
    assert found["photographs"].shape == (8, 3, 16, 16) and found["several"].shape == (4, 8, 3, 16, 16)
    assert found["posterior"].mean.shape == (8, 3) and found["drawn"].shape == (16, 1, 8, 8)
    model = load(views / "all.safetensors")
    torch.testing.assert_close(found["drawn"], model.sample(n=16, target="mask", seed=0))
