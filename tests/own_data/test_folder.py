"""``make-data folder``: what becomes of folders, tables and pictures, and that the same pictures are the same data."""

import io
import json
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mmgen.artifacts import PARTS, Dataset
from mmgen.core.errors import DataError
from mmgen.core.notation import UNKNOWN
from mmgen.core.pictures import Fitting, fit_picture
from mmgen.data_recipes._own import _source
from mmgen.data_recipes._own._attributes import build_attributes
from mmgen.data_recipes._own._parts import complete_user_parts, draw_parts, group_by_labels
from mmgen.data_recipes.folder import Folder
from mmgen.settings.config import validate
from tests.own_data._pictures import (
    COLOURS,
    picture,
    rows_of,
    write_classes,
    write_csv,
    write_folder,
    write_jsonl,
    zipped,
)

Make = Callable[..., Dataset]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    made: list[Dataset] = []

    def run(pictures: Path, seed: int = 0, chunk: int = 128, **settings: Any) -> Dataset:
        path = tmp_path / f"made-{len(made)}.h5"
        recipe = validate(Folder, {"pictures": pictures, "size": 8, **settings})
        recipe.make(path, seed=seed, workers=1, chunk=chunk).run()
        made.append(Dataset.open(path))
        made[-1].verify()
        return made[-1]

    yield run
    for dataset in made:
        dataset.close()


def attributes(data: Dataset) -> dict[str, list[str | None]]:
    """Values by attribute, None where unknown."""
    info = data.attributes["attributes"]
    codes = data.read_attributes("attributes", slice(0, data.size))
    return {
        name: [None if code == UNKNOWN else values[code] for code in codes[:, place]]
        for place, (name, values) in enumerate(zip(info.names, info.values, strict=True))
    }


def found(pictures: Path, **settings: Any) -> str:
    recipe = validate(Folder, {"pictures": pictures, "size": 8, **settings})
    return "\n".join(recipe.survey(0, 1).run().notes)


@pytest.mark.parametrize(("sides", "size"), [((40, 40, 90), 32), ((20, 48, 60), 64)])
def test_the_size_follows_from_the_median_of_the_shorter_sides(
    sides: tuple[int, ...], size: int, tmp_path: Path, make: Make
) -> None:
    folder = write_folder(tmp_path / "p")
    for n in range(30):
        (folder / f"{n:03d}.png").write_bytes(picture(n, (sides[n % 3], 100)))
    chosen, typed = make(folder, size=None), make(folder, size=size)
    assert chosen.images["image"].shape == (3, size, size)
    assert chosen.header.content_id == typed.header.content_id and chosen.header.settings["size"] == size


def test_the_survey_names_the_kinds_of_pictures_of_a_table(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "p")
    assert "kinds of pictures" not in found(folder)
    write_csv(folder / "metadata.csv", [{**row, "wear_file_name": row["file_name"]} for row in rows_of(30)])
    assert "kinds of pictures: image, wear" in found(folder).splitlines()


def test_a_file_says_how_many_pictures_were_see_through(tmp_path: Path, make: Make) -> None:
    folder = write_folder(tmp_path / "p")
    assert "see_through" not in make(folder).header.settings
    clear = Image.new("RGBA", (16, 16), (250, 10, 10, 99))
    for n in range(3):
        clear.save(folder / f"{n:03d}.png")
    assert make(folder).header.settings["see_through"] == 3


def test_a_table_becomes_attributes_and_captions(tmp_path: Path, make: Make) -> None:
    data = make(write_folder(tmp_path / "p"))
    rows = rows_of(30)
    assert attributes(data) == {name: [row[name] or None for row in rows] for name in ("colour", "size")}
    info = data.texts["text"]
    assert info.vocabulary == ("a", "blue", "green", "large", "red", "small", "square") and info.length == 4
    codes = data.read_text("text", slice(0, 2))
    assert [info.words(row) for row in codes] == ["a small red square", "a large green square"]
    pixels = data.read_image("image", slice(3, 4))[0]
    np.testing.assert_array_equal(pixels, fit_picture(picture(3), Fitting(8, 8)).pixels)
    assert (data.read_factor("width") == 16).all()
    assert [len(data.split("iid", part)) for part in PARTS] == [26, 1, 3]
    assert data.header.settings["fit"] == "crop" and data.header.settings["size"] == 8
    assert str(tmp_path) not in json.dumps(data.header.settings)


