"""``mmgen eval``: how good a model or an aggregate is, by any metrics."""

import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmgen.cli._completion import members, words
from mmgen.cli._console import CONSOLE, result, result_lines, result_table, say, table as talk_table
from mmgen.cli._ending import last_moments
from mmgen.cli._options import Device, InputPath, Overwrite, Reads, Seed, read_path

if TYPE_CHECKING:
    from mmgen.generation.tilt import Tilt
    from mmgen.results.score import Score

__all__ = ["eval_command"]


def eval_command(
    checkpoint: InputPath,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="NAME",
            help="What to measure: {mmgen.metrics}; repeatable; correctness by default, and coverage and recall where "
            "attributes are given, retrieval where there are only captions.",
            autocompletion=members("mmgen.metrics"),
        ),
    ] = None,
    posterior: Annotated[
        list[str] | None,
        typer.Option(
            "--posterior",
            "-p",
            metavar="NAME",
            help="Where z comes from: prior, own (the model's q(z | words)), true, aggregate or scan; repeatable. "
            "By default prior and own of a model, what was fitted of an aggregate.",
            autocompletion=words("prior", "own", "aggregate", "true", "scan"),
        ),
    ] = None,
    guidance: Annotated[
        list[str] | None,
        typer.Option(
            "--guidance",
            metavar="LIST",
            show_default="0",
            help="Tilt posteriors by p(words | z)^W, the model's own reading of z: one weight, or several such as "
            "1,3,10 for a set of scores each; repeatable. With 3:balanced attributes that are left out keep their "
            "shares; 3:effective=100:candidates=65536 chooses from more candidates.",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            metavar="NAME",
            show_default="exact",
            help="Of coverage: exact, or paper as Vedantam et al. did.",
            autocompletion=words("exact", "paper"),
        ),
    ] = None,
    dropped: Annotated[
        str | None,
        typer.Option("--dropped", metavar="LIST", hidden=True, help="Like --given-count, but counting those left out."),
    ] = None,
    given_count: Annotated[
        str | None,
        typer.Option(
            "--given-count",
            metavar="LIST",
            show_default="all, and 1, 2 and 3 fewer",
            help="Numbers of attributes that queries give, such as 4,3; the others are left open.",
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            min=1,
            metavar="K",
            show_default="100",
            help="Importance samples of a log-likelihood, or draws of z, per point.",
        ),
    ] = None,
    proposal: Annotated[
        str | None,
        typer.Option(
            "--proposal",
            metavar="NAME",
            show_default="mixture",
            help="What importance samples are drawn from: mixture of all that there are and p(z); or one alone, image, "
            "joint for that given all modalities, description, or auto for the image's where there is one.",
            autocompletion=words("mixture", "image", "joint", "description", "auto"),
        ),
    ] = None,
    text_samples: Annotated[
        int | None,
        typer.Option(
            "--text-samples",
            min=2,
            metavar="K",
            show_default="5000",
            help="Importance samples of log p(y) per description.",
        ),
    ] = None,
    text_proposal: Annotated[
        Path | None,
        typer.Option(
            "--text-proposal",
            metavar="FILE",
            show_default=False,
            help="A q(z | y) fitted to the same model, that log p(y) is drawn from as well.",
        ),
        Reads("aggregate"),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--number", "-n", min=2, show_default="1000", help="Data points of likelihoods, labels, active units."
        ),
    ] = None,
    encodings: Annotated[
        int | None,
        typer.Option(
            min=40, metavar="N", show_default="20000", help="Images that metrics of disentanglement encode, at most."
        ),
    ] = None,
    factor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A factor that disentanglement is measured of: an attribute or a factor of the dataset; repeatable, "
            "all with few values by default.",
        ),
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(
            "--pool",
            min=2,
            metavar="N",
            show_default="200",
            help="Examples among which retrieval looks for the right one.",
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws", min=1, show_default="24", help="Pictures of each query; exact coverage takes more where it must."
        ),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            "--queries",
            min=1,
            show_default="1000",
            help="Descriptions asked for, at most: a random choice where the part has more; of captions, examples.",
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split", metavar="SCHEME", show_default=False, help="Split scheme; that of the model by default."
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            "--part",
            metavar="NAME",
            show_default="test",
            help="Where queries and points come from: train, val or test.",
            autocompletion=words("test", "val", "train"),
        ),
    ] = None,
    judge: Annotated[
        list[Path] | None,
        typer.Option(
            "--judge",
            metavar="FILE",
            show_default=False,
            help="Classifier; found by itself if near. Repeatable: all judges look at the same pictures.",
        ),
        Reads("classifier"),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option("--dataset", metavar="FILE", show_default=False, help="Dataset; found by itself if near."),
        Reads("dataset"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default="beside FILE: NAME-scores.jsonl",
            help="Write JSON lines there and print its path; by default only the table is printed, and the lines go "
            "beside FILE, or with --json nowhere.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON lines on stdout; the table then goes to stderr.")
    ] = False,
    precision: Annotated[str, typer.Option("--precision", help="Of networks: auto, 32-true or bf16-mixed.")] = "auto",
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Measure how good a model or an aggregate is.

    Prints a table with standard errors, and the judge's own accuracy on real images beside every score that it gives.
    A pipe or a file gets lines of metric, quantity, posterior, protocol, number of given attributes, value, standard
    error, unit, number of samples and judge, with tabs between.
    """
    path = read_path(checkpoint, "model or aggregate")

    from mmgen.artifacts import check_nothing_lost, check_output
    from mmgen.commands.workflow import measure
    from mmgen.evaluation import write_scores

    kept = output or (None if as_json else _beside(path))
    if kept:
        check_output(kept, None, path)
        check_nothing_lost(kept, overwrite, "" if output else "use --json to keep no file, ")
    settings = {
        "protocol": protocol,
        "draws": draws,
        "queries": queries,
        "samples": samples,
        "text_samples": text_samples,
        "proposal": proposal,
        "number": number,
        "pool": pool,
        "encodings": encodings,
        "factors": factor or None,
        "split": split or None,
        "part": part,
        "seed": seed,
        "precision": precision,
    }
    scores = measure(
        path,
        CONSOLE,
        metrics=metric or (),
        posteriors=posterior or (),
        weights=_weights(guidance),
        values={name: value for name, value in settings.items() if value is not None},
        dropped=_numbers(dropped, "--dropped"),
        given_count=_numbers(given_count, "--given-count"),
        judges=[read_path(str(one), "classifier") for one in judge or ()],
        dataset=read_path(str(dataset), "dataset") if dataset else None,
        text_proposal=read_path(str(text_proposal), "aggregate") if text_proposal else None,
        device=device,
    )
    # Lines first: nothing that goes wrong with a table loses the work.
    with last_moments():
        if kept:
            write_scores(kept, scores)
        if as_json:
            for score in scores:
                result(json.dumps(score.to_json(), allow_nan=False))
        elif output:
            result(output)
        show_scores(scores, as_result=not as_json and output is None)
        if kept and not output:
            say(f"scores kept in {kept}")


def _beside(path: Path) -> Path | None:
    """Where scores of a file go by default; None in a folder that is not ours to write to."""
    from mmgen.evaluation import scores_beside

    found = scores_beside(path)
    if os.access(found.parent, os.W_OK):
        return found
    say(f"the scores are only printed, since {found.parent} cannot be written to; --output keeps them elsewhere")
    return None


def _weights(texts: Sequence[str] | None) -> list["Tilt"]:
    """What posteriors are guided by, as it was typed."""
    from mmgen.core.errors import UsageError
    from mmgen.core.parsing import listed
    from mmgen.generation.tilt import Tilt

    try:
        return [Tilt.of(part) for text in texts or ["0"] for part in listed(text)]
    except UsageError as error:
        raise UsageError(f"--{error}; several have commas between: 1,3:balanced,10") from None


def _numbers(text: str | None, option: str) -> list[int] | None:
    from mmgen.core.errors import UsageError
    from mmgen.core.parsing import listed

    try:
        return None if text is None else [int(part) for part in listed(text)]
    except ValueError:
        raise UsageError(f"{option} got '{text}', expected numbers with commas between, for example 0,1,2") from None


def _plain(scores: Sequence["Score"]) -> list[list[str]]:
    """Scores as lines' cells; numbers in full."""
    from mmgen.results.score import judge_names

    lines = []
    for score, judge in zip(scores, judge_names(scores), strict=True):
        values: list[object] = [score.metric, score.quantity, score.source, score.protocol, score.given]
        values += [score.value, score.stderr, score.unit, score.n, judge]
        lines.append(["" if value is None else str(value) for value in values])
    return lines


