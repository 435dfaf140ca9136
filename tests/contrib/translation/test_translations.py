"""Models and datasets of several image modalities: what is drawn from what, and where it lies on the page."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.figures.drawing.blocks import SOURCE_GROUND, Block, Column, picture_page
from mmgen.figures.drawing.page import convert_to_rgb
from mmgen.figures.drawing.style import hex_to_rgb
from mmgen.figures.drawing.tables import strip_blocks
from mmgen.figures.plots._base import draw_plot
from mmgen.figures.report.make import _STAGES, make_report
from mmgen.figures.session import gather_files, open_session
from mmgen.generation import TrainedModel, load
from mmgen.generation.translations import default_routes, draw_translations, read_paired_examples, select_routes

SHAPES = {"image": (3, 16, 16), "edges": (1, 16, 16), "mask": (1, 8, 8)}


@pytest.fixture(scope="module")
def model(views: Path) -> TrainedModel:
    return load(views / "all.safetensors")


def _shown(grid: object, box: tuple[int, int, int, int]) -> np.ndarray:
    """The pixels that lie in a box."""
    left, top, right, bottom = box
    return np.asarray(grid.image)[top:bottom, left:right]


def _enlarged(image: np.ndarray) -> np.ndarray:
    """An image as a page shows it: whole factors, about 112 pixels wide."""
    factor = round(112 / image.shape[-1])
    return convert_to_rgb(image).repeat(factor, 0).repeat(factor, 1)


def _expected(model: TrainedModel, source: str, target: str, pictures: dict[str, np.ndarray]) -> np.ndarray:
    """E[target | z] at the mean of q(z | source), from the model's networks themselves."""
    from mmgen.core.batch import Batch

    given = torch.from_numpy(pictures[source])
    batch = Batch({source: given}, {source: torch.ones(len(given), dtype=torch.bool)})
    with torch.no_grad():
        return model.model.mean(target, model.model.posterior(batch, (source,)).mean).numpy()


# Blocks on a page.


def test_blocks_lie_where_their_boxes_say() -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 1, 8, 8)).astype(np.uint8)
    small = np.random.default_rng(1).integers(0, 256, (2, 3, 4, 4)).astype(np.uint8)
    block = Block("a", [Column(images, "given", is_source=True), Column(small), Column(images)])
    grid = picture_page([block, block], title="title")
    assert len(grid.boxes) == 2 * 3 * 2
    for start in (0, 6):
        for number, picture in enumerate([images[0], small[0], images[0], images[1], small[1], images[1]]):
            assert np.array_equal(_shown(grid, grid.boxes[start + number]), _enlarged(picture))
    tops, lefts = [box[1] for box in grid.boxes], [box[0] for box in grid.boxes]
    assert tops[0:3] == tops[6:9] and tops[3:6] == tops[9:12] and len({*tops}) == 2, "rows are level"
    assert lefts[0] < lefts[1] < lefts[2] < lefts[6]
    pixels = np.asarray(grid.image)
    left, top, right, _ = grid.boxes[0]
    assert tuple(pixels[top + 5, left - 4]) == tuple(pixels[top + 5, right + 3]) == hex_to_rgb(SOURCE_GROUND)
    left, top, *_ = grid.boxes[1]
    assert tuple(pixels[top + 5, left - 4]) == (255, 255, 255)


def test_blocks_that_do_not_fit_go_below() -> None:
    block = Block("b", [Column(np.zeros((3, 1, 28, 28), np.uint8))] * 9)
    firsts = [picture_page([block, block, block]).boxes[27 * number] for number in range(3)]
    assert firsts[0][0] == firsts[1][0] == firsts[2][0] and firsts[0][1] < firsts[1][1] < firsts[2][1]


def test_strips_fill_a_page_and_keep_the_order() -> None:
    images = {name: np.arange(32, dtype=np.uint8)[:, None, None, None].repeat(28, 2).repeat(28, 3) for name in "ab"}
    blocks = strip_blocks(images, [str(n) for n in range(32)], title="t")
    assert len(blocks) > 1 and blocks[0].title == "t" and blocks[1].title == ""
    assert [label for block in blocks for label in block.labels] == [str(n) for n in range(32)]
    assert [int(v) for block in blocks for v in block.columns[1].images[:, 0, 0, 0]] == list(range(32))
    grid = picture_page(blocks)
    assert len({box[1] for box in grid.boxes}) == len(blocks[0].labels)  # the blocks stand side by side


