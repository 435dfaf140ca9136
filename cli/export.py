"""``mmgen export``: a folder or an archive with everything that one needs to draw from a model."""

from pathlib import Path
from typing import Annotated

import typer

from mmgen.cli._console import CONSOLE, result
from mmgen.cli._options import InputPath, Overwrite, Reads, Seed, read_path

__all__ = ["export_command"]


def export_command(
    checkpoint: InputPath,
    output: Annotated[
        Path, typer.Argument(metavar="DIR", show_default=False, help="Folder to make, or an archive: NAME.zip.")
    ],
    judge: Annotated[
        Path | None,
        typer.Option("--judge", metavar="FILE", show_default=False, help="Classifier; found by itself if near."),
        Reads("classifier"),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            "--scores",
            metavar="FILE",
            show_default="NAME-scores.jsonl",
            help="Scores of mmgen eval, which the card tells with their errors.",
        ),
        Reads("file of scores"),
    ] = None,
    onnx: Annotated[
        bool,
        typer.Option("--onnx", help="Also write the decoder as ONNX, compared with PyTorch's (needs the extra onnx)."),
    ] = False,
    overwrite: Overwrite = False,
    seed: Seed = 0,
) -> None:
    """Write a model with all that drawing needs into one folder, to be uploaded, sent or kept.

    The folder holds the model, what was fitted to it, the judge, a model card (README.md, as the Hugging Face hub reads
    it) made from the files' headers and scores, sample pictures, the commands that made it, and checksums. mmgen sample
    DIR and mmgen.load(DIR) work from it without the dataset; an archive is to be unpacked first.
    """
    path = read_path(checkpoint, "model or aggregate")

    from mmgen.commands.exporting import export

    made = export(
        path,
        output,
        CONSOLE,
        judge=read_path(str(judge), "classifier") if judge else None,
        scores=read_path(str(scores), "file of scores") if scores else None,
        onnx=onnx,
        overwrite=overwrite,
        seed=seed,
    )
    result(made)
