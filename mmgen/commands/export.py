"""``mmgen export``: a folder or an archive with everything that drawing from a model needs."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from mmgen.commands._base import Stage
from mmgen.settings.kinds import File, FilePath, InputFile, Option, Seed, optional_path, path_of, paths_of

__all__ = ["Export"]


@dataclass(frozen=True)
class Export(Stage[Path]):
    """Write a model with all that drawing needs into one folder, to be uploaded, sent or kept.

    The folder holds the model, its fitted posteriors, the judge, sample pictures, the commands that made it, and
    checksums. A model card (README.md, as the Hugging Face hub reads it) comes from the files' headers and scores.
    mmgen sample DIR and mmgen.load(DIR) need no dataset. Unpack an archive first.
    """

    model: Annotated[File, InputFile("model or aggregate")]
    """Model or aggregate."""
    output: Annotated[FilePath, Option(metavar="DIR")]
    """Folder to make, or an archive: NAME.zip."""
    _: KW_ONLY
    judge: Annotated[File | None, InputFile("classifier")] = None
    """Classifier; found by itself if near."""
    scores: Annotated[File | Sequence[File] | None, InputFile("file of scores")] = None
    """Scores of mmgen eval, for the card, with their errors; repeatable. All of this model are found by themselves if
    near."""
    onnx: bool = False
    """Also write decoder and fitted posterior as ONNX, compared with PyTorch's, and draw.py, which draws from words
    with them and without PyTorch (needs the extra onnx)."""
    page: bool = False
    """Also write index.html, a page that draws from words in any browser, to put on a web site."""
    overwrite: bool = False
    """Replace the file that is there."""
    seed: Seed = 0
    """All randomness comes from this number."""

    def run(self, command: str = "") -> Path:
        """Write the folder or archive.

        Returns:
            The path of what was written.

        Raises:
            UsageError: At that path lies something that no export has written.
        """
        from tempfile import TemporaryDirectory

        from mmgen.commands._exporting import check_export, make_export_files, require_page, write_export
        from mmgen.generation import load

        out = path_of(self.output)
        if self.page:
            require_page()  # before the work
        check_export(out, self.overwrite)
        loaded = load(path_of(self.model))
        with TemporaryDirectory() as folder:
            names = make_export_files(
                Path(folder), loaded, self.watch, judge=optional_path(self.judge), scores=paths_of(self.scores or []),
                onnx=self.onnx, page=self.page, seed=self.seed,
            )  # fmt: skip
            write_export(Path(folder), names, out)
        return out
