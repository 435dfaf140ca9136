"""The dataset of two-objects: what is in its file, whatever the workers, and how it fails."""

import json
from pathlib import Path

import numpy as np
import pytest

from mmgen import data_recipes
from mmgen.artifacts import PARTS, Dataset
from mmgen.core.errors import DataError, SettingsError
from mmgen.data_recipes._scenes import LOOKS, RELATIONS
from mmgen.data_recipes.two_objects import _hold_out_combinations
from mmgen.settings.config import validate

REFERENCES = Path(__file__).with_name("reference_scenes.json")
WORDS = [word for values in LOOKS.values() for word in values] + list(RELATIONS)


def make(path: Path, *, seed: int = 0, workers: int | str = 1, chunk: int | None = None, **settings) -> Dataset:
    small = {"size": 16, "samples": 1} | ({} if "render" in settings else {"number": 40}) | settings
    recipe = validate(data_recipes.get("two-objects"), small)
    assert recipe.make(path, seed=seed, workers=workers, chunk=chunk, command="mmgen make-data x").run() == path
    return Dataset.open(path)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    with make(tmp_path_factory.mktemp("two-objects") / "d.h5", number=300, masks=True) as made:
        yield made


def test_the_file_holds_images_captions_attributes_and_the_scene(dataset):
    assert dataset.read_image("image").shape == (300, 3, 16, 16)
    text = dataset.texts["text"]
    assert (list(text.vocabulary), text.length) == (WORDS, 9)
    attributes = dataset.attributes["attributes"]
    names = ["size", "colour", "material", "shape"]
    assert list(attributes.names) == [f"{n}_1" for n in names] + ["relation"] + [f"{n}_2" for n in names]
    assert text.slots == attributes.names
    letters = [f"{name}_{letter}" for letter in "ab" for name in [*names, "x", "y", "rotation", "visible"]]
    lamps = [f"{name}_{axis}" for name in ("camera", "key", "fill", "back") for axis in "xyz"]
    others = ["relation_horizontal", "relation_depth", "first", "mask"]
    assert set(dataset.factors) == {*letters, *lamps, *others}
    settings = {"recipe": "two-objects", "number": 300, "size": 16, "samples": 1, "masks": True}
    assert settings.items() <= dataset.header.settings.items()


def test_text_and_attributes_spell_the_same_caption_of_the_stored_scene(dataset):
    text, attributes = dataset.texts["text"], dataset.attributes["attributes"]
    first = dataset.read_factor("first")
    horizontal, depth = dataset.read_factor("relation_horizontal"), dataset.read_factor("relation_depth")
    rows = zip(dataset.read_text("text"), dataset.read_attributes("attributes"), strict=True)
    for i, (tokens, codes) in enumerate(rows):
        words = text.words(tokens).split()
        assert words == [values[code] for values, code in zip(attributes.values, codes, strict=True)]
        for letter, start in zip("ba" if first[i] else "ab", (0, 5), strict=True):
            looks = [LOOKS[name][dataset.read_factor(f"{name}_{letter}")[i]] for name in LOOKS] if i < 5 else None
            assert looks is None or words[start : start + 4] == looks
        opposite = dict(zip(RELATIONS, ("left", "right", "behind", "front"), strict=True))
        true = {RELATIONS[horizontal[i]], RELATIONS[depth[i]]}
        assert words[4] in ({opposite[word] for word in true} if first[i] else true)


def test_each_object_shows_as_many_pixels_as_stored(dataset):
    for letter in "ab":
        assert dataset.read_factor(f"visible_{letter}").min() >= 25
    mask = dataset.read_factor("mask")
    assert mask.shape == (300, 16, 16)
    assert set(np.unique(mask)) == {0, 1, 2}
    # 25 of 112 x 112 pixels are half a pixel here.
    area = [(mask == code).sum(axis=(1, 2)) * 49 for code in (1, 2)]
    visible = [dataset.read_factor(f"visible_{letter}") for letter in "ab"]
    assert np.corrcoef(np.concatenate(area), np.concatenate(visible))[0, 1] > 0.95


