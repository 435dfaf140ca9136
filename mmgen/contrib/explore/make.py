"""Pages to explore a model: drawing all pictures, and writing the page within its size.

The page is one file without references to others. Its script decodes pictures itself with small networks of the model.
Where these cannot be traced, it shows pictures of words that are drawn beforehand, and has neither sliders nor a map.
"""

import base64
import hashlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts import Dataset, write_text_atomic
from mmgen.artifacts.pages import find_page_link
from mmgen.contrib.explore.choices import OPEN, DescriptionChoices, choose_descriptions
from mmgen.contrib.explore.content import PageContent, PageSection, page_values
from mmgen.contrib.explore.density import compute_belief, find_flow
from mmgen.contrib.explore.live import Room, trace_networks
from mmgen.contrib.explore.posterior_pictures import PosteriorPictures, draw_chosen_descriptions, draw_reference
from mmgen.contrib.explore.space import choose_neighbours, choose_traversals, make_encoding_map
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.parsing import strip_controls
from mmgen.core.progress import Progress, Work
from mmgen.core.version import __version__
from mmgen.figures.drawing.samples import explain_red_frames
from mmgen.figures.report.context import describe_model
from mmgen.figures.report.make import page_environment
from mmgen.figures.session import ModelFiles, Session, Source, gather_files, name_data, open_session
from mmgen.generation.classifiers import classifier_reads_samples
from mmgen.generation.decode import drawable_pictures
from mmgen.generation.descriptions import Descriptions
from mmgen.generation.encodings import traversable_axes
from mmgen.generation.examples import read_examples
from mmgen.posteriors import AnyGuidance

_CHUNK = 24
"""Number of descriptions drawn together."""
_EXAMPLES = 6
_DIMENSIONS = 16
_NEIGHBOURS = 700
"""Number of encodings on the map with pictures."""
_PART = 0.12
"""Largest share of the page for the encodings on the map."""
_MARGIN = 0.94
"""Share of the room for stored pictures that they fill by an estimate of their size."""
_SCRIPTS = (
    "base.js", "network.js", "flow.js", "mixture.js", "pictures.js", "words.js", "between.js", "dimensions.js",
    "map.js", "finger.js", "tour.js",
)  # fmt: skip
"""Files of the page's script, in order."""
_CHECKED = 64
"""Number of pictures on which an encoder is compared with its rounded copy."""
_NETWORK = 0.65
"""Largest share of the page for the weights of one network, before they are written as letters."""
_NETWORKS, _ALONE = 0.8, 0.96
"""Largest share for all networks of what script and map leave of the page: beside stored pictures, and alone."""
_POINT = 40
"""Letters of one point of the map, roughly."""


@dataclass(frozen=True)
class Limits:
    """Limits of a page to explore: numbers of descriptions, pictures and dimensions of z, and its size in bytes.

    Attributes:
        number: n, pictures of each description and posterior.
        dimensions: Number of traversed dimensions of z; None for the most informative ones, at most 16.
        size: Largest size of the page in bytes.
        weights: Largest size in bytes of the weights of each network that the page computes itself; 0 for none.
    """

    number: int = 6
    dimensions: int | None = None
    size: int = 3_000_000
    weights: int = 2_000_000


def _single_model(groups: list[ModelFiles]) -> ModelFiles:
    if len(groups) != 1:
        names = ", ".join(group.model.name for group in groups) or "none"
        raise UsageError(
            f"a page to explore needs one model and its fitted posteriors, got {names}; give the files of one model"
        )
    return groups[0]


def _check_model(session: Session, limits: Limits) -> None:
    """Raise an error if a model draws no pictures, or has fewer dimensions of z than the page should traverse."""
    loaded = session.model
    layer, places = traversable_axes(loaded.model)
    if loaded.observation is None or loaded.observation.name not in drawable_pictures(loaded):
        raise UsageError(
            f"{loaded.path} generates no pictures, which a page to explore needs; give a model of pictures"
        )
    if limits.dimensions is not None and limits.dimensions > len(places):
        what = "z" if len(loaded.model.latent.layers) == 1 else f"layer {layer} of z"
        raise UsageError(
            f"--dimensions got {limits.dimensions}, but {what} of {loaded.path} has {len(places)}; give at most "
            f"{len(places)}"
        )


def _collect_choices(session: Session) -> list[tuple[DescriptionChoices, list[Source]]]:
    """Choose the descriptions of each kind (attributes, text) that a page offers, and the posteriors that read them."""
    found = []
    for given in ("attributes", "text"):
        sources = [source for source in session.sources if source.given == given]
        choices = choose_descriptions(session, sources[0].loaded, given) if sources else None
        if choices is not None:
            found.append((choices, sources))
    return found