@pytest.mark.slow
def test_the_same_pictures_are_the_same_data(tmp_path: Path, make: Make) -> None:
    """Wherever they lie, in a folder or a zip, whoever lists them in which order, whatever the chunks."""
    folder = write_folder(tmp_path / "p")
    ids = {make(folder).header.content_id, make(folder, chunk=7).header.content_id}
    moved = tmp_path / "elsewhere" / "q"
    shutil.copytree(folder, moved)
    write_csv(moved / "metadata.csv", rows_of(30)[::-1])
    ids |= {make(moved).header.content_id}
    ids |= {
        make(zipped(folder, tmp_path / f"{n}.zip", inside)).header.content_id for n, inside in enumerate(("", "a/b/"))
    }
    (moved / "metadata.csv").unlink()
    write_jsonl(moved / "metadata.jsonl", [{k: v or None for k, v in row.items()} for row in rows_of(30)])
    ids |= {make(moved).header.content_id}
    assert len(ids) == 1
    (moved / "004.png").write_bytes(picture(400))
    changed = make(moved).header
    assert changed.content_id not in ids
    (folder / "004.png").write_bytes(picture(1000))  # and one whose pixels nobody sees any more is another one, too
    assert make(folder).header.content_id not in ids | {changed.content_id}
    assert make(moved, seed=1).header.content_id != changed.content_id


@pytest.mark.slow
def test_nor_do_workers_change_it(tmp_path: Path) -> None:
    folder, ids = write_folder(tmp_path / "p", 300), set()
    for workers in (1, 2, 3):
        recipe = validate(Folder, {"pictures": folder, "size": 8})
        with Dataset.open(recipe.make(tmp_path / f"{workers}.h5", workers=workers, chunk=16).run()) as data:
            ids.add(data.header.content_id)
    assert len(ids) == 1


def test_folders_are_classes_and_parts(tmp_path: Path, make: Make) -> None:
    data = make(write_classes(tmp_path / "p", 60, ("training", "validation", "test", "train")))
    assert attributes(data).keys() == {"class"}
    assert list(data.schemes) == ["given"]
    assert [len(data.split("given", part)) for part in PARTS] == [30, 15, 15]
    names = sorted(
        (part, n % 3, n) for n, part in ((n, ("training", "validation", "test", "train")[n % 4]) for n in range(60))
    )
    assert len(names) == 60 and set(attributes(data)["class"]) == set(COLOURS)


def test_a_part_that_is_missing_comes_out_of_train(tmp_path: Path, make: Make) -> None:
    data = make(write_classes(tmp_path / "p", 60, ("train", "test")))
    train, val, test = (len(data.split("given", part)) for part in PARTS)
    assert test == 30 and val >= 1 and train + val == 30
    assert "val drawn from train" in found(tmp_path / "p")


def test_folders_in_folders_and_a_table_besides(tmp_path: Path, make: Make) -> None:
    for n in range(36):
        place = tmp_path / "p" / list(COLOURS)[n % 3] / ("round" if n % 2 else "square")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{n:03d}.png").write_bytes(picture(n))
    assert attributes(make(tmp_path / "p")).keys() == {"class_1", "class_2"}
    files = sorted((tmp_path / "p").rglob("*.png"))
    rows = [
        {"file_name": str(f.relative_to(tmp_path / "p")), "mood": "good" if int(f.stem) % 5 else "bad"} for f in files
    ]
    write_csv(tmp_path / "p" / "metadata.csv", rows)
    both = attributes(make(tmp_path / "p"))
    assert both.keys() == {"mood", "class_1", "class_2"} and both["mood"].count("bad") == 8


