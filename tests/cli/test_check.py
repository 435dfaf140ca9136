"""``mmgen check``: contract tests of the members of a file."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

DOCS = Path(__file__).resolve().parents[2] / "docs"
PACKAGE = Path(__file__).resolve().parents[1] / "stranger" / "mmgen_stranger"


def page_block(page: str, number: int = 0) -> str:
    """A block of Python of a page."""
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.S | re.M)[number]


@pytest.mark.parametrize(
    ("page", "number", "line"),
    [
        ("how-to-add-an-objective.md", 0, "objective\ttext-side\tpassed"),
        ("how-to-add-an-objective.md", 1, "objective\tpulled\tpassed"),
        ("how-to-add-a-recipe.md", 0, "recipe\tplain\tpassed"),
        ("how-to-add-a-recipe.md", 1, "recipe\ttwo-tone\tpassed"),
        ("how-to-add-a-figure.md", 0, "figure\tradii\timported"),
    ],
)
def test_members_of_the_pages_pass(page: str, number: int, line: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(page_block(page, number))
    done = run("check", "mine.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{line}\n", "")


def test_each_failure_is_a_sentence_and_the_others_are_checked(run: Run, tmp_path: Path) -> None:
    source = page_block("how-to-add-an-objective.md")
    above = source.replace("value = likelihoods", "value = 100 + likelihoods").replace("TextSide", "Above")
    scalar = source.replace("return Bound(value,", "return Bound(value.mean(),").replace("TextSide", "Scalar")
    raises = source.replace("value = likelihoods", "value = {}[0] + likelihoods").replace("TextSide", "Raises")
    parts = "\n\n".join(one.replace("__all__", "_all") for one in (above, scalar, source, raises))
    (tmp_path / "mine.py").write_text(f"{parts}\n\nclass Elbo(TextSide):\n    ...\n")
    done = run("check", "mine.py")
    assert done.returncode == 1
    lines = {line.split("\t")[1]: line.split("\t")[2:] for line in done.stdout.splitlines()}
    assert lines["text-side"] == ["passed"]
    assert lines["above"][0] == "failed" and "is above the exact log-likelihood by 9" in lines["above"][1]
    assert "value has the shape () for 5 examples, expected (5,)" in lines["scalar"][1]
    assert re.search(r"^it raises KeyError: 0 in line \d+$", lines["raises"][1])
    assert "the name is offered by mmgen" in lines["elbo"][1]
    assert done.stderr == (
        "mmgen: 4 of 5 members of mine.py failed: objective above, objective scalar, objective raises, "
        "objective elbo; fix the file and check it again\n"
    )


def test_settings_make_a_recipe_small(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text((PACKAGE / "two_tone.py").read_text())
    done = run("check", "mine.py", "--set", "size=8", "--json")
    assert json.loads(done.stdout) == {"kind": "recipe", "name": "two-tone", "result": "passed", "failure": ""}
    done = run("check", "mine.py", "--set", "sise=8")
    assert done.returncode == 1 and "sise" in done.stdout and "did you mean 'size'?" in done.stdout


def test_a_path_among_the_settings_of_a_file_is_found(run: Run, tmp_path: Path) -> None:
    source = page_block("how-to-add-a-recipe.md")
    typed = source.replace("number: int = 1000", "number: int = 1000\n    where: Path = Path('x')")
    (tmp_path / "mine.py").write_text(typed.replace("import numpy", "from pathlib import Path\n\nimport numpy"))
    done = run("check", "mine.py")
    assert done.returncode == 1 and "the settings of the file hold the path where" in done.stdout


def test_attributes_of_another_type_are_one_sentence(run: Run, tmp_path: Path) -> None:
    source = page_block("how-to-add-a-recipe.md").replace("self.number, 1), np.uint8", "self.number, 1), np.int64")
    (tmp_path / "mine.py").write_text(source.replace("255 * white", "np.uint8(255) * white.astype(np.uint8)"))
    done = run("make-data", "plain", "--code", "mine.py")
    assert done.returncode == 1 and done.stderr.count("\n") <= 3 and "Traceback" not in done.stderr
    assert "modalities/attributes: rows are int64, expected uint8; use astype" in done.stderr


def test_settings_without_a_recipe_are_refused_before_any_check(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(page_block("how-to-add-an-objective.md"))
    done = run("check", "mine.py", "--set", "number=8")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "mmgen: number got a value, but mine.py defines no dataset recipe; leave it out\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "mine.py: no such file"),
        ("class A(BaseException): ...\nraise A\n", "cannot be run: A"),
        ("x = 1\n", "the code mine.py defines no member"),
    ],
)
def test_files_without_members(text: str | None, message: str, run: Run, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    done = run("check", "mine.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1


OUTSIDE = Path(__file__).resolve().parents[1] / "outside" / "mixture.py"
MUTATIONS = {
    "sign": ("model.log_prior(z) - log_q", "log_q - model.log_prior(z)"),
    "no log K": (" - math.log(self.draws)", ""),
    "more than log M": ("- known.sum(0).log()", "- 9 * known.sum(0).log()"),
    "detached": ("[[True, False], [False, True]])", "[[True, False], [False, True]]).detach()"),
    "no prior": ("likelihood + model.log_prior(z) - log_q", "likelihood - log_q"),
    "one modality": ("for name, term in terms.items())", "for name, term in [*terms.items()][:1])"),
    "no weights": ("weights[name] * term", "term"),
    "a tenth": ("likelihood = sum(", "likelihood = 0.1 * sum("),
    "one for all": ("value = (bound * known).sum(0) / known.sum(0)", "value = bound.mean()"),
    "unknown": ("masked_fill(~known, -torch.inf)", "masked_fill(~present, -torch.inf)"),
    "a sum": (".sum(0) / known.sum(0)", ".sum(0)"),
}
"""What goes wrong in an objective: of eleven changes all but the last are found; a bound that is too low is a bound."""


def test_an_outside_mixture_passes_with_its_own_model_and_its_mutations_do_not(run: Run, tmp_path: Path) -> None:
    source = OUTSIDE.read_text()
    start = source.index("@dataclass")
    parts = [source.replace("__all__ =", "_all =")]
    for number, (found, instead) in enumerate(MUTATIONS.values()):
        assert source.count(found) >= 1, found
        parts.append(source[start:].replace(found, instead).replace("class Experts", f"class Mutation{number}"))
    (tmp_path / "mine.py").write_text("\n\n".join(parts))
    done = run("check", "mine.py")
    lines = {line.split("\t")[1]: line.split("\t")[2:] for line in done.stdout.splitlines()}
    assert (lines["experts"], lines["experts-vae"]) == (["passed"], ["passed"])
    passed = [name for number, name in enumerate(MUTATIONS) if lines[f"mutation{number}"] == ["passed"]]
    assert passed == ["a sum"]
