"""``mmgen train-classifier``: train a classifier of a dataset's attributes, which later judges drawn pictures."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

from mmgen.commands._base import Training
from mmgen.settings.kinds import Count, File, FilePath, InputFile, MemberOf, Option, Range, Seed, path_of

if TYPE_CHECKING:
    from mmgen.classifier import ClassifierSettings
    from mmgen.commands._functions import Judge

__all__ = ["TrainClassifier"]


class _ClassifierPlan(NamedTuple):
    """The complete settings of a classifier, and its output file."""

    settings: "ClassifierSettings"
    output: Path


@dataclass(frozen=True)
class TrainClassifier(Training["Judge"]):
    """Train a judge (attribute classifier), which predicts the attributes of pictures, and measure its accuracy."""

    first_in_lists: ClassVar[str | None] = "dataset"
    described_by: ClassVar[tuple[str, ...]] = (
        *Training.described_by,
        "mmgen.classifier:ClassifierSettings",
    )

    dataset: Annotated[File, InputFile("dataset")]
    """Dataset file."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write; DATASET-judge.safetensors or DATASET-MODALITY-judge.safetensors beside the dataset by default."""
    _: KW_ONLY
    modality: Annotated[str, Option(metavar="NAME")] = ""
    network: Annotated[str, MemberOf("mmgen.classifier", "auto")] = "auto"
    """One of {mmgen.classifier}; or auto: by data and device."""
    split: Annotated[str, Option(metavar="SCHEME")] = ""
    told: Annotated[Sequence[str] | None, Option(commas=True, nothing="nothing")] = None
    """Attributes that it reads as hints and does not predict, or nothing; by default the relation of two objects."""
    augment: Annotated[bool, Option("--augment/--no-augment")] = True
    """Reword and mirror descriptions of two objects, and move their pictures."""
    steps: Annotated[int | None, Range(1)] = None
    minutes: float | None = None
    held_out: Count = 10_000
    device: Annotated[str, Option(metavar="NAME")] = "auto"
    devices: int = 1
    precision: str = "auto"
    seed: Seed = 0

    def run(self, command: str = "") -> "Judge":
        """Train the classifier and return it with its accuracy; a finished file is only read.

        Returns:
            The judge, with its accuracy on images that it has not seen.

        Raises:
            SettingsError: Names all wrong keys and values.
        """
        from mmgen.classifier import train_classifier
        from mmgen.commands._functions import Judge

        mode, (settings, output) = self.resume_mode(), self.plan
        command = command or self.command_line(output=output)
        work = train_classifier(path_of(self.dataset), output, settings, command, mode)
        return Judge(output, self.watch.follow(work))

    @cached_property
    def plan(self) -> _ClassifierPlan:
        """Return the complete settings and the output file of the classifier.

        Raises:
            SettingsError: Names all wrong keys and values.
            UsageError: There is no such network or attribute.
        """
        from mmgen.artifacts import Dataset
        from mmgen.classifier import ClassifierSettings, default_training, names, resolve_hints, resolve_network
        from mmgen.core.errors import UsageError, format_unknown_name
        from mmgen.settings.config import merge, validate

        if self.network not in ("auto", *names()):
            raise UsageError(format_unknown_name("judge network", self.network, ["auto", *names()]))
        data = path_of(self.dataset)
        with Dataset.open(data) as opened:  # a file that is no dataset is reported before any work
            hints, main = resolve_hints(self.told, opened), next(iter(opened.observed.values()), None)
            described = opened.observed.get(self.modality, main)
        network = resolve_network(self.network, self.device, bool(hints), described)
        values = {
            **{name: getattr(self, name) for name in ("augment", "modality", "split", "held_out")},
            "network": network,
            "told": hints,
            "training": {**default_training(network), **self.training_settings()},
        }
        settings = validate(ClassifierSettings, merge(values, self.nested_settings()))
        stem = "-".join(filter(None, [data.stem, settings.modality, "judge"]))
        return _ClassifierPlan(settings, path_of(self.output or data.with_name(f"{stem}.safetensors")))
