"""``mmgen sample``: pictures for a description or from other pictures, or what pictures show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mmgen.commands._base import Completing, Drawing
from mmgen.core.errors import UsageError
from mmgen.settings.kinds import Count, File, FilePath, InputFile, Option, Range, optional_path, path_of

if TYPE_CHECKING:
    import numpy as np

    from mmgen.core.pictures import Background
    from mmgen.figures.drawing.page import Grid
    from mmgen.generation import TrainedModel
    from mmgen.generation.draws import Draws
    from mmgen.generation.translations import TranslationStart

__all__ = ["Sample"]

_PICTURES = (".png", ".jpg", ".jpeg", ".webp")
_EXAMPLES = 8
"""Test examples to start from unless rows are named."""


@dataclass(frozen=True)
class Sample(Completing, Drawing["Grid | Draws | list[dict[str, Any]]"]):
    """Draw images for a description or from other kinds of pictures, or predict what images show.

    Writes a grid of images (.png, .jpg, .webp), every image with its z and what the judge saw (.h5), or one PNG file an
    image (a folder, NAME/), by the ending of --output. In a grid images are framed where the judge reads them
    differently.
    """

    first_in_lists: ClassVar[str | None] = "model"
    first_options: ClassVar[tuple[str, ...]] = ("given", "n", "output", "seed")

    model: Annotated[File, InputFile("model or aggregate")]
    """Model or aggregate."""
    given: Annotated[str | Mapping[str, str] | Sequence[str], Option(metavar="WORDS")] = ""
    """What to draw: "digit=3 scale=big" or "3 big", the rest unknown, or a whole caption where the model knows text,
    "large red rubber cube left small blue metal sphere". Repeat it for several descriptions. NOT and OR: "digit=3 NOT
    scale=big OR digit=8"."""
    n: Annotated[Count | None, Option("--number", "-n")] = None
    """Images for each description (16 by default), or for each picture to start from (4)."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write; the command writes NAME-samples.png beside the model by default."""
    _: KW_ONLY
    scale: Annotated[Count, Range(1, 32)] = 1
    """By how much to enlarge the pictures of a folder, smoothly (Lanczos)."""
    clear_ground: bool = False
    """Make the ground around what is drawn see-through in the pictures of a folder, where those of the dataset, which
    must be there, were see-through. Holes inside keep their colour."""
    no_copies: bool = False
    """Leave out near copies of training pictures, by the rule of the metric copies, and draw others in their place."""
    posterior: Annotated[
        str | None, Option("-p", metavar="NAME", words=("prior", "own", "aggregate", "true", "scan"))
    ] = None
    """Posterior to draw z from: prior, own (the encoder's q(z | words)), aggregate, true or scan; by default the fitted
    one, else own."""
    mean: Annotated[bool | None, Option("--mean/--sampled", default="mean")] = None
    """Show means of p(image|z) in a picture, or draws from it."""
    judge: Annotated[File | None, InputFile("classifier")] = None
    """Classifier that looks at the images; found beside the model."""
    source: Annotated[str | None, Option("--from", metavar="SOURCE")] = None
    """Read images instead of drawing them. SOURCE is a picture of any size, resized as those of the dataset were, or a
    file of samples or a dataset. Or it is a kind of picture, whose test examples are taken: edges, several together
    (edges+mask), or edges=FILE. With targets, other pictures are drawn from it."""
    targets: Annotated[Sequence[str], Option("--to", metavar="NAME")] = ()
    """The kind of picture to draw, such as mask, where the model has several; repeatable, for pictures of the same z.
    By default the main one."""
    like: Annotated[str | None, Option(metavar="PICTURE", words=("nearest",))] = None
    """Change the words of a picture to those of --given, by analogy with the training pictures, instead of drawing it
    anew: a picture file, whose words are taken to be those of the training picture that is most like it, or nearest,
    the training pictures with most of these words. Draws one picture of each description by default."""
    rows: Annotated[Sequence[Annotated[int, Range(0, 2**63 - 1)]], Option("--dataset-row")] = ()
    """Which rows of the source, or of the model's dataset; repeatable. By default 8 of its test part."""

    def run(self, command: str = "") -> "Grid | Draws | list[dict[str, Any]]":
        """Draw images and write them to the output, or predict attributes or texts of images.

        Returns:
            A picture that a notebook shows and that ``save`` writes, or what was drawn for a file of another ending. Of
            images to read a dictionary each.

        Raises:
            UsageError: The model does not know the words, or has no such posterior; something would be lost.
        """
        self._check_options()
        if self.predicts:
            return self._predict()
        output, start = optional_path(self.output), self._start
        if output is not None:
            self._check_output(output, *([start.file] if start and start.file else []))
        command = command or self.command_line(given=self._descriptions)
        if self.like is not None:
            return self._change(output)
        return self._translate(start, output, command) if start else self._draw(output, command)

    @property
    def _writes_folder(self) -> bool:
        """True if the output is a folder of single pictures."""
        return self.output is not None and (not path_of(self.output).suffix or path_of(self.output).is_dir())

    @cached_property
    def _ground(self) -> "Background | None":
        """The colour of the ground to clear; None to keep it."""
        from mmgen.generation.translations import recipe_settings

        settings = recipe_settings(self._model)
        if self.clear_ground and "see_through" not in settings:
            raise UsageError(
                f"--clear-ground got {self._model.path}, whose dataset is not here or is not said to be of see-through "
                "pictures, which make-data folder notes; leave it out, or make the data anew"
            )
        return None if not self.clear_ground else "black" if settings.get("background") == "black" else "white"

    @property
    def predicts(self) -> bool:
        """True if attributes or texts of images are predicted; False if images are drawn."""
        return (self.source is not None or bool(self.rows)) and not self.targets

    @property
    def _descriptions(self) -> list[str]:
        descriptions = [self.given] if isinstance(self.given, str | Mapping) else self.given
        if not descriptions:
            raise UsageError("given got no description, expected at least one; an empty text stands for any picture")
        if all(isinstance(one, str) for one in descriptions):
            return [str(one) for one in descriptions]
        from mmgen.generation.descriptions import format_description

        return [format_description(one) for one in descriptions]

    @cached_property
    def _model(self) -> "TrainedModel":
        from mmgen.generation import TrainedModel, load

        if isinstance(self.model, TrainedModel):
            return self._asked(self.model).guided(self.guidance, self.seed)
        loaded = self._asked(load(path_of(self.model), self.device)).guided(self.guidance, self.seed)
        for notice in loaded.notices:
            self.watch.say(notice)
        if loaded.sharpener is not None and self.mean is False:
            raise UsageError(
                f"--sampled got {path_of(self.model)}, whose sharpened pictures have no noise of pixels; leave it out"
            )
        return loaded

    def _asked(self, loaded: "TrainedModel") -> "TrainedModel":
        return loaded if self.complete else loaded.completing(False)

    @cached_property
    def _start(self) -> "TranslationStart | None":
        """Return the pictures that drawing starts from; None when it starts from a description alone."""
        from mmgen.generation.translations import parse_translation_start

        if self.source is None and not self.rows:
            return None
        main = self._model.observation.name if self._model.observation is not None else ""
        return parse_translation_start(self._model, self.source or main)

    def _check_options(self) -> None:
        """Refuse options that have no effect together with the others."""
        from mmgen.posteriors import Guidance

        typed = "--mean" if self.mean else "--sampled"
        if (self.scale > 1 or self.clear_ground) and not self._writes_folder:
            raise UsageError(
                f"{'--clear-ground' if self.clear_ground else '--scale'} got the output {self.output}, expected a "
                "folder of single pictures; name one, such as -o pictures/"
            )
        if self.mean is not None and Path(str(self.output)).suffix.lower() == ".h5":
            raise UsageError(
                f"{typed} got the output {self.output}, expected a picture (.png), since a file of samples holds means "
                f"and draws; leave {typed} out"
            )
        if self.like is not None:
            unused = {
                "--posterior": self.posterior, "--guidance": Guidance.parse(self.guidance),
                typed: self.mean is not None,
                "--no-complete": not self.complete, "--from": self.source, "--to": self.targets,
                "--dataset-row": self.rows, "--no-copies": self.no_copies,
            }  # fmt: skip
            if ignored := [name for name, value in unused.items() if value]:
                raise UsageError(
                    f"--like changes pictures without a model's z, got {' and '.join(ignored)} too, which it does not "
                    "use; leave one or the other out"
                )
            if self.output is not None and path_of(self.output).suffix.lower() == ".h5":
                raise UsageError(
                    f"--output got {self.output}, expected a picture (.png) with --like; change its ending"
                )
        if self.source is None and not self.rows:
            return
        described = {
            "--posterior": self.posterior,
            "--judge": self.judge,
            "--guidance": Guidance.parse(self.guidance),
            "--no-complete": not self.complete,
            "--no-copies": self.no_copies,
        }
        if ignored := [name for name, value in described.items() if value]:
            raise UsageError(
                f"--from or --dataset-row got {' and '.join(ignored)} too, which only drawing from a description uses; "
                "leave one or the other out"
            )
        drawing = {"--given": self.given, "--output": self.output, "--number": self.n, typed: self.mean is not None}
        drawing["--overwrite"] = self.overwrite
        if self.predicts and (ignored := [name for name, value in drawing.items() if value]):
            raise UsageError(
                f"--from predicts what images show, got {' and '.join(ignored)} too, which is for drawing images; "
                "choose one, or name with --to the kind of picture to draw"
            )

    def _check_output(self, output: Path, *inputs: Path) -> None:
        from mmgen.artifacts import check_output
        from mmgen.artifacts.pages import check_folder, check_page
        from mmgen.generation.decode import resolve_targets

        ending = "" if self._writes_folder else output.suffix.lower()
        described = self._model.observed[resolve_targets(self._model, list(self.targets))[0]]
        if ending not in ("", *_PICTURES, ".h5", *described.files):
            own = "".join(f", {each} ({described.name})" for each in described.files)
            raise UsageError(
                f"--output got {output}, expected a name ending in .png, .jpg or .webp (a grid), .h5 (samples){own}, "
                "or a folder of single pictures (NAME/)"
            )
        if ending in ("", *_PICTURES) and described.picture_shape is None:
            raise UsageError(
                f"--output got {output}, expected a file of samples (.h5), since a {described.kind} has no picture; "
                "choose a name ending in .h5"
            )
        if not ending:
            check_folder(output, self.overwrite)
            _ = self._ground  # refused before the work
        elif ending != ".h5":
            check_page(output, "picture", self.overwrite, *inputs)
        elif self.overwrite:
            raise UsageError(
                f"--overwrite got the output {output}, expected a picture (.png): a file of samples is replaced "
                "without it; leave --overwrite out"
            )
        else:
            check_output(output, "samples", *inputs)

    def _draw(self, output: Path | None, command: str) -> "Grid | Draws":
        """Draw pictures that fit descriptions."""
        from mmgen.artifacts import check_unchanged
        from mmgen.figures.drawing.samples import sample_grid
        from mmgen.generation.classifiers import classifier_reads_samples
        from mmgen.generation.draws import convert_draws_to_pictures, sample_and_classify
        from mmgen.generation.samples import save_samples

        loaded = self._model
        drawn, file, judging = sample_and_classify(
            loaded, self._descriptions, self.n or 16, self.watch, posterior=self.posterior, seed=self.seed,
            classifier_path=optional_path(self.judge), neighbour=output, targets=self.targets,
            is_copy=self._are_copies if self.no_copies else None,
        )  # fmt: skip
        if output is not None and output.suffix.lower() == ".h5":
            if file is not None and judging is not None:
                check_unchanged(file, judging.content_id)
            save_samples(output, drawn, loaded, classifier_path=file, command=command)
            return drawn
        return self._write(output, drawn, (), lambda: sample_grid(
            convert_draws_to_pictures(loaded, drawn), loaded.attributes, text=loaded.text, sampled=self.mean is False,
            accuracy=judging.accuracy if judging else None, judged_samples=classifier_reads_samples(loaded),
        ))  # fmt: skip

    def _change(self, output: Path | None) -> "Grid | Draws":
        """Change words of training pictures or of the user's."""
        from mmgen.figures.drawing.samples import sample_grid
        from mmgen.generation.by_analogy import draw_by_analogy

        assert self.like is not None
        loaded = self._model
        drawn, judging = draw_by_analogy(
            loaded, self._descriptions, self.n or 1, self.like, self.watch, seed=self.seed,
            classifier_path=optional_path(self.judge), neighbour=output,
        )  # fmt: skip
        return self._write(output, drawn, (), lambda: sample_grid(
            drawn, loaded.attributes, text=loaded.text, accuracy=judging.accuracy if judging else None
        ))  # fmt: skip

    def _translate(self, start: "TranslationStart", output: Path | None, command: str) -> "Grid | Draws":
        """Draw pictures that fit pictures of other modalities."""
        from mmgen.figures.drawing.samples import translation_grid
        from mmgen.generation.draws import convert_draws_to_pictures
        from mmgen.generation.samples import save_samples
        from mmgen.generation.translations import convert_examples_to_pictures, draw_translations, read_start_pictures

        loaded, (description, *others) = self._model, self._descriptions
        if others:
            raise UsageError(
                f"--given got {len(others) + 1} descriptions beside the pictures of --from, expected one; "
                "run the command once for each"
            )
        start_pictures = read_start_pictures(loaded, start, _EXAMPLES, self.seed, list(self.rows))
        if start_pictures.notice:
            self.watch.say(start_pictures.notice)
        drawn = draw_translations(
            loaded, start_pictures, start.sources, list(self.targets), self.n or 4, self.seed, description
        )
        if output is not None and output.suffix.lower() == ".h5":
            beginning = {"from": list(start.sources), "pictures": list(start_pictures.names)}
            save_samples(output, drawn, loaded, command=command, start=beginning)
            return drawn
        return self._write(output, drawn, start_pictures.names, lambda: translation_grid(
            convert_examples_to_pictures(loaded, start_pictures), start.sources,
            convert_draws_to_pictures(loaded, drawn), description=description, sampled=self.mean is False,
        ))  # fmt: skip

    def _are_copies(self, drawn: "Draws") -> "np.ndarray":
        """Return which images are near copies of training pictures, bool [Q, n]."""
        from mmgen.artifacts import Dataset
        from mmgen.evaluation import Evaluation, EvaluationSettings
        from mmgen.evaluation.training_pictures import explain_missing_held_out_pictures
        from mmgen.generation.classifiers import classifier_reads_samples

        images = drawn.sampled if classifier_reads_samples(self._model) else drawn.means
        with Dataset.open(self._model.dataset_path()) as data:
            evaluation = Evaluation(self._model, data, None, [drawn.posterior], EvaluationSettings(seed=self.seed))
            if reason := explain_missing_held_out_pictures(evaluation):
                raise UsageError(f"--no-copies {reason}")
            copies = evaluation.training_pictures.are_copies(images.reshape(-1, *images.shape[2:]))
        return copies.reshape(images.shape[:2])

    def _write(
        self, output: Path | None, drawn: "Draws", labels: "Sequence[str]", draw_grid: "Callable[[], Grid]"
    ) -> "Grid | Draws":
        """Write single pictures, values in a format such as a sound, or a grid, and return draws or the grid."""
        from mmgen.figures.drawing.samples import label_descriptions
        from mmgen.figures.drawing.single import write_pictures
        from mmgen.generation.draws import convert_draws_to_pictures
        from mmgen.generation.samples import write_values

        if output is None or (output.suffix.lower() in _PICTURES and not self._writes_folder):
            grid = draw_grid()
            if output is not None:
                grid.save(output)
            return grid
        if self._writes_folder:
            pictures = convert_draws_to_pictures(self._model, drawn).pictures(self.mean is False)
            labels = labels or label_descriptions(drawn, self._model.attributes, self._model.text)
            if opaque := write_pictures(output, labels, pictures, self.scale, self._ground):
                self.watch.say(f"--clear-ground found no {self._ground} ground at the edge of {opaque:,} pictures")
        else:
            write_values(output, self._model, drawn, sampled=self.mean is False)
        return drawn

    def _predict(self) -> list[dict[str, Any]]:
        """Predict the attributes, with probabilities, or the texts of images."""
        from mmgen.generation.encode import attribute_probabilities, list_predictions, texts_of_images
        from mmgen.generation.translations import read_start_pictures

        loaded, start = self._model, self._start
        assert start is not None
        if loaded.attributes is None and loaded.text is None:
            raise UsageError(f"{loaded.path} has no attributes and no text to predict from images; use a model of both")
        start_pictures = read_start_pictures(loaded, start, _EXAMPLES, self.seed, list(self.rows))
        if start_pictures.notice:
            self.watch.say(start_pictures.notice)
        pixels = {name: start_pictures.pictures[name] for name in start.sources}
        if loaded.text is not None and loaded.text.name in loaded.model.generates:
            texts = texts_of_images(loaded, pixels, seed=self.seed)
            return [
                {"image": name, "text": one[0], "texts": one[1:]}
                for name, one in zip(start_pictures.names, texts, strict=True)
            ]
        probabilities = attribute_probabilities(loaded, pixels, seed=self.seed)
        assert loaded.attributes is not None
        return [
            {"image": name, "attributes": list_predictions(one, loaded.attributes)}
            for name, one in zip(start_pictures.names, probabilities, strict=True)
        ]
