"""``make-data hub`` on local copies of every kind; the network is never asked."""

import io
import json
import socketserver
import tarfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen.artifacts import PARTS, Dataset
from mmgen.contrib.hub.data_recipes._hub import _belongs_to, _restrict_to_dataset
from mmgen.contrib.hub.data_recipes.hub import Hub
from mmgen.core.errors import MmgenError
from mmgen.core.notation import UNKNOWN
from mmgen.core.pictures import Fitting, fit_picture
from mmgen.settings.config import validate
from tests.own_data._pictures import COLOURS, picture, rows_of, write_classes, write_folder

pytest.importorskip("datasets")

import datasets
import pyarrow
from pyarrow import parquet


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_CACHE_HOME", tmp_path / "cache")


def make(tmp_path: Path, dataset: Path | str, **settings: Any) -> Dataset:
    recipe = validate(Hub, {"dataset": str(dataset), "size": 8, **settings})
    return Dataset.open(recipe.make(tmp_path / "hub.h5", workers=1).run())


def refused(dataset: Path | str, **settings: Any) -> str:
    with pytest.raises(MmgenError) as error:
        validate(Hub, {"dataset": str(dataset), "size": 8, **settings}).survey(0, 1).run()
    assert "\n" not in str(error.value)
    return str(error.value)


def table(number: int = 30, **columns: Any) -> "datasets.Dataset":
    rows = rows_of(number)
    features = datasets.Features(
        image=datasets.Image(), colour=datasets.ClassLabel(names=list(COLOURS)), text=datasets.Value("string")
    )
    codes = [list(COLOURS).index(row["colour"]) if row["colour"] else None for row in rows]
    pictures = [{"bytes": picture(n), "path": None} for n in range(number)]
    values = {"image": pictures, "colour": codes, "text": [row["text"] for row in rows]}
    return datasets.Dataset.from_dict(values, features=features)


def colours(data: Dataset) -> list[str]:
    info = data.attributes["attributes"]
    values = info.values[info.names.index("colour")]
    codes = data.read_attributes("attributes", slice(0, data.size))[:, info.names.index("colour")]
    return ["" if code == UNKNOWN else values[code] for code in codes]