def test_visible_pixels_are_recounted_from_the_factors(dataset):
    recipe = data_recipes.get("two-objects")(number=300)
    rows = recipe.make_rows(np.arange(3), 0, None)
    again = recipe.model_copy(update={"size": 16, "samples": 1}).make_rows(np.array([2]), 0, None)
    for name in again.factors:
        assert np.array_equal(again.factors[name][0], dataset.read_factor(name)[2])
        assert np.array_equal(rows.factors[name][2], dataset.read_factor(name)[2])


def test_splits_are_90_5_5_and_combinations_are_held_out(dataset):
    assert dataset.schemes == ["compositional", "iid"] or set(dataset.schemes) == {"compositional", "iid"}
    assert dataset.default_scheme == "iid"
    assert [len(dataset.split("iid", part)) for part in PARTS] == [270, 15, 15]
    for scheme in dataset.schemes:
        rows = np.concatenate([dataset.split(scheme, part) for part in PARTS])
        assert np.array_equal(np.sort(rows), np.arange(300))
    codes = dataset.read_attributes("attributes")
    looks = [set(map(tuple, codes[:, start : start + 3])) for start in (1, 6)]
    assert len(looks[0] | looks[1]) == 48
    of_part = []
    for part in PARTS:
        rows = dataset.split("compositional", part)
        of_part.append({tuple(codes[row, start : start + 3]) for row in rows for start in (1, 6)})
    train, val, _ = of_part
    assert len(train) == 42
    assert len(val - train) == 2
    everything = looks[0] | looks[1]
    assert len(everything - train - val) == 4
    for column in range(3):
        assert {one[column] for one in train} == {one[column] for one in everything}


@pytest.mark.parametrize("seed", range(20))
def test_held_out_combinations_share_no_colour_and_no_material_with_shape(seed):
    part = _hold_out_combinations([8, 2, 3], seed)
    assert sorted(part[part > 0]) == [1, 1, 2, 2, 2, 2]
    assert (part > 0).sum(axis=(1, 2)).max() == 1
    assert (part > 0).sum(axis=0).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert _hold_out_combinations([2, 1, 1], seed) is None


def test_a_smaller_number_is_a_prefix(dataset, tmp_path):
    with make(tmp_path / "few.h5", number=10) as few:
        assert np.array_equal(few.read_image("image"), dataset.read_image("image", slice(0, 10)))
        assert np.array_equal(few.read_text("text"), dataset.read_text("text", slice(0, 10)))


def test_one_object_of_few_looks(tmp_path):
    with make(tmp_path / "d.h5", objects=1, colours="blue,red", shapes="sphere", size=32, masks=True) as made:
        assert made.texts["text"].vocabulary == ("small", "large", "red", "blue", "rubber", "metal", "sphere")
        assert made.attributes["attributes"].names == ("size", "colour", "material", "shape")
        assert made.attributes["attributes"].values[1] == ("red", "blue")
        words = [made.texts["text"].words(row).split() for row in made.read_text("text")]
        assert {row[3] for row in words} == {"sphere"}
        assert {row[1] for row in words} == {"red", "blue"}
        assert "first" not in made.factors
        for image, mask, row in zip(made.read_image("image"), made.read_factor("mask"), words, strict=True):
            red, _, blue = image[:, mask == 1].mean(axis=1)
            assert (red > blue) == (row[1] == "red")


def test_given_scenes_keep_their_captions_and_relations(tmp_path):
    given = json.loads(REFERENCES.read_text())
    with make(tmp_path / "d.h5", render=REFERENCES) as made:
        assert made.size == len(given) == 8
        assert "scenes_sha256" in made.header.settings
        text = made.texts["text"]
        for i, scene in enumerate(given):
            assert text.words(made.read_text("text", np.array([i]))[0]) == scene["caption"]
            stored = {RELATIONS[made.read_factor(f"relation_{name}")[i]] for name in ("horizontal", "depth")}
            assert stored == set(scene["relations_that_hold"])
            assert made.read_factor("x_b")[i] == np.float32(scene["objects"][1]["x"])
            for letter, pixels, thing in zip("ab", scene["visible_pixels"], scene["objects"], strict=True):
                # Their cubes and cylinders are counted without rounded edges.
                within = {"abs": 1} if thing["shape"] == "sphere" else {"rel": 0.1}
                assert made.read_factor(f"visible_{letter}")[i] == pytest.approx(pixels, **within)


