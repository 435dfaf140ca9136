"""``mmgen train``: a dataset into a trained model."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from mmgen.commands._base import Training, check_not_both
from mmgen.settings.kinds import Count, File, FilePath, InputFile, MemberOf, Option, Range, optional_path, path_of

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel
    from mmgen.training.loop import TrainingResult
    from mmgen.training.model_run import ExperimentSettings

__all__ = ["Train"]


class _TrainingPlan(NamedTuple):
    """The complete settings of a training, and its output file."""

    settings: "ExperimentSettings"
    output: Path


@dataclass(frozen=True)
class Train(Training["TrainedModel"]):
    """Train a model on a dataset.

    Writes the weights with the best validation bound, and beside them a log (.log.jsonl) and the state to continue from
    (.last.safetensors). Some kB of the state stay after the end, so that the same command finds the run finished.
    --log-to sends the log elsewhere as well.
    Ctrl-C saves; the same command again continues, with the same result as without the break. The exception is
    --minutes: the clock ends such a run, and a cosine schedule follows it.

    --from begins a new run with the weights of another model, which becomes its parent. Networks, split and the
    modalities of the objective are taken over; other weights such as beta only by the same objective, and settings of
    the training never. --resume continues an unfinished run.
    """

    first_in_lists: ClassVar[str | None] = "dataset"

    dataset: Annotated[File, InputFile("dataset")]
    """Dataset file."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write; named after dataset and preset or objective by default."""
    _: KW_ONLY
    preset: Annotated[str | None, Option(metavar="NAME")] = None
    """Settings of a published experiment; see mmgen list preset."""
    config: Annotated[FilePath | None, Option(metavar="FILE")] = None
    """Settings from a TOML file, which may extend a preset; over the preset."""
    objective: Annotated[str | None, MemberOf("mmgen.objectives")] = None
    """What is maximised: {mmgen.objectives}."""
    split: Annotated[str | None, Option(metavar="SCHEME")] = None
    """Split scheme to train on, such as iid; mmgen show DATA names those of the file."""
    paired: Annotated[float | None, Range(0, 1), Option(metavar="SHARE")] = None
    """Keep this share of the examples paired, shuffle the rest."""
    labelled: Count | None = None
    """Keep the labels of so many training examples, balanced over their values; hide all others."""
    start: Annotated[File | None, Option("--from", metavar="MODEL"), InputFile("model")] = None
    """Begin with this model's weights and networks, for another objective or schedule."""
    minutes: float | None = None
    devices: int | None = None
    keep_state: bool = False

    def run(self, command: str = "") -> "TrainedModel":
        """Train the model and return it loaded; a finished file is only loaded.

        Returns:
            The trained model, on the CPU.

        Raises:
            SettingsError: Names all wrong keys and values.
        """
        from mmgen.generation import load

        self.write_file(command)
        return load(self.plan.output)

    def write_file(self, command: str = "") -> "TrainingResult":
        """Train the model and return the result of the training, without loading the file."""
        from mmgen.training.model_run import train_model

        mode, (settings, output) = self.resume_mode(), self.plan
        command = command or self.command_line(output=output)
        training = train_model(path_of(self.dataset), settings, output, command, mode, self._start_path)
        for note in training.notes:
            self.watch.say(note)
        return self.watch.follow(training)

    @cached_property
    def plan(self) -> _TrainingPlan:
        """Complete settings and output file; options override ``settings``, then the file, then the preset.

        Raises:
            SettingsError: Names all wrong keys and values.
            UsageError: There is no such preset or objective, or the dataset does not fit.
        """
        from mmgen.artifacts import Dataset
        from mmgen.settings.config import merge, read_toml
        from mmgen.training.model_run import complete_settings, describe_unused_modalities
        from mmgen.training.pairing import describe_rows

        preset = self._preset_name()
        config = read_toml(path_of(self.config)) if self.config else {}
        with Dataset.open(path_of(self.dataset)) as opened:
            settings = complete_settings(self._settings_values(preset, config), opened)
            size = len(opened.split(settings.data.split, "train"))  # an unknown scheme is reported before any work
        goal = settings.build_objective()
        for text in (
            describe_unused_modalities(settings, merge(config, self.nested_settings())),
            describe_rows(size, goal, settings.data),
            goal.check_run(settings.training),
        ):
            if text:
                self.watch.say(text)
        return _TrainingPlan(settings, self._output_path(preset or settings.objective["name"]))

    @property
    def _start_path(self) -> Path | None:
        return optional_path(self.start)

    def _output_path(self, name: str) -> Path:
        data = path_of(self.dataset)
        return path_of(self.output or data.with_name(f"{data.stem}-{name.rpartition('/')[2]}.safetensors"))

    def _settings_values(self, preset: str | None, config: dict[str, Any]) -> dict[str, Any]:
        """Return nested settings from preset, file and options, before defaults are filled in."""
        from mmgen.settings import extends
        from mmgen.settings.config import merge
        from mmgen.training.settings import merge_settings
        from mmgen.training.weights import settings_from_start

        own = extends.resolve_extends(config, str(self.config))
        values = merge_settings(extends.load_preset(preset) if preset else {}, own)
        below = values.get("objective", {})
        if self.objective and isinstance(below, dict) and below.get("name") != self.objective:
            values["objective"] = {"name": self.objective}  # another objective's settings would not be its own
        data = {"split": self.split, "paired": self.paired, "labelled": self.labelled}
        options = {
            "training": self.training_settings(),
            "data": {name: one for name, one in data.items() if one is not None},
        }
        values = merge(values, {room: given for room, given in options.items() if given})
        settings = self.nested_settings()
        named = {"objective": {"name": self.objective}} if self.objective else {}
        check_not_both({**options, **named}, settings)
        values = merge_settings(values, settings)
        return settings_from_start(self._start_path, values) if self._start_path else values

    def _preset_name(self) -> str | None:
        """Return the full name of the preset: a short one stands for its variant for this dataset and device."""
        from mmgen.artifacts import read_header
        from mmgen.settings import presets
        from mmgen.settings.config import find_preset
        from mmgen.training.precision import resolve_device

        if not self.preset:
            return None
        on_cpu = resolve_device(self.device or "auto").type == "cpu"
        full = find_preset(self.preset, str(read_header(path_of(self.dataset)).settings.get("recipe", "")), on_cpu)
        if full != self.preset:
            here = " (there is no GPU here)" if full.endswith("-cpu") else ""
            self.watch.say(f"preset {self.preset}: {full}{here}")
        elif on_cpu and f"{full}-cpu" in presets.preset_names():
            self.watch.say(f"preset {full} is for a GPU, and there is none here; {full}-cpu is its variant for CPUs")
        return full

    def check_networks(self) -> None:
        """Build the networks without weights, so that settings that do not fit raise an error early.

        Raises:
            SettingsError: Settings of the networks do not fit each other, the objective, the data or the optimiser.
        """
        import torch

        from mmgen.models import build_model

        settings = self.plan.settings
        material = settings.model, settings.build_objective().demands, settings.data
        try:
            with torch.device("meta"):
                model = build_model(*material)
        except RuntimeError:  # a network from outside that looks at its first weights
            model = build_model(*material)
        settings.training.check_optimizer(model.parameters)
