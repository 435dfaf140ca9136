"""Figures by name over a toy dataset of images and captions, and what they say; verdicts on generated texts."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import read_header
from mmgen.artifacts.contents import summarise_contents
from mmgen.artifacts.samples import read_samples
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.figures import plots
from mmgen.figures.drawing.page import FRAME, Grid
from mmgen.figures.drawing.planes import Plane
from mmgen.figures.drawing.samples import sample_grid
from mmgen.figures.drawing.style import WRONG, hex_to_rgb
from mmgen.figures.plots._base import draw_plot
from mmgen.figures.plots.word_uncertainty import draw_entropy_chart
from mmgen.figures.report.make import make_report
from mmgen.figures.report.show import draw_contact_sheet
from mmgen.generation import load
from mmgen.generation.classifiers import DecodedTexts, compare_with_classifier
from mmgen.generation.descriptions import complete_descriptions, parse_descriptions
from mmgen.generation.draws import draw
from mmgen.generation.encode import texts_of_images
from mmgen.generation.samples import save_samples
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.results.table import Table
from tests.small_data import write_small

WORDS = (("small", "large"), ("red", "blue"), ("left", "right"))
NAMES = ("size", "colour", "relation")
VOCABULARY = tuple(word for words in WORDS for word in words)
INFO = AttributesDescription(name="attributes", names=NAMES, values=WORDS)
TEXT = TextDescription(name="text", vocabulary=VOCABULARY, length=3, slots=NAMES)


def _dataset(path: Path) -> None:
    """120 images of 16 x 16: colour lights a channel, size how much of it, the side is the relation."""
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, (120, 3)).astype(np.uint8)
    images = generator.integers(40, 60, (120, 3, 16, 16)).astype(np.uint8)
    for image, (size, colour, side) in zip(images, codes, strict=True):
        image[2 * colour, 4 : 8 + 6 * size, 8 * side : 8 * side + 8] = 220
    tokens = (codes + np.array([0, 2, 4], np.uint8)).astype(np.uint16)
    values = {"image": images, "attributes": codes, "text": tokens}
    write_small(path, values, INFO, (VOCABULARY, NAMES), (80, 20))


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few cells are enough to see that a figure is right."""
    monkeypatch.setattr("mmgen.figures.plots.contours._CELLS", 40)
    monkeypatch.setattr("mmgen.figures.plots.latent_map._TILES", Plane(cells=6))


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory, stubs: SimpleNamespace) -> Path:
    """A folder with data.h5, judge, marginal (q(z|x)) with its fits true, aggregate and prior, and joint (q(z|x,y))."""
    folder = tmp_path_factory.mktemp("toy")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    _dataset(folder / "data.h5")
    accuracy = {"size": 90.0, "colour": 92.0, "mean": 91.0}
    stubs.save_judge(folder / "data.h5", folder / "judge.safetensors", 3, INFO, accuracy, told=("relation",))
    words = {"embedding": 4, "hidden": 8, "head": 8}
    for name, sees in (("marginal", ["image"]), ("joint", ["image", "text"])):
        objective = {"name": "elbo", "modalities": ["image", "text"], "given": sees, "image_weight": 0.1}
        stubs.train_tiny(folder / "data.h5", folder / f"{name}.safetensors", objective, text_network=words)
    for target, given in (("true", "text"), ("aggregate", "text"), ("aggregate", "nothing")):
        out = folder / f"{target if given == 'text' else 'prior'}.safetensors"
        stubs.fit_tiny(folder / "marginal.safetensors", folder / "data.h5", out, target, given)
    torch.set_num_threads(threads)
    return folder


def _fitted(folder: Path) -> list[Path]:
    return [folder / f"{name}.safetensors" for name in ("true", "aggregate", "prior")]


@pytest.mark.slow
def test_contours_have_a_panel_for_the_truth_and_each_fit(toy: Path, tmp_path: Path) -> None:
    picture, _ = draw_plot("contours", _fitted(toy))
    titles = [axes.get_title(loc="left") for axes in picture.drawn.axes]
    assert [title.split(":")[0] for title in titles] == ["p(z|y)", "q_agg", "q_true(w = 1), exact"]
    assert all("% in holes of the aggregate" in title for title in titles)
    assert "training images with these words" in picture.caption
    given, _ = draw_plot("contours", _fitted(toy), descriptions=["small red left", "large blue right"])
    words = [text.get_text() for text in given.drawn.legends[0].get_texts()]
    assert words[:2] == ["small red left", "large blue right"]
    for ending in ("png", "svg", "pdf"):
        given.save(tmp_path / f"c.{ending}")
        assert (tmp_path / f"c.{ending}").stat().st_size > 1000
    with pytest.raises(UsageError, match=r"expected a name ending in \.png, \.pdf or \.svg"):
        given.save(tmp_path / "c.gif")


