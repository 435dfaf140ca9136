"""``mmgen compare``: scores of several models and seeds side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mmgen.commands._base import Stage
from mmgen.commands._folders import expand_folders, find_score_files
from mmgen.core.errors import UsageError
from mmgen.settings.kinds import File, InputFile, Option, paths_of

if TYPE_CHECKING:
    from mmgen.results.comparison import Comparison

__all__ = ["Compare"]


@dataclass(frozen=True)
class Compare(Stage["Comparison"]):
    """Compare models over seeds: runs that differ only in their seed are one row, with mean, standard deviation and n.

    Each posterior with each weight of guidance is a row of its own. What is not alike in data, split, judge, protocol
    or given attributes is never in one column. Marked (*) is what no other row beats: no 95 % interval of a difference
    leaves out 0.
    """

    scores: Annotated[
        File | Sequence[File], InputFile("file of scores", folders=find_score_files), Option(metavar="SCORES...")
    ]
    """Files of mmgen eval and mmgen baseline (.jsonl), of any models and seeds, or a folder with these. Logs of
    training among them are left out."""
    against: Annotated[str | None, Option(metavar="NAME")] = None
    """Row that the others are compared with: differences, paired over seeds, with their 95 % intervals."""

    def run(self, command: str = "") -> "Comparison":
        """Group the scores by model and seed, and return the comparison.

        Returns:
            The tables.

        Raises:
            UsageError: There are no scores, or no such row.
        """
        from mmgen.core.parsing import LOG_ENDING
        from mmgen.results.comparing import compare_scores
        from mmgen.results.score import read_scores

        files = expand_folders(paths_of(self.scores), find_score_files, self.watch)
        paths = [path for path in files if not path.name.endswith(LOG_ENDING)]  # which *.jsonl names too
        if len(paths) < len(files):
            number = len(files) - len(paths)
            self.watch.say(f"logs of training are no scores, and are left out: {number} of {len(files)} files")
        scores = [read_scores(path) for path in paths]
        if not scores:
            raise UsageError(
                f"{', '.join(map(str, files))}: got no scores in these files, expected one at least; "
                "make some with mmgen eval"
            )
        try:
            compared = compare_scores(list(zip(_shortest_names(paths), scores, strict=True)), self.against or "")
        except ValueError as error:
            raise UsageError(f"--against: {error}") from None
        for note in compared.notes:
            self.watch.say(note)
        return compared


def _shortest_names(paths: list[Path]) -> list[str]:
    """Return the shortest names that tell files apart, for scores without a recorded run."""
    stems = [path.stem for path in paths]
    return [
        stem if stems.count(stem) == 1 else str(path.with_suffix("")) for stem, path in zip(stems, paths, strict=True)
    ]
