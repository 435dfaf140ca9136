"""Pictures of words."""

from collections.abc import Mapping, Sequence

from mmgen.artifacts.pages import check_page
from mmgen.commands._judge import Judge
from mmgen.commands._watching import watching
from mmgen.commands.notebook._typed import File, optional, path_of
from mmgen.core.errors import UsageError
from mmgen.core.progress import Watch
from mmgen.figures.drawing.page import Grid
from mmgen.figures.drawing.samples import sample_grid
from mmgen.generation import TrainedModel, load
from mmgen.generation.asked import draw_asked
from mmgen.generation.descriptions import as_words
from mmgen.generation.draws import as_pictures
from mmgen.generation.judge import sees_samples
from mmgen.posteriors import AnyTilt
from mmgen.settings.arguments import checked
from mmgen.settings.kinds import Count, FilePath, Seed

__all__ = ["sample"]


@checked
def sample(
    model: File,
    given: str | Mapping[str, str] | Sequence[str] = "",
    n: Count = 16,
    output: FilePath | None = None,
    *,
    posterior: str | None = None,
    guidance: AnyTilt = 0.0,
    mean: bool = True,
    judge: FilePath | Judge | None = None,
    device: str = "auto",
    seed: Seed = 0,
    overwrite: bool = False,
    progress: bool | Watch = True,
) -> Grid:
    """Draw pictures for descriptions, framed where the judge reads them differently: ``mmgen sample``.

    For the pictures as numbers use ``mmgen.load(model).sample(...)``.

    Args:
        model: The model or aggregate.
        given: A description, or several.
        n: Pictures of each.
        output: Also write it there, .png.
        posterior: Where z comes from; what was fitted, else the model's own, by default.
        guidance: How literally the words are taken; "3:balanced" keeps the shares of attributes that are left out.
        mean: Show means of p(image | z), or draws from it.
        judge: Who looks at the pictures; found beside the model.
        device: Where to compute.
        seed: Seed of the draws.
        overwrite: Replace a file that is there and is no picture of mmgen.
        progress: Whether a notebook is told what the judge says; or who is.

    Returns:
        A picture that a notebook shows and that ``save`` writes.

    Raises:
        UsageError: The model does not know the words, or has no such posterior; something would be lost.
    """
    loaded = model if isinstance(model, TrainedModel) else load(path_of(model), device)
    loaded = loaded.guided(guidance, seed)
    words = [as_words(given)] if isinstance(given, str | Mapping) else [as_words(one) for one in given]
    if not words:
        raise UsageError("given got no description, expected at least one; an empty text stands for any picture")
    named = judge.path if isinstance(judge, Judge) else optional(judge)
    out = optional(output)
    if out is not None:
        check_page(out, "picture", overwrite, loaded.path)
    drawn, _, judging = draw_asked(
        loaded, words, n, watching(progress), posterior=posterior, judge=named, near=out, seed=seed
    )
    picture: Grid = sample_grid(
        as_pictures(loaded, drawn), loaded.attributes, text=loaded.text, sampled=not mean,
        judged_samples=sees_samples(loaded), accuracy=judging.accuracy if judging else None,
    )  # fmt: skip
    if out is not None:
        picture.save(out)
    return picture
