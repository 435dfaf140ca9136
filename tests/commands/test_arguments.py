"""Every public function of Python, found by looking: whatever it is given, it works or refuses in one sentence."""

import inspect
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import mmgen
from mmgen import artifacts
from mmgen.artifacts import Dataset
from mmgen.core.errors import MmgenError, UsageError
from mmgen.generation import TrainedModel
from mmgen.generation.descriptions import Descriptions
from mmgen.generation.draws import draw
from mmgen.generation.translations import TranslationStart, read_start_pictures
from mmgen.settings.arguments import check_arguments
from mmgen.training.model_run import check_data
from tests.generation import toy
from tests.metrics.toy import write_dataset
from tests.worlds import added

STRANGE: dict[str, Any] = {
    "nothing": None, "true": True, "minus one": -1, "zero": 0, "a fraction": 1.5, "no number": float("nan"),
    "endless": float("inf"), "10^12": 10**12, "2^63": 2**63, "10^400": 10**400, "imaginary": 1j, "digits": "1",
    "no letters": "", "300 letters": "x" * 300, "null": "a\0b", "half a letter": "\ud800", "bytes": b"1",
    "an empty list": [], "a ragged list": [[1], [2, 3]], "words": ["x", "y"], "an empty table": {},
    "a table": {"a": 1}, "a set": {1}, "an object": object(), "a function": lambda: 1,
    "an empty array": np.zeros((0, 2)), "fractions": np.full((1, 2), 0.5), "NaN": np.full((2, 1, 2, 2), np.nan),
    "complex": np.ones((2, 1, 2, 2), complex), "another size": np.ones((2, 1, 3, 3)), "300": np.full((1, 2), 300),
    "254": np.full((1, 2), 254, np.uint8), "-1": np.full((1, 2), -1),
    "masked": np.ma.masked_equal(np.ones((2, 1, 2, 2)), 0),  # type: ignore[no-untyped-call]
    "sparse": torch.zeros(2, 1, 2, 2).to_sparse(), "nowhere": torch.zeros(2, 1, 2, 2, device="meta"),
    "texts": np.array([["a", "b"]]), "a picture": Image.new("L", (3, 3)),
}  # fmt: skip
PICTURES = np.ones((2, 1, 2, 2), np.float32)


@cache
def model(layout: str = "bytes") -> TrainedModel:
    return toy.loaded(layout=layout)


def methods(kind: type) -> list[str]:
    """Public methods of a class, inherited ones too."""
    found = inspect.getmembers(kind, lambda one: inspect.isfunction(one) or inspect.ismethod(one))
    return [name for name, _ in found if not name.startswith("_")]


def functions() -> Iterator[str]:
    """Every function that people call, by where it is."""
    yield from (f"mmgen.{name}" for name in mmgen.__all__ if not name.startswith("_"))
    yield from (f"model.{name}" for name in methods(TrainedModel))
    yield from (f"dataset.{name}" for name in methods(Dataset) if name not in ("close", "modalities_of"))
    yield from ("posterior.sample", "posterior.log_prob")
    yield from (f"artifacts.{name}" for name in artifacts.__all__ if name.startswith(("read_", "require_")))


GIVEN: dict[str, Any] = {
    "files": "nowhere", "file": "nowhere", "output": "elsewhere", "scores": "nowhere.jsonl",
    "codes": [[0, 1]], "complete": True, "words": None, "dataset": "nowhere.h5", "description": "colour=red",
    "images": PICTURES,
    "n": 2, "name": "image", "part": "test", "path": "nowhere", "posterior": "prior", "recipe": "nowhere",
    "scheme": "iid", "statistics": {}, "weight": 1, "z": torch.zeros(3, 1, 2), "generator": None,
}  # fmt: skip
"""Good values of arguments that have no default."""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    with Dataset.open(write_dataset(tmp_path_factory.mktemp("data") / "d.h5", 12)) as data:
        yield data