def test_scenes_without_captions_get_true_ones(tmp_path):
    given = json.loads(REFERENCES.read_text())
    for scene in given:
        del scene["caption"], scene["visible_pixels"]
    path = tmp_path / "scenes.json"
    path.write_text(json.dumps(given * 4))
    with make(tmp_path / "d.h5", render=path, chunk=5) as made:
        relation = made.attributes["attributes"].names.index("relation")
        said = made.read_attributes("attributes")[:, relation] ^ made.read_factor("first")
        both = np.stack([made.read_factor("relation_horizontal"), made.read_factor("relation_depth")])
        assert (said == both).any(axis=0).all()
        assert len(set(zip(*np.unravel_index(np.arange(32), (4, 8)), strict=True))) == 32
        assert 0 < made.read_factor("first").mean() < 1


def test_the_scene_of_the_documentation_can_be_rendered(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "two-objects.md").read_text(encoding="utf-8")
    path = tmp_path / "scenes.json"
    path.write_text(text.split("```json\n")[1].split("```")[0])
    with make(tmp_path / "d.h5", render=path) as made:
        words = made.texts["text"].words(made.read_text("text")[0])
        assert words == "large red metal cube front small blue rubber sphere"


def edited(**changes) -> str:
    scenes = json.loads(REFERENCES.read_text())
    for key, value in changes.items():
        if key in ("caption", "camera", "objects"):
            scenes[2][key] = value
        else:
            scenes[2]["objects"][0][key] = value
    return json.dumps(scenes)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "holds no scenes"),
        ("[]", "its list is empty"),
        ('{"scenes": []}', "holds no scenes"),
        ("[1, 2]", "scene 0"),
        (edited(colour="grey"), "scene 2: unknown colour 'grey': did you mean 'gray'"),
        (edited(x="here"), r"scene 2, objects.0.x: .* valid number"),
        (edited(x=1e9), "scene 2, objects.0.x"),
        (edited(camera=[0, 0, 5]), "straight above"),
        (edited(camera=[7, 0]), "scene 2, camera"),
        (edited(objects=[]), "scene 2, objects"),
        (edited(caption="small yellow metal cube front large purple metal cube"), "scene 2 is not true of it"),
        (edited(caption=""), "not true"),
        (edited(x=-1.587902, y=0.914207), "both objects are at one place"),
        (edited().replace("0.087207", "NaN"), "scene 2"),
    ],
)
def test_malformed_scenes_are_refused_in_one_sentence(tmp_path, content, complaint):
    path = tmp_path / "scenes.json"
    path.write_text(content)
    recipe = data_recipes.get("two-objects")(render=path)
    with pytest.raises(DataError, match=complaint) as caught:
        recipe.make(tmp_path / "d.h5")
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert not (tmp_path / "d.h5").exists()


def test_a_missing_file_and_another_number_of_objects_are_named(tmp_path):
    with pytest.raises(DataError, match="cannot read the scenes"):
        data_recipes.get("two-objects")(render=tmp_path / "nowhere.json").make(tmp_path / "d.h5")
    with pytest.raises(DataError, match=r"2 object\(s\), expected 1"):
        data_recipes.get("two-objects")(render=REFERENCES, objects=1).make(tmp_path / "d.h5")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"objects": 3}, "got 3, expected 1 or 2"),
        ({"colours": "blue,grey"}, "did you mean 'gray'"),
        ({"shapes": ""}, "unknown word ''"),
        ({"materials": []}, "expected some of rubber,metal"),
        ({"number": 5, "render": "scenes.json"}, "leave it out with render"),
        ({"renderer": "blender"}, "unknown setting 'renderer'"),
        ({"source": "mnist"}, "unknown setting 'source'"),
        ({"samples": 0, "size": 4}, "setting 'samples'"),
    ],
)
def test_wrong_settings_are_named(settings, complaint):
    with pytest.raises(SettingsError) as caught:
        validate(data_recipes.get("two-objects"), settings)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)