def test_columns_of_different_length_are_refused() -> None:
    images = np.zeros((3, 1, 8, 8), np.uint8)
    with pytest.raises(UsageError, match=r"columns and labels of \[3, 2\] rows, expected 3"):
        picture_page([Block("b", [Column(images), Column(images[:2])])])
    with pytest.raises(UsageError, match="no images to show"):
        picture_page([Block("b", [])])
    with pytest.raises(UsageError, match="is too large"):
        picture_page([Block("b", [Column(np.zeros((600, 1, 8, 8), np.uint8))])])


# The translations themselves.


def test_translations_are_decoded_at_the_mean_of_the_sources_posterior(views: Path, model: TrainedModel) -> None:
    pictures = read_paired_examples(model, views / "data.h5", 5, seed=0).pictures
    for source in SHAPES:
        for target in SHAPES:
            found = model.translate(pictures[source], source=source, target=target)
            assert found.shape == (5, *SHAPES[target])
            np.testing.assert_allclose(found, _expected(model, source, target, pictures), atol=1e-5)
    assert torch.equal(model.translate(pictures["image"]), model.translate(pictures["image"], "image", "image"))


def test_several_sources_multiply(views: Path, model: TrainedModel) -> None:
    """A product of experts: precisions add, with that of p(z) (WG Section 2.2)."""
    pictures = read_paired_examples(model, views / "data.h5", 4, seed=0).pictures
    one, other = (model.encode({name: pictures[name]}) for name in ("edges", "mask"))
    both = model.encode({name: pictures[name] for name in ("edges", "mask")})
    torch.testing.assert_close(both.precision, one.precision + other.precision - 1)
    torch.testing.assert_close(
        both.mean * both.precision, one.mean * one.precision + other.mean * other.precision, atol=1e-4, rtol=1e-4
    )
    found = model.translate({name: pictures[name] for name in ("edges", "mask")}, target="image")
    with torch.no_grad():
        torch.testing.assert_close(found, model.model.mean("image", both.mean), atol=1e-5, rtol=1e-4)


def test_a_description_is_one_more_expert(views: Path, model: TrainedModel) -> None:
    pictures = read_paired_examples(model, views / "data.h5", 3, seed=0).pictures
    from mmgen.generation.encode import infer_posterior

    alone = infer_posterior(model, {"edges": pictures["edges"]})
    words = model.posterior("Red=yes")
    both = infer_posterior(model, {"edges": pictures["edges"]}, "Red=yes")
    torch.testing.assert_close(both.precision, alone.precision + words.precision - 1)
    found = model.translate(pictures["edges"], "edges", description="Red=yes")
    assert not torch.allclose(found, model.translate(pictures["edges"], "edges"))


def test_draws_come_from_the_posterior_and_their_seed(views: Path, model: TrainedModel) -> None:
    pictures = read_paired_examples(model, views / "data.h5", 3, seed=0).pictures
    drawn = model.translate(pictures["mask"], "mask", draws=6, seed=1)
    assert drawn.shape == (6, 3, 3, 16, 16)
    assert torch.equal(drawn, model.translate(pictures["mask"], "mask", draws=6, seed=1))
    assert not torch.equal(drawn, model.translate(pictures["mask"], "mask", draws=6, seed=2))
    assert float(drawn.std(0).mean()) > 0


def test_draws_from_pictures_are_those_of_mmgen_sample(views: Path, model: TrainedModel) -> None:
    """The program and Python: the same z and pictures of the same rows, whichever others there are."""
    shown = read_paired_examples(model, views / "data.h5", 4, seed=0)
    drawn = draw_translations(model, shown, ["edges"], ["image"], 3, seed=5)
    found = model.translate(shown.pictures["edges"], "edges", "image", draws=3, seed=5, rows=shown.rows.tolist())
    np.testing.assert_allclose(found.transpose(0, 1).numpy(), drawn.means, atol=1e-5)
    alone = model.translate(
        shown.pictures["edges"][2:], "edges", "image", draws=3, seed=5, rows=shown.rows[2:].tolist()
    )
    torch.testing.assert_close(alone, found[:, 2:], atol=1e-5, rtol=1e-5)
    with pytest.raises(UsageError, match="got 1 numbers for 4 pictures"):
        model.translate(shown.pictures["edges"], "edges", "image", draws=3, rows=[0])


