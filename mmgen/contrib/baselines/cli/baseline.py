"""What ``mmgen baseline`` prints."""

from typing import TYPE_CHECKING

from mmgen.cli._console import print_result, print_table
from mmgen.cli._streams import ignore_first_interrupt
from mmgen.contrib.baselines.commands.baseline import Baseline

if TYPE_CHECKING:
    from mmgen.results.score import Score


def baseline_command(stage: Baseline) -> None:
    stage.check_output()
    scores = stage.measure()
    (_print_label_scores if stage.predicts_labels else _print_log_likelihoods)(stage.method, scores)
    with ignore_first_interrupt():
        stage.write_scores(scores)
        print_result(stage.path)


def _print_label_scores(method: str, scores: "list[Score]") -> None:
    rows = [(f"{score.details['paired']:,}", score.number_with_unit, f"{score.n:,}") for score in scores]
    print_table(f"{method}: labels read off test images", ("pairs", "right", "images"), rows)


def _print_log_likelihoods(method: str, scores: "list[Score]") -> None:
    from mmgen.results.number import Number

    rows = []
    for score in scores:
        bits, error = (score.details.get(name) for name in ("bits_per_pixel", "bits_per_pixel_stderr"))
        rows.append((score.number_with_unit, "" if bits is None else Number(bits, error), f"{score.n:,}"))
    clusters = {score.points.units for score in scores if score.points and score.points.clusters}
    errors = f"; errors over the {max(clusters):,} pictures or sources that they are of" if clusters else ""
    print_table(f"{method}: log p(x) of test examples{errors}", ("log p(x)", "bits per pixel", "examples"), rows)
