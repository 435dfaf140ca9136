"""The class of figures, their options, and functions that several figures share."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

import mmgen.metrics
from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError, format_unknown_name
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import NOT, OR, format_caption, format_values, parse as parse_words
from mmgen.figures import plots
from mmgen.figures.drawing.picture import Picture, check_ending
from mmgen.figures.session import ModelFiles, Session, gather_files, labels_in_latent, latent_sizes, open_session
from mmgen.generation.decode import decode_means, drawable_pictures
from mmgen.generation.descriptions import Descriptions, check_posterior_reads, parse_descriptions
from mmgen.generation.encode import encode_examples, encode_pictures
from mmgen.generation.examples import Examples, random_test_rows, read_examples
from mmgen.posteriors import NO_GUIDANCE, AnyGuidance, Guidance
from mmgen.results.score import Score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mmgen.figures.session import Session
    from mmgen.modalities.text import TextDescription


@dataclass(frozen=True)
class PlotOptions:
    """Options of a figure, such as its descriptions; for an empty option the figure has its own default.

    Attributes:
        descriptions: Descriptions as a person types them.
        number: Number of examples, images or descriptions; None for as many as fit well.
        sources: Image modalities to start from.
        targets: Image modalities to draw.
        metrics: Metrics of the axes.
        scores: Scores from files.
        guidance: Guidance of additional posteriors; false for none.
        rows: Rows of the dataset to start from.
        by: Attribute or factor that points are coloured by.
        straight: Whether to interpolate along a straight line instead of an arc.
    """

    descriptions: tuple[str, ...] = ()
    number: int | None = None
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()
    guidance: Guidance = NO_GUIDANCE
    rows: tuple[int, ...] = ()
    by: str = ""
    straight: bool = False


PlotOption = Literal["descriptions", "number", "sources", "targets", "metrics", "guidance", "rows", "by", "straight"]
"""A field of :class:`PlotOptions` that a person sets with an option."""

Subject = Literal["model", "plane", "models", "scores", "scores and models"]

OPTIONS: dict[PlotOption, str] = {
    "descriptions": "--given", "number": "--number", "sources": "--from", "targets": "--to", "metrics": "--metric",
    "guidance": "--guidance", "rows": "--dataset-row", "by": "--by", "straight": "--straight",
}  # fmt: skip


@dataclass(frozen=True)
class Plot:
    """Figure: a function that draws one picture from opened models or scores, and its checks of files and options.

    Attributes:
        draw: Function that draws the picture.
        accepts: The accepted options.
        shows: Its subject: one "model" with its fitted posteriors, the "plane" of a model with two latent dimensions,
            several "models", files of "scores", or "scores and models".
        frames: Whether images are framed red where the attribute classifier disagrees.
        lines: Whether it is a line drawing, which can also be written as .pdf or .svg.
        animated: Whether it can also be written as an animation, .gif.
        reported: Whether a report shows the figure for a model beside those that it always has; None: for none.
    """

    draw: Callable[[Sequence[Session], PlotOptions], Picture]
    accepts: frozenset[PlotOption]
    shows: Subject = "model"
    frames: bool = False
    lines: bool = False
    animated: bool = False
    reported: Callable[[Session], bool] | None = None

    @property
    def reads_scores(self) -> bool:
        """Whether the figure is drawn from files of scores instead of models."""
        return self.shows.startswith("scores")

    def __call__(self, sessions: Sequence[Session], options: PlotOptions) -> Picture:
        from mmgen.figures.drawing.style import default_style  # loads matplotlib

        with default_style():
            return self.draw(sessions, options)

    def check(self, name: str, options: PlotOptions) -> None:
        """Raise an error for options that the figure does not accept, and for unknown metrics.

        Args:
            name: Name of the figure.
            options: The options of the user.

        Raises:
            UsageError: The figure does not accept an option; the message lists the accepted ones.
        """
        unused = [typed for field, typed in OPTIONS.items() if getattr(options, field) and field not in self.accepts]
        if unused:
            known = " and ".join(typed for field, typed in OPTIONS.items() if field in self.accepts)
            chooses = f"accepts {known} only" if known else "accepts no options"
            raise UsageError(f"{name} {chooses}, got {' and '.join(unused)}; leave out {' and '.join(unused)}")
        for metric in options.metrics:
            if metric not in mmgen.metrics.names():
                raise UsageError(
                    format_unknown_name("metric", metric, mmgen.metrics.names(), list_command="mmgen list metric")
                )

    def check_output(self, path: Path) -> None:
        """Raise an error if the name of the output file has an ending that the figure cannot write.

        Args:
            path: The output file.

        Raises:
            UsageError: The file name has another ending.
        """
        check_ending(path, self.lines, self.animated)

    def check_models(self, name: str, groups: Sequence[ModelFiles]) -> None:
        """Raise an error if the headers of the models show that the figure cannot draw them.

        Args:
            name: Name of the figure.
            groups: The models.

        Raises:
            UsageError: The figure cannot show these models.
        """
        if self.shows in ("model", "plane") and len(groups) != 1:
            names = ", ".join(group.model.name for group in groups) or "none"
            raise UsageError(
                f"{name} needs one model and its fitted posteriors, got {names}; give the files of one model"
            )
        for group in groups if self.shows == "plane" else ():
            if labels := labels_in_latent(group.header):
                raise UsageError(
                    f"z of {group.model} holds {' and '.join(labels)} beside a style, so {name} cannot show it in a "
                    "plane; use mmgen plot analogies for styles with each label, or embedding for a map of encodings"
                )
            size = latent_sizes(group.header)
            if size != "2":
                raise UsageError(
                    f"{group.model} has {size} latent dimensions, expected 2, in one layer: train one with "
                    "--set model.latent_size=2 (preset cremer/figure1 has them); mmgen plot embedding and traversal "
                    "show any number"
                )


def accepts(
    *options: PlotOption,
    shows: Subject = "model",
    frames: bool = False,
    lines: bool = False,
    animated: bool = False,
    reported: Callable[[Session], bool] | None = None,
) -> Callable[[Callable[[Sequence[Session], PlotOptions], Picture]], Plot]:
    """Decorate a function that draws a figure to make it a :class:`Plot` that accepts only these options."""
    return lambda draw: Plot(draw, frozenset(options), shows, frames, lines, animated, reported)


def dataset_path_of(session: Session) -> Path:
    """Return the path of a model's dataset, or raise an error if the file is missing."""
    return session.group.dataset or session.model.dataset_path()


