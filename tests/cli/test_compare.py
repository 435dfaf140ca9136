"""``mmgen compare``: tables, lines, CSV, Markdown and LaTeX of hand-made scores."""

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mmgen.results.comparing import compare_scores
from mmgen.results.score import Score
from tests.program import within
from tests.results.test_comparing import of, score

Files = list[tuple[str, list[Score]]]


def files() -> Files:
    return [*of("telbo", 80.0, 82.0, 87.0), *of("jmvae_a&b", 78.0, 79.0, 86.0)]


def write(folder: Path, scores: Files) -> list[str]:
    for name, part in scores:
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one.to_json()) + "\n" for one in part))
    return [f"{name}.jsonl" for name, _ in scores]


def run(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return within(folder, "compare", *arguments)


def test_a_pipe_gets_lines_and_logs_are_left_out(tmp_path: Path) -> None:
    names = write(tmp_path, files())
    (tmp_path / "telbo.log.jsonl").write_text('{"step": 1}\n')
    done = run(*names, "telbo.log.jsonl", "--against", "telbo", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "logs of training are no scores, and are left out: 1 of 7 files" in done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(lines) == 2 and len({len(line) for line in lines}) == 1
    told = dict(zip(compare_scores(files()).number_table().columns, lines[1], strict=True))
    assert (told["name"], told["n"], told["mean"], told["against"]) == ("jmvae_a&b", "3", "81.0", "telbo")
    assert (told["difference"], told["difference_n"], told["difference_over"]) == ("-2.0", "3", "seeds")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--csv", "--md"], "--csv and --md are given together, expected one"),
        (["--against", "tlbo"], "--against: unknown row 'tlbo': did you mean 'telbo'?"),
    ],
)
def test_mistakes(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = run(*write(tmp_path, files()), *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_no_scores(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    write(tmp_path, files())
    for names in (
        ["a.jsonl"],
        [next(path.name for path in tmp_path.glob("*.jsonl") if path.stat().st_size), "a.jsonl"],
    ):
        done = run(*names, folder=tmp_path)
        assert (done.returncode, done.stdout) == (1, "") and "a.jsonl holds no scores, expected some" in done.stderr
    (tmp_path / "b.log.jsonl").write_text('{"step": 1}\n')
    done = run("b.log.jsonl", folder=tmp_path)
    assert done.returncode == 2 and "got no scores in these files" in done.stderr


@pytest.mark.parametrize("field", ["value", "stderr", "points"])
def test_numbers_that_no_sum_holds_are_refused_in_a_sentence(tmp_path: Path, field: str) -> None:
    names = write(tmp_path, of("c", 1.0, 2.0))
    for name, size in zip(names, (1.7e308, -1.7e308), strict=True):
        record = json.loads((tmp_path / name).read_text())
        record[field] = {"values": [size, -size]} if field == "points" else size
        (tmp_path / name).write_text(json.dumps(record) + "\n")
    done = run(*names, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "line 1 is no score, expected one" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("size", [9e59, 1e-200])
def test_the_largest_and_smallest_numbers_are_compared(tmp_path: Path, size: float) -> None:
    names = write(tmp_path, [*of("c", size, -size), *of("d", size, 0.0, -size), *of("e", size), *of("f", -size, size)])
    done = run(*names, "--against", "c", folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_csv_and_json_say_the_same() -> None:
    compared = compare_scores(files(), "telbo")
    lines = list(csv.DictReader(io.StringIO(compared.number_table().csv())))
    records = [json.loads(line) for line in compared.json_lines().splitlines()]
    for line, record in zip(lines, records, strict=True):
        assert line == {key: "" if value is None else str(value) for key, value in record.items()}
    assert [record["best"] for record in records] == [True, True], "-2.00 [-4.48, +0.48] holds 0"


def test_markdown_is_a_table() -> None:
    text = compare_scores(files(), "telbo").markdown()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {5}
    assert "| telbo | q(z\\|y) | **83** ± 4 | 3 |" in rows
    assert "| jmvae_a&b | q(z\\|y) | -2.0 [-4.5, +0.5] | 3 |" in rows  # differences 2, 3, 1: 2 -+ 4.303 / sqrt(3)


def test_equal_differences_say_that_they_have_no_spread() -> None:
    compared = compare_scores([*of("a", 70.1, 82.3), *of("b", 71.1, 83.3)], "a")
    text = compared.markdown()
    assert "+1.00 (no spread)" in text and "[" not in text.replace("[low", "")
    assert "no spread: all differences are the same" in text
    (line,) = (json.loads(line) for line in compared.json_lines().splitlines() if '"b"' in line)
    assert (line["difference_stderr"], line["difference_low"], line["difference_high"]) == (0.0, None, None)


def test_latex_is_escaped() -> None:
    text = compare_scores(files(), "telbo").latex()
    assert r"jmvae\_a\&b & q(z\textbar{}y) & $\mathbf{81} \pm 4$ & 3 \\" in text
    assert r"$\mathbf{83} \pm 4$" in text and r"& $-2.0\ [-4.5, +0.5]$ &" in text
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    assert r"\label{tab:correctness-exact-iid}" in text and r"\label{tab:correctness-exact-iid-difference}" in text
    assert all(rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule"))


def test_latex_has_a_row_for_each_posterior_and_weight() -> None:
    """Each number has the decimals of its own error; no two labels are the same."""
    plain, other = score("a", 0, 84.46), replace(score("a", 0, 77.7), given=3, stderr=1.6)
    guided = {"posterior": "guided", "base": "own", "guidance": 3.0}
    scores = [replace(plain, stderr=0.8), other, replace(plain, **guided, value=1234.5, stderr=0.41)]
    scores += [replace(other, **guided, guidance_method="cfg", value=80.04)]
    scores += [replace(plain, ids={**plain.ids, "judge": "another"})]
    compared = compare_scores([("a", scores)])
    text = compared.latex()
    assert [row.split(" & ")[1:] for row in text.splitlines() if row.startswith("a-seed0 & ")][:3] == [
        [r"q(z\textbar{}y)", r"$84.5 \pm 0.8$", r"$\mathbf{77.7} \pm 1.6$", r"1 \\"],
        [r"q(z\textbar{}y) guided (w = 3)", r"$\mathbf{1{,}234.5} \pm 0.4$", "", r"1 \\"],
        [r"q(z\textbar{}y) guided (cfg 3)", "", r"$\mathbf{80.0} \pm 1.6$", r"1 \\"],
    ]
    assert re.findall(r"\\label\{(.*)\}", text) == ["tab:correctness-exact-iid", "tab:correctness-exact-iid-2"]
    assert text.count(r". $\pm$ is the standard error over examples}") == 2
    records = [json.loads(line) for line in compared.json_lines().splitlines()]
    assert [(one["guidance"], one["guidance_method"]) for one in records[:4]] == [(None, None)] * 2 + [
        (3.0, None),
        (3.0, "cfg"),
    ]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no LaTeX here")
def test_latex_can_be_set(tmp_path: Path) -> None:
    text = compare_scores(files(), "telbo").latex()
    page = f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}{text}\n\\end{{document}}"
    (tmp_path / "page.tex").write_text(page)
    done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "page.tex"], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stdout[-1000:]


def test_a_single_run_has_the_error_of_its_examples() -> None:
    compared = compare_scores([("a", [score("a", 0, 80.0)])])
    (table,) = compared.printable_tables()
    assert table.columns == ["", "drawn from", "4 given", "seeds"]
    assert [[str(cell) for cell in row] for row in table.rows] == [["a-seed0", "q(z|y)", "80.0 ± 0.5", "1"]]
    assert compared.legend() == "± is the standard error over examples."
