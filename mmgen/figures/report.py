"""One self-contained page about models and what was fitted to them: scores, samples, latent maps, curves, lineage.

The page refers to nothing outside itself, runs no script, and shows whatever stands in a file as text.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

from mmgen.artifacts import write_text_atomic
from mmgen.figures._context import about, context
from mmgen.figures._maps import maps
from mmgen.figures._material import gather
from mmgen.figures._pictures import (
    Picture,
    Session,
    abstraction,
    open_session,
    same_words,
    varied_words,
    without_words,
)
from mmgen.progress import Progress, Work

__all__ = ["make_report", "render"]

_STAGES: dict[str, Callable[[Session], list[Picture]]] = {
    "same_words": same_words,
    "varied_words": varied_words,
    "without_words": without_words,
    "abstraction": abstraction,
    "maps": maps,
}


def render(values: Mapping[str, Any]) -> str:
    """The page for what :func:`mmgen.figures._context.context` returns; every value is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("mmgen.figures"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("report.html.jinja").render(values)


def make_report(
    paths: Iterable[Path], out: Path, *, title: str = "", seed: int = 0, device: str = "cpu", command: str = ""
) -> Work[Path]:
    """A report as work to do: reads the files, draws the pictures, writes the page.

    Args:
        paths: Checkpoints, aggregates, judges, datasets, samples, scores and logs; their parents are found by lineage.
        out: The page.
        title: Its heading; by default it names the models.
        seed: Seed of every choice and draw in its pictures.
        device: Where models run.
        command: The command that makes it, for its foot.

    Raises:
        ArtifactError: A file cannot be read, or is nothing that a report shows.
    """
    material = gather(paths)
    names = [material.names[group.header.content_id] for group in material.groups]
    heading = title or (f"Report on {' and '.join(names)}" if 0 < len(names) < 4 else "Report")
    total = len(material.groups) * len(_STAGES) + 1

    def generator() -> Generator[Progress, None, Path]:
        runs: list[dict[str, Any]] = []
        done = 0
        for group in material.groups:
            session = open_session(group, seed, device)
            material.notices += session.notices
            run: dict[str, Any] = {"name": material.names[group.header.content_id], "about": about(group)}
            for stage, drawn in _STAGES.items():
                run[stage] = drawn(session)
                for picture in run[stage]:  # packed now, so that progress tells the truth
                    _ = picture.uri
                done += 1
                yield Progress(done)
            runs.append(run)
        write_text_atomic(out, render(context(material, runs, heading, command, seed)))
        yield Progress(total)
        return out

    return Work(f"drawing {out.name}", total, "stage", generator)
