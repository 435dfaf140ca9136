"""``mmgen train-classifier``: printing of its result."""

from typing import TYPE_CHECKING

from mmgen.cli._console import is_first_process, result, say, table
from mmgen.cli._options import command_line

if TYPE_CHECKING:
    from mmgen.commands.train_classifier import TrainClassifier

__all__ = ["train_classifier_command"]


def train_classifier_command(stage: "TrainClassifier") -> None:
    judge = stage.run(command_line())
    if not is_first_process():
        return
    accuracy, settings = judge.accuracy, stage.plan.settings
    counts = {name: f"{right:,} of {accuracy.images[name]:,}" for name, right in accuracy.correct.items()}
    rows = [(name, number, counts.get(name, "")) for name, number in accuracy.numbers.items()]
    table("Judge on images that it has not seen", ("attribute", "accuracy ± standard error", "correct"), rows)
    if settings.told:
        say(f"It is told {', '.join(settings.told)}; 'words' counts that as right, as the papers' correctness does.")
    say(f"Judge ({settings.network}) written to {judge.path}")
    result(judge.path)