def show_scores(scores: Sequence["Score"], as_result: bool) -> None:
    """One table per metric, on stdout where it is the result, else as talk; and what the scores warn of."""
    if as_result and not sys.stdout.isatty():
        result_lines((), _plain(scores))
    else:
        table = result_table if as_result else talk_table
        for name, unit in dict.fromkeys((score.metric, score.unit) for score in scores):
            rows = [score for score in scores if (score.metric, score.unit) == (name, unit)]
            table(f"{name}, nats per example" if unit == "nats" else name, *_table(name, rows))
    _say_warnings(scores)


def _say_warnings(scores: Sequence["Score"]) -> None:
    warned: dict[str, list[str]] = {}
    for score in scores:
        for text in score.extra.get("warnings", []):
            warned.setdefault(text, []).append(f"{score.quantity} ({score.protocol}) under {score.source}")
    for text, quantities in warned.items():
        say(f"{', '.join(quantities)}: {text}")


def _number(value: float | None, places: int = 2) -> str:
    return "" if value is None else f"{value:,.{places}f}"


def _cell(value: Any) -> str:
    """A further number of a score: small ones with two digits that say something."""
    if isinstance(value, float) and 0 < abs(value) < 0.1:
        return f"{value:.2g}"
    if isinstance(value, float):
        return _number(value)
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)


