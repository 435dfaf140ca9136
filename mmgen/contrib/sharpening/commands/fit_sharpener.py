"""``mmgen fit-sharpener``: a network that adds to a model's pictures the detail that its decoder leaves out."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from mmgen.commands._base import Training
from mmgen.settings.kinds import File, FilePath, InputFile, Option, Seed, path_of

if TYPE_CHECKING:
    from mmgen.contrib.sharpening import SharpeningSettings
    from mmgen.generation import TrainedModel

__all__ = ["FitSharpener"]


class _SharpeningPlan(NamedTuple):
    """The complete settings of a sharpener, and its output file."""

    settings: "SharpeningSettings"
    output: Path


@dataclass(frozen=True)
class FitSharpener(Training["TrainedModel"]):
    """Train a network that sharpens the pictures of a model, which stays as it is.

    A residual network adds detail to pictures that the model reconstructs or draws, conditioned on their words, and
    learns from a discriminator that compares them with real pictures of the same words. Low-passed pictures stay as
    they are, so that nothing moves. Every command takes the result in place of the model or aggregate.
    """

    model: Annotated[File, InputFile("model or aggregate")]
    """Model or aggregate."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write; named after the model by default."""
    _: KW_ONLY
    posterior: Annotated[
        str | None, Option("-p", metavar="NAME", words=("prior", "own", "aggregate", "true", "scan"))
    ] = None
    """Posterior of the drawn pictures; by default the fitted one, else own."""
    dataset: Annotated[File | None, InputFile("dataset")] = None
    """The model's dataset, if it is not found by itself."""
    device: Annotated[str, Option(metavar="NAME")] = "auto"
    seed: Seed = 0
    keep_state: bool = False

    def run(self, command: str = "") -> "TrainedModel":
        """Train the sharpener and return the model with it; a finished file is only loaded.

        Returns:
            The model with its sharpener, on the CPU.

        Raises:
            SettingsError: Names all wrong keys and values.
        """
        from mmgen.generation import load

        return load(self.write_file(command))

    def write_file(self, command: str = "") -> Path:
        """Train the sharpener and return its file, without loading it."""
        from mmgen.contrib.sharpening.fitting import fit_sharpener

        mode, (settings, output) = self.resume_mode(), self.plan
        command = command or self.command_line(output=output)
        self.watch.follow(fit_sharpener(path_of(self.model), self._dataset_path, settings, output, command, mode))
        return output

    @cached_property
    def plan(self) -> _SharpeningPlan:
        """Complete settings and output file of the sharpener.

        Raises:
            SettingsError: Names all wrong keys and values.
            UsageError: The model has no such posterior.
        """
        from mmgen.contrib.sharpening.fitting import complete_sharpening_settings
        from mmgen.generation import load
        from mmgen.settings.config import merge

        path = path_of(self.model)
        values = {"training": self.training_settings(), **({"posterior": self.posterior} if self.posterior else {})}
        settings = complete_sharpening_settings(merge(values, self.nested_settings()), load(path))
        return _SharpeningPlan(settings, path_of(self.output or path.with_name(f"{path.stem}-sharpened.safetensors")))

    @cached_property
    def _dataset_path(self) -> Path:
        from mmgen.artifacts import find_parent
        from mmgen.generation import load

        return path_of(self.dataset) if self.dataset else find_parent(load(path_of(self.model)).model_path, "dataset")
