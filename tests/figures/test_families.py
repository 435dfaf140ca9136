"""Reports and sheets of the models of several papers: one label, free text, both, or no words at all."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from mmgen.figures.plots.hierarchy import draw_abstraction
from mmgen.figures.report.make import make_report
from mmgen.figures.report.pictures import draw_reconstructions, draw_same_descriptions, draw_varied_descriptions
from mmgen.figures.session import Session, gather_files, open_session
from mmgen.generation import load
from tests.small_data import write_small

DIGITS = [str(n) for n in range(10)]
WORDS = {"text_network": {"embedding": 4, "hidden": 8, "head": 8}}
LABELS = {"attribute_network": {"embedding": 4, "hidden": 8, "decoder_hidden": 8}}


def _dataset(path: Path, label: bool, text: bool) -> None:
    """120 images of 16 x 16 of a bar at one of ten heights; its number as a label, or up to three numbers as text."""
    generator = np.random.default_rng(0)
    codes = np.arange(120) % 10
    images = generator.integers(0, 20, (120, 1, 16, 16)).astype(np.uint8)
    images[np.arange(120), 0, codes] = 230
    tokens = np.full((120, 3), 10, np.uint16)
    for row, code in zip(tokens, codes, strict=True):
        row[: generator.integers(1, 4)] = code
    values = {"image": images, **({"attributes": codes[:, None].astype(np.uint8)} if label else {})}
    write_small(
        path, values | ({"text": tokens} if text else {}), {"digit": DIGITS}, (DIGITS, ()), (80, 20), recipe="bars"
    )


CASES = {
    "label": ("label", {"name": "mvae"}, LABELS),
    "cvae": ("label", {"name": "cvae"}, LABELS),
    "plain": ("label", {"name": "elbo", "modalities": ["image"]}, {}),
    "text": ("text", {"name": "mvae", "modalities": ["image", "text"], "weights": {}}, WORDS),
    "jmvae": ("text", {"name": "jmvae", "description": "text"}, WORDS),
    "both": ("both", {"name": "mvae", "modalities": ["image", "text", "attributes"], "weights": {}}, WORDS | LABELS),
    "bare": ("bare", {"name": "elbo", "modalities": ["image"]}, {}),
}


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory, stubs: SimpleNamespace) -> Path:
    folder = tmp_path_factory.mktemp("family")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for name in ("label", "text", "both", "bare"):
        _dataset(folder / f"{name}.h5", name in ("label", "both"), name in ("text", "both"))
    for name, (data, objective, networks) in CASES.items():
        stubs.train_tiny(folder / f"{data}.h5", folder / f"{name}.safetensors", objective, 3, **networks)
    torch.set_num_threads(threads)
    return folder


def _session(family: Path, name: str) -> Session:
    return open_session(gather_files([family / f"{name}.safetensors"]).groups[0], seed=0)


@pytest.mark.parametrize("name", ["plain", *(pytest.param(name, marks=pytest.mark.slow) for name in ("jmvae", "both"))])
def test_every_family_has_a_report_and_a_sheet(family: Path, name: str, tmp_path: Path) -> None:
    path = family / f"{name}.safetensors"
    page = make_report([path], tmp_path / "r.html").run().read_text()
    data = CASES[name][0]
    asked = "No judge was found for the images" in page
    assert asked == (data in ("label", "both"))  # a judge reads attributes, so the others need none
    assert "recipe bars.</p>" in page  # settings that are not there leave no brackets
    assert "<strong>Reconstructions" in page


def test_a_label_has_a_row_for_each_of_its_values(family: Path) -> None:
    for name in ("label", "cvae"):
        session = _session(family, name)
        assert session.concepts.codes[:, 0].tolist() == list(range(10))
        (picture,) = draw_same_descriptions(session)
        tops = {box[1] for box in picture.drawn.boxes}
        assert len(tops) == 10 and len(picture.drawn.boxes) == 100
        assert draw_varied_descriptions(session) == []  # it would show the same ten digits once more


@pytest.mark.slow
def test_models_without_words_show_test_images_decoded(family: Path) -> None:
    from mmgen.generation.examples import random_test_rows

    for name in ("plain", "bare", "cvae"):
        session = _session(family, name)
        grid = draw_reconstructions(session)[0].drawn
        assert len(grid.boxes) == 24
        loaded = session.model
        from mmgen.artifacts import Dataset

        with Dataset.open(session.group.dataset) as data:
            rows = random_test_rows(data, "iid", 12, 0)
            images = data.read_image("image", rows)
            codes = data.read_attributes("attributes", rows) if data.attributes else None
        pixels = np.asarray(grid.image)
        left, top, right, bottom = grid.boxes[3]
        assert np.array_equal(pixels[top:bottom:7, left:right:7, 0], images[3, 0])
        scaled = images.astype(np.float32) / 255
        z = (loaded.encode(scaled, codes) if name == "cvae" else loaded.encode(scaled)).mean
        condition = loaded.describe_codes(codes) if name == "cvae" else None
        with torch.no_grad():
            mean = loaded.model.mean("image", z, condition)[3, 0].numpy()
        left, top, right, bottom = grid.boxes[12 + 3]
        assert np.abs(pixels[top:bottom:7, left:right:7, 0].astype(int) - np.rint(255 * mean)).max() <= 1
    assert draw_reconstructions(_session(family, "text")) == []  # these have a figure with their words


def test_free_text_and_attributes_are_different_evidence(family: Path) -> None:
    """What is known of both multiplies; text alone is not overheard because nothing is said of attributes."""
    session = _session(family, "both")
    loaded = session.model
    concept = session.concepts[:1]
    assert concept.tokens is not None and concept.codes[0, 0] == concept.tokens[0, 0]  # of the same example
    batch = concept.batch(loaded, 0)
    label, text = (loaded.model.posterior(batch, (name,)) for name in ("attributes", "text"))
    joint = loaded.model.posterior(batch, ("attributes", "text"))
    torch.testing.assert_close(joint.precision, label.precision + text.precision - 1)
    z = loaded.posteriors["own"].sample(batch, 1, torch.Generator().manual_seed(0))
    torch.testing.assert_close(z, joint.sample(torch.Generator().manual_seed(0), (1,)))
    assert concept.format_short_texts(loaded)[0].endswith(f"({concept.codes[0, 0]})")
    caption = DIGITS[concept.codes[0, 0]]
    torch.testing.assert_close(
        loaded.posterior(caption).mean, loaded.model.posterior(loaded.describe(caption), ("text",)).mean
    )
    torch.testing.assert_close(loaded.posterior(f"digit={caption}").mean, label.mean)
    levels = draw_abstraction(session)[0]
    assert "anything" not in levels.caption and f"digit={caption}" in levels.caption
    assert load(family / "text.safetensors").posterior("3 3").mean.shape == (1, 3)
