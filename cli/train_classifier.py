"""``mmgen train-classifier``: printing of its result."""

from typing import TYPE_CHECKING

from mmgen.cli._console import is_first_process, print_result, print_table, say
from mmgen.cli._options import command_line

if TYPE_CHECKING:
    from mmgen.commands.train_classifier import TrainClassifier
    from mmgen.results.number import Number

__all__ = ["train_classifier_command"]


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
