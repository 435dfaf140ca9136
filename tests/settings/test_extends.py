"""Presets and settings files that build upon a preset."""

import pytest

from mmgen.core.errors import SettingsError, UsageError
from mmgen.core.parsing import parse_toml
from mmgen.settings import presets
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


def test_a_file_may_extend_a_preset() -> None:
    own = {"extends": "wu/mnist", "without": ["model.attribute_network"], "training": {"steps": 5}}
    expected = load_preset("wu/mnist")
    del expected["model"]["attribute_network"]
    expected["training"]["steps"] = 5
    assert resolve_extends(own, "mine.toml") == expected
    assert resolve_extends({"training": {"steps": 5}}, "mine.toml") == {"training": {"steps": 5}}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"extends": ""}, "'extends' of mine.toml got '', expected the name of a preset"),
        ({"extends": 3}, "'extends' of mine.toml got 3, expected the name of a preset"),
        ({"extends": "wu/mnist", "without": "model"}, "'without' of mine.toml got 'model', expected a list"),
        ({"without": ["model"]}, "'without' of mine.toml needs a preset to drop settings of; name one"),
        ({"extends": "wu/mnist", "without": ["model.hiden"]}, "'model.hiden', which preset wu/mnist does not set"),
        ({"extends": "wu/mnist", "without": ["training.steps.all"]}, "which preset wu/mnist does not set"),
    ],
)
def test_what_cannot_be_extended_is_refused_in_a_sentence(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        resolve_extends(values, "mine.toml")
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["wu/minst", "../../secret", "/etc/passwd", "mine.toml"])
def test_only_presets_of_the_package_are_extended(name: str) -> None:
    with pytest.raises(UsageError, match="preset"):
        resolve_extends({"extends": name}, "mine.toml")


def test_presets_that_extend_each_other_end_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"wu/mnist": "wu/celeba", "wu/celeba": "wu/mnist"}
    monkeypatch.setattr(presets, "read_preset", lambda name: f'extends = "{other[name]}"')
    with pytest.raises(SettingsError, match="extends a chain of more than 8 presets"):
        load_preset("wu/mnist")
