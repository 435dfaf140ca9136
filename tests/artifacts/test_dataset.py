"""The dataset file: round trips, content id, and what it refuses to write or read."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from mmgen.artifacts import Dataset, DatasetWriter, read_header
from mmgen.core.errors import ArtifactError, UsageError


def test_everything_comes_back_as_it_went_in(tmp_path, dataset_at, info):
    path = tmp_path / "tiny.h5"
    data = dataset_at(path)
    with Dataset.open(path) as dataset:
        assert dataset.size == len(dataset) == 30
        assert dataset.images["image"].shape == (1, 3, 5)
        assert (dataset.images["image"].scale, dataset.images["grey"].scale) == (1, 255)
        assert dataset.attributes["attributes"] == info
        assert info.sizes == (3, 2)
        assert list(dataset.factors) == ["angle", "mask", "source"]
        assert dataset.factors["mask"].shape == (3, 5)
        assert (dataset.texts["text"].vocabulary, dataset.texts["text"].length) == (("red", "grün", "cube"), 4)
        np.testing.assert_array_equal(dataset.read_text("text"), data["text"])
        assert dataset.factors["angle"].unit == "°"
        for name in ("image", "grey"):
            np.testing.assert_array_equal(dataset.read_image(name), data[name])
        np.testing.assert_array_equal(dataset.read_attributes("attributes"), data["attributes"])
        for name in ("angle", "source", "mask"):
            np.testing.assert_array_equal(dataset.read_factor(name), data[name])
            assert dataset.read_factor(name).dtype == data[name].dtype
        assert dataset.schemes == ["iid", "other"]
        assert dataset.default_scheme == "iid"
        assert dataset.scheme_meaning("other") == "a few"
        assert dataset.split("iid", "test").tolist() == [25, 26, 27, 28, 29]
        assert dataset.split("other", "test").tolist() == []
        assert dataset.header.settings == {"recipe": "tiny"}
        assert (dataset.header.seed, dataset.header.command) == (5, "mmgen make-data tiny")
        dataset.verify()


@pytest.fixture(scope="module")
def chunked(tmp_path_factory, dataset_at):
    folder = tmp_path_factory.mktemp("chunked")
    paths = {chunk_bytes: folder / f"{chunk_bytes}.h5" for chunk_bytes in (1, 5, 100, 1000)}
    data = [dataset_at(path, chunk_bytes=chunk_bytes) for chunk_bytes, path in paths.items()]
    return data[0], paths


@given(
    rows=st.one_of(
        st.lists(st.integers(0, 29), max_size=40).map(lambda rows: np.array(rows, np.int64)),
        st.slices(30),
        st.lists(st.booleans(), min_size=30, max_size=30).map(np.array),
    ),
    chunk_bytes=st.sampled_from([1, 5, 100, 1000]),
)
@settings(max_examples=60)
def test_rows_are_numpy_indexing_whatever_the_chunks(chunked, rows, chunk_bytes):
    data, paths = chunked
    with Dataset.open(paths[chunk_bytes]) as dataset:
        np.testing.assert_array_equal(dataset.read_image("grey", rows), data["grey"][rows])
        np.testing.assert_array_equal(dataset.read_image("image", rows), data["image"][rows])


@st.composite
def small_datasets(draw):
    n = draw(st.integers(1, 20))
    shape = draw(st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6)))
    layout = draw(st.sampled_from(["bits", "bytes"]))
    sizes = draw(st.lists(st.integers(1, 255), min_size=1, max_size=4))
    return n, shape, layout, sizes, draw(st.integers(0, 2**32 - 1))


@given(small_datasets(), st.integers(1, 5000), st.integers(1, 9), st.integers(1, 20))
@settings(max_examples=25)
def test_any_dataset_comes_back(tmp_path_factory, case, chunk_bytes, compression, step):
    n, shape, layout, sizes, seed = case
    random = np.random.default_rng(seed)
    images = random.integers(0, 2 if layout == "bits" else 256, (n, *shape), dtype=np.uint8)
    codes = np.stack([random.integers(0, size + 1, n) for size in sizes], 1)
    codes = np.where(codes == np.array(sizes), 255, codes).astype(np.uint8)
    path = tmp_path_factory.mktemp("any") / "any.h5"
    with DatasetWriter(path, n, {}, 0, chunk_bytes=chunk_bytes, compression=compression) as writer:
        writer.add_image("x", shape, layout)
        writer.add_attributes("y", {f"a{i}": [str(v) for v in range(size)] for i, size in enumerate(sizes)})
        stored = np.packbits(images.reshape(n, -1), axis=1) if layout == "bits" else images
        for start in range(0, n, step):
            rows = slice(start, start + step)
            writer.write(start, {"x": stored[rows], "y": codes[rows]})
    with Dataset.open(path) as dataset:
        np.testing.assert_array_equal(dataset.read_image("x"), images)
        np.testing.assert_array_equal(dataset.read_packed("x"), stored)
        np.testing.assert_array_equal(dataset.images["x"].pack(images), stored)
        np.testing.assert_array_equal(dataset.read_attributes("y"), codes)
        dataset.verify()


@pytest.mark.parametrize(
    "same",
    [
        {"chunk_bytes": 40},
        {"compression": 9},
        {"step": 30},
        {"step": 1},
        {"command": "other"},
        {"facts": {"seconds": 9}},
    ],
)
def test_content_id_depends_on_the_content_only(tmp_path, dataset_at, same):
    dataset_at(tmp_path / "a.h5")
    (tmp_path / "sub").mkdir()
    dataset_at(tmp_path / "sub" / "b.h5", **same)
    assert read_header(tmp_path / "a.h5").content_id == read_header(tmp_path / "sub" / "b.h5").content_id


@pytest.mark.parametrize("other", [{"seed": 6}, {"settings": {"recipe": "tinier"}}])
def test_content_id_changes_with_seed_and_settings(tmp_path, dataset_at, other):
    dataset_at(tmp_path / "a.h5")
    dataset_at(tmp_path / "b.h5", **other)
    assert read_header(tmp_path / "a.h5").content_id != read_header(tmp_path / "b.h5").content_id


def test_a_dataset_that_ends_early_is_the_smaller_one(tmp_path):
    rows = np.array([[1], [0], [1]], np.uint8)
    for size in (3, 1000):
        with DatasetWriter(tmp_path / f"{size}.h5", size, {}, 0, chunk_bytes=2) as writer:
            writer.add_attributes("y", {"a": ["no", "yes"]})
            writer.write(0, {"y": rows})
            writer.end_early()
            writer.add_splits("iid", train=[0], val=[1], test=[2])
    with Dataset.open(tmp_path / "1000.h5") as dataset:
        assert dataset.size == 3 and np.array_equal(dataset.read_attributes("y"), rows)
    assert read_header(tmp_path / "1000.h5").content_id == read_header(tmp_path / "3.h5").content_id


def _dots(path: Path, vocabulary: list[str], value: int) -> str:
    with DatasetWriter(path, 1, {}, 0) as writer:
        writer.add_attributes("y", {"a": vocabulary})
        writer.write(0, {"y": np.array([[value]], np.uint8)})
    assert writer.header is not None
    return writer.header.content_id


def test_content_id_covers_data_and_vocabulary(tmp_path):
    first = _dots(tmp_path / "a.h5", ["x", "y"], 0)
    assert first == _dots(tmp_path / "b.h5", ["x", "y"], 0)
    assert first != _dots(tmp_path / "c.h5", ["x", "y"], 1)
    assert first != _dots(tmp_path / "d.h5", ["x", "z"], 0)


def test_a_long_command_and_many_settings_fit(tmp_path, dataset_at):
    # An HDF5 attribute of the oldest format ends at 64 KiB; a command line with many files does not.
    path = tmp_path / "tiny.h5"
    command = "mmgen report " + "file.h5 " * 50_000
    dataset_at(path, command=command, settings={str(i): "x" * 100 for i in range(1000)})
    assert read_header(path).command == command
    assert len(read_header(path).settings) == 1000


def test_plain_h5py_can_read_it(tmp_path, dataset_at):
    path = tmp_path / "tiny.h5"
    data = dataset_at(path)
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["modalities/grey"][:], data["grey"])
        assert json.loads(file["modalities/attributes"].attrs["names"]) == ["digit", "scale"]
        assert json.loads(file.attrs["mmgen"])["kind"] == "dataset"
        assert file["splits/iid/val"][:].tolist() == [20, 21, 22, 23, 24]


def test_opening_needs_no_torch(tmp_path, dataset_at):
    path = tmp_path / "tiny.h5"
    dataset_at(path)
    script = (
        "import sys; from pathlib import Path; from mmgen.artifacts import Dataset, read_header\n"
        "path = Path(sys.argv[1]); read_header(path)\n"
        "with Dataset.open(path) as dataset: dataset.read_image('image')\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)


@pytest.fixture
def dataset(tmp_path, dataset_at):
    dataset_at(tmp_path / "tiny.h5")
    with Dataset.open(tmp_path / "tiny.h5") as dataset:
        yield dataset


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.read_packed("imge"), "did you mean 'image'"),
        (lambda d: d.read_image("attributes"), "unknown image modality 'attributes'"),
        (lambda d: d.read_attributes("image"), "unknown attributes modality"),
        (lambda d: d.read_factor("angel"), "did you mean 'angle'"),
        (lambda d: d.split("idd", "train"), "did you mean 'iid'"),
        (lambda d: d.split("iid", "validation"), "Available: train, val, test"),
        (lambda d: d.read_packed("image", np.array([30])), "rows got numbers outside 0 to 29"),
        (lambda d: d.read_packed("image", np.array([-1])), "rows got numbers outside 0 to 29"),
    ],
)
def test_asking_for_what_is_not_there(dataset, call, message):
    with pytest.raises(UsageError, match=message):
        call(dataset)


def test_reading_after_closing_is_one_sentence(dataset):
    dataset.close()
    with pytest.raises(ArtifactError, match=r"cannot read .*tiny\.h5 at /modalities/image"):
        dataset.read_packed("image")


def test_damaged_rows_name_file_and_element(tmp_path, dataset_at):
    path = tmp_path / "tiny.h5"
    dataset_at(path)
    with h5py.File(path) as file:
        place = file["modalities/grey"].id.get_chunk_info(0)
    data = bytearray(path.read_bytes())
    data[place.byte_offset + place.size // 2] ^= 0xFF
    path.write_bytes(data)
    with Dataset.open(path, verify=False) as dataset:
        assert dataset.read_image("image").shape == (30, 1, 3, 5)
        with pytest.raises(ArtifactError, match=r"tiny\.h5 at /modalities/grey: the file is truncated or damaged"):
            dataset.read_image("grey")


def _write_partly(path, action):
    with DatasetWriter(path, 4, {}, 0) as writer:
        writer.add_image("image", (1, 1, 3), "bits")
        writer.add_attributes("y", {"a": ["u", "v"]})
        action(writer)


def check_that_it_is_a_fault(action, message):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.h5"
        with pytest.raises(ValueError, match=message):
            _write_partly(path, action)
        assert list(Path(folder).iterdir()) == []


ROWS = {"image": np.zeros((2, 1), np.uint8), "y": np.zeros((2, 1), np.uint8)}


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda w: w.write(0, ROWS), "2 rows written, expected 4"),
        (lambda w: w.write(1, ROWS), "in order: got 1, expected 0"),
        (lambda w: w.write(0, {"image": ROWS["image"]}), "expected .*modalities/y"),
        (
            lambda w: w.write(0, ROWS | {"y": np.full((2, 1), 2, np.uint8)}),
            "no value of its attribute",
        ),
        (lambda w: w.write(0, ROWS | {"y": np.zeros((2, 1), np.int64)}), "expected uint8"),
        (lambda w: w.write(0, ROWS | {"y": np.zeros((3, 1), np.uint8)}), "equally many"),
        (lambda w: w.write(0, ROWS | {"image": np.full((2, 1), 1, np.uint8)}), "unused last bits"),
        (lambda w: w.write(0, ROWS | {"image": np.zeros((2, 2), np.uint8)}), "rows of shape"),
        (lambda w: w.end_early(), "at least one example"),
        (lambda w: w.add_splits("iid", train=[4], val=[], test=[]), "out of range"),
        (lambda w: w.add_splits("iid", train=[1], val=[1], test=[]), "a row twice"),
        (lambda w: w.add_splits("a/b", train=[1], val=[], test=[]), "no name"),
        (lambda w: w.add_image("image", (1, 2, 2)), "added twice"),
        (lambda w: w.add_image("../x", (1, 2, 2)), "no name"),
        (lambda w: w.add_image("other", (1, 2, 2), "floats"), "bits.*bytes.*probabilities"),
        (lambda w: w.add_attributes("z", {"a": ["u", "u"]}), "distinct"),
        (lambda w: w.add_factor("f", "U3"), "expected integers or floats"),
    ],
)
def test_misuse_of_the_writer_leaves_no_file(action, message):
    check_that_it_is_a_fault(action, message)


def one_sentence(path: Path, rows: list[int], **options) -> None:
    options = {"vocabulary": ("red", "cube"), "length": 3} | options
    with DatasetWriter(path, 1, {"recipe": "words"}, seed=0) as writer:
        writer.add_text("text", **options)
        writer.write(0, {"text": np.array([rows], np.uint16)})


@pytest.mark.parametrize("rows", [[0, 2, 1], [3, 0, 0], [65535, 2, 2]])
def test_no_row_of_text_has_words_after_padding_or_codes_of_no_word(tmp_path, rows):
    with pytest.raises(ValueError, match="no word"):
        one_sentence(tmp_path / "words.h5", rows)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"vocabulary": ("red", "red")}, "distinct words"),
        ({"vocabulary": ()}, "distinct words"),
        ({"slots": ("colour", "shape")}, "3 distinct slots"),
        ({"slots": ("colour", "colour", "shape")}, "3 distinct slots"),
    ],
)
def test_text_that_cannot_be_read_back_is_not_written(tmp_path, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        one_sentence(tmp_path / "words.h5", [0, 1, 1], **options)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("vocabulary", '["red", "red"]'),
        ("vocabulary", "[]"),
        ("vocabulary", "[1, 2]"),
        ("slots", '["colour"]'),
        ("slots", "{}"),
    ],
)
def test_text_with_a_wrong_description_is_refused(tmp_path, attribute, value):
    path = tmp_path / "words.h5"
    one_sentence(path, [0, 1, 2])
    with h5py.File(path, "r+") as file:
        data = file["modalities/text"]
        del data.attrs[attribute]
        data.attrs.create(attribute, value, dtype=h5py.string_dtype("utf-8", len(value)))
    with pytest.raises(ArtifactError, match="/modalities/text"):
        Dataset.open(path)


def test_text_with_codes_of_no_word_is_refused_when_it_is_read(tmp_path):
    path = tmp_path / "words.h5"
    one_sentence(path, [0, 1, 2])
    with h5py.File(path, "r+") as file:
        file["modalities/text"][0] = [0, 2, 1]
    with Dataset.open(path, verify=False) as dataset, pytest.raises(ArtifactError, match="a code is no word"):
        dataset.read_text("text")


def test_a_sentence_in_words(tmp_path):
    path = tmp_path / "words.h5"
    one_sentence(path, [1, 0, 2], slots=("shape", "colour", "more"))
    with Dataset.open(path) as dataset:
        text = dataset.texts["text"]
        assert text.words(dataset.read_text("text")[0]) == "cube red"
        assert (text.slots, text.padding) == (("shape", "colour", "more"), 2)
        with pytest.raises(UsageError, match="text modality"):
            dataset.read_text("texts")
