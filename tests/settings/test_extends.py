"""Presets and settings files that build upon a preset."""

import copy
from typing import Any

import pytest

from mmgen.core.errors import SettingsError, UsageError
from mmgen.core.parsing import parse_toml
from mmgen.settings import presets
from mmgen.settings.config import find_preset
from mmgen.settings.extends import format_preset_with_origins, load_preset, resolve_extends


def test_a_preset_has_the_values_of_the_one_that_it_extends() -> None:
    base, over = load_preset("wu/celeba"), load_preset("wu/celeba19")
    assert parse_toml(presets.read_preset("wu/celeba19"))["extends"] == "wu/celeba"
    assert over["training"] == base["training"]
    assert (base["objective"].get("subsets"), over["objective"]["subsets"]) == (None, 1)
    assert "batch_norm" in base["model"]["attribute_network"], "what the test is about"
    assert "batch_norm" not in over["model"]["attribute_network"]
    assert not {"extends", "without"} & over.keys()


@pytest.mark.parametrize("name", presets.preset_names())
def test_a_preset_with_origins_reads_as_the_same_values(name: str) -> None:
    text = format_preset_with_origins(name)
    assert text.startswith(f"# {presets.describe_preset(name).split()[0]}")
    assert parse_toml(text) == load_preset(name)
    if base := parse_toml(presets.read_preset(name)).get("extends"):
        assert f"# Extends {base}" in text


def test_comments_stay_with_the_values() -> None:
    lines = format_preset_with_origins("wu/celeba19-cpu").splitlines()
    assert "kl_warmup_steps = 1500      # ours, for the short schedule (published: a fifth of the steps)" in lines
    assert "head_layers = 0             # WG Table 1: features to Gaussian in one linear layer (wu/celeba)" in lines


TREE = {
    "base": {"a": {"x": 1, "y": {"p": 1, "q": 2}}, "b": {"name": "one", "size": 3}},
    "middle": {"extends": "base", "without": ["a.y.p"], "a": {"x": 2}, "b": {"name": "two"}},
    **{f"chain{n}": {"extends": f"chain{n + 1}", "a": {"n": n}} for n in range(9)},
    "chain9": {"a": {"n": 9, "last": True}},
}
"""Files by name, instead of presets."""


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({"a": {"x": 5}}, {"a": {"x": 5}}),
        ({"extends": "base"}, TREE["base"]),
        ({"extends": "base", "a": {"x": 5}}, {**TREE["base"], "a": {"x": 5, "y": {"p": 1, "q": 2}}}),
        ({"extends": "base", "without": ["a"], "a": {"z": 5}}, {"a": {"z": 5}, "b": TREE["base"]["b"]}),
        ({"extends": "base", "without": ["b", "a.y"]}, {"a": {"x": 1}}),
        ({"extends": "middle"}, {"a": {"x": 2, "y": {"q": 2}}, "b": {"name": "two"}}),
        ({"extends": "chain2", "a": {"x": 0}}, {"a": {"n": 2, "last": True, "x": 0}}),  # eight, which is the most
    ],
)
def test_a_file_has_the_values_of_what_it_extends_but_those_that_it_drops(own: Any, expected: Any) -> None:
    before = copy.deepcopy(TREE)
    assert resolve_extends(own, "mine.toml", TREE.__getitem__) == expected
    assert before == TREE, "what is extended stays as it was"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"extends": ""}, "'extends' of mine.toml got '', expected the name of a file"),
        ({"extends": 3}, "'extends' of mine.toml got 3, expected the name of a file"),
        ({"extends": "base", "without": "a"}, "'without' of mine.toml got 'a', expected a list of names"),
        ({"extends": "base", "without": [3]}, "'without' of mine.toml got [3], expected a list of names"),
        ({"without": ["a"]}, "'without' of mine.toml needs a file to drop settings of; name one"),
        ({"extends": "base", "without": ["a.z"]}, "'a.z', which file base does not set"),
        ({"extends": "base", "without": ["a.x.all"]}, "which file base does not set"),
        ({"extends": "chain1"}, "mine.toml extends a chain of more than 8 files"),
        ({"extends": "round"}, "mine.toml extends a chain of more than 8 files"),
    ],
)
def test_what_cannot_be_extended_is_refused_in_a_sentence(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        resolve_extends(values, "mine.toml", {**TREE, "round": {"extends": "round"}}.__getitem__, "file")
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["wu/minst", "../../secret", "/etc/passwd", "mine.toml"])
def test_only_presets_of_the_package_are_extended(name: str) -> None:
    with pytest.raises(UsageError, match="preset"):
        resolve_extends({"extends": name}, "mine.toml")


@pytest.mark.parametrize(
    ("name", "recipe", "on_cpu", "found"),
    [
        ("vedantam/telbo-mnist-a", "", True, "vedantam/telbo-mnist-a"),
        ("vedantam/telbo", "mnist-a", False, "vedantam/telbo-mnist-a"),
        ("vedantam/telbo", "mnist-a", True, "vedantam/telbo-mnist-a-cpu"),
        ("cremer/celeba", "words", True, "cremer/celeba-words-cpu"),
        ("vedantam/telbo", "celeba", True, "vedantam/telbo-celeba-cpu"),
        ("vedantam/bivcca", "mnist-2bit", True, "vedantam/bivcca-mnist-2bit"),
        ("kim/dsprites-factor", "vae", True, "kim/dsprites-factor-vae-cpu"),
        ("cremer/elbo", "mnist-a", False, "cremer/elbo-mnist-a-cpu"),
    ],
)
def test_a_name_without_a_dataset_means_its_variant(name: str, recipe: str, on_cpu: bool, found: str) -> None:
    assert find_preset(name, recipe, on_cpu) == found