def test_parquet_with_names_of_classes(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    table().to_parquet(folder / "train-00000-of-00001.parquet")
    with make(tmp_path, folder) as data:
        assert colours(data) == [row["colour"] for row in rows_of(30)]
        assert data.texts["text"].length == 4 and list(data.schemes) == ["iid"]
        expected = fit_picture(picture(5), Fitting(8, 8)).pixels
        np.testing.assert_array_equal(data.read_image("image", slice(5, 6))[0], expected)
        assert str(tmp_path) not in json.dumps(data.header.settings)
        one = data.header.content_id
    with make(tmp_path, folder / "train-00000-of-00001.parquet") as data:
        assert data.header.content_id == one


def test_splits_are_parts(tmp_path: Path) -> None:
    every = datasets.DatasetDict(train=table(40), validation=table(20), extra=table(20))
    every.save_to_disk(str(tmp_path / "p"))
    with make(tmp_path, tmp_path / "p") as data:
        assert data.size == 60
        assert len(data.split("given", "val")) == 20 and all(len(data.split("given", part)) for part in PARTS)
    said = "\n".join(validate(Hub, {"dataset": str(tmp_path / "p")}).survey(0, 1).run().notes)
    assert "left out: splits that are no train, validation or test: 'extra'" in said


@pytest.mark.filterwarnings("ignore")  # the library leaves the table open
def test_a_folder_of_pictures(tmp_path: Path) -> None:
    write_classes(tmp_path / "p", 60, ("train", "test"))
    with make(tmp_path, tmp_path / "p") as data:
        assert data.attributes["attributes"].values == (("blue", "green", "red"),)
        assert len(data.split("given", "test")) == 30
    write_folder(tmp_path / "q")
    with make(tmp_path, tmp_path / "q") as data:
        assert data.attributes["attributes"].names == ("colour", "size")


def test_webdataset(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    with tarfile.open(tmp_path / "p" / "train-000.tar", "w") as archive:
        for n, row in enumerate(rows_of(30)):
            files = {
                "png": picture(n),
                "txt": row["text"].encode(),
                "json": json.dumps({"colour": row["colour"] or None, "size": row["size"]}).encode(),
            }
            for ending, content in files.items():
                member = tarfile.TarInfo(f"{n:04d}.{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    with make(tmp_path, tmp_path / "p") as data:
        assert colours(data) == [row["colour"] for row in rows_of(30)]
        assert data.attributes["attributes"].names == ("colour", "size") and data.texts["text"].length == 4


def test_what_is_no_single_value_is_refused(tmp_path: Path) -> None:
    several = table().add_column("objects", [[1, 2]] * 30)
    several.save_to_disk(str(tmp_path / "p"))
    assert "the column 'objects'" in refused(tmp_path / "p") and "--ignore objects" in refused(tmp_path / "p")
    with make(tmp_path, tmp_path / "p", ignore=("objects",)) as data:
        assert data.size == 30


def test_signs_that_steer_a_terminal_are_refused(tmp_path: Path) -> None:
    table().add_column("x", ["\x1b[2J"] * 30).save_to_disk(str(tmp_path / "p"))
    assert "the column 'x'" in refused(tmp_path / "p")
    table().add_column("\x1b[2J", ["x"] * 30).save_to_disk(str(tmp_path / "q"))
    assert "with a control character; rename it" in refused(tmp_path / "q")


def test_a_dataset_may_not_name_files_of_this_machine(tmp_path: Path) -> None:
    outside = tmp_path / "private.png"
    outside.write_bytes(picture(0))
    features = datasets.Features(image=datasets.Image(decode=False))
    rows = [{"image": {"bytes": None, "path": str(outside)}}] * 30
    (tmp_path / "p").mkdir()
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema=features.arrow_schema), tmp_path / "p" / "x.parquet")
    assert "it is a file elsewhere on this machine, which a dataset may not name" in refused(tmp_path / "p")


@pytest.mark.parametrize(
    "named",
    [
        "data_files: ELSEWHERE/x.parquet",
        "data_files: ../out/x.parquet",
        "data_files: link/x.parquet",
        "data_files: linked.parquet",
        "data_files: file://ELSEWHERE/x.parquet",
        "data_files: zip://x.parquet::ELSEWHERE/x.zip",
        "data_files: ADDRESS/x.parquet",
        "data_dir: ../out",
        "data_files: [{split: train, path: ['own.parquet', 'ADDRESS/x.parquet']}]",
    ],
)
@pytest.mark.parametrize("readme", ["README.md", ".huggingface.yaml"])
def test_a_readme_may_not_name_files_elsewhere(tmp_path: Path, named: str, readme: str) -> None:
    asked: list[bytes] = []

    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            asked.append(self.request.recv(1000))

    folder, elsewhere = tmp_path / "p", tmp_path / "out"
    folder.mkdir()
    elsewhere.mkdir()
    table().to_parquet(folder / "own.parquet")
    table().to_parquet(elsewhere / "x.parquet")
    (folder / "link").symlink_to(elsewhere)
    (folder / "linked.parquet").symlink_to(elsewhere / "x.parquet")
    with socketserver.TCPServer(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        named = named.replace("ELSEWHERE", str(elsewhere))
        named = named.replace("ADDRESS", f"http://127.0.0.1:{server.server_address[1]}")
        config = f"configs:\n- config_name: default\n  {named}\n"
        (folder / readme).write_text(f"---\n{config}---\n" if readme == "README.md" else config)
        assert "expected only files of its own" in refused(folder)
        server.shutdown()
    assert not asked
    config = config.replace(named, "data_files: own.parquet")
    (folder / readme).write_text(f"---\n{config}---\n" if readme == "README.md" else config)
    with make(tmp_path, folder) as data:
        assert data.size == 30


def test_a_saved_dataset_may_not_name_tables_elsewhere(tmp_path: Path) -> None:
    for name in ("p", "q"):
        table().save_to_disk(str(tmp_path / name))
    state = json.loads((tmp_path / "p" / "state.json").read_text())
    state["_data_files"][0]["filename"] = "../q/" + state["_data_files"][0]["filename"]
    (tmp_path / "p" / "state.json").write_text(json.dumps(state))
    assert "expected only files of its own" in refused(tmp_path / "p")


@pytest.mark.parametrize("pattern", ["http://127.0.0.1/x", "/etc/x", "hf://datasets/b/c/x", "../c/x", "zip://a::b"])
def test_a_dataset_of_the_hub_names_files_of_its_own(pattern: str) -> None:
    base = "hf://datasets/a/b@0"
    with _restrict_to_dataset("a/b", [""]), pytest.raises(MmgenError, match="expected only files of its own"):
        datasets.data_files.resolve_pattern(pattern, base)
    assert _belongs_to("a/b", f"{base}/data/train.parquet", []) and not _belongs_to("a/b", "hf://datasets/a/bc@0/x", [])


@pytest.mark.parametrize("kind", [datasets.Audio(), datasets.List(datasets.Image()), {"film": datasets.Video()}])
def test_what_the_library_would_decode_is_refused_by_name(tmp_path: Path, kind: Any) -> None:
    file = {"bytes": picture(0), "path": None}
    value = {"film": file} if isinstance(kind, dict) else [file] if isinstance(kind, datasets.List) else file
    features = datasets.Features({**table().features, "more": kind})
    rows = pyarrow.Table.from_pylist(
        [{"image": {"bytes": picture(n), "path": None}, "colour": 0, "text": "x", "more": value} for n in range(30)],
        schema=features.arrow_schema,
    )
    (tmp_path / "p").mkdir()
    parquet.write_table(rows, tmp_path / "p" / "x.parquet")
    said = refused(tmp_path / "p")
    assert "the column 'more' of" in said and "leave it out with --ignore more" in said
    with make(tmp_path, tmp_path / "p", ignore=("more",)) as data:
        assert data.size == 30


def test_webdataset_unpickles_nothing(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    with tarfile.open(tmp_path / "p" / "train-000.tar", "w") as archive:
        for n in range(30):
            for ending, content in {"png": picture(n), "pth": b"PK\3\4 no tensor", "pyd": b"\x80\4."}.items():
                member = tarfile.TarInfo(f"{n:04d}.{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    said = refused(tmp_path / "p")
    assert "holds bytes, expected a text or a number" in said and "--ignore pth" in said


@pytest.mark.parametrize(
    ("dataset", "settings", "says"),
    [
        ("nobody/nothing", {}, "there is no folder nobody/nothing, and the hub does not give a dataset of that name"),
        ("EMPTY", {}, "cannot read"),
        ("EMPTY/x.csv", {}, "does not end in .parquet, .arrow, .tar"),
        ("TEXT", {}, "has no column of pictures, only 'a'"),
        ("SCRIPT", {}, "cannot read"),
        ("PICKLE", {}, "cannot read"),
        ("GOOD", {"image_column": ("colour",)}, "names 'colour', which holds no pictures; expected image"),
        ("GOOD", {"image_column": ("x",)}, "--image-column: unknown column 'x'"),
        ("GOOD", {"ignore": ("x",)}, "--ignore: unknown column 'x'"),
        ("GOOD", {"revision": "main"}, "--revision is for datasets of the hub"),
        ("GOOD", {"caption": "words"}, "--caption: unknown column 'words'"),
    ],
)
def test_wrong_datasets_end_in_a_sentence(tmp_path: Path, dataset: str, settings: dict[str, Any], says: str) -> None:
    for name in ("EMPTY", "TEXT", "SCRIPT", "PICKLE"):
        (tmp_path / name).mkdir()
    (tmp_path / "EMPTY" / "x.csv").write_text("")
    (tmp_path / "TEXT" / "x.csv").write_text("a\n1\n")
    (tmp_path / "SCRIPT" / "SCRIPT.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "PICKLE" / "x.pkl").write_bytes(b"\x80\4.")
    if dataset == "GOOD":
        table().save_to_disk(str(tmp_path / "GOOD"))
    place = dataset if dataset == "nobody/nothing" else str(tmp_path / dataset)
    assert says in refused(place, **settings)
    assert not (tmp_path / "ran").exists() and not (tmp_path / "hub.h5").exists()


def test_cells_say_the_same_as_in_a_folder(tmp_path: Path) -> None:
    """One set of words for unknown, one draw of several captions."""
    values = [("red", "Red", "None", "?")[n % 4] for n in range(24)]
    columns = {
        "image": [{"bytes": picture(n), "path": None} for n in range(24)],
        "colour": values,
        "captions": [[f"thing {n}", f"it is {n}"] for n in range(24)],
        "boxes": [[1, 2, 3]] * 24,
    }
    features = datasets.Features(
        image=datasets.Image(), colour=datasets.Value("string"), captions=datasets.Sequence(datasets.Value("string")),
        boxes=datasets.Sequence(datasets.Value("int64")),
    )  # fmt: skip
    datasets.Dataset.from_dict(columns, features=features).save_to_disk(tmp_path / "p")
    assert "the column 'boxes'" in refused(tmp_path / "p") and "--ignore boxes" in refused(tmp_path / "p")
    recipe = validate(Hub, {"dataset": str(tmp_path / "p"), "size": 8, "ignore": ("boxes",)})
    said = "\n".join(recipe.survey(0, 1).run().notes)
    assert "attribute colour: Red 6, red 6, unknown 12" in said
    assert (
        "taken as unknown: 'None' 6, '?' 6; --unknown names other words" in said
        and "2 captions a picture, 48 in all: training draws one" in said
    )


def test_a_table_of_paths_is_told_once(tmp_path: Path) -> None:
    """What Dataset.to_parquet writes of pictures that were named by their files."""
    features = datasets.Features(image=datasets.Image(decode=False))
    rows = [{"image": None}, *({"image": {"bytes": None, "path": f"train/{n:08d}"}} for n in range(30))]
    (tmp_path / "p").mkdir()
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema=features.arrow_schema), tmp_path / "p" / "x.parquet")
    said = refused(tmp_path / "p")
    assert "the column 'image' of" in said and "holds paths instead of pictures, such as 'train/00000000'" in said
    assert "use make-data folder" in said and said.count("train/") == 1


def test_archives_in_a_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "train.zip").write_bytes(b"PK\x03\x04 broken")
    assert "or take make-data folder for a folder or zip of pictures" in refused(tmp_path / "z")
    assert "make-data folder reads zips" in refused(tmp_path / "z" / "train.zip")
