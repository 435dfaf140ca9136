"""Pictures by analogy: a grid of flags whose missing pictures are known is drawn again from the others."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import mmgen
from mmgen.artifacts import Dataset, DatasetWriter
from mmgen.artifacts.elements import FILLED
from mmgen.core.errors import UsageError
from mmgen.core.progress import Watch
from mmgen.generation.analogies import Analogies


class Listener(Watch):
    """Collects what a command says."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


COLOURS = np.array([[250, 20, 20], [20, 200, 60], [40, 60, 240], [240, 200, 40]], np.uint8)
SHAPES = (
    (slice(4, 12), slice(5, 13)),
    (slice(10, 21), slice(4, 9)),
    (slice(5, 9), slice(6, 22)),
    (slice(13, 20), slice(11, 19)),
    (slice(6, 20), slice(14, 19)),
)
WORDS = {"colour": ["red", "green", "blue", "gold"], "shape": ["a", "b", "c", "d", "e"], "bar": ["none", "top"]}


def flag(colour: int, shape: int, bar: int) -> np.ndarray:
    """A picture [3, 24, 24]: a coloured shape on grey with a dark dot, and a black bar where ``bar`` is 1."""
    picture = np.full((3, 24, 24), 230, np.uint8)
    picture[(slice(None), *SHAPES[shape])] = COLOURS[colour][:, None, None]
    picture[:, SHAPES[shape][0].start + 1, SHAPES[shape][1].start + 1] = 30
    if bar:
        picture[:, 1:3, 2:22] = 0
    return picture


GRID = list(itertools.product(range(4), range(5), range(2)))
HIDDEN = [(0, 1, 0), (2, 3, 1), (3, 0, 0), (1, 4, 1), (2, 2, 0)]
PAIR = [(colour, 1, 1) for colour in range(4)]  # a shape that was never seen with a bar


def analogies(hidden: list[tuple[int, int, int]]) -> Analogies:
    shown = [cell for cell in GRID if cell not in hidden]
    return Analogies(np.stack([flag(*cell) for cell in shown]), np.array(shown, np.uint8))


def psnr(drawn: np.ndarray, truth: np.ndarray) -> float:
    return float(-10 * np.log10(((drawn - truth / 255) ** 2).mean() + 1e-10))


