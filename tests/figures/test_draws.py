"""Drawing for descriptions: the judge's verdicts, independent streams, the abstraction hierarchy, comparisons."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import parse
from mmgen.figures.drawing.page import FRAME, Grid
from mmgen.figures.drawing.samples import draw_comparison, explain_red_frames
from mmgen.generation.classifiers import format_mismatches, has_mismatch
from mmgen.generation.concepts import abstraction_levels, choose_concepts
from mmgen.generation.descriptions import Descriptions
from mmgen.generation.draws import draw, format_share_correct, list_unrestricted_warnings

QUERIES = np.array([[3, 0], [3, UNKNOWN], [UNKNOWN, UNKNOWN], [1, 1]], np.uint8)


def _red(grid: Grid) -> list[bool]:
    pixels = np.asarray(grid.image).astype(int)
    return [
        bool(pixels[top - FRAME, left - FRAME, 0] > 150 > pixels[top - FRAME, left - FRAME, 1])
        for left, top, *_ in grid.boxes
    ]


def test_a_judge_disagrees_only_about_what_was_asked(stubs: SimpleNamespace) -> None:
    drawn = draw(stubs.FlatLoaded(), QUERIES, 3, posterior="own", seed=1, classifier=stubs.Reader())
    assert drawn.predicted is not None and drawn.mismatches is not None
    assert (drawn.predicted == [3, 1]).all()  # always a small 3
    assert drawn.mismatches.tolist() == [[True] * 3, [False] * 3, [False] * 3, [True] * 3]
    # 3 images each: "3 big" has 1 of 2 right, "3" 1 of 1, "1 small" 1 of 2; "anything" asks for nothing.
    assert drawn.correct_counts == (3 * 3, 3 * 5)
    assert format_share_correct(drawn) == "60.0 % of 15 attributes right"


def test_the_true_posterior_is_never_framed(stubs: SimpleNamespace) -> None:
    drawn = draw(stubs.FlatLoaded(), QUERIES, 2, posterior="aggregate", classifier=stubs.Reader())
    assert drawn.mismatches is not None and not drawn.mismatches.any()
    assert drawn.means.shape == (4, 2, 1, 6, 6) and drawn.z.shape == (4, 2, 3)
    assert np.allclose(drawn.means[0, :, 0, 0, 0], 0.75)


def test_images_of_a_description_do_not_depend_on_the_others(stubs: SimpleNamespace) -> None:
    together = draw(stubs.FlatLoaded(), QUERIES, 4, posterior="aggregate", seed=5)
    alone = draw(stubs.FlatLoaded(), QUERIES[3:], 4, posterior="aggregate", seed=5)
    assert np.array_equal(together.z[3], alone.z[0])
    assert np.array_equal(together.sampled[3], alone.sampled[0])
    other = draw(stubs.FlatLoaded(), QUERIES[3:], 4, posterior="aggregate", seed=6)
    assert not np.array_equal(other.z, alone.z)
    assert alone.mismatches is None and format_share_correct(alone) == ""


def test_a_conditional_model_is_told_the_description(stubs: SimpleNamespace) -> None:
    loaded = stubs.FlatLoaded(model=stubs.FlatModel(conditional=True))
    draw(loaded, QUERIES[1:2], 5, posterior="prior")
    condition = loaded.model.conditions[0]
    assert condition.values["attributes"].tolist() == [[3, 0]] * 5
    assert condition.present["attributes"].tolist() == [[True, False]] * 5


def test_mistakes_are_named(stubs: SimpleNamespace) -> None:
    class Other(stubs.Reader):
        names = ("number", "scale")

    with pytest.raises(
        UsageError, match="the judge was trained on the attributes number, scale, expected digit, scale"
    ):
        draw(stubs.FlatLoaded(), QUERIES, 1, posterior="own", classifier=Other())
    with pytest.raises(UsageError, match="4 descriptions and 0 images"):
        draw(stubs.FlatLoaded(), QUERIES, 0, posterior="own")


def test_verdicts_and_captions(stubs: SimpleNamespace) -> None:
    asked = np.array([3, UNKNOWN], np.uint8)
    assert not has_mismatch(asked, np.array([3, 1], np.uint8))
    assert has_mismatch(asked, np.array([2, 1], np.uint8))
    assert format_mismatches(asked, np.array([2, 1], np.uint8), stubs.INFO) == "judge: 2"
    assert format_mismatches(asked, np.array([3, 1], np.uint8), stubs.INFO) == ""
    assert format_mismatches(np.array([3, 0], np.uint8), np.array([0, 1], np.uint8), stubs.INFO) == "judge: 0, small"


def test_what_has_nothing_in_common_is_not_judged(stubs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is drawn would be right of a description that says nothing: it counts neither as right nor as wrong."""
    empty = parse("digit=3 IN COMMON digit=2", stubs.INFO)
    said = parse("digit=3 AND scale=small", stubs.INFO)
    loaded = stubs.FlatLoaded()
    own = loaded.posteriors["own"]
    own.operators = ("AND", "IN COMMON")
    monkeypatch.setattr(type(loaded), "posteriors", {"own": own})
    monkeypatch.setattr(own, "condition_on", lambda _: own)
    asked = Descriptions(np.stack([empty.codes, said.codes]), expressions=(empty, said))
    drawn = draw(loaded, asked, 5, posterior="own", classifier=stubs.Reader())
    assert drawn.correct_counts == (5, 5)
    assert list_unrestricted_warnings(drawn) == [
        "'digit=3 IN COMMON digit=2' has nothing in common, so there is nothing to judge."
    ]
    assert drawn.predicted is not None
    alone = replace(drawn, descriptions=asked[:1], predicted=drawn.predicted[:1])
    assert format_share_correct(alone) == ""