@pytest.mark.slow
def test_reconstructions_show_both_parts_and_every_prior(toy: Path, tmp_path: Path) -> None:
    picture, _ = draw_plot("reconstructions", _fitted(toy), number=4)
    assert isinstance(picture.drawn, Grid)
    # Training and validation, each as they are and decoded, then p(z) and the learned q(z).
    assert len(picture.drawn.boxes) == 4 * 6
    assert (
        "Red frame: the judge (itself right on 91.0 % of held-out words), told the generated relation"
        in picture.caption
    )
    assert "small, large | red, blue | left, right" in picture.caption
    picture.save(tmp_path / "r.png")
    with pytest.raises(UsageError, match=r"expected a name ending in \.png"):
        picture.save(tmp_path / "r.svg")


def test_text_to_image_has_a_block_for_each_posterior(toy: Path) -> None:
    picture, _ = draw_plot("text-to-image", _fitted(toy), descriptions=["large red left"])
    assert isinstance(picture.drawn, Grid)
    assert len(picture.drawn.boxes) == 2 * 3
    assert "It is told the relation." in picture.caption
    pixels = np.asarray(picture.drawn.image)
    model = load(toy / "aggregate.safetensors")
    from mmgen.classifier import load_classifier

    judge = load_classifier(toy / "judge.safetensors", "cpu")
    asked = parse_descriptions(model, ["large red left"])
    drawn = draw(model, asked, 3, posterior="aggregate", classifier=judge)
    assert (
        drawn.mismatches is not None and drawn.hints == (2,) and drawn.correct_counts[1] == 3 * 2
    )  # the told word is not scored
    frames = [
        (pixels[top - FRAME, left - FRAME] == hex_to_rgb(WRONG)).all() for left, top, *_ in picture.drawn.boxes[3:]
    ]
    assert frames == drawn.mismatches[0].tolist()


def test_word_uncertainty_compares_models(toy: Path) -> None:
    files = [toy / "marginal.safetensors", toy / "joint.safetensors"]
    picture, _ = draw_plot("word-uncertainty", files, number=3)
    assert isinstance(picture.drawn, Grid)
    assert len(picture.drawn.boxes) == 3 * 3
    assert "means over 20 validation images" in picture.caption
    figure = draw_entropy_chart(["a", "b"], [np.array([1.0, 0.5, 0.25]), np.zeros(3)], TEXT, 960)
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(NAMES)
    assert [bar.get_height() for bar in axes.patches] == [1.0, 0.5, 0.25, 0, 0, 0]
    assert axes.get_legend().get_texts()[0].get_text() == "a: 1.75 bits a text"


@pytest.mark.parametrize("name", plots.names())
def test_what_a_figure_does_not_heed_is_refused(name: str, tmp_path: Path) -> None:
    """Before any file is opened; what it accepts gets as far as the missing file."""
    heeded = {
        "analogies": {"number", "rows", "by"},
        "attention": {"descriptions", "number"},
        "contours": {"descriptions", "number"},
        "copies": {"descriptions", "number"},
        "disentanglement": {"metrics"},
        "draw-steps": {"descriptions", "number", "rows"},
        "embedding": {"number", "by"},
        "filters": {"number"},
        "hierarchy": {"descriptions"},
        "interpolation": {"descriptions", "number", "rows", "straight"},
        "over-setting": {"metrics", "by"},
        "reconstructions": {"number"},
        "text-to-image": {"descriptions", "number"},
        "trade-off": {"metrics"},
        "traversal": {"number", "rows"},
        "transformations": {"number", "sources", "targets"},
        "translations": {"number", "sources", "targets", "rows"},
        "word-uncertainty": {"number"},
    }.get(name, set())
    wishes: dict[str, Any] = {"descriptions": ["small"], "number": 3, "sources": ["edges"], "targets": ["mask"]}
    wishes["metrics"] = ["precision"]
    options = {
        "descriptions": "--given",
        "number": "--number",
        "sources": "--from",
        "targets": "--to",
        "metrics": "--metric",
    }
    for wish, value in wishes.items():
        if wish in heeded:
            with pytest.raises(ArtifactError, match=r"none\.safetensors"):
                draw_plot(name, [tmp_path / "none.safetensors"], **{wish: value})
        else:
            with pytest.raises(UsageError, match=f"^{name} .*, got {options[wish]}; leave out {options[wish]}$"):
                draw_plot(name, [tmp_path / "none.safetensors"], **{wish: value})


def test_a_figure_says_what_it_heeds() -> None:
    with pytest.raises(UsageError, match="contours accepts --given and --number only, got --from and --to; leave out"):
        draw_plot("contours", [], sources=["edges"], targets=["mask"], number=2)
    with pytest.raises(UsageError, match="latent-map accepts no options, got --given; leave out --given"):
        draw_plot("latent-map", [], descriptions=["small"])