def select_descriptions(session: Session, options: PlotOptions, number: int) -> Descriptions:
    """Return the descriptions that the options name, by default ``number`` varied ones."""
    model = session.model
    count = options.number or number
    if not options.descriptions:
        if not len(session.concepts):
            raise UsageError(
                f"{model.path} has neither attributes nor text, so it reads no descriptions; leave the descriptions out"
            )
        return session.concepts[:count]
    for words in options.descriptions:
        operators = parse_words(words, model.attributes).operators if "=" in words and model.attributes else ()
        if NOT in operators or OR in operators:
            raise UsageError(
                f"figures take descriptions without operators, got '{words}'; draw it with mmgen sample --guidance"
            )
    descriptions = parse_descriptions(model, options.descriptions)
    for expression in descriptions.expressions:
        if expression is not None:
            raise UsageError(
                f"figures take descriptions without operators, got '{expression}'; draw it with mmgen sample"
            )
    for source in session.sources:
        check_posterior_reads(source.loaded, source.posterior, descriptions)
    for row, words in enumerate(options.descriptions):
        modalities = descriptions.modalities(model, row)
        if not session.sources and modalities and not set(modalities) & set(model.likelihood.names):
            raise UsageError(
                f"got the description '{words}', but {model.path} has neither an encoder nor a decoder of "
                f"{' and '.join(modalities)}; leave the description out"
            )
    return descriptions


def explain_compared_words(session: Session, text: "TextDescription") -> str:
    """Explain for a caption which words of texts the attribute classifier compares with its predictions."""
    judge = session.judge
    if judge is None or not text.slots:
        return "No judge compared images and texts."
    inputs = [slot for slot in text.slots if slot in judge.hints]
    knowing = f", told the generated {', '.join(inputs)}," if inputs else ""
    mean = judge.accuracy.get("mean")
    itself = f" (itself right on {mean:.1f} % of held-out words)" if mean is not None else ""
    return f"Red frame: the judge{itself}{knowing} reads at least one word differently from the text."


