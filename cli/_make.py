"""What the commands that make files and pictures print."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmgen.cli._console import print_result, print_result_lines, print_result_table, print_table, say
from mmgen.cli._options import command_line
from mmgen.core.errors import Interrupted, UsageError
from mmgen.core.processes import stop_handlers
from mmgen.core.surroundings import is_first_process
from mmgen.settings.kinds import path_of

if TYPE_CHECKING:
    from mmgen.commands.fit_aggregate import FitAggregate
    from mmgen.commands.make_data import MakeData
    from mmgen.commands.plot import Plot
    from mmgen.commands.sample import Sample
    from mmgen.commands.train import Train
    from mmgen.commands.train_classifier import TrainClassifier
    from mmgen.results.number import Number
    from mmgen.training.loop import TrainingResult


def make_data_command(
    stage: "MakeData",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look at sources, print the plan, and write nothing.")
    ] = False,
) -> None:
    if dry_run:
        lines = stage.preview(command_line())
        print_result_lines(lines, [[line] for line in lines])
        return
    with _interrupt_when_terminated():
        made = stage.write_file(command_line())
    print_result(made)


@contextmanager
def _interrupt_when_terminated() -> Iterator[None]:
    """Raise an error at SIGTERM and its kind in this block: worker processes end, temporary files are removed."""

    def raise_error(number: int, frame: object) -> None:
        raise Interrupted("terminated before the dataset was complete; nothing was written", number)

    handlers = {number: handler for number, handler in stop_handlers().items() if number != signal.SIGINT}
    for number in handlers:
        signal.signal(number, raise_error)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def train_command(
    stage: "Train",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Build the networks once, print the effective settings as JSON and leave.")
    ] = False,
) -> None:
    if dry_run:
        stage.check_networks()
        print_result(stage.plan.settings.model_dump_json(indent=2))
        return
    trained = stage.write_file(command_line())
    if is_first_process():
        if trained.best is not None:
            say(_describe_best(trained))
        print_result(trained.path)


def _describe_best(run: "TrainingResult") -> str:
    """Describe the best validation value, and which weights the file holds."""
    from mmgen.artifacts import read_header
    from mmgen.artifacts.contents import format_training

    header = read_header(run.path)
    kept_bound = header.facts.get("validation_bound")
    kept_value = (
        f" ({kept_bound:,.2f} of the weights that are kept)"
        if isinstance(kept_bound, float) and kept_bound != run.best
        else ""
    )
    return f"best validation value {run.best:,.2f} nats per example{kept_value}: {format_training(header, run.steps)}"


def train_classifier_command(stage: "TrainClassifier") -> None:
    from mmgen.artifacts import read_header

    judge = stage.run(command_line())
    if not is_first_process():
        return
    accuracy, settings = judge.accuracy, stage.plan.settings
    counts = {name: f"{right:,} of {accuracy.images[name]:,}" for name, right in accuracy.correct.items()}
    shares = [
        {name: f"{share:.1f} %" for name, share in each.items()} for each in (accuracy.base_rates, accuracy.balanced)
    ]
    rows: list[tuple[str | Number, ...]] = [
        (name, number, *(column.get(name, "") for column in (counts, *shares)))
        for name, number in accuracy.numbers.items()
    ]
    columns = ("attribute", "accuracy ± standard error", "correct", "commonest value", "balanced accuracy")
    print_table("Judge on images that it has not seen", columns, rows)
    if settings.told:
        say(f"The judge gets {', '.join(settings.told)} as input; 'words' counts these as correct, as the papers do.")
    stopped = read_header(judge.path).facts.get("converged_at_step")
    steps = f"{stopped} of {settings.training.steps:,}"
    ended = f"; stopped at step {steps}, since validation no longer rose" if stopped else ""
    say(f"Judge ({settings.network}) written to {judge.path}{ended}")
    print_result(judge.path)


def fit_aggregate_command(
    stage: "FitAggregate",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the effective settings as JSON and leave.")] = False,
) -> None:
    if dry_run:
        stage.check_fit()
        print_result(stage.plan.settings.model_dump_json(indent=2))
        return
    made = stage.write_file(command_line())
    if is_first_process():
        print_result(made)


def sample_command(
    stage: "Sample",
    as_json: Annotated[
        bool, typer.Option("--json", help="With --from: one JSON line for each image instead of a table.")
    ] = False,
) -> None:
    if as_json and not stage.predicts:
        raise UsageError(
            "--json prints what images show, but no image is named; name images with --from or "
            "--dataset-row, and leave out --to"
        )
    if stage.predicts:
        predictions = stage.run(command_line())
        assert isinstance(predictions, list)
        _print_predictions(predictions, as_json)
        return
    model = path_of(stage.model)
    output = path_of(stage.output or model.with_name(f"{model.stem}-samples.png"))
    replace(stage, output=output).run(command_line())
    print_result(output)


def _print_predictions(predictions: list[dict[str, Any]], as_json: bool) -> None:
    """Print the attributes or texts that were predicted from images, a row or JSON line for each image."""
    if as_json:
        for one in predictions:
            print_result(json.dumps(one))
        return
    if "text" in predictions[0]:
        columns = ["image", "likeliest words at the mean of q(z|x)", "a draw"]
        rows = [[one["image"], one["text"], one["texts"][0]] for one in predictions]
    else:
        columns = ["image", *predictions[0]["attributes"]]
        rows = [
            [
                one["image"],
                *(f"{each['value']} {100 * each['probability']:.0f} %" for each in one["attributes"].values()),
            ]
            for one in predictions
        ]
    print_result_table("What the images show", columns, rows)


def plot_command(stage: "Plot") -> None:
    output = stage.output or Path(f"{stage.name}.png")
    replace(stage, output=output).run(command_line())
    print_result(output)