def test_hierarchy_drops_attributes_one_by_one() -> None:
    concept = np.array([3, 0, UNKNOWN, 2], np.uint8)
    levels = abstraction_levels(concept)
    assert levels.tolist() == [[255, 255, 255, 255], [255, 255, 255, 2], [255, 0, 255, 2], [3, 0, 255, 2]]
    assert abstraction_levels(concept, dropping_order=[3, 0, 1]).tolist() == [
        [255, 255, 255, 255],
        [255, 0, 255, 255],
        [3, 0, 255, 255],
        [3, 0, 255, 2],
    ]
    assert concept.tolist() == [3, 0, 255, 2]
    with pytest.raises(UsageError, match="dropping_order got"):
        abstraction_levels(concept, dropping_order=[0, 1, 2])


def test_hierarchy_frames_follow_the_verdicts(stubs: SimpleNamespace) -> None:
    levels = abstraction_levels(np.array([3, 0], np.uint8))  # anything; big; big 3
    draws = [
        (name, draw(stubs.FlatLoaded(), levels, 2, posterior=name, classifier=stubs.Reader()))
        for name in ("own", "aggregate")
    ]
    grid = draw_comparison(draws, ["anything", "big", "big 3"], title="hierarchy", note="seed 0")
    # The stub draws unknown attributes as code 0, so the aggregate is right everywhere; "own" always draws small.
    assert _red(grid) == [False, False, True, True, True, True] + [False] * 6


def test_comparison_needs_the_same_words(stubs: SimpleNamespace) -> None:
    first = draw(stubs.FlatLoaded(), QUERIES, 2, posterior="own", classifier=stubs.Reader())
    second = draw(stubs.FlatLoaded(), QUERIES, 2, posterior="aggregate", classifier=stubs.Reader())
    grid = draw_comparison([("q_true", first), ("q_agg", second)], ["3, big", "3", "*", "1, small"])
    assert _red(grid) == [True, True, False, False, False, False, True, True] + [False] * 8
    other = draw(stubs.FlatLoaded(), QUERIES[:1], 2, posterior="own")
    with pytest.raises(UsageError, match="different descriptions"):
        draw_comparison([("a", first), ("b", other)], ["3", "4"])


def test_chosen_concepts_show_many_values() -> None:
    everything = np.array([[d, s] for d in range(4) for s in range(2)] + [[UNKNOWN, 0]], np.uint8)
    chosen = choose_concepts(everything, 4, seed=3)
    assert sorted(chosen[:, 0]) == [0, 1, 2, 3] and set(chosen[:, 1]) == {0, 1}
    assert len(np.unique(choose_concepts(everything, 99), axis=0)) == 8
    assert np.array_equal(chosen, choose_concepts(everything, 4, seed=3))
    partial = np.array([[d, UNKNOWN] for d in range(3)] + [[UNKNOWN, 1], [UNKNOWN, UNKNOWN]], np.uint8)
    assert sorted(choose_concepts(partial, 9).tolist()) == sorted(partial[:4].tolist())
    with pytest.raises(UsageError, match="no example has a known attribute"):
        choose_concepts(partial[-1:], 2)


def test_notes_say_who_judged() -> None:
    assert "itself right on 91.2 % of held-out attributes" in explain_red_frames({"digit": 90.0, "mean": 91.2})
    assert "No judge" in explain_red_frames(None)


def test_descriptions_are_repeated_one_by_one() -> None:
    asked = Descriptions(np.array([[0, 1], [1, 0]], np.uint8), np.array([[7], [8]])).repeat(2)
    assert (asked.codes.tolist(), asked.tokens.tolist()) == ([[0, 1], [0, 1], [1, 0], [1, 0]], [[7], [7], [8], [8]])