def test_most_combinations_are_drawn_almost_exactly() -> None:
    found = analogies(HIDDEN)
    assert sorted(found.gaps) == sorted(HIDDEN)
    assert next(iter(found.qualities())) in (0, 2), "colour or bar: each is seen on every shape"
    drawn = [found.fill(cell)[0] for cell in HIDDEN]
    near = sorted(psnr(one.picture, flag(*cell)) for one, cell in zip(drawn, HIDDEN, strict=True))
    assert near[0] > 18
    assert near[len(near) // 2] > 50
    assert {one.changed for one in drawn} <= {(0,), (2,)}


def test_a_word_that_draws_something_is_drawn_where_no_value_of_the_others_was_seen_with_it() -> None:
    found = analogies(PAIR)
    assert {found.alone(cell) for cell in PAIR} == {frozenset({0})}, "it has no picture in any colour"
    for cell in PAIR:
        (drawn,) = found.fill(cell)
        assert drawn.changed == (2,)
        assert psnr(drawn.picture, flag(*cell)) > 20
        assert psnr(drawn.picture, flag(*cell)) > psnr(flag(cell[0], cell[1], 0) / 255, flag(*cell)) + 6


def test_a_picture_is_changed_word_by_word_and_what_stays_open_stays() -> None:
    found = analogies([])
    picture = flag(0, 2, 0).astype(np.float32) / 255
    changed = found.edit(picture, [0, 2, 0], [2, 255, 1])
    assert changed is not None
    assert sorted(changed[1]) == [0, 2]
    assert psnr(changed[0], flag(2, 2, 1)) > 24
    assert found.edit(picture, [0, 2, 0], [0, 255, 255]) is not None, "nothing to change"


def test_without_a_neighbour_nothing_is_drawn_and_unknown_words_are_no_help() -> None:
    alone = Analogies(np.stack([flag(0, 0, 0), flag(1, 1, 1)]), np.array([[0, 0, 0], [1, 1, 1]], np.uint8))
    assert alone.qualities() == {}
    assert alone.fill((0, 1, 1)) == []
    assert alone.edit(flag(0, 0, 0) / np.float32(255), [0, 0, 0], [1, 0, 0]) is None
    unknown = Analogies(np.stack([flag(0, 0, 0)] * 2), np.array([[0, 255, 0], [0, 0, 0]], np.uint8))
    assert unknown.cells == 1


def write_grid(path: Path, hidden: list[tuple[int, int, int]], noise: bool = False) -> Path:
    """A dataset of the grid; the hidden combinations are its test part, the first two others validation."""
    cells = [cell for cell in GRID if cell not in hidden] + hidden
    rng = np.random.default_rng(0)
    pictures = np.stack([rng.integers(0, 256, (3, 24, 24), np.uint8) if noise else flag(*cell) for cell in cells])
    with DatasetWriter(path, len(cells), {"recipe": "grid", "background": "black"}, 0) as writer:
        writer.add_image("image", (3, 24, 24))
        writer.add_attributes("attributes", WORDS)
        writer.add_text("text", ["flag"], 2)
        writer.add_factor("height", np.float64)
        rows = {
            "image": pictures,
            "attributes": np.array(cells, np.uint8),
            "text": np.zeros((len(cells), 2), np.uint16),
        }
        writer.write(0, rows, {"height": np.full(len(cells), 24.0)})
        train = len(cells) - len(hidden)
        writer.add_splits("iid", train=range(2, train), val=[0, 1], test=range(train, len(cells)))
    return path


def test_gaps_join_the_training_part_and_are_told_from_real_pictures(tmp_path: Path) -> None:
    source = write_grid(tmp_path / "grid.h5", HIDDEN)
    filled = mmgen.fill_gaps(source, progress=False)
    with filled, Dataset.open(source) as data:
        assert filled.path.name == "grid-filled.h5"
        added = filled.size - data.size
        assert added == len(HIDDEN) + 2, "the words of validation are gaps of the training part, too"
        for part in ("val", "test"):
            assert filled.split("iid", part).tolist() == data.split("iid", part).tolist()
        assert filled.split("iid", "train", real=True).tolist() == data.split("iid", "train").tolist()
        new = np.setdiff1d(filled.split("iid", "train"), filled.split("iid", "train", real=True))
        truths = np.stack([flag(*code) for code in filled.read_attributes("attributes", new).tolist()])
        near = [psnr(one / 255, truth) for one, truth in zip(filled.read("image", new), truths, strict=True)]
        assert np.median(near) > 40
        origin = filled.read_factor(FILLED)
        assert (origin[: data.size] == -1).all()
        differing = filled.read_attributes("attributes", new) != filled.read_attributes("attributes", origin[new])
        assert (differing.sum(1) >= 1).all(), "some begin from what was drawn before"
        assert (filled.read_text("text", new) == 1).all(), "nothing is said of them in free words"
        assert np.isnan(filled.read_factor("height")[new]).all()
        assert filled.header.settings["background"] == "black", "pictures of users are fitted as before"
        assert any("hidden pictures drawn again" in line for line in filled.header.facts["notes"])
    with pytest.raises(UsageError, match=r"grid-filled\.h5 is there already"):
        mmgen.fill_gaps(source, progress=False)
    with pytest.raises(UsageError, match=r"grid-filled\.h5 has its gaps filled already, expected a dataset of real"):
        mmgen.fill_gaps(tmp_path / "grid-filled.h5", tmp_path / "twice.h5", progress=False)
    again = mmgen.fill_gaps(source, tmp_path / "again.h5", progress=False)
    few = mmgen.fill_gaps(source, tmp_path / "few.h5", number=2, progress=False)
    with again, few, Dataset.open(tmp_path / "grid-filled.h5") as first:
        assert again.header.content_id == first.header.content_id
        assert few.size == first.size - added + 2


def test_words_that_say_nothing_of_the_pictures_fill_nothing(tmp_path: Path) -> None:
    with mmgen.fill_gaps(write_grid(tmp_path / "noise.h5", HIDDEN, noise=True), progress=False) as filled:
        assert filled.size == len(GRID)
        assert filled.header.facts["notes"][-1].startswith("0 of ")
        assert all("so it is not changed" in line for line in filled.header.facts["notes"][:-1])


def test_data_without_pictures_and_attributes_are_refused(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "plain.h5", 2, {}, 0) as writer:
        writer.add_image("image", (1, 8, 8))
        writer.write(0, {"image": np.zeros((2, 1, 8, 8), np.uint8)})
        writer.add_splits("iid", train=[0], val=[], test=[1])
    with pytest.raises(UsageError, match=r"has image \(image\), expected one kind of pictures in grey or colour, attr"):
        mmgen.fill_gaps(tmp_path / "plain.h5", progress=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one step on the filled grid, for its data and words."""
    folder = tmp_path_factory.mktemp("like")
    mmgen.fill_gaps(write_grid(folder / "grid.h5", HIDDEN), progress=False).close()
    settings = {"model": {"latent_size": 2, "hidden": 8, "image_network": {"name": "mlp", "hidden": [8]}}}
    settings |= {"objective": {"name": "elbo", "given": ["image"]}, "training": {"batch": 8, "steps": 1}}
    mmgen.train(folder / "grid-filled.h5", folder / "m.safetensors", settings=settings, progress=False)
    return folder / "m.safetensors"


def test_sample_changes_the_nearest_pictures_or_the_users_own(model: Path) -> None:
    said = Listener()
    grid = mmgen.sample(model, "colour=blue shape=d bar=top", like="nearest", progress=said)
    assert grid is not None
    assert any("began from row " in line and "changed " in line for line in said.lines)
    from PIL import Image

    own = model.with_name("own.png")
    Image.fromarray(flag(0, 2, 0).transpose(1, 2, 0)).save(own)
    mmgen.sample(model, "colour=gold", like=str(own), output=model.with_name("gold.png"), progress=said)
    assert "(colour=red shape=c bar=none), changed colour" in said.lines[-2] + said.lines[-1]
    with Image.open(model.with_name("gold.png")) as drawn:
        pixels = np.asarray(drawn.convert("RGB")).reshape(-1, 3).astype(int)
    assert (abs(pixels - COLOURS[3].astype(int)).sum(1) < 12).sum() > 50, "gold is there"
    assert (abs(pixels - COLOURS[0].astype(int)).sum(1) < 12).sum() == 0, "red is gone"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"guidance": 2.0}, r"like changes pictures without a model's z, got guidance too, which it does not use"),
        ({"posterior": "own"}, r"got posterior too"),
        ({"rows": [1]}, r"got rows too"),
        ({"output": "x.h5"}, r"output got x\.h5, expected a picture \(\.png\) with like"),
        ({"given": "colour=red OR colour=blue"}, r"expected attributes without NOT and OR"),
    ],
)
def test_what_changing_pictures_does_not_use_is_refused(model: Path, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        mmgen.sample(model, **({"given": "colour=gold", "like": "nearest", "progress": False} | options))