def _with_error(score: "Score") -> str:
    if score.unit == "parameters":
        return _number(score.value, 0)
    if score.stderr is None:
        return _number(score.value)
    # No error is printed as 0.00 that is not.
    places = 2 if score.stderr >= 0.05 or score.stderr == 0 else min(5, 1 - math.floor(math.log10(score.stderr)))
    return f"{_number(score.value, places)} ± {_number(score.stderr, places)}"


def _own_accuracy(score: "Score") -> float | None:
    """The judge's accuracy on real images, counted as the score counts: with told words where they are part of it."""
    accuracy = score.judge_accuracy or {}
    with_told = score.protocol in ("paper", "generated-text") and "words" in accuracy
    return accuracy.get("words" if with_told else "mean")


def _table(name: str, scores: Sequence["Score"]) -> tuple[list[str], list[list[str]]]:
    """Columns that all scores have, as far as they differ, and those that the metric declares."""
    from mmgen.metrics import get, names
    from mmgen.results.score import judge_names

    judged = any(score.judge_accuracy is not None for score in scores)
    columns: dict[str, list[str]] = {}
    if len({score.quantity for score in scores}) > 1 or not judged:
        columns["quantity"] = [score.quantity for score in scores]
    columns["posterior"] = [score.source for score in scores]
    if len({score.ids.get("judge") for score in scores}) > 1:
        columns["judge"] = judge_names(scores)
    columns["given"] = [_cell(score.given) for score in scores]
    columns["protocol"] = [score.protocol for score in scores]
    columns[f"{scores[0].unit} ± standard error"] = [_with_error(score) for score in scores]
    columns["images" if judged else "points"] = [f"{score.n:,}" for score in scores]
    for heading, key in (get(name).columns if name in names() else {}).items():
        columns[heading] = [_cell(score.extra.get(key)) for score in scores]
    columns["judge %"] = [_number(_own_accuracy(score), 1) for score in scores]
    told = {heading: cells for heading, cells in columns.items() if any(cells)}
    return list(told), [list(row) for row in zip(*told.values(), strict=True)]
