"""``mmgen baseline``: accuracy of label readers and log-likelihoods of simple densities, to compare models with."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from mmgen.commands._base import Stage, nest_settings
from mmgen.core.errors import UsageError
from mmgen.settings.kinds import Count, File, FilePath, InputFile, MemberOf, Option, Seed, path_of

if TYPE_CHECKING:
    from mmgen.artifacts import Dataset
    from mmgen.contrib.baselines import LabelSupply
    from mmgen.results.score import Score, Scores
    from mmgen.training.model_run import ExperimentSettings

__all__ = ["Baseline"]

_OF_NETWORKS = ("model.", "objective.", "training.")


@dataclass(frozen=True)
class Baseline(Stage["Scores"]):
    """Measure baselines of models: accuracy of labels predicted from images, or log p(x) of real numbers.

    Label readers learn from the same pairs as mmgen train --paired with this dataset, split, share and seed, or from
    the same labels as --labelled; the preset sets the default. They write one JSON line for each number of pairs, which
    mmgen plot weak-supervision draws. Densities are fitted to the training part. They write log p(x) of the test part,
    a JSON line like that of mmgen eval --metric log-likelihood.
    """

    first_in_lists: ClassVar[str | None] = "dataset"

    dataset: Annotated[File, InputFile("dataset")]
    """Dataset file."""
    method: Annotated[str, Option("-m"), MemberOf("mmgen.contrib.baselines")] = "logistic"
    """How it is answered: {mmgen.contrib.baselines}."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write; DATASET-METHOD.jsonl beside the dataset by default."""
    _: KW_ONLY
    paired: Annotated[Sequence[float] | None, Option(metavar="SHARE", default="1")] = None
    """Share of the training images that come with their label, as of mmgen train; repeatable."""
    labelled: Sequence[Count] | None = None
    """So many labelled training images instead, as of mmgen train; repeatable."""
    preset: Annotated[str | None, Option(metavar="NAME", default="wu/ and the dataset's recipe")] = None
    """Joint model whose networks and training are used."""
    settings: Annotated[Mapping[str, Any] | None, Option("--set", metavar="KEY=VALUE")] = None
    """Any settings: ROOM.KEY over the preset, or a density's own."""
    steps: Count | None = None
    """Optimiser steps of networks."""
    attribute: Annotated[str, Option(metavar="NAME")] = ""
    """Attribute to predict, if there are several."""
    modality: Annotated[str, Option(metavar="NAME")] = ""
    """Modality whose density is fitted."""
    split: Annotated[str | None, Option(metavar="SCHEME")] = None
    """Split scheme, as of mmgen train."""
    overwrite: bool = False
    """Replace the file that is there."""
    device: Annotated[str, Option(metavar="NAME")] = "auto"
    """Where to compute: auto, cpu, cuda, cuda:1."""
    seed: Seed = 0
    """All randomness comes from this number."""

    def run(self, command: str = "") -> "Scores":
        """Measure the baseline, and write the scores to a file.

        Returns:
            The scores, which know their file.

        Raises:
            UsageError: An option is not for this method, or scores are there already.
        """
        from mmgen.results.score import Scores

        self.check_output()
        scores = self.measure()
        self.write_scores(scores)
        return Scores(scores, self.path)

    @property
    def path(self) -> Path:
        """The file to which the scores are written."""
        data = path_of(self.dataset)
        return path_of(self.output or data.parent / f"{data.stem}-{self.method}.jsonl")

    def check_output(self) -> None:
        """Raise an error if the file of scores exists, unless it may be overwritten.

        Raises:
            UsageError: They are.
        """
        from mmgen.artifacts import check_nothing_lost, check_output
        from mmgen.contrib.baselines import get

        get(self.method)
        check_output(self.path, None, path_of(self.dataset))
        check_nothing_lost(self.path, self.overwrite)

    def write_scores(self, scores: "Sequence[Score]") -> None:
        """Write scores to the file :attr:`path`; a failed write leaves no file."""
        from mmgen.evaluation import write_scores

        write_scores(self.path, scores)

    @property
    def predicts_labels(self) -> bool:
        """True if the method predicts labels; False if it fits a density."""
        from mmgen.contrib.baselines import get

        return get(self.method).answers != "densities"

    def measure(self) -> "list[Score]":
        """Measure the baseline and return the scores, without writing them.

        Raises:
            UsageError: An option is not for this method.
        """
        from mmgen.artifacts import Dataset
        from mmgen.contrib.baselines import get, measure_density, measure_labels

        path = path_of(self.dataset)
        if not self.predicts_labels:
            names = ("paired", "labelled", "preset", "steps", "attribute")
            device = self.device if self.device != "auto" else None
            self._refuse_options(
                "densities", {**{f"--{name}": getattr(self, name) for name in names}, "--device": device}
            )
            settings = nest_settings(self.settings)
            return self.watch.follow(measure_density(path, self.method, settings, self.split, self.seed, self.modality))
        self._refuse_options("labels", {"--modality": self.modality})
        if not get(self.method).networks:
            self._refuse_training_options()
        with Dataset.open(path) as opened:
            experiment = self._experiment_settings(opened)
            opened.split(experiment.data.split, "train")
        supplies = self._label_supplies(experiment)
        return self.watch.follow(measure_labels(path, self.method, supplies, experiment, self.attribute))

    def _refuse_options(self, answers: str, options: Mapping[str, object]) -> None:
        """Refuse options that a baseline for labels (or for densities) would ignore."""
        if set_options := [name for name, value in options.items() if value]:
            others = "labels" if answers == "densities" else "densities"
            is_for, it = ("is for", "it") if len(set_options) == 1 else ("are for", "them")
            raise UsageError(
                f"{self.method} is a baseline for {answers}, and {' and '.join(set_options)} {is_for} baselines for "
                f"{others}; leave {it} out"
            )

    def _refuse_training_options(self) -> None:
        """Refuse options for networks if the method trains none."""
        from mmgen.contrib.baselines import import_all
        from mmgen.core.parsing import flatten

        set_options = ["--steps"] * (self.steps is not None)
        for key in flatten(nest_settings(self.settings)):
            if key.startswith(_OF_NETWORKS) and key != "training.device":
                set_options.append(f"--set {key}")
        if set_options:
            others = [name for name, member in import_all().items() if member.networks]
            raise UsageError(
                f"{self.method} trains no networks, so {' and '.join(set_options)} would change nothing; leave it out, "
                f"or choose a --method that does: {', '.join(others)}"
            )

    def _label_supplies(self, experiment: "ExperimentSettings") -> "list[LabelSupply]":
        """Return the numbers of labelled images, from options, else settings or preset, else all images."""
        from mmgen.contrib.baselines import LabelSupply

        labelled = self.labelled
        if self.paired and labelled:
            raise UsageError(
                f"--paired got {self.paired[0]:g} and --labelled {labelled[0]:,}, expected one of them; leave out one"
            )
        if not self.paired and not labelled and experiment.data.labelled is not None:
            labelled = [experiment.data.labelled]
        if labelled:
            return [LabelSupply(count=count) for count in labelled]
        return [LabelSupply(share) for share in self.paired or [experiment.data.paired]]

    def _experiment_settings(self, dataset: "Dataset") -> "ExperimentSettings":
        """Return the joint model's settings: those of the preset, overridden by ``settings`` and then by options."""
        from mmgen.contrib.baselines import get
        from mmgen.settings import extends, presets
        from mmgen.settings.config import find_preset, merge
        from mmgen.training.model_run import complete_settings

        recipe = str(dataset.header.settings.get("recipe", ""))
        name = self.preset or f"wu/{recipe}"
        if self.preset is None and name not in presets.preset_names():
            raise UsageError(
                f"--preset is not given and there is none for the recipe '{recipe}'; see mmgen list presets"
            )
        name = find_preset(name, recipe)
        if self.preset is None:
            what = "networks" if get(self.method).networks else "data settings"
            self.watch.say(f"{what} of preset {name}")
        device = None if self.device == "auto" else self.device
        training = {"steps": self.steps, "seed": self.seed, "device": device}
        options: dict[str, Any] = {"training": {key: one for key, one in training.items() if one is not None}}
        if self.split is not None:
            options["data"] = {"split": self.split}
        return complete_settings(
            merge(merge(extends.load_preset(name), nest_settings(self.settings)), options), dataset
        )