def named(name: str, dataset: Dataset) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A function, and good values of what it must be given."""
    room, _, last = name.partition(".")
    rooms: dict[str, Any] = {"mmgen": mmgen, "model": model(), "dataset": dataset, "artifacts": artifacts}
    rooms["posterior"] = model().posteriors["prior"]
    function = getattr(rooms[room], last)
    listed = inspect.signature(function).parameters.values()
    good = GIVEN | {"words": model().describe("colour=red"), "model": model() if last == "sample" else "nowhere"}
    needed = [one.name for one in listed if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    values = {one: good[one] for one in needed}
    if name in ("dataset.read_attributes", "dataset.read_factor", "dataset.read_text"):
        values["name"] = "attributes"
    return function, values


@pytest.mark.parametrize("name", list(functions()))
def test_whatever_it_is_given_it_works_or_refuses_in_one_sentence(
    name: str, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    function, good = named(name, dataset)
    wrong = []
    for argument in inspect.signature(function).parameters:
        for what, value in STRANGE.items():
            before = time.process_time()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    function(**{**good, argument: value})
            except MmgenError as error:
                if "\n" in str(error) or not 10 < len(str(error)) <= 2_000:
                    wrong.append(f"{argument} {what}: no sentence: {error}")
            except Exception as error:
                wrong.append(f"{argument} {what}: {type(error).__name__}: {error}"[:300])
            if time.process_time() - before > 5:
                wrong.append(f"{argument} {what}: does not end")
    assert not wrong, "\n".join(wrong)
    assert name == "mmgen.sample" or not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [one for one in functions() if not one.startswith(("posterior.", "artifacts."))])
def test_a_misspelt_keyword_has_a_nearest_name(name: str, dataset: Dataset) -> None:
    function, good = named(name, dataset)
    listed = [one.name for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_KEYWORD]
    for argument in listed:
        if len(argument) > 4 and name != "mmgen.make_data":  # whose recipe says what more it takes
            meant = f"{argument[:-1]}s?" if argument[:-1] in listed else argument
            with pytest.raises(UsageError, match=f"{argument[:-1]}x.*did you mean '{meant}'"):
                function(**{**good, f"{argument[:-1]}x": 1})


def test_the_settings_of_a_recipe_are_suggested_with_the_arguments() -> None:
    with pytest.raises(UsageError, match="unknown argument of make_data 'worker': did you mean 'workers'"):
        mmgen.make_data("mnist-a", "d.h5", worker=2)
    with pytest.raises(UsageError, match="did you mean 'source'"):
        mmgen.make_data("mnist-a", "d.h5", sorce="digits")
    with pytest.raises(UsageError, match="evaluate: missing a required argument: 'model'"):
        mmgen.evaluate()  # type: ignore[call-arg]


ASK = {"log_likelihood": mmgen.log_likelihood, "encode": TrainedModel.encode, "translate": TrainedModel.translate}


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("layout", ["bits", "probabilities"])
def test_grey_is_refused_by_a_model_of_black_and_white(ask: str, layout: str) -> None:
    """A Bernoulli density of 0.3 is a number of nats without a meaning."""
    ready = ASK[ask]
    with pytest.raises(UsageError, match=r"grey level 0\.3, expected only 0 and 1"):
        ready(model(layout), 0.3 * PICTURES)
    assert ready(model(layout), PICTURES) is not None and ready(model(), 0.3 * PICTURES) is not None


def test_a_file_of_grey_levels_becomes_black_and_white_and_says_so(tmp_path: Path) -> None:
    """The command line takes photos of any kind: for a model of black and white they become what it was trained on."""
    Image.fromarray(np.array([[0, 100], [200, 255]], np.uint8)).save(tmp_path / "p.png")
    for layout, expected in (("bits", [0, 0, 1, 1]), ("bytes", [0, 100 / 255, 200 / 255, 1])):
        shown = read_start_pictures(model(layout), TranslationStart(("image",), tmp_path / "p.png"), 1, 0)
        assert shown.pictures["image"].ravel().tolist() == pytest.approx(expected)
        assert ("p.png: grey levels became black or white at a half" in shown.notice) == (layout == "bits")


def test_nor_is_a_dataset_of_grey_measured_by_a_model_of_black_and_white(dataset: Dataset) -> None:
    """The same for every metric and fit: ``--dataset`` may name another one."""
    (found,) = dataset.images.values()
    check_data(dataset, Path("m.safetensors"), found)
    with pytest.raises(UsageError, match="has grey levels in image, expected black and white"):
        check_data(dataset, Path("m.safetensors"), found.model_copy(update={"layout": "bits"}))


@pytest.mark.parametrize("code", [300, 254, 3, -1, float("nan")])
def test_a_code_beyond_an_attributes_values_is_refused(code: float) -> None:
    for ask in (model().describe_codes, lambda codes: model().encode(PICTURES, codes)):
        with pytest.raises(UsageError, match=r"codes got|attributes got"):
            ask([[code, 0], [0, 0]])
    assert model().describe_codes([[255, 1]]).present["attributes"].tolist() == [[False, True]]


def test_what_people_have_at_hand_is_taken() -> None:
    """Arrays, lists, bytes, both orders of bytes, and pictures of Pillow show the same."""
    expected = model().encode(PICTURES).mean
    bytes_of_it = (255 * PICTURES).astype(np.uint8)
    picture = Image.fromarray(bytes_of_it[0, 0])
    for same in (PICTURES.tolist(), bytes_of_it, torch.ones(2, 1, 2, 2), PICTURES.astype(">f8"), [picture, picture]):
        assert torch.equal(model().encode(same).mean, expected)
    assert torch.equal(model().encode(picture).mean, expected[:1])
    for missing in (np.datetime64("NaT"), np.timedelta64("NaT"), np.timedelta64(3)):
        with pytest.raises(UsageError, match=r"^seed got .*, expected"):
            model().sample(n=2, seed=missing)
    assert torch.equal(model().sample(n=np.int64(2), seed=np.uint8(3)), model().sample(n=2, seed=3))


@pytest.mark.parametrize(
    "ask",
    [
        lambda: model().sample(n=10**12),
        lambda: model().translate(PICTURES, draws=10**12),
        lambda: mmgen.log_likelihood(model(), PICTURES, samples=10**12),
        lambda: model().posteriors["prior"].sample(model().describe(""), 10**12, None),
        lambda: draw(model(), Descriptions(np.array([[0, 1]], np.uint8)), 10**12, posterior="prior"),
    ],
)
def test_more_than_memory_holds_is_refused_before_work(ask: Callable[[], Any]) -> None:
    with pytest.raises(UsageError, match=r"1,000,000,000,000 .* of memory"):
        ask()


def test_rows_are_numbers_or_a_mask_of_all(dataset: Dataset) -> None:
    for rows in (np.array([1.5]), np.array([True]), ["1"], [[0]], [None], [12], [-1], np.array([np.nan])):
        with pytest.raises(UsageError, match="rows"):
            dataset.read_image("image", rows)  # type: ignore[arg-type]
    assert len(dataset.read_image("image", [])) == 0  # type: ignore[arg-type]


def test_every_function_is_held_to_its_annotations(dataset: Dataset) -> None:
    """So that a new one cannot be forgotten: whoever takes an argument is wrapped by :func:`check_arguments`."""
    loose = []
    for name in functions():
        function, _ = named(name, dataset)
        inner = getattr(function, "__func__", function)
        if inspect.signature(function).parameters and not name.startswith(("posterior.", "artifacts.")):
            loose += [name] if inner.__code__ is not check_arguments(len).__code__ else []
    assert not loose


@pytest.mark.parametrize(
    "name", ["train", "train_classifier", "fit_aggregate", "evaluate", "sample", "show", *added("OF_A_FILE")]
)
def test_a_folder_is_refused_under_any_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beside it would be named after it, and the folder that one is in has no name."""
    monkeypatch.chdir(tmp_path)
    for folder in (".", "/", ".."):
        with pytest.raises(MmgenError, match=r"is a folder|is a directory|--preset|expected"):
            getattr(mmgen, name)(folder)


