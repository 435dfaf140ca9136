"""``mmgen eval``: how good a model or an aggregate is, by any metrics."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmgen.cli._console import follow, result, result_lines, result_table, say
from mmgen.cli._console import table as talk_table
from mmgen.cli._options import Device, InputPath, Overwrite, Seed, read_path

if TYPE_CHECKING:
    from mmgen.loading import Loaded
    from mmgen.metrics._base import Score

__all__ = ["eval_command"]


def eval_command(
    checkpoint: InputPath,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="NAME",
            help="What to measure; repeatable; correctness by default, and coverage where attributes are given.",
        ),
    ] = None,
    posterior: Annotated[
        list[str] | None,
        typer.Option(
            "--posterior",
            "-p",
            metavar="NAME",
            help="Where z comes from: prior, text, true or aggregate; repeatable. "
            "By default prior and text of a model, its own of an aggregate.",
        ),
    ] = None,
    protocol: Annotated[
        str, typer.Option("--protocol", metavar="NAME", help="Of coverage: exact, or paper as Vedantam et al. did.")
    ] = "exact",
    dropped: Annotated[
        str | None,
        typer.Option(
            "--dropped", metavar="LIST", show_default="0,1,2,3", help="Numbers of attributes to leave out of queries."
        ),
    ] = None,
    given_count: Annotated[
        str | None,
        typer.Option("--given-count", metavar="LIST", show_default=False, help="The same, as numbers of given ones."),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(
            "--samples", min=1, metavar="K", help="Importance samples of a log-likelihood, or draws of z, per point."
        ),
    ] = 100,
    proposal: Annotated[
        str,
        typer.Option(
            "--proposal",
            metavar="NAME",
            help="What importance samples are drawn from: q(z | image), joint for that given all modalities, "
            "description, or auto for the image's where there is one.",
        ),
    ] = "auto",
    text_samples: Annotated[
        int, typer.Option("--text-samples", min=2, metavar="K", help="Importance samples of log p(y) per description.")
    ] = 5000,
    number: Annotated[
        int, typer.Option("--number", "-n", min=2, help="Data points of likelihoods, labels, active units.")
    ] = 1000,
    draws: Annotated[
        int, typer.Option("--draws", min=1, help="Pictures of each query; exact coverage takes more where it must.")
    ] = 24,
    queries: Annotated[
        int,
        typer.Option(
            "--queries",
            min=1,
            help="Descriptions asked for, at most: a random choice where the part has more; of captions, examples.",
        ),
    ] = 1000,
    split: Annotated[
        str | None,
        typer.Option(
            "--split", metavar="SCHEME", show_default=False, help="Split scheme; that of the model by default."
        ),
    ] = None,
    part: Annotated[
        str, typer.Option("--part", metavar="NAME", help="Where queries and points come from: train, val or test.")
    ] = "test",
    judge: Annotated[
        Path | None,
        typer.Option("--judge", metavar="FILE", show_default=False, help="Classifier; found by itself if near."),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option("--dataset", metavar="FILE", show_default=False, help="Dataset; found by itself if near."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", show_default=False, help="Write JSON lines there, print its path."
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
    error, unit and number of samples, with tabs between.
    """
    path = read_path(checkpoint, "model or aggregate")

    from mmgen.artifacts import Dataset, check_nothing_lost, check_output
    from mmgen.classifier import load_classifier
    from mmgen.config import validate
    from mmgen.loading import load
    from mmgen.metrics import get
    from mmgen.metrics._evaluation import Evaluation, EvaluationSettings, evaluate, find_judge

    if output:
        check_output(output, None, path)
        check_nothing_lost(output, overwrite)
    for name in metric or []:
        get(name)  # every name is checked before anything slow
    values: dict[str, Any] = {
        "protocol": protocol,
        "draws": draws,
        "queries": queries,
        "samples": samples,
        "text_samples": text_samples,
        "proposal": proposal,
        "number": number,
        "split": split or "",
        "part": part,
        "seed": seed,
        "precision": precision,
    }
    validate(EvaluationSettings, values)  # before anything slow
    loaded = load(path, device)
    captioned = loaded.text is not None and loaded.given != "attributes"
    metrics = metric or (["correctness"] if captioned else ["correctness", "coverage"])
    judged = any(get(name).judged for name in metrics)
    settings = validate(EvaluationSettings, {**values, "dropped": _dropped(dropped, given_count, loaded)})
    found = read_path(str(dataset), "dataset") if dataset else loaded.dataset_path()
    with Dataset.open(found) as data:
        critic = None
        if judged:
            near = [path.parent, loaded.model_path.parent, found.parent, Path.cwd()]
            critic_path = read_path(str(judge), "classifier") if judge else find_judge(data, near)
            critic = load_classifier(critic_path, loaded.device)
            say(f"judge: {critic_path} ({_percent(critic.accuracy)} on images that it has not seen)")
        evaluation = Evaluation(loaded, data, critic, _posteriors(posterior, loaded), settings)
        if notice := evaluation.notice(metrics):
            say(notice)
        scores = follow(evaluate(evaluation, metrics))
    for name in dict.fromkeys(metrics):
        if all(score.metric != name for score in scores):
            say(f"{name}: nothing to measure with these numbers of given attributes")
    show_scores(scores, as_result=not as_json and output is None)
    lines = [json.dumps(score.to_json(), allow_nan=False) for score in scores]
    if as_json:
        for line in lines:
            result(line)
    if output:
        from mmgen.artifacts import write_text_atomic

        write_text_atomic(output, "".join(line + "\n" for line in lines))
        if not as_json:
            result(output)


