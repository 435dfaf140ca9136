"""Words first: every way from words to pictures, asked as it is and with its open words completed, over seeds.

    python benchmarks/words_first.py FOLDER DATA [--seeds 0,1,2] [--rows benchmarks/words-first.toml] [--part test]
        [--only TEXT] [--tables] [--picture FILE]

FOLDER holds DATA.h5, the judges, and trained files by the names of the rows; a row without a file is left out.
Scores are made by ``mmgen eval`` beside them, in FOLDER/scores; what is there is not made again. Tables go to stdout
as Markdown: numbers of the seeds between slashes, and ± the standard error over descriptions, mean of the seeds.
``seconds.tsv`` in FOLDER, if there, has a file's name and processor seconds of its training on each line.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

Line = dict[str, Any]
METRICS = ("correctness", "coverage", "recall", "agreement")
FLAGS = {"as-it-is": "--no-complete", "completed": "--complete"}


class Row(NamedTuple):
    """A row of the tables: what is drawn from, and how its open words are treated."""

    name: str
    file: str
    posterior: str
    guidance: str
    asked: str
    first_only: bool

    @property
    def label(self) -> str:
        return self.name if self.file.startswith("model") else f"{self.name}, {self.asked.replace('-', ' ')}"


class Scores:
    """Score lines of the rows of one set of data, for each seed."""

    def __init__(self, options: argparse.Namespace) -> None:
        settings = tomllib.loads(options.rows.read_text())
        self.options, self.settings, self.data = options, settings, settings["data"][options.data]
        self.folder: Path = options.folder
        self.seeds = [int(seed) for seed in options.seeds.split(",")]
        self.rows = list(self._read_rows())

    def _read_rows(self) -> Iterator[Row]:
        for each in self.settings["row"]:
            if "only_data" in each and self.options.data not in each["only_data"]:
                continue
            guidance = str(self.data["guidance"] if each.get("guided") is True else each.get("guided", "0"))
            for asked in each["asked"]:
                yield Row(each["name"], each["file"], each["posterior"], guidance, asked, each.get("seeds") == "first")

    def file(self, row: Row, seed: int) -> Path:
        return self.folder / f"{row.file.format(seed=seed, **self.data)}.safetensors"

    def measure(self, row: Row, seed: int, metrics: tuple[str, ...], given: list[int], suffix: str = "") -> list[Line]:
        """Return the lines of one row and seed, scored unless that is done; none without a trained file."""
        model = self.file(row, seed)
        guided = "" if row.guidance == "0" else "-guided"
        name = f"{model.stem}-{row.posterior}{guided}-{row.asked}-{self.options.part}{suffix}.jsonl"
        out = self.folder / "scores" / name
        if not out.exists():
            if not model.exists() or self.options.tables or self.options.only not in f"{row.label} {seed}":
                return []
            out.parent.mkdir(exist_ok=True)
            judges = [word for judge in self.settings["judges"] for word in ("--judge", str(self.folder / judge))]
            command = [
                "eval", str(model), "-p", row.posterior, "--guidance", row.guidance, *judges,
                *(word for metric in metrics for word in ("-m", metric)), "--given-count", ",".join(map(str, given)),
                "--draws", str(self.settings["draws"]), "--queries", str(self.settings["queries"]),
                "--part", self.options.part, "-o", str(out),
            ]  # fmt: skip
            command += [] if row.posterior == "retrieval" else [FLAGS[row.asked]]
            print("mmgen", *command, file=sys.stderr, flush=True)
            if subprocess.run([sys.executable, "-m", "mmgen", *command], stdout=subprocess.DEVNULL).returncode:
                return []
        return [json.loads(line) for line in out.read_text().splitlines()]

    def all_lines(self) -> dict[Row, dict[int, list[Line]]]:
        """Return the lines of every row by seed; copies are counted with all words given, of the first seed."""
        found: dict[Row, dict[int, list[Line]]] = {}
        for row in self.rows:
            for seed in self.seeds:
                if row.first_only and seed != 0:
                    continue
                lines = self.measure(row, seed, METRICS, self.data["given"])
                if (
                    lines
                    and seed == 0
                    and not self.options.only
                    and (row.asked == "completed" or row.file.startswith("model"))
                ):
                    lines += self.measure(row, seed, ("copies",), self.data["given"][:1], "-copies")
                    lines += self.measure(row, seed, ("kid",), self.data["given"][1:2], "-kid")
                if lines:
                    found.setdefault(row, {})[seed] = lines
        return found


def pick(lines: list[Line], quantity: str, given: int, judge: int, judges: list[str]) -> Line | None:
    """Return the line of a quantity by a judge, the first of what has none."""
    for line in lines:
        seen_by = line.get("judge") or judges[0]
        same = quantity in (line["quantity"], line["metric"]) and line["given"] == given
        if same and seen_by == judges[judge] and line["protocol"] != "features":
            return line
    return None


def cell(lines: list[Line | None], digits: int = 1) -> str:
    """Return values of the seeds between slashes, ± the mean of their standard errors over descriptions."""
    known = [line for line in lines if line is not None and line["value"] is not None]
    if not known:
        return ""
    errors = [line["stderr"] for line in known if line["stderr"]]
    error = f" ± {np.mean(errors):.{digits}f}" if errors else ""
    return "/".join(f"{line['value']:.{digits}f}" for line in known) + error


def markdown(head: list[str], rows: list[list[str]]) -> str:
    used = [i for i in range(len(head)) if i == 0 or any(row[i] for row in rows)]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line[i] for i in used) + " |" for line in lines)


def table(
    found: dict[Row, dict[int, list[Line]]],
    columns: list[tuple[str, str, int, int]],
    judges: list[str],
    digits: int = 1,
) -> str:
    """Return a table of (heading, quantity, given, judge) by row, the ceiling of real pictures last."""
    rows = []
    for row, by_seed in found.items():
        cells = [cell([pick(by_seed[s], q, g, j, judges) for s in by_seed], digits) for _, q, g, j in columns]
        if any(cells):
            rows.append([row.label, *cells])
    real = []
    for _, quantity, given, judge in columns:
        lines = [pick(lines, quantity, given, judge, judges) for by in found.values() for lines in by.values()]
        first = next((line for line in lines if line is not None), None)
        value = None if first is None else first["details"].get("ceiling")
        if first is not None and quantity == "correctness":
            value = first["judge_accuracy"]["mean"]
        error = None if first is None else first["details"].get("ceiling_stderr")
        real.append("" if value is None else f"{value:.{digits}f}" + (f" ± {error:.{digits}f}" if error else ""))
    return markdown(["drawn from", *(column[0] for column in columns)], [*rows, ["real pictures", *real]])


def difference(one: Line | None, other: Line | None) -> tuple[float, float] | None:
    """Return the weighted mean difference of two lines over their common descriptions, with its standard error."""
    if one is None or other is None or not one.get("points") or not other.get("points"):
        return None
    weights = np.array(one["points"]["weights"])
    if len(weights) != len(other["points"]["values"]) or len(weights) < 2:
        return None
    values = np.array(one["points"]["values"]) - np.array(other["points"]["values"])
    mean = np.average(values, weights=weights)
    spread = (weights**2 * (values - mean) ** 2).sum() * len(weights) / (len(weights) - 1)
    return float(mean), float(np.sqrt(spread) / weights.sum())


def differences(scores: Scores, found: dict[Row, dict[int, list[Line]]], judges: list[str]) -> str:
    """Return completed minus as it is, paired over descriptions: values of the seeds, and the mean of their errors."""
    wanted = [("correctness", "right"), ("coverage", "coverage"), ("agreement", "agreement")]
    columns = [
        (f"{name}, {given} given" + (f", judge {judge + 1}" if quantity != "agreement" else ""), quantity, given, judge)
        for quantity, name in wanted
        for given in scores.data["given"][1:]
        for judge in ((0, 1) if quantity != "agreement" else (0,))
    ]
    rows = []
    for row in found:
        before = row._replace(asked="as-it-is")
        if row.asked != "completed" or before not in found:
            continue
        cells = []
        for _, quantity, given, judge in columns:
            each = [
                difference(*(pick(found[r][s], quantity, given, judge, judges) for r in (row, before)))
                for s in found[row] if s in found[before]
            ]  # fmt: skip
            known = [pair for pair in each if pair]
            values = "/".join(f"{mean:+.1f}" for mean, _ in known)
            cells.append(f"{values} ± {np.mean([e for _, e in known]):.1f}" if known else "")
        rows.append([row.name, *cells])
    return markdown(["completed minus as it is", *(column[0] for column in columns)], rows)


def seconds(scores: Scores, found: dict[Row, dict[int, list[Line]]]) -> str:
    """Return a table of copies with all words given, and of processor seconds of training."""
    path, known = scores.folder / "seconds.tsv", {}
    if path.exists():
        known = {name: float(value) for name, value in (line.split("\t") for line in path.read_text().splitlines())}
    rows = []
    judges = judge_names(found)
    for row, by_seed in found.items():
        copies = [pick(by_seed[s], "copies", scores.data["given"][0], 0, judges) for s in by_seed]
        first = next((line for line in copies if line), None)
        time = [known[name] for s in by_seed if (name := scores.file(row, s).name) in known]
        real = "" if first is None else f"{first['details']['ceiling']:.1f} ± {first['details']['ceiling_stderr']:.1f}"
        if ((first or time) and row.asked == "completed") or row.posterior == "retrieval":
            rows.append([row.label, cell(copies), real, "/".join(f"{value:.0f}" for value in time)])
    return markdown(
        ["drawn from", "copies (pixels), all given", "of test pictures", "processor seconds of this file"], rows
    )


def judge_names(found: dict[Row, dict[int, list[Line]]]) -> list[str]:
    lines = (line for by in found.values() for lines in by.values() for line in lines)
    return list(dict.fromkeys(line["judge"] for line in lines if line.get("judge")))


def print_tables(scores: Scores) -> None:
    """Score what is missing, and print every table."""
    found = scores.all_lines()
    if not found:
        sys.exit(
            f"no trained file of {scores.options.data} in {scores.folder}, expected those of {scores.options.rows}"
        )
    judges, given = judge_names(found), scores.data["given"]

    def name(number: int) -> str:
        return "all given" if number == given[0] else f"{number} given"

    both = [(number, judge) for number in given for judge in (0, 1)]
    print(f"**Right** (judge 1 {judges[0]}, judge 2 {judges[1]}), %\n")
    print(table(found, [(f"{name(g)}, judge {j + 1}", "correctness", g, j) for g, j in both], judges), "\n")
    for number in given[1:]:
        columns = [(f"coverage, judge {j + 1}", "coverage", number, j) for j in (0, 1)]
        columns += [(f"recall, judge {j + 1}", "recall", number, j) for j in (0, 1)]
        columns += [("judges agree on all open words", "agreement", number, 0), ("judge 1 is sure", "sure", number, 0)]
        print(f"**What is left open**, {number} given, %\n\n{table(found, columns, judges)}\n")
    columns = [(f"{number} given, judge {j + 1}", "kid", number, j) for number in given[1:] for j in (0, 1)]
    print(
        f"**KID**, squared kernel distance to real pictures of the description\n\n{table(found, columns, judges, 2)}\n"
    )
    print(f"{differences(scores, found, judges)}\n\n{seconds(scores, found)}")


def draw_picture(scores: Scores, path: Path) -> None:
    """Draw real pictures, the plain conditional VAE and q_agg of the same four whole descriptions."""
    import mmgen
    from mmgen.artifacts import Dataset

    seed, scale = scores.seeds[0], 3
    with Dataset.open(scores.folder / f"{scores.options.data}.h5") as data:
        info, image = next(iter(data.attributes.values())), next(iter(data.images))
        rows = data.split("iid", "test")
        codes, pictures = data.read_attributes(info.name, rows), data.read_pixels(image, rows)
    whole = np.flatnonzero((codes != 255).all(1))
    chosen = [int(whole[0])]
    while len(chosen) < 4:  # each as different as can be from those before
        apart = (codes[whole, None] != codes[chosen]).sum(2)
        chosen.append(int(whole[np.lexsort((apart.sum(1), apart.min(1)))[-1]]))
    names = {row.name: row for row in scores.rows if row.asked == "completed"}
    sheets = [pictures[chosen] * (255.0 if pictures.max() <= 1 else 1.0)]
    for name in ("plain conditional VAE", "q_agg, fitted to parts as well"):
        row = names[name]
        model = mmgen.load(scores.file(row, seed))
        drawn = [
            model.sample(
                " ".join(f"{n}={v[c]}" for n, v, c in zip(info.names, info.values, codes[i], strict=True)),
                n=1, posterior=row.posterior, guidance=row.guidance, seed=seed,
            )
            for i in chosen
        ]  # fmt: skip
        sheets.append(np.concatenate([np.asarray(each) for each in drawn]) * 255)
    side, gap = sheets[0].shape[-1] * scale, 8
    page = np.full((3 * side + 2 * gap, 4 * side + 3 * gap, 3), 255, np.uint8)
    for i, sheet in enumerate(sheets):
        for j, picture in enumerate(sheet):
            large = np.asarray(picture).round().astype(np.uint8).transpose(1, 2, 0).repeat(scale, 0).repeat(scale, 1)
            page[i * (side + gap) : i * (side + gap) + side, j * (side + gap) : j * (side + gap) + side] = large
    Image.fromarray(page).save(path, optimize=True)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("data", help="the set of data, as in --rows")
    parser.add_argument("--rows", type=Path, default=Path(__file__).with_name("words-first.toml"))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--part", default="test")
    parser.add_argument(
        "--only", default="", help="score only rows whose name and seed contain this text, without copies and KID"
    )
    parser.add_argument("--tables", action="store_true", help="score nothing; print what there is")
    parser.add_argument("--picture", type=Path, help="draw the picture of three rows instead")
    scores = Scores(parser.parse_args())
    if scores.options.picture is not None:
        draw_picture(scores, scores.options.picture)
    else:
        print_tables(scores)


if __name__ == "__main__":
    main()