@pytest.mark.parametrize("name", ["report", "compare", *added("OF_SEVERAL_FILES")])
def test_bytes_are_no_list_of_files(name: str) -> None:
    with pytest.raises(UsageError, match=r"got b'x', expected (?!.*instances)"):
        getattr(mmgen, name)(b"x")


def test_messages_name_arguments_and_commands_to_type_keep_their_options() -> None:
    @check_arguments
    def draw_from(no_more: int, posterior: str) -> None:
        raise UsageError("--posterior got x, --no-more and --other do not help; mmgen eval --posterior x does")

    with pytest.raises(UsageError, match=r"^posterior got x, no_more and --other .* mmgen eval --posterior x does$"):
        draw_from(1, "x")


@pytest.mark.parametrize(
    ("options", "settings", "said"),
    [
        ({"steps": 2}, {"training.steps": 1}, "steps got 2 and settings training.steps got 1, expected one of them"),
        ({"objective": "mmvae"}, {"objective.name": "telbo"},
         "objective got mmvae and settings objective.name got telbo"),
        ({"labelled": 5}, {"data": {"labelled": 50}}, "labelled got 5 and settings data.labelled got 50"),
    ],
)  # fmt: skip
def test_an_option_and_a_setting_that_differ_are_refused(
    options: dict[str, Any], settings: dict[str, Any], said: str, dataset: Dataset
) -> None:
    with pytest.raises(UsageError, match=said):
        mmgen.train(dataset.path, settings=settings, **options)