def make_explorer(
    paths: Iterable[Path],
    out: Path,
    *,
    title: str = "",
    limits: Limits | None = None,
    guidance: AnyGuidance = 0.0,
    seed: int = 0,
    device: str = "cpu",
    command: str = "",
    report: Path | None = None,
    words_only: bool = False,
) -> Work[Path]:
    """Return the work that draws the pictures of a page to explore a model, and writes the page.

    Args:
        paths: A model, its fitted posteriors, a classifier; missing ones are found by lineage.
        out: The file of the page.
        title: Heading of the page; by default it names the data.
        limits: Limits of the page.
        guidance: Weight w of additional guided posteriors, or "cfg:0.5"; 0 for none.
        seed: Seed of every choice and draw.
        device: Device of the models.
        command: The command that makes the page, for its foot.
        report: The report that the page links to, which may not exist yet; by default report.html beside it.
        words_only: Whether the page draws from words alone: for visitors of a web site.

    Raises:
        UsageError: The files are not of one model, or a page cannot show it; or ``report`` is no report.
        ArtifactError: A file cannot be read.
    """
    limits = limits or Limits()
    paths = list(paths)
    report_files = gather_files(paths, frames=False)  # a page without a judge says so in its small print
    group = _single_model(report_files.groups)
    if unread := report_files.unused_files(paths, scores=True):
        report_files.notices.append(f"The page does not use {report_files.describe(unread)}.")
    models = [group.header.content_id]
    find_page_link(out, "report", models, report)  # refuse a wrong file before the work starts
    session = open_session(group, seed, device, guidance)
    _check_model(session, limits)
    choices = _collect_choices(session)
    total = sum(len(asked) for asked, _ in choices) + 3

    def generator() -> Generator[Progress, None, Path]:
        content = PageContent(session, limits.number, [], words_only=words_only)
        content.encoding_map = make_encoding_map(session)
        _add_live_networks(content, choices, limits)
        if limits.dimensions is not None and not content.is_live:
            why = " ".join(content.live.reasons)
            raise UsageError(f"--dimensions got {limits.dimensions}, but the page has no sliders; leave it out. {why}")
        if words_only or not content.is_live:
            content.encoding_map = None
        if not words_only:
            content.notices += [*report_files.notices, *session.notices]
            content.references = [
                draw_reference(session, source, limits.number)
                for source in session.priors
                if not session.model.model.conditional_on
            ]
            yield Progress(1)
            _add_latent_space(content, limits)
        done = 3
        yield Progress(done)
        left = limits.size - content.latent_space_size() - _page_size()
        for place, (asked, sources) in enumerate(choices):
            by_posterior = [PosteriorPictures(source, content.live.flow_of(source)) for source in sources]
            section = PageSection(asked, by_posterior, content.is_live, _find_belief(content, asked, by_posterior))
            for drawn in _store_pictures(content, section, left / (len(choices) - place)):
                section = drawn
                yield Progress(done + section.held)
            done += len(asked)
            content.parts.append(section)
            left -= section.size_in_letters()
        page = _render_page(content, title, command, seed, find_page_link(out, "report", models, report))
        if (size := len(page.encode())) > limits.size:
            raise UsageError(
                f"--max-size got {limits.size / 1e6:g} MB, but the page takes at least {size / 1e6:.1f} MB; allow "
                "more, or give a smaller --number or fewer --dimensions"
            )
        write_text_atomic(out, page)
        yield Progress(total)
        return out

    return Work(f"drawing {out.name}", total, "description", generator)


def _store_pictures(content: PageContent, section: PageSection, room: float) -> Iterator[PageSection]:
    """Draw the stored pictures of a section, a chunk of descriptions at a time, as many as ``room`` letters hold."""
    choices, bare = section.choices, section.size_in_letters()
    while section.stored and section.held < len(choices):
        rows = range(section.held, min(section.held + _CHUNK, len(choices)))
        draw_chosen_descriptions(content.session, section.stored, choices, rows, content.number, content.chart)
        section = replace(section, held=rows.stop)
        yield section
        taken = section.size_in_letters() - bare
        if taken > (fits := max(0.0, _MARGIN * room - bare)):
            yield section.first(max(1, int(section.held * fits / taken)))
            return


def _find_belief(
    content: PageContent, choices: DescriptionChoices, by_posterior: list[PosteriorPictures]
) -> np.ndarray | None:
    """Return where p(z|words) lies for the words with which the page opens, unless a posterior is fitted to it."""
    known = {one.kind for one in by_posterior} & {"true", "own"}
    slots = choices.kind == "text" and len(choices.menus) > 1  # no caption consists of one word alone
    if content.chart is None or known or slots or content.session.model.model.conditional_on:
        return None
    codes = choices.descriptions.codes[:1].copy()
    chosen = [menu.attribute for menu, value in zip(choices.menus, choices.opening, strict=True) if value != OPEN]
    codes[:, [place for place in range(codes.shape[1]) if place not in chosen]] = UNKNOWN
    opened = Descriptions(codes) if choices.kind == "attributes" else choices.descriptions[:1]
    return compute_belief(content.session.model, opened, content.chart, content.session.seed)