def test_translations_that_cannot_be_say_why(views: Path, model: TrainedModel) -> None:
    pictures = read_paired_examples(model, views / "data.h5", 2, seed=0).pictures
    with pytest.raises(UsageError, match="unknown modality 'egdes': did you mean 'edges'"):
        model.translate(pictures["edges"], source="egdes")
    with pytest.raises(UsageError, match="unknown modality 'msk': did you mean 'mask'"):
        model.translate(pictures["edges"], "edges", "msk")
    with pytest.raises(UsageError, match=r"got mask of 1x16x16 .* expected 1x8x8"):
        model.translate(pictures["edges"], "mask")
    with pytest.raises(UsageError, match="different numbers of pictures"):
        model.translate({"edges": pictures["edges"], "mask": pictures["mask"][:1]})
    lone = load(views / "one.safetensors")
    with pytest.raises(
        UsageError, match=r"has no decoder of edges, expected one of the modalities that it draws: image"
    ):
        lone.translate(pictures["image"], target="edges")
    with pytest.raises(UsageError, match=r"cannot infer z from edges, expected one of image"):
        lone.translate(pictures["edges"], source="edges")


def test_which_translations_are_shown(model: TrainedModel) -> None:
    every = tuple(SHAPES)
    assert set(default_routes(model)[0][1]) == set(every) and default_routes(model)[0][0] == ("image",)
    assert default_routes(model)[1:] == [(("edges",), ("image",))]  # nothing from a mask: it says little
    assert select_routes(model, ["edges+mask"], ["image"]) == [(("edges", "mask"), ("image",))]
    assert [start for start, _ in select_routes(model, [], ["edges"])] == [("image",), ("mask",)]
    assert set(select_routes(model, ["mask"], [])[0][1]) == set(every)


# The figure.


def test_the_figure_shows_what_the_model_draws_beside_the_truth(views: Path, model: TrainedModel) -> None:
    picture, _ = draw_plot("transformations", [views / "all.safetensors"], number=4, seed=2)
    pictures = read_paired_examples(model, views / "data.h5", 4, seed=2).pictures
    with Dataset.open(views / "data.h5") as data:
        assert set(read_paired_examples(model, views / "data.h5", 4, seed=2).rows) <= set(data.split("iid", "test"))
    columns = [pictures["image"]]  # given; then each target, drawn beside the truth
    for target in default_routes(model)[0][1]:
        columns += [_expected(model, "image", target, pictures), pictures[target]]
    expected = [column[row] for row in range(4) for column in columns]
    columns = [pictures["edges"], _expected(model, "edges", "image", pictures), pictures["image"]]
    expected += [column[row] for row in range(4) for column in columns]
    assert len(picture.drawn.boxes) == len(expected) == 4 * (1 + 3 * 2) + 4 * 3
    for box, image in zip(picture.drawn.boxes, expected, strict=True):
        shown, wanted_pixels = _shown(picture.drawn, box), _enlarged(image)
        assert shown.shape == wanted_pixels.shape
        assert np.abs(shown.astype(int) - wanted_pixels).max() <= 1  # one level of rounding
    assert "z being the mean of q(z | given picture)" in picture.caption and "4 test examples" in picture.caption


def test_the_figure_takes_sources_and_targets(views: Path, model: TrainedModel) -> None:
    path = views / "all.safetensors"
    picture, _ = draw_plot("transformations", [path], number=3, sources=["edges+mask"], targets=["image", "mask"])
    pictures = read_paired_examples(model, views / "data.h5", 3, seed=0).pictures
    assert len(picture.drawn.boxes) == 3 * (2 + 2 * 2)
    both = model.translate({name: pictures[name] for name in ("edges", "mask")}, target="mask")
    shown = _shown(picture.drawn, picture.drawn.boxes[6 + 4])
    assert np.abs(shown.astype(int) - _enlarged(both[1].numpy())).max() <= 1
    with pytest.raises(UsageError, match="unknown modality 'egdes'"):
        draw_plot("transformations", [path], sources=["egdes"])
    with pytest.raises(UsageError, match="draws image, expected several kinds of pictures"):
        draw_plot("transformations", [views / "one.safetensors"])


@pytest.mark.slow
def test_a_report_has_the_figure_for_models_of_several_kinds_of_pictures(views: Path, tmp_path: Path) -> None:
    page = make_report([views / "all.safetensors"], tmp_path / "r.html").run().read_text()
    assert page.count('<section id="transformations">') == 1 and 'href="#transformations"' in page
    assert page.count("<strong>Transformations: each kind of picture from others.</strong>") == 1
    lone = open_session(gather_files([views / "one.safetensors"]).groups[0], seed=0)
    assert _STAGES["transformations"](lone) == []
