"""``mmgen sample``: printing of its result."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmgen.cli._console import print_result, print_result_table
from mmgen.cli._options import command_line
from mmgen.core.errors import UsageError
from mmgen.settings.kinds import path_of

if TYPE_CHECKING:
    from mmgen.commands.sample import Sample

__all__ = ["sample_command"]


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