def _add_live_networks(
    content: PageContent, choices: list[tuple[DescriptionChoices, list[Source]]], limits: Limits
) -> None:
    """Trace the networks that the page computes itself, as far as its size allows."""
    session, land = content.session, content.encoding_map
    images = None
    if land is not None and session.group.dataset is not None and not content.words_only:
        with Dataset.open(session.group.dataset) as data:
            images = read_examples(session.model, data, land.encodings.rows[:_CHECKED]).images
    alone = all(find_flow(source) is not None for _, sources in choices for source in sources)
    free = limits.size - _page_size() - (_POINT * len(land.places) if land is not None else 0)
    free -= sum(PageSection(asked, []).size_in_letters() for asked, _ in choices)
    room = Room(min(limits.weights, int(_NETWORK * limits.size)), int((_ALONE if alone else _NETWORKS) * free))
    by_attributes = next((asked for asked, _ in choices if asked.kind == "attributes"), None)
    content.live = trace_networks(session, land, images, by_attributes, room)


def _add_latent_space(content: PageContent, limits: Limits) -> None:
    """Add traversals and map to a page that decodes their pictures itself."""
    session, land = content.session, content.encoding_map
    if land is not None:
        dimensions = limits.dimensions or min(_DIMENSIONS, len(land.ranking.dimensions))
        count = min(len(land.places), _NEIGHBOURS, int(limits.size * _PART) * 3 // 8 // land.encodings.mean.shape[1])
        content.traversals = choose_traversals(session, land, _EXAMPLES, dimensions)
        content.neighbours = choose_neighbours(land, max(1, count))
    elif content.is_live:
        content.notices.append("Without its data there are no encodings: no traversals and no map.")


def _read_template(name: str) -> str:
    return resources.files("mmgen.contrib.explore").joinpath("templates", name).read_text(encoding="utf-8")


def _page_size() -> int:
    """Return the size of a page without any pictures, in bytes."""
    return sum(len(_read_template(name)) for name in ("explore.html.jinja", "explore.css", *_SCRIPTS)) + 20_000


def _policy_hash(text: str) -> str:
    """Return the hash of a script or style sheet by which the page's content security policy allows it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _without_control_characters(value: Any) -> Any:
    """Remove control characters from all strings of nested values."""
    if isinstance(value, str):
        return strip_controls(value, keep="")
    if isinstance(value, dict):
        return {key: _without_control_characters(part) for key, part in value.items()}
    return [_without_control_characters(part) for part in value] if isinstance(value, list | tuple) else value


def _explain_judge(session: Session) -> str:
    """Explain red frames and name the judge, or say how to make one."""
    judge, group = session.judge, session.group
    said = explain_red_frames(judge.accuracy if judge else None, classifier_reads_samples(session.model))
    if judge is not None and group.judge is not None:
        return f"{said} It is {group.judge.name}."
    if session.model.attributes is None:
        return said
    command = f"mmgen train-classifier {group.dataset.name if group.dataset is not None else 'DATASET'}"
    return f"{said} Make one with {command}, and this page again: wrong words then have red frames."


def _name_data(session: Session) -> str:
    """Return the heading of a page: what a person calls the data, and what its pictures are drawn from."""
    name = (
        name_data(session.group) or session.group.model.stem.replace("-", " ").replace("_", " ").strip() or "pictures"
    )
    return f"{name[0].upper()}{name[1:]}, drawn from {'words' if session.sources else 'codes'}"


def _render_page(content: PageContent, title: str, command: str, seed: int, report: str) -> str:
    from jinja2.utils import htmlsafe_json_dumps

    session, group = content.session, content.session.group
    style, script = _read_template("explore.css"), "\n".join(map(_read_template, _SCRIPTS))
    return page_environment("mmgen.contrib.explore").get_template("explore.html.jinja").render(
        title=title or _name_data(session),
        about=f"{group.model.name}: {describe_model(group)}. Pictures are means of p(image|z), drawn with seed {seed}.",
        judged=_explain_judge(session),
        notices=content.notices,
        reasons=content.live.reasons,
        model=group.header.content_id,
        report=report,
        words_only=content.words_only,
        has_map=content.encoding_map is not None,
        style=style,
        script=script,
        style_hash=_policy_hash(style),
        script_hash=_policy_hash(script),
        data=htmlsafe_json_dumps(_without_control_characters(page_values(content, seed))),
        footer=f"Made with mmgen {__version__}" + (f": {command}" if command else "."),
    )  # fmt: skip
