"""Metrics of disentanglement on codes whose scores are known: perfect, permuted, rotated and noise."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.core.progress import run_generator
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.factors import Code, chance_information, leading_dimensions, read_factors, relative_information
from mmgen.metrics._disentanglement import Disentanglement, _standard_error
from mmgen.metrics.beta_score import BetaScore
from mmgen.metrics.dci import Dci, concentration
from mmgen.metrics.factor_score import FactorScore
from mmgen.metrics.factors_found import FactorsFound
from mmgen.metrics.mig import Mig
from mmgen.metrics.sap import Sap
from tests.small_data import write_small

SIZES = (3, 6, 10, 8)


NAMES = ("shape", "scale", "x", "y")


MEMBERS = (BetaScore, FactorScore, Mig, Sap, Dci)


def factors(number: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.stack([rng.integers(size, size=number) for size in SIZES], 1)


def code(kind: str, number: int = 4000) -> Code:
    """Five dimensions: four for the factors, one that says nothing and hardly varies."""
    rng, found = np.random.default_rng(1), factors(number)
    perfect = np.concatenate([(found / np.array(SIZES) - 0.5) * 3, rng.normal(0, 0.01, (number, 1))], 1)
    turned = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    means = {
        "perfect": perfect,
        "permuted": perfect[:, [4, 2, 0, 3, 1]],
        "rotated": np.concatenate([perfect[:, :4] @ turned, perfect[:, 4:]], 1),
        "noise": rng.normal(size=(number, 5)),
    }[kind]
    return Code(means, found, NAMES)


def measured(member: type[Disentanglement], kind: str, number: int = 4000) -> dict[str, float]:
    return dict(member().measure(code(kind, number), numpy_generator(0, "test")).values)


def first(member: type[Disentanglement], kind: str, number: int = 4000) -> float:
    return next(iter(measured(member, kind, number).values()))


@pytest.mark.parametrize(
    "member",
    [pytest.param(member, marks=pytest.mark.slow if member is Dci else ()) for member in MEMBERS],
    ids=lambda member: member.name,
)
def test_perfect_permuted_rotated_noise(member: type[Disentanglement]) -> None:
    """A perfect code is at the top, in any order of its dimensions; a rotation lowers it; noise is at chance."""
    number = 600 if member is Dci else 1500
    best = 100.0 if member.unit == "%" else 1.0
    chance = 25.0 if member.unit == "%" else 0.0
    perfect, permuted, rotated, noise = (
        first(member, kind, number) for kind in ("perfect", "permuted", "rotated", "noise")
    )
    assert permuted == pytest.approx(perfect, abs=0.03 * best)
    assert noise == pytest.approx(chance, abs=0.07 * best)
    if member is Sap:  # a linear machine of ten values names few of them from one number
        assert perfect > 0.2
        assert rotated < perfect / 2
        return
    assert perfect == pytest.approx(best, abs=0.02 * best)
    assert rotated < perfect - (0.02 if member is BetaScore else 0.2) * best  # the beta score saturates


def test_gap_by_hand() -> None:
    """One bit in the first dimension, copied with an error of 1/4 to the second: gap 1 - (1 - H(1/4)) bits."""
    bit = np.repeat([0, 1], 4000)
    noisy = bit ^ (np.arange(8000) % 4 == 0)
    means = np.stack([bit, noisy], 1).astype(float)
    other = np.arange(8000) % 2
    found = Mig().measure(Code(means, np.stack([bit, other], 1), ("bit", "other")), np.random.default_rng(0))
    entropy = -(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75))
    np.testing.assert_allclose(found.details["gaps"][0], entropy, atol=1e-12)
    np.testing.assert_allclose(found.details["information"][:, 0], [1, 1 - entropy], atol=1e-12)


def test_gap_of_the_perfect_code_of_dsprites() -> None:
    """0.902: 20 bins cannot tell 32 or 40 values apart, so these factors have 0.85 and 0.81."""
    sizes = (3, 6, 40, 32, 32)
    grid = np.stack(np.unravel_index(np.arange(0, np.prod(sizes), 7), sizes), 1)
    found = Mig().measure(
        Code(grid.astype(float), grid, ("shape", "scale", "orientation", "x", "y")), np.random.default_rng(0)
    )
    assert found.values["gap"] == pytest.approx(0.902, abs=0.002)
    np.testing.assert_allclose(found.details["gaps"], [1, 1, 0.812, 0.85, 0.85], atol=0.005)


def test_votes_name_their_factor() -> None:
    found = FactorScore().measure(code("permuted"), np.random.default_rng(0))
    assert found.details["votes"].shape == (5, 4)
    assert found.details["votes"].argmax(0).tolist() == [2, 4, 1, 3]
    assert not found.details["votes"][0].any(), "a dimension that hardly varies is left out"


def test_nothing_varies() -> None:
    constant = Code(np.zeros((100, 3)), factors(100), NAMES)
    assert FactorScore().measure(constant, np.random.default_rng(0)).values["accuracy"] == 25.0


@pytest.mark.parametrize("dimensions", [1, 5])
@pytest.mark.parametrize("active", [0, 1])
@pytest.mark.parametrize("member", [BetaScore, FactorScore, Mig, Sap], ids=lambda member: member.name)
def test_what_says_nothing_is_at_chance_however_few_dimensions_are_active(
    member: type[Disentanglement], active: int, dimensions: int
) -> None:
    """No dimension, or one of noise, beside others that hardly vary; values of a factor are alike frequent or not."""
    rng, number = np.random.default_rng(0), 3000
    values = np.stack(
        [rng.integers(3, size=number), rng.integers(4, size=number), rng.choice(3, number, p=(0.7, 0.2, 0.1))], 1
    )
    means = 0.001 * rng.normal(size=(number, dimensions))
    means[:, :active] = rng.normal(size=(number, active))
    found = member().measure(Code(means, values, ("three", "four", "uneven")), np.random.default_rng(1)).values
    chance, most = (100 / 3, 4.0) if member.unit == "%" else (0.0, 0.02)
    assert next(iter(found.values())) == pytest.approx(chance, abs=most)


def test_gap_of_machines_in_a_single_active_dimension_is_above_a_guess() -> None:
    """It tells the lower half of four values from the upper: right for half of them, and a guess for a quarter."""
    values = np.random.default_rng(0).integers(4, size=(3000, 2))
    means = np.zeros((3000, 5))
    means[:, 2] = 4.0 * (values[:, 0] >= 2) - 2
    found = Sap().measure(Code(means, values, ("followed", "other")), np.random.default_rng(1))
    np.testing.assert_allclose(found.details["gaps"], [0.25, 0], atol=0.03)
    assert Sap().measure(Code(means[:, 2:3], values, ("a", "b")), np.random.default_rng(1)).values["gap"] < 0.15


def test_concentration_by_hand() -> None:
    """A dimension for one factor has 1, one for two alike of two 0; weights are sums of rows."""
    assert concentration(np.array([[1.0, 0.0], [0.5, 0.5]])) == pytest.approx(0.5)
    assert concentration(np.array([[3.0, 0.0], [0.5, 0.5], [0.0, 0.0]])) == pytest.approx(0.75)


def test_rows_alike() -> None:
    found, rng = code("perfect"), np.random.default_rng(0)
    rows = rng.integers(len(found), size=(500, 3))
    for factor in range(4):
        others = found.draw_same_value(rows, factor, rng)
        assert np.array_equal(found.factors[others, factor], found.factors[rows, factor])
        assert len(np.unique(others)) > 900, "not the same few every time"
        assert not (others == rows).any(), "another row"


def test_the_others_are_equally_likely_and_a_lone_row_is_its_own() -> None:
    found = Code(np.zeros((5, 1)), np.array([[0], [1], [0], [0], [2]]), ("a",))
    others = found.draw_same_value(np.repeat(np.arange(5)[:, None], 6000, 1), 0, np.random.default_rng(0))
    for row, expected in ((0, [2, 3]), (2, [0, 3]), (3, [0, 2]), (1, [1]), (4, [4])):
        values, counts = np.unique(others[row], return_counts=True)
        assert values.tolist() == expected
        assert np.abs(counts - 6000 / len(expected)).max() < 4 * np.sqrt(6000 / 4)


def test_the_beta_score_of_noise_is_chance() -> None:
    """Pairs of a picture with itself would tell how many values the factor has."""
    rng = np.random.default_rng(0)
    noise = Code(rng.normal(size=(900, 6)), np.stack([rng.integers(n, size=900) for n in (2, 10, 40)], 1), NAMES[:3])
    found = BetaScore().measure(noise, rng).values["accuracy"]
    assert found == pytest.approx(100 / 3, abs=4.0)


def dataset(path: Path, number: int = 60, unknown: bool = True) -> Path:
    codes = np.stack([np.arange(number) % 3, np.zeros(number)], 1).astype(np.uint8)
    codes[0, 0] = 255 if unknown else 0
    rows = np.arange(number)
    factors = {
        "side": (codes[:, 0] // 255 + rows % 2 * 5).astype(np.uint8), "source": (rows % 4).astype(np.uint32),
        "angle": np.random.default_rng(0).random(number).astype(np.float32), "many": (rows * 3).astype(np.uint16),
    }  # fmt: skip
    values = {"image": np.zeros((number, 1, 4, 4), np.uint8), "attributes": codes}
    names = {"tone": ["a", "b", "c"], "constant": ["only", "never"]}
    return write_small(path, values, names, parts=(number, 0), factors=factors)


def test_which_factors(tmp_path: Path) -> None:
    """Rows with unknown attributes are left out; constants, real numbers and numbers of a source are no factors."""
    with Dataset.open(dataset(tmp_path / "d.h5")) as data:
        found = read_factors(data, np.arange(60))
        assert found.names == ("tone", "side"), "every value of many is of one example"
        assert found.rows[0] == 1
        assert found.values.max(0).tolist() == [2, 1]
        assert read_factors(data, np.arange(60), ["side", "source"]).names == ("side", "source")


@pytest.mark.parametrize(
    ("rows", "asked", "said"),
    [
        (60, ["tone", "angle"], "--factor got angle, expected some of tone, side, source: attr"),
        (60, ["tone", "many"], r"--factor got many, .* which 10 examples or more of the 60 have each"),
        (60, ["tone"], r"at least two factors.* name a second with --factor$"),
        (10, ["side"], "--factor got side, but the dataset has none"),
        (10, None, r"20 examples.*use a larger dataset, or one with factors"),
        (-10, None, "use more --encodings, or one with factors"),
    ],
)
def test_what_are_no_factors_is_said(rows: int, asked: list[str] | None, said: str, tmp_path: Path) -> None:
    """-10: ten rows, of more that are there."""
    with Dataset.open(dataset(tmp_path / "d.h5")) as data, pytest.raises(UsageError, match=said):
        read_factors(data, np.arange(abs(rows)), asked, require_all=rows > 0)


def test_rows_with_rare_values_are_left_out_and_sizes_of_files_are_no_factors(tmp_path: Path) -> None:
    """Nine examples have shape 2: they go, and with them eight of the seventeen of tone 1, whose other nine go too."""
    shape = np.repeat([0, 1, 2], [50, 41, 9])
    tone = np.zeros(100, np.int64)
    tone[[*range(9), *range(91, 99)]] = 1
    tone[20:40] = 2
    columns = {"shape": shape, "tone": tone, "width": shape % 2, "height": shape % 2}
    factors = {name: column.astype(np.int32) for name, column in columns.items()}
    pictures = {"image": np.zeros((100, 1, 4, 4), np.uint8)}
    with Dataset.open(write_small(tmp_path / "d.h5", pictures, parts=(100, 0), factors=factors)) as data:
        found = read_factors(data, np.arange(100))
        assert found.names == ("shape", "tone")
        assert found.rows.tolist() == list(range(9, 91))
        assert np.bincount(found.values[:, 0]).tolist() == [41, 41]
        assert np.bincount(found.values[:, 1]).tolist() == [62, 20]
        assert read_factors(data, np.arange(100), ["shape", "width"]).names == ("shape", "width")


@pytest.mark.parametrize("member", [Mig, Sap, Dci], ids=lambda member: member.name)
def test_a_value_that_a_part_does_not_have(member: type[Disentanglement]) -> None:
    """One of two factors never varies: nothing is told apart, and no score is lost."""
    found = np.stack([np.arange(200) % 2, np.zeros(200, np.int64)], 1)
    means = np.stack([found[:, 0] * 2.0 - 1, np.random.default_rng(0).normal(size=200)], 1)
    values = member().measure(Code(means, found, ("bit", "same")), np.random.default_rng(0)).values
    assert all(np.isfinite(value) for value in values.values())
    if member is not Dci:
        gap = 1 if member is Mig else 0.5
        assert values["gap"] == pytest.approx(gap / 2, abs=0.1)


def test_a_single_dimension_is_complete() -> None:
    """All that there is of a factor is in it: completeness 1; alike for two factors: disentanglement 0."""
    assert concentration(np.array([[1.0], [1.0]])) == 1.0
    assert concentration(np.array([[1.0, 1.0]])) == pytest.approx(0.0)
    assert concentration(np.zeros((2, 2))) == 0.0


def test_repeats_and_their_error() -> None:
    """The value is the mean over five halves, its error that of a mean over halves of one sample."""
    whole = code("rotated", 400)
    evaluation = SimpleNamespace(
        encodings=whole,
        settings=SimpleNamespace(seed=3),
        loaded=SimpleNamespace(observation=SimpleNamespace(name="image")),
        content_ids={},
    )
    (score,) = run_generator(Mig()(evaluation, "prior"))
    repeats = np.array(score.details["repeats"])
    assert len(set(repeats)) == 5
    assert score.value == pytest.approx(repeats.mean())
    assert score.stderr == pytest.approx(repeats.std(ddof=1) * (1 + 1 / 5) ** 0.5)
    assert score.details["better_half"] == pytest.approx(np.sort(repeats)[2:].mean())
    assert score.n == 200


def test_errors_know_of_the_choice_of_examples() -> None:
    """Means over halves of 200 normal numbers: the mean of five halves has the variance (1 + 1/5) / 200."""
    rng, values, squares = np.random.default_rng(0), [], []
    for _ in range(1000):
        numbers = rng.normal(size=200)
        halves = np.array([rng.permutation(numbers)[:100].mean() for _ in range(5)])
        values.append(halves.mean())
        squares.append(_standard_error(halves, 0) ** 2)
    assert np.var(values) == pytest.approx(1.2 / 200, rel=0.15)
    assert np.mean(squares) == pytest.approx(1.2 / 200, rel=0.1)


def test_errors_of_answers_are_less_the_more_repeats_there_are() -> None:
    """Shares of 500 answers each, whose examples say nothing: binomial over all 2,500, or a little more."""
    rng = np.random.default_rng(0)
    shares = 100 * rng.binomial(500, 0.7, size=(2000, 5)) / 500
    squares = [_standard_error(row, 500) ** 2 for row in shares]
    assert 1.0 <= np.mean(squares) / (100**2 * 0.7 * 0.3 / 2500) <= 4.0


@pytest.mark.parametrize(("kind", "found"), [("perfect", 4), ("permuted", 4), ("noise", 0)])
def test_factors_found_of_perfect_permuted_noise(kind: str, found: int) -> None:
    values = FactorsFound().measure(code(kind, 2000), np.random.default_rng(0)).values
    assert values["factors found"] == found
    assert len(values) == 1 + 4


def test_factors_found_of_turned_codes() -> None:
    """Turned so that every dimension holds a quarter of every factor, none is found; turned at random, fewer are."""
    perfect = code("perfect", 2000)
    signs = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    scaled = perfect.means[:, :4] / perfect.means[:, :4].std(0)
    evenly = Code(scaled @ signs, perfect.factors, perfect.names)
    assert FactorsFound().measure(evenly, np.random.default_rng(0)).values["factors found"] == 0
    assert FactorsFound().measure(code("rotated", 2000), np.random.default_rng(0)).values["factors found"] == 2


def test_each_dimension_of_a_permuted_code_follows_its_factor() -> None:
    permuted = code("permuted", 2000)
    each = leading_dimensions(relative_information(permuted), NAMES)
    assert [one.dimension for one in each] == [2, 4, 1, 3]
    assert all(one.has_own_dimension and one.information > 0.98 for one in each)


def test_what_noise_says_of_factors_is_what_chance_is() -> None:
    noise = code("noise", 2000)
    found = relative_information(noise)
    filled = np.array([[len(np.histogram(column, 20)[0].nonzero()[0]) for column in noise.means.T]]).T
    assert found.mean(0) == pytest.approx(chance_information(noise) * (filled.mean() - 1) / 19, rel=0.3)
    assert (found - chance_information(noise) < 0.03).all()


def test_a_dimension_of_two_factors_is_its_own_of_one_at_most() -> None:
    """One dimension holds both bits, the second none: it says all of either, and neither is found."""
    one, other = np.arange(400) % 2, np.arange(400) // 2 % 2
    means = np.stack([one + 2.0 * other, np.random.default_rng(0).normal(size=400)], 1)
    found = leading_dimensions(relative_information(Code(means, np.stack([one, other], 1), ("a", "b"))), ("a", "b"))
    assert [follower.dimension for follower in found] == [0, 0]
    assert [follower.information for follower in found] == pytest.approx([1, 1])
    assert not any(follower.has_own_dimension for follower in found)


def test_two_dimensions_of_one_factor_leave_no_gap() -> None:
    values = np.arange(400) % 4
    both = Code(np.stack([values, -values], 1).astype(float), np.stack([values, values // 2], 1), ("a", "b"))
    found = leading_dimensions(relative_information(both), ("a", "b"))
    assert found[0].gap == pytest.approx(0, abs=1e-9) and not found[0].has_own_dimension


def test_a_dimension_that_hardly_varies_finds_nothing() -> None:
    """Its mean follows a factor, but between two examples it moves less than any draw of z does."""
    perfect = code("perfect", 1000)
    faint = Code(perfect.means * np.array([0.01, 1, 1, 1, 1]), perfect.factors, perfect.names)
    assert FactorsFound().measure(faint, np.random.default_rng(0)).values["factors found"] == 3


def test_scores_say_each_factor() -> None:
    evaluation = SimpleNamespace(
        encodings=code("permuted", 1000),
        settings=SimpleNamespace(seed=3),
        loaded=SimpleNamespace(observation=SimpleNamespace(name="image")),
        content_ids={},
    )
    count, *each = run_generator(FactorsFound()(evaluation, "prior"))
    assert (count.value, count.unit, count.details["factors_in_all"]) == (4, "factors", 4)
    assert count.details["found_factors"] == list(NAMES)
    assert [score.quantity for score in each] == [f"information on {name}" for name in NAMES]
    assert [score.details["dimension"] for score in each] == [3, 5, 2, 4]
    assert all(score.details["found"] == 1 and score.unit == "of 1" for score in each)