def test_tables_in_the_folders_of_parts(tmp_path: Path, make: Make) -> None:
    for part in ("train", "test"):
        write_folder(tmp_path / "p" / part, 20)
    for n in range(20):
        (tmp_path / "p" / "test" / f"{n:03d}.png").write_bytes(picture(n + 100))
    data = make(tmp_path / "p")
    assert data.size == 40 and len(data.split("given", "test")) == 20
    assert attributes(data)["size"].count("large") == 20


def test_a_table_of_another_name_and_a_split_column(tmp_path: Path, make: Make) -> None:
    folder = write_folder(tmp_path / "p", table=False)
    parts = ["train", "Validation", "test"]
    rows = [{"id": row["file_name"], "size": row["size"], "split": parts[n % 3]} for n, row in enumerate(rows_of(30))]
    write_csv(tmp_path / "labels.csv", rows)
    data = make(folder, metadata=tmp_path / "labels.csv", image_column=("id",))
    assert attributes(data).keys() == {"size"}
    assert [data.split("given", part).tolist() for part in PARTS] == [list(range(n, 30, 3)) for n in range(3)]
    ignored = make(folder, metadata=tmp_path / "labels.csv", image_column=("id",), ignore=("split",))
    assert list(ignored.schemes) == ["iid"]
    named = [{"id": r["id"], "fold": r["split"], "size": r["size"]} for r in rows]
    write_csv(tmp_path / "labels.csv", named)
    assert list(make(folder, metadata=tmp_path / "labels.csv", image_column=("id",), split="fold").schemes) == ["given"]


def test_several_image_columns_are_several_modalities(tmp_path: Path, make: Make) -> None:
    folder = write_folder(tmp_path / "p", table=False)
    for n in range(30):
        (folder / f"m{n:03d}.png").write_bytes(picture(n + 500, mode="L"))
    rows = [{**row, "mask_file_name": f"m{row['file_name']}"} for row in rows_of(30)]
    write_csv(folder / "metadata.csv", rows)
    data = make(folder)
    assert list(data.images) == ["image", "mask"]
    assert (data.read_image("mask", slice(0, 1)) != data.read_image("image", slice(0, 1))).any()
    swapped = make(folder, image_column=("mask_file_name", "file_name"), ignore=())
    np.testing.assert_array_equal(swapped.read_image("image", slice(0, 2)), data.read_image("mask", slice(0, 2)))
    assert list(make(folder, image_column=("mask_file_name",), ignore=("file_name",)).images) == ["image"]