def _numbers(text: str, option: str) -> list[int]:
    from mmgen.errors import UsageError

    try:
        return [int(part) for part in text.replace(" ", "").split(",")]
    except ValueError:
        raise UsageError(f"{option} got '{text}', expected numbers with commas between, for example 0,1,2") from None


def _dropped(dropped: str | None, given_count: str | None, loaded: "Loaded") -> list[int] | None:
    """Numbers of attributes to leave out, from either option."""
    from mmgen.errors import UsageError

    if dropped is None and given_count is None:
        return None
    if dropped is not None and given_count is not None:
        raise UsageError("--dropped and --given-count got both, expected one: they say the same in two ways")
    count = len(loaded.attributes.names) if loaded.attributes is not None else 0
    if dropped is not None:
        numbers = _numbers(dropped, "--dropped")
    else:
        numbers = [count - number for number in _numbers(str(given_count), "--given-count")]
    if any(not 0 <= number <= count for number in numbers):
        raise UsageError(f"--dropped and --given-count expect numbers from 0 to {count}, the model's attributes")
    return list(dict.fromkeys(numbers))


def _posteriors(asked: Sequence[str] | None, loaded: "Loaded") -> list[str]:
    """Where z is to come from; every name is checked before any work."""
    if asked:
        names = list(dict.fromkeys(asked))
    else:
        names = [loaded.target] if loaded.target else loaded.posteriors
    for name in names:
        loaded.latent_sampler(name)
    return names


def _percent(accuracy: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f} %" for name, value in accuracy.items()) or "accuracy never measured"


def _plain(score: "Score") -> list[str]:
    """A score as a line's cells; numbers in full."""
    values: list[Any] = [score.metric, score.quantity, score.posterior, score.protocol, score.given]
    values += [score.value, score.stderr, score.unit, score.n]
    return ["" if value is None else str(value) for value in values]


def show_scores(scores: Sequence["Score"], as_result: bool) -> None:
    """One table per metric: on stdout where it is the result, else as talk."""
    if as_result and not sys.stdout.isatty():
        result_lines((), [_plain(score) for score in scores])
        return
    table = result_table if as_result else talk_table
    for name in dict.fromkeys(score.metric for score in scores):
        rows = [score for score in scores if score.metric == name]
        if "judge" in rows[0].ids:
            table(name, *_judged_table(rows))
        elif rows[0].unit == "nats":
            table(f"{name}, nats per example", *_likelihood_table(rows))
        else:
            table(name, *_plain_table(rows))


def _number(value: float | None, places: int = 2) -> str:
    return "" if value is None else f"{value:,.{places}f}"


def _with_error(score: "Score") -> str:
    if score.unit == "parameters":
        return _number(score.value, 0)
    return _number(score.value) + (f" ± {_number(score.stderr)}" if score.stderr is not None else "")


def _own_accuracy(score: "Score") -> float | None:
    """The judge's accuracy on real images, counted as the score counts: with told words where they are part of it."""
    accuracy = score.judge_accuracy or {}
    with_told = score.protocol in ("paper", "generated-text") and "words" in accuracy
    return accuracy.get("words" if with_told else "mean")


def _judged_table(scores: Sequence["Score"]) -> tuple[list[str], list[list[str]]]:
    biased = any("bias" in score.extra for score in scores)
    columns = ["posterior", "given", "protocol", "% ± standard error", "sd of 5 splits", "images", "queries", "judge %"]
    columns += ["bias left", "uncorrected"] if biased else []
    rows = []
    for score in scores:
        accuracy = _own_accuracy(score)
        row = [
            score.posterior,
            "" if score.given is None else str(score.given),
            score.protocol,
            _with_error(score),
            _number(score.extra.get("splits_sd")),
            f"{score.n:,}",
            str(score.extra.get("queries", "")),
            _number(accuracy, 1),
        ]
        if biased:
            row += [_number(score.extra.get("bias"), 3), _number(score.extra.get("uncorrected"))]
        rows.append(row)
    return columns, rows


def _likelihood_table(scores: Sequence["Score"]) -> tuple[list[str], list[list[str]]]:
    columns = [
        "quantity",
        "under",
        "drawn from",
        "protocol",
        "nats ± standard error",
        "points",
        "samples",
        "effective",
        "var of log w",
    ]
    rows = [
        [
            score.quantity,
            score.posterior,
            score.extra["proposal"],
            score.protocol,
            _with_error(score),
            f"{score.n:,}",
            f"{score.extra['samples']:,}",
            _number(score.extra["effective_sample_size"], 1),
            _number(score.extra["log_weight_variance"]),
        ]
        for score in scores
    ]
    return columns, rows


def _plain_table(scores: Sequence["Score"]) -> tuple[list[str], list[list[str]]]:
    columns = ["quantity", "posterior", "protocol", "value ± standard error", "points"]
    return columns, [
        [score.quantity, score.posterior, score.protocol, f"{_with_error(score)} {score.unit}", f"{score.n:,}"]
        for score in scores
    ]