def test_a_figure_that_cannot_be_drawn_says_why(toy: Path, world: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown figure 'contour': did you mean 'contours'\?"):
        draw_plot("contour", _fitted(toy))
    with pytest.raises(UsageError, match=r"contours needs one model .* got marginal\.safetensors, joint\."):
        draw_plot("contours", [toy / "marginal.safetensors", toy / "joint.safetensors"])
    with pytest.raises(UsageError, match=r"no posterior of .* reads texts; .*fit-aggregate"):
        draw_plot("text-to-image", [toy / "marginal.safetensors"])
    plain, _ = draw_plot("reconstructions", [world / "flat.safetensors"])  # without texts: pictures alone
    assert "test pictures, drawn at random" in plain.caption and "words" not in plain.caption
    with pytest.raises(UsageError, match="has 3 latent dimensions, expected 2"):
        draw_plot("contours", [world / "telbo.safetensors"])
    with pytest.raises(UsageError, match="has 3 latent dimensions, expected 2"):
        draw_plot("latent-map", [world / "telbo.safetensors"])
    with pytest.raises(UsageError, match="no posterior that reads partial descriptions"):
        draw_plot("hierarchy", _fitted(toy))
    with pytest.raises(UsageError, match=r"hierarchy got .*judge\.safetensors \(a classifier\), expected a model"):
        draw_plot("hierarchy", [toy / "judge.safetensors"])
    with pytest.raises(UsageError, match="hierarchy got 2 --given, expected one description"):
        draw_plot("hierarchy", _fitted(toy), descriptions=["small", "big"])


def test_nearest_training_pictures_stand_under_those_of_each_posterior(toy: Path) -> None:
    few, _ = draw_plot("copies", _fitted(toy), number=2)
    assert isinstance(few.drawn, Grid)
    assert len(few.drawn.boxes) == 2 * 2 * 3  # two posteriors, and test pictures
    more, _ = draw_plot("copies", _fitted(toy), descriptions=["large red left"])
    assert isinstance(more.drawn, Grid)
    assert len(more.drawn.boxes) == 2 * 5 * 3
    assert "Those of 480 and 480 and 20 pictures" in more.caption and "0 is a copy" in more.caption


@pytest.mark.slow_cases("latent-map")
@pytest.mark.parametrize("name", ["contours", "latent-map", "hierarchy"])
def test_figures_of_attributes(world: Path, name: str) -> None:
    picture, _ = draw_plot(name, [world / "flat-true.safetensors"])
    assert picture.width > 100 and picture.caption


def test_every_figure_says_what_it_is() -> None:
    assert {"contours", "reconstructions", "text-to-image", "word-uncertainty"} <= set(plots.names())
    ours = {
        "analogies",
        "copies",
        "embedding",
        "filters",
        "interpolation",
        "over-setting",  # WG Section 5
        "translations",  # WG Table 5
        "traversal",
    }  # which no paper's figure stands for
    assert all(("Fig." in plots.describe(name)) == (name not in ours) for name in plots.names())


@pytest.mark.slow
def test_a_report_has_texts_and_opens_with_summaries(toy: Path, tmp_path: Path) -> None:
    table = Table("Table 1", ["", "paper", "ours"], [["q_true", "72.75", "<70>"]], "Validation.")
    files = [*_fitted(toy), toy / "joint.safetensors"]
    page = make_report(files, tmp_path / "r.html", summaries=[table]).run().read_text()
    assert '<section id="summary">' in page and "<td>72.75</td><td>&lt;70&gt;</td>" in page
    assert page.count("From text to images and texts") == 2  # caption and alternative text of one picture
    assert page.count("Reconstructions and prior samples") == 4
    assert page.count("How sure the models are of each word") == 2
    assert "Latent map: texts" in page  # eight texts have colours of their own
    assert "No model that draws from descriptions" in page  # a sentence cannot be made more abstract


def test_samples_of_captions(toy: Path, tmp_path: Path) -> None:
    model = load(toy / "aggregate.safetensors")
    asked = parse_descriptions(model, ["large red left", "small blue right"])
    assert asked.codes.tolist() == [[1, 0, 0], [0, 1, 1]]
    assert complete_descriptions(model, asked.codes).tokens.tolist() == asked.tokens.tolist()
    drawn = draw(model, asked, 5, posterior="aggregate")
    assert drawn.words is not None and drawn.words.shape == (2, 5, 3)
    assert len(sample_grid(drawn, model.attributes, text=model.text).boxes) == 10
    save_samples(tmp_path / "s.h5", drawn, model)
    assert read_samples(tmp_path / "s.h5").header.settings["given"] == ["large red left", "small blue right"]
    assert len(draw_contact_sheet(tmp_path / "s.h5", count=4).boxes) == 4
    with pytest.raises(UsageError, match="captions and attribute=value together"):
        parse_descriptions(model, ["large red left", "size=small"])


def test_sheets_and_contents_of_captions(toy: Path) -> None:
    assert summarise_contents(toy / "data.h5")["texts"]["text"] == {
        "words": list(VOCABULARY), "length": 3, "spells": list(NAMES),
    }  # fmt: skip
    assert len(draw_contact_sheet(toy / "data.h5", count=6).boxes) == 6


def test_images_in_words(toy: Path) -> None:
    images = np.random.default_rng(0).random((2, 3, 16, 16)).astype(np.float32)
    texts = texts_of_images(load(toy / "marginal.safetensors"), images, draws=4)
    assert [len(each) for each in texts] == [5, 5]
    assert all(set(text.split()) <= set(VOCABULARY) for each in texts for text in each)
    with pytest.raises(UsageError, match="infers z only from image and text together"):
        texts_of_images(load(toy / "joint.safetensors"), images)
    assert read_header(toy / "joint.safetensors").kind == "model"


class TellingJudge:
    """Reads size off the first channel and colour off the second, and answers the relation that it was told."""

    names, values, hints, described = NAMES, WORDS, ("relation",), SimpleNamespace(name="image")
    device = torch.device("cpu")

    def predict(self, images: torch.Tensor, hints: torch.Tensor) -> torch.Tensor:
        return torch.stack([images[:, 0, 0, 0].round(), images[:, 1, 0, 0].round(), hints[:, 2]], 1).to(torch.uint8)


def test_verdicts_compare_pictures_with_the_words_drawn_with_them() -> None:
    image = ImageDescription(name="image", shape=(3, 2, 2), layout="bytes")
    model = SimpleNamespace(generates=("text",))
    loaded = SimpleNamespace(
        text=TEXT, attributes=INFO, image=image, observation=image, model=model, device=torch.device("cpu")
    )
    images = np.zeros((4, 3, 2, 2), np.float32)
    images[0, 0] = images[2, 0] = 1  # large red; small red; large red; small red
    # "large red left", "small blue right", "small red left", "red red left": the last has a word in a wrong place.
    tokens = np.array([[1, 2, 4], [0, 3, 5], [0, 2, 4], [2, 2, 4]])
    spoken = DecodedTexts(images, tokens, np.zeros((4, 3, 7), np.float32))
    found = compare_with_classifier(loaded, TellingJudge(), spoken)
    assert found.mismatches.tolist() == [False, True, True, True]
    assert found.remarks == ["", "judge: red", "judge: large", "judge: small"]
    assert found.correct_counts == (2 + 1 + 1 + 1, 8)  # the relation is told, so eight words of twelve are compared
    assert compare_with_classifier(loaded, None, spoken).correct_counts == (0, 0)


@pytest.mark.slow
def test_the_command_prints_the_path_alone(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mmgen.cli._main import main

    monkeypatch.chdir(tmp_path)
    files = [str(path) for path in _fitted(toy)]
    with pytest.raises(SystemExit) as done:
        main(["plot", "contours", *files, "--given", "small red left", "--device", "cpu"])
    said = capsys.readouterr()
    assert done.value.code == 0 and said.out == "contours.png\n"
    assert (tmp_path / "contours.png").exists() and "Dashed: true posterior" in said.err
    with pytest.raises(SystemExit) as done:
        main(["plot", "contours", *files, "--given", "small rd left", "--device", "cpu"])
    assert done.value.code == 2
    assert "unknown word 2 of the caption, colour, 'rd': did you mean 'red'?" in capsys.readouterr().err


def test_sample_draws_captions_and_says_what_images_show(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mmgen.cli._main import main

    monkeypatch.chdir(tmp_path)
    fitted, model = str(toy / "aggregate.safetensors"), str(toy / "marginal.safetensors")
    with pytest.raises(SystemExit) as done:
        main(["sample", fitted, "--given", "large red left", "-n", "4", "-o", "s.png", "--device", "cpu"])
    assert done.value.code == 0 and (tmp_path / "s.png").exists()
    capsys.readouterr()
    with pytest.raises(SystemExit) as done:
        main(["sample", model, "--dataset-row", "5", "--json", "--device", "cpu"])
    read = json.loads(capsys.readouterr().out)
    assert done.value.code == 0 and read["image"] == "data.h5 row 5" and len(read["texts"]) == 3
    with pytest.raises(SystemExit) as done:
        main(["sample", model, "--given", "large red left", "--device", "cpu"])
    assert done.value.code == 2
    assert "draws z from a posterior that reads no description; fit one that does" in capsys.readouterr().err