def test_a_group_is_never_in_two_parts(tmp_path: Path, make: Make) -> None:
    folder = write_folder(tmp_path / "p", 60)
    write_csv(folder / "metadata.csv", [row | {"person": f"p{n // 6}"} for n, row in enumerate(rows_of(60))])
    data = make(folder, group="person")
    people = {part: {row // 6 for row in data.split("iid", part).tolist()} for part in PARTS}
    assert all(people.values()) and sum(map(len, people.values())) == 10
    assert "person" not in attributes(data)
    sources = data.read_sources(np.arange(60))  # of which standard errors are
    assert sources is not None and len(np.unique(sources)) == 10
    assert all(len(set(sources[start : start + 6])) == 1 for start in range(0, 60, 6))
    assert "source_group" not in make(folder).factors
    assert "person" in attributes(make(folder, group="person", attributes=("person", "size")))


def test_numbers_go_into_bins(tmp_path: Path, make: Make) -> None:
    folder = write_folder(tmp_path / "p", 40)
    rows = [row | {"age": n if n else "", "weight kg": n * 1.5} for n, row in enumerate(rows_of(40))]
    write_csv(folder / "metadata.csv", rows)
    data = make(folder, bins=("age=2", "weight kg=10:30.5"))
    known = attributes(data)
    assert known["age"] == [None] + ["below-20"] * 19 + ["from-20"] * 20
    assert known["weight_kg"] == ["below-10"] * 7 + ["10-to-30.5"] * 14 + ["from-30.5"] * 19
    ages = data.read_factor("age")
    assert np.isnan(ages[0]) and ages[1:].tolist() == list(range(1, 40))
    assert attributes(make(folder, ignore=("age", "weight kg"))).keys() == {"colour", "size"}


@pytest.mark.parametrize(
    ("values", "each", "says"),
    [
        (20, 3, "attribute job: job00 3, job01 3"),
        (21, 3, "attribute job: job00 3, job01 3"),
        (255, 3, "and 235 more"),
        (256, 3, "left out: column 'job': it has 256 different values, expected at most 255; make it coarser"),
        (21, 2, "it has 21 different values in 42 pictures, expected at least 3 pictures a value"),
        (20, 1, "it has 20 different values in 20 pictures, expected at least 3 pictures a value"),
    ],
)
def test_a_column_is_words_if_a_value_has_three_pictures(values: int, each: int, says: str) -> None:
    """On average, of pictures of which it is known; ids are no words, nor are sentences, which are captions."""
    cells = [f"job{n % values:02d}" for n in range(values * each)]
    made = build_attributes({"job": [*cells, None]}, None, {}, "leave out with --ignore")
    assert any(says in line for line in made.notes) and bool(made.values) == (each == 3 and values < 256)
    (sentences,) = build_attributes({"job": [f"one {cell} and more" for cell in cells]}, None, {}, "").notes[-1:]
    assert "--caption job takes them as captions" in sentences or values == 20


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def test_pictures_that_can_hardly_be_meant_are_warned_of(tmp_path: Path) -> None:
    """White icons on nothing, 12 bits in 16, and a crop of one part in two hundred; a look at each is one number."""
    generator = np.random.default_rng(0)
    white = np.full((24, 16, 16, 4), 255, np.uint8)
    white[..., 3] = 255 * generator.integers(0, 2, (24, 16, 16))
    dark = generator.integers(0, 4096, (24, 16, 16)).astype(np.uint16)
    long = generator.integers(0, 256, (1, 16, 200, 3)).astype(np.uint8)
    for name, pictures in (("icons", white), ("dark", dark), ("long", long)):
        folder = write_folder(tmp_path / name, 24, table=False)
        for number, pixels in enumerate(pictures):
            (folder / f"{number:03d}.png").write_bytes(png(pixels))
    icons, black, dark_ones, crops = (
        [
            line
            for line in found(tmp_path / name, **told).splitlines()
            if line.startswith(("warning", "  0 ", "  24 of"))
        ]
        for name, told in (("icons", {}), ("icons", {"background": "black"}), ("dark", {}), ("long", {}))
    )
    assert "warning: 24 of 24 pictures are of one colour, with nothing to learn" in icons[-1]
    (line,) = black
    assert line.startswith("  0 of one colour; the darkest number of all is 0, the brightest 2")
    assert dark_ones[-1].startswith("warning: numbers of all pictures are ") and "of 0 to 255" in dark_ones[-1]
    assert crops[0].endswith("; 96 % of their area is kept, at least 8 %")
    assert crops[1:] == ["warning: pictures of which the crop keeps less than a tenth: 1; --fit pad keeps all"]
    assert "warning" not in found(tmp_path / "long", fit="pad", size=32)


def test_unreadable_pictures_can_be_left_out(tmp_path: Path, make: Make) -> None:
    folder = write_folder(tmp_path / "p")
    (folder / "003.png").write_bytes(b"no picture")
    (folder / "007.png").write_bytes(picture(7)[:60])
    data = make(folder, drop_unreadable=True)
    assert data.size == 28 and data.header.facts["unreadable_images"] == ["003.png", "007.png"]
    assert attributes(data)["size"] == [row["size"] for n, row in enumerate(rows_of(30)) if n not in (3, 7)]


def test_sizes_kinds_and_grey(tmp_path: Path, make: Make) -> None:
    folder = write_folder(tmp_path / "p")
    for n in range(30):
        (folder / f"{n:03d}.png").write_bytes(picture(n, (16 + n, 20), "L"))
    said = found(folder, fit="pad")
    assert "16 to 45 pixels wide and 20 to 20 high" in said and "(pad)" in said and "all of them are grey" in said
    assert make(folder, grey=True, fit="stretch").images["image"].shape == (1, 8, 8)
    buffer = io.BytesIO()
    Image.new("RGBA", (16, 16), (255, 0, 0, 0)).save(buffer, "PNG")
    (folder / "000.png").write_bytes(buffer.getvalue())
    assert make(folder, background="black").read_image("image", slice(0, 1)).max() == 0
    assert "1 are see-through in parts" in found(folder)


def test_each_picture_is_read_and_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the survey has seen is written, whatever becomes of the folder meanwhile."""
    folder, decoded = write_folder(tmp_path / "p"), []
    monkeypatch.setattr(_source, "fit_picture", lambda *given: decoded.append(1) or fit_picture(*given))
    recipe = validate(Folder, {"pictures": folder, "size": 8})
    survey = recipe.survey(0, 1).run()
    shutil.rmtree(folder)
    with Dataset.open(recipe.make(tmp_path / "d.h5", workers=1, survey=survey).run()) as data:
        np.testing.assert_array_equal(data.read_image("image")[11], fit_picture(picture(11), Fitting(8, 8)).pixels)
    assert len(decoded) == 30


def test_parquet(tmp_path: Path, make: Make) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder = write_folder(tmp_path / "p")
    plain = make(folder).header.content_id
    (folder / "metadata.csv").unlink()
    table = arrow.table({name: [row[name] or None for row in rows_of(30)] for name in rows_of(1)[0]})
    parquet.write_table(table, folder / "metadata.parquet")
    assert make(folder).header.content_id == plain


def rows_with(number: int = 30, **columns: Callable[[int], Any]) -> list[dict[str, Any]]:
    """The table's rows with further columns by function of the number."""
    return [{**row, **{name: of(n) for name, of in columns.items()}} for n, row in enumerate(rows_of(number))]


def few_words(n: int) -> str:
    return {0: "one two three four five six", 1: ""}.get(n, rows_of(30)[n]["text"])


SAID: dict[str, tuple[list[dict[str, Any]], dict[str, Any], list[str]]] = {
    "left out": (
        rows_with(always=lambda n: "x", never=lambda n: "", note=lambda n: f"n{n}", hair=lambda n: "ab"[n % 2]),
        {},
        [
            "pictures: 30, all of 16 x 16 pixels; they become 3x8x8 (crop)",
            "attribute colour: blue 9, green 9, red 9, unknown 3",
            "attribute hair: a 15, b 15",
            "left out: column 'always': it is always 'x'",
            "left out: column 'never': nothing is said in it",
            "left out: column 'note': it has 30 different values in 30 pictures, expected at least 3 pictures a value; "
            "up to 255 values become an attribute if --attributes names it",
            "left out: 2 pictures that no table names: '030.png', '031.png'",
            "left out: files that are no pictures of PNG, JPEG, WEBP, GIF, BMP, PPM: 1 .tiff",
            "left out: 1 hidden",
            "left out: 1 links to folders",
            "left out: 1 links that cannot be followed",
            "split 'iid' (85/5/10 % at random): train ",
        ],
    ),
    "captions": (
        rows_with(text=few_words), {"max_words": 3, "min_count": 2},
        ["cut after 3 words (the longest has 6)", "3 words that occur less than 2 times", "2 pictures have none"],
    ),  # one is empty, of one all words are rare
    "numbers in order": (rows_with(stars=lambda n: [10, 9, 1][n % 3]), {}, ["attribute stars: 1 10, 9 10, 10 10"]),
    "a name that becomes another": (rows_with(**{"hair colour": lambda n: "ab"[n % 2]}), {},
                                    ["attribute hair_colour (column 'hair colour'): a 15, b 15"]),
    "images in a folder": ([row | {"file_name": f"images/{row['file_name']}"} for row in rows_of(30)], {},
                           ["attribute size: large 15, small 15", "captions 'text': 7 words"]),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_everything_that_is_made_and_left_out_is_said(case: str, tmp_path: Path) -> None:
    rows, settings, lines = SAID[case]
    inside = "images" if "images" in rows[0]["file_name"] else "."
    folder = write_folder(tmp_path / "p" / inside, 32 if case == "left out" else 30, table=False)
    if case == "left out":
        for name in ("notes.tiff", ".hidden"):
            (folder / name).write_bytes(b"x")
        (folder / "link").symlink_to(tmp_path)
        (folder / "self").symlink_to("self")
    write_csv(tmp_path / "p" / "metadata.csv", rows)
    said = found(tmp_path / "p", **settings)
    assert [line for line in lines if line not in said] == [], said
    assert "class" not in said


def test_names_with_accents_are_found_however_they_are_spelled(tmp_path: Path, make: Make) -> None:
    folder, rows = write_folder(tmp_path / "p"), rows_of(30)
    (folder / "003.png").rename(folder / unicodedata.normalize("NFD", "café.png"))
    rows[3]["file_name"] = unicodedata.normalize("NFC", "café.png")
    write_csv(folder / "metadata.csv", rows)
    assert make(folder).size == 30


TWINS: dict[str, tuple[int, dict[str, Callable[[int], Any]], dict[str, Any], str]] = {
    "alone": (20, {}, {}, "20 pictures are there twice, byte for byte, and stay in one part"),
    "groups": (30, {"person": lambda n: f"p{n}"}, {"group": "person"}, "30 pictures are there twice, byte for byte"),
    "a part to draw": (
        30, {"person": lambda n: f"p{n}", "split": lambda n: ["train", "test"][n // 5 % 2]}, {"group": "person"},
        "val drawn from train, where none was given"),
    "given parts": (30, {"split": lambda n: "test" if n >= 45 else "train"}, {}, "15 pictures are in two parts, byte"),
}  # fmt: skip


@pytest.mark.parametrize("case", TWINS)
def test_the_same_picture_twice_stays_in_one_part_or_is_counted(case: str, tmp_path: Path, make: Make) -> None:
    """Also of different groups; parts that are given are as they are."""
    number, columns, settings, said = TWINS[case]
    folder = write_folder(tmp_path / "p", 2 * number, table=False)
    for n in range(number, 2 * number):
        (folder / f"{n:03d}.png").write_bytes(picture(n - number))
    write_csv(folder / "metadata.csv", rows_with(2 * number, **columns))
    assert said in found(folder, **settings)
    data = make(folder, **settings)
    twins = [{row % number for row in data.split(next(iter(data.schemes)), part).tolist()} for part in PARTS]
    assert case == "given parts" or (sum(map(len, twins)) == number and all(twins))


@pytest.mark.parametrize(
    ("labels", "joined"),
    [
        ([["a", "b", "a", None, None]], [0, 1, 0, 2, 3]),
        ([["a", "b", "a", None], [1, 2, 3, 2]], [0, 1, 0, 1]),
        ([["a", "b", "c", "d"], [1, 1, 2, 2], [7, 8, 8, 9]], [0, 0, 0, 0]),
    ],
)
def test_groups_join_where_they_share_anything(labels: list[Any], joined: list[int]) -> None:
    assert group_by_labels(*labels).tolist() == joined


@pytest.mark.parametrize("groups", [3, 5, 19, 200])
def test_every_part_has_a_group(groups: int) -> None:
    parts = draw_parts(np.arange(groups), 0)
    assert sorted(np.concatenate([*parts.values()]).tolist()) == list(range(groups))
    assert all(len(rows) for rows in parts.values())


def test_two_groups_cannot_be_three_parts_and_twins_are_counted_without_their_groups() -> None:
    with pytest.raises(DataError, match="the pictures make 2 groups, of which none may be in two parts, expected at l"):
        draw_parts(np.arange(2), 0)
    parts, people = ["train", "train", "test", "test", "val"], np.array([0, 0, 1, 1, 2])
    twins, joined = np.array([0, 1, 1, 2, 3]), np.array([0, 0, 0, 0, 1])
    _, notes = complete_user_parts(parts, people, twins, joined, list("abcde"), 0)
    assert notes == ["1 pictures are in two parts, byte for byte"]
