"""``mmgen fit-aggregate``: a trained model into an aggregated posterior."""

import inspect
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from mmgen.commands._base import Training, check_not_both
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.settings.kinds import Count, File, FilePath, InputFile, MemberOf, Option, Seed, optional_path, path_of

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel
    from mmgen.posteriors import FitSettings

__all__ = ["FitAggregate"]

_TARGET_OF = {"text_weight": "true", "guidance": "guided"}
"""Settings of a target that are options of the command, and the target that has them."""


class _FitPlan(NamedTuple):
    """The complete settings of a fit, its output file, and the fitted posterior that it starts from."""

    settings: "FitSettings"
    output: Path
    base: Path | None


@dataclass(frozen=True)
class FitAggregate(Training["TrainedModel"]):
    """Learn the aggregated posterior q(z | description) of a trained model.

    The model stays as it is. Its training examples are encoded once and cached; a conditional density is then fitted to
    the encodings. Attributes are dropped at random meanwhile, so one aggregate answers any partial description;
    captions are read whole, by a recurrent network that is fitted with the density.
    """

    first_in_lists: ClassVar[str | None] = "model"

    model: Annotated[File, InputFile("model")]
    """Model file."""
    output: Annotated[FilePath | None, Option("-o", metavar="PATH")] = None
    """Where to write; named after the model and the fit by default."""
    _: KW_ONLY
    given: Annotated[
        str | None,
        Option(
            metavar="WHAT",
            default="text if the model generates text, else attributes",
            words=("attributes", "text", "nothing"),
        ),
    ] = None
    """Condition of z: attributes (any subset may be unknown), text, other data by name, several of these with commas
    (any subset), or nothing: p(z)."""
    target: Annotated[str | None, MemberOf("mmgen.posteriors"), Option(metavar="NAME", default="aggregate")] = None
    """Target of the fit: {mmgen.posteriors}. true is p(words | z)^W p(z) (CK Eq. 3)."""
    text_weight: Annotated[float | str | None, Option(metavar="W", default="training")] = None
    """W of target true: a number, training (lambda / beta of the model), or 1: the exact p(z | words)."""
    guidance: Annotated[float | str | None, Option(metavar="W")] = None
    """W of target guided, which it implies: q_agg(z | words) p(words | z)^W, fitted to chosen draws of q_agg."""
    base: Annotated[File | None, Option("--from", metavar="FILE"), InputFile("aggregate")] = None
    """The fit to start from: with guidance the fitted q_agg, with operators of SCAN the fitted SCAN. If left out, it is
    fitted first, beside the output."""
    family: Annotated[str | None, MemberOf("mmgen.densities"), Option(default="realnvp, or as --from")] = None
    """Density that is fitted: {mmgen.densities}."""
    layers: Annotated[str | None, Option(metavar="WHICH", default="all", words=("all", "top"))] = None
    """Layers of z, of a model with several: all, or top, below which z is drawn from the model's p(z)."""
    examples: Annotated[Count | None, Option(default="100000")] = None
    """Training examples to encode at most."""
    precision: Annotated[str | None, Option(default="32-true")] = None
    """Arithmetic of the encoder: auto, bf16-mixed or 32-true."""
    dataset: Annotated[File | None, InputFile("dataset")] = None
    """The model's dataset, if it is not found by itself."""
    latents: Annotated[FilePath | None, Option(metavar="FILE")] = None
    """File for cached encodings; by default beside the model, named by its content."""
    device: Annotated[str, Option(metavar="NAME")] = "auto"
    seed: Seed = 0
    keep_state: bool = False

    def run(self, command: str = "") -> "TrainedModel":
        """Encode the dataset, fit the posterior and return it loaded; a finished file is only loaded.

        Returns:
            The aggregate with its model, on the CPU.

        Raises:
            SettingsError: Names all wrong keys and values.
        """
        from mmgen.generation import load

        return load(self.write_file(command))

    def write_file(self, command: str = "") -> Path:
        """Fit the posterior and return its file, without loading it; a missing ``base`` is fitted first.

        Returns:
            The aggregate.
        """
        from mmgen.artifacts import read_header
        from mmgen.posteriors import describe_described_examples, few_candidates_warning, fit_aggregate

        mode, (settings, output, base) = self.resume_mode(), self.plan
        command = command or self.command_line(output=output)
        fits: list[tuple[FitSettings, Path, Path | None, str, str]] = [(settings, output, base, command, mode)]
        if settings.base is not None and base is not None and self._base_is_missing(mode):
            # resume asks for a state of the last fit; that of the one it starts from may have ended
            first = self._command_of_base(settings.base, base)
            fits.insert(0, (settings.base, base, None, first, "auto" if mode == "require" else mode))
        if text := describe_described_examples(self._model_path, self._dataset_path, settings):
            self.watch.say(text)
        for fit, made, begun, typed, how in fits:
            encoding, fitting = fit_aggregate(
                self._model_path, self._dataset_path, fit, made, self._latents_path, typed, how, begun
            )
            self.watch.follow(encoding)
            self.watch.follow(fitting)
        if output.exists() and (text := few_candidates_warning(read_header(output).facts, settings.build_target())):
            self.watch.say(text)
        return output

    @cached_property
    def plan(self) -> _FitPlan:
        """Complete settings, output file and base of the fit.

        Raises:
            SettingsError: Names all wrong keys and values.
            UsageError: ``base`` is none for this fit.
        """
        from mmgen.posteriors import complete_fit_settings, load_base
        from mmgen.settings.config import merge
        from mmgen.training.model_run import load_model

        if self.given == "":  # would be read as if it were left out
            raise UsageError("--given got '', expected attributes, text, other data by name, or nothing")
        chosen, given = self._settings_values(), self.nested_settings()
        typed = ("given", "examples", "layers", "family")
        options = {name: chosen["aggregate"][name] for name in typed if getattr(self, name)}
        check_not_both({"aggregate": options}, given)
        values = merge(chosen, given)
        self._check_target_options(values)
        if values.get("data"):
            raise UsageError(
                "--set got settings of data, expected aggregate or training: a fit has its model's data; leave them out"
            )
        settings = complete_fit_settings(values, load_model(self._model_path)[1])
        base = optional_path(self.base)
        if base is not None:
            if settings.base is None:
                raise UsageError(
                    f"--from got {base}, expected no file: only fits with --guidance and SCAN with operators start "
                    "from another fit; leave it out"
                )
            load_base(base, settings, self._model_path, self._dataset_path)  # before anything slow
        output = path_of(
            self.output or self._model_path.with_name(f"{self._model_path.stem}-{settings.file_name_part}.safetensors")
        )
        if base is None and settings.base is not None:
            base = self._default_base(settings.base, output)
        return _FitPlan(settings, output, base)

    def _command_of_base(self, settings: "FitSettings", path: Path) -> str:
        """Return the command that makes the fit to start from by itself."""
        others = {key: value for key, value in (self.settings or {}).items() if not key.startswith("aggregate.target")}
        aggregate = others.get("aggregate")
        if isinstance(aggregate, Mapping):
            others["aggregate"] = {key: value for key, value in aggregate.items() if key != "target"}
        name = settings.aggregate.target["name"]
        return self.command_line(
            output=path, target=None if name == "aggregate" else name, guidance=None, settings=others or None
        )

    def _default_base(self, settings: "FitSettings", output: Path) -> Path:
        """Return the file of the fit to start from: beside the model if it is there, else beside the output.

        Its name has the seed if a fit of another seed is there.
        """
        from mmgen.artifacts import read_header

        base = self._model_path.with_name(f"{self._model_path.stem}-{settings.file_name_part}.safetensors")
        if not base.exists():
            base = output.with_name(base.name)
        try:
            is_of_other_seed = base.exists() and read_header(base).seed != settings.training.seed
        except ArtifactError:  # the fit says what is wrong
            return base
        return base.with_name(f"{base.stem}-seed{settings.training.seed}{base.suffix}") if is_of_other_seed else base

    def check_fit(self) -> None:
        """Raise an error that the fit would raise before its work starts."""
        from mmgen.posteriors import fit_aggregate

        settings, output, base = self.plan
        fit_aggregate(self._model_path, self._dataset_path, settings, output, self._latents_path, base_path=base)

    @property
    def _model_path(self) -> Path:
        return path_of(self.model)

    @property
    def _latents_path(self) -> Path | None:
        return optional_path(self.latents)

    @cached_property
    def _dataset_path(self) -> Path:
        from mmgen.artifacts import find_parent

        return path_of(self.dataset) if self.dataset else find_parent(self._model_path, "dataset")

    def _settings_values(self) -> dict[str, Any]:
        """Nested settings from the options, before defaults are filled in."""
        from mmgen.posteriors import load_aggregate
        from mmgen.settings.config import merge

        names = ("given", "examples", "layers")
        aggregate: dict[str, Any] = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        target = {key: str(getattr(self, key)) for key in _TARGET_OF if getattr(self, key) is not None}
        name = self.target or ("guided" if self.guidance is not None else "aggregate")
        aggregate["target"] = {"name": name, **target}
        if self.family:
            aggregate["family"] = {"name": self.family}
        if self.base is not None:
            fitted = load_aggregate(path_of(self.base))[1].aggregate.model_dump(mode="json")
            shared = ("given", "family", "text_network", "layers")
            shape = {key: fitted[key] for key in (*shared, *(["target"] if fitted["target"]["name"] == name else []))}
            aggregate = merge(shape, aggregate)
        return {"aggregate": aggregate, "training": self.training_settings()}

    def _check_target_options(self, values: dict[str, Any]) -> None:
        """Refuse options that only apply to another target of the fit."""
        import mmgen.posteriors

        aggregate = values["aggregate"]
        chosen = aggregate.get("target") if isinstance(aggregate, dict) else None
        name = chosen.get("name") if isinstance(chosen, dict) else None
        name = "true" if name is True else name  # TOML's truth value, as --set reads it
        if not isinstance(name, str):
            return  # settings of a wrong form are refused with all others
        known = inspect.signature(mmgen.posteriors.get(name)).parameters
        for key, target in _TARGET_OF.items():
            got = getattr(self, key)
            if got is not None and key not in known:
                raise UsageError(
                    f"--{key.replace('_', '-')} got {got}, expected nothing with target {name}: it is a setting of "
                    f"target {target}; use --target {target}, or leave it out"
                )

    def _base_is_missing(self, mode: str) -> bool:
        """Return True if the posterior to start from has its default name and is not fitted yet."""
        from mmgen.artifacts import check_output
        from mmgen.posteriors import is_finished_fit
        from mmgen.training.state import state_path

        settings, output, base = self.plan
        if settings.base is None or base is None or self.base is not None:
            return False
        check_output(output, "aggregate", base)
        if is_finished_fit(base, settings.base, self._model_path, self._dataset_path):
            return False
        if mode == "auto" and base.exists() and not state_path(base).exists():
            raise UsageError(
                f"{base} exists, but is not the {settings.base.name} of {self._model_path} on {self._dataset_path} "
                "that this fit starts from; give one with --from, or use --overwrite to replace it"
            )
        return True