def draw_plot(
    name: str,
    paths: Iterable[Path],
    *,
    descriptions: Sequence[str] = (),
    number: int | None = None,
    sources: Sequence[str] = (),
    targets: Sequence[str] = (),
    metrics: Sequence[str] = (),
    guidance: AnyGuidance = 0.0,
    rows: Sequence[int] = (),
    by: str = "",
    straight: bool = False,
    device: str = "cpu",
    seed: int = 0,
    complete: bool = True,
) -> tuple[Picture, list[str]]:
    """Draw the figure ``name`` from files; return its picture and warnings.

    Args:
        name: One of ``mmgen.figures.plots.names()``.
        paths: Models, fitted posteriors, classifiers, scores; parents and the classifier are found by lineage.
        descriptions: Descriptions as a person types them; by default the figure chooses.
        number: Number of examples or descriptions; by default as many as fit well.
        sources: Image modalities to start from, several at once as "edges+mask"; by default the figure chooses.
        targets: Image modalities to draw; by default the figure chooses.
        metrics: Metrics of the axes; by default the figure chooses.
        guidance: Weight w of additional guided posteriors, or "cfg:0.5"; 0 for none.
        rows: Rows of the dataset to start from; by default the figure chooses.
        by: Attribute or factor that points are coloured by; by default the figure chooses.
        straight: Whether to interpolate along a straight line instead of an arc.
        device: Device of the models.
        seed: Seed of every choice and draw.
        complete: Whether words that descriptions leave open are drawn first.

    Returns:
        The picture, and notices about files that could not be opened.

    Raises:
        UsageError: There is no such figure, it cannot be drawn from these files, or does not accept an option.
        ArtifactError: A file cannot be read.
    """
    member: Plot = plots.get(name)
    options = PlotOptions(
        tuple(descriptions), number, tuple(sources), tuple(targets), tuple(metrics), guidance=Guidance.parse(guidance),
        rows=tuple(rows), by=by, straight=straight,
    )  # fmt: skip
    member.check(name, options)
    if not complete and "descriptions" not in member.accepts:
        raise UsageError(f"{name} got --no-complete, but it draws nothing from descriptions; leave it out")
    paths = list(paths)
    report_files = gather_files(paths, frames=member.frames)
    if not (report_files.scores if member.reads_scores else report_files.groups):
        expected = "files of scores (.jsonl), which mmgen eval MODEL -o writes"
        expected = expected if member.reads_scores else "a model, or a posterior fitted to one"
        raise UsageError(f"{name} got {report_files.describe(paths)}, expected {expected}; give such a file")
    member.check_models(name, report_files.groups)
    if unread := report_files.unused_files(
        paths,
        scores=member.reads_scores or member.frames,
        models=member.shows != "scores",
        judges=not member.reads_scores,
    ):
        report_files.notices.append(f"{name} does not use {report_files.describe(unread)}.")
    shown = report_files.groups if member.shows != "scores" else []
    sessions = [open_session(group, seed, device, guidance, complete) for group in shown]
    notices = report_files.notices + [notice for session in sessions for notice in session.notices]
    return member(sessions, replace(options, scores=tuple(report_files.scores))), notices


@dataclass(frozen=True)
class StartExamples:
    """Examples from which a figure starts, with the means of their posteriors over z.

    Attributes:
        session: The model that encoded them.
        examples: The examples.
        z: Means of their posteriors, [n, D].
        conditions: Modalities that the posteriors read: only the image if the model has such a posterior.
    """

    session: "Session"
    examples: Examples
    z: Tensor
    conditions: tuple[str, ...]

    def label(self, number: int) -> str:
        """Return the label of the example ``number``: its description, or without one its row in the dataset."""
        info, text, shown = self.session.model.attributes, self.session.model.text, self.examples
        if info is not None and shown.codes is not None and (shown.codes[number] != UNKNOWN).any():
            return format_values(shown.codes[number], info)
        if text is not None and shown.tokens is not None and (caption := format_caption(shown.tokens[number], text)):
            return caption
        return f"row {shown.rows[number]}"

    @property
    def name(self) -> str:
        """Name of the main modality, whose pictures the figure shows."""
        return self.session.model.observation.name if self.session.model.observation is not None else ""

    @property
    def pictures(self) -> np.ndarray:
        """Pictures [n, C, H, W] of the examples in the main modality."""
        assert self.session.model.observation is not None
        return self.session.model.observation.picture(self.examples.images)

    @property
    def condition(self) -> Batch | None:
        """Descriptions [n] of the examples for a model that decodes z with a description; None for others."""
        if not self.session.model.model.conditional_on:
            return None
        codes = self.examples.codes
        known = np.full((len(self.z), 0), UNKNOWN, np.uint8) if codes is None else codes
        return Descriptions(known, self.examples.tokens).batch(self.session.model, slice(None))

    def decode(self, number: int, z: Tensor) -> np.ndarray:
        """Decode z [..., D] to pictures [..., C, H, W], with the description of example ``number`` if needed."""
        model = self.session.model
        main = model.observation
        assert main is not None
        condition = None if self.condition is None else self.condition[slice(number, number + 1)]
        return main.pictures(decode_means(model, main.name, z, condition).cpu().numpy())


def encode_start_examples(session: "Session", rows: "Sequence[int]", count: int) -> StartExamples:
    """Read and encode the examples in ``rows`` of the model's dataset, by default ``count`` random test examples.

    Raises:
        UsageError: The model does not draw or encode images, or the data have no test examples.
        MissingParentError: The dataset is missing.
    """
    model = session.model
    main = model.observation
    if main is None or main.name not in drawable_pictures(model):
        raise UsageError(f"{session.group.model} draws no images, which this figure needs; use a model of images")
    path = dataset_path_of(session)
    with Dataset.open(path) as data:
        row_numbers = np.asarray(rows, np.int64)
        if not rows:
            row_numbers = random_test_rows(data, model.settings.data.split, count, session.seed)
        if not len(row_numbers):
            raise UsageError(
                f"{path} has no test examples to start from, expected at least one; choose rows with --dataset-row"
            )
        examples = read_examples(model, data, row_numbers)
    alone = model.model.has_posterior((main.name,))
    with torch.no_grad():
        q = encode_pictures(model, examples.images) if alone else encode_examples(model, examples)
    return StartExamples(session, examples, q.mean, (main.name,) if alone else model.encoder_inputs)
