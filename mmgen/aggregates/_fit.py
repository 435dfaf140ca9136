"""Fitting an aggregate posterior to a trained model, and loading a fitted one."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import BeforeValidator, Field
from torch import Tensor

import mmgen.aggregates
from mmgen.aggregates._base import Aggregate, Condition, Family, Given, Layers
from mmgen.aggregates._encode import Encoding, LatentRows, encode, posterior_to_aggregate, rows_of
from mmgen.aggregates._guided import GuidedTask
from mmgen.aggregates._shown import (
    check_shown,
    described_fact,
    fitted_places,
    knows_too_much,
    needs_words,
    shown_by,
)
from mmgen.aggregates._targets import FitTask, Target
from mmgen.aggregates._weights import (
    Guidance,
    TextWeight,
    check_family,
    check_guidance,
    check_model,
    resolve_text_weight,
    said,
)
from mmgen.artifacts import Dataset, Header, Latents, check_output, read_header
from mmgen.core.errors import DataError, SettingsError, UsageError
from mmgen.core.progress import Progress, Work
from mmgen.models import DataSettings
from mmgen.networks import TextNetwork
from mmgen.results.naming import number_of, posterior_name
from mmgen.settings.config import Settings, build_member, merge, plain, validate
from mmgen.training.fabric import make_fabric
from mmgen.training.loop import Resume, TrainingResult
from mmgen.training.model_run import ExperimentSettings, check_data, load_model
from mmgen.training.precision import resolve_precision
from mmgen.training.settings import StageSettings, TrainingSettings
from mmgen.training.stage import Built, Stage, load_trained, run_stage
from mmgen.training.task import Task

__all__ = ["AggregateSettings", "FitSettings", "fit_aggregate", "load_aggregate", "load_base"]

_CANDIDATES = 64
_READER = TextNetwork(embedding=32, hidden=128, dropout=0.0)


def _spelled(target: Any) -> Any:
    """``true`` in TOML and after --set is a truth value; here it is a name."""
    return "true" if target is True else target


class AggregateSettings(Settings):
    """What is fitted."""

    family: dict[str, Any] = Field(default_factory=lambda: {"name": "realnvp"})
    """Family of densities by name, and its own settings."""
    given: Given | None = None
    """What it is conditioned on: attributes, text, or nothing (the learned prior q(z)); left out, text where the model
    generates text, else attributes."""
    target: Annotated[Target, BeforeValidator(_spelled)] = "aggregate"
    """aggregate: CK Eq. 5; true: CK Eq. 3, the baseline that it is compared with."""
    text_weight: TextWeight = None
    """Power w of p(y|z) in q_true's target p(y|z)^w p(z), for target true alone. training is lambda / beta of the
    model's objective, 1 the exact p(z|y); left out, training."""
    guidance: Guidance = 0.0
    """Power w of p(y|z) that tilts q_agg, q_agg(z|y) p(y|z)^w, for target aggregate alone; 0 is q_agg itself."""
    candidates: Annotated[int, Field(ge=2)] | None = None
    """M, draws of q_agg from which each draw of the guided one is chosen; left out, 64 where there is guidance."""
    layers: Layers = "all"
    """Layers of z that are fitted, where a model has several: all, or the top one (p(z) draws the others)."""
    keep_all: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of descriptions that stay whole during fitting; from the others attributes are dropped at random."""
    text_network: TextNetwork | None = None
    """Widths of the network that reads sentences, trained with the density; left out, chosen for small data."""
    examples: Annotated[int, Field(ge=1)] = 100_000
    """Training examples that are encoded at most."""

    @property
    def weight(self) -> float | None:
        """The power of p(y|z) in the target, as a number; None where the target is another.

        Raises:
            SettingsError: It is still to be resolved, see :func:`complete_fit_settings`.
        """
        if self.target != "true":
            return None
        if self.text_weight == "training":
            raise SettingsError("setting 'aggregate.text_weight' got training, expected a number in a finished fit")
        # Files from before there was a choice: all of them were fitted with 1.
        return 1.0 if self.text_weight is None else self.text_weight


def _fit_training(**others: Any) -> TrainingSettings:
    # Flows are small: large batches use the cores better, and the schedule's end settles them.
    common: dict[str, Any] = {
        "steps": 6_000,
        "batch": 512,
        "learning_rate": 2e-3,
        "schedule": "cosine",
        "gradient_clip": 10.0,
        "precision": "32-true",
    }
    return TrainingSettings(**common | others)


class FitSettings(StageSettings):
    """Everything that determines an aggregate, given a model."""

    aggregate: AggregateSettings = Field(default_factory=AggregateSettings)
    training: TrainingSettings = Field(default_factory=_fit_training)
    data: DataSettings = Field(default_factory=DataSettings)
    """The model's; filled in."""

    @property
    def name(self) -> str:
        """What people call the posterior."""
        asked = self.aggregate
        name = posterior_name(self.posterior, asked.weight, asked.guidance, given=asked.given)
        return name if self.build_family().base is None else f"{name} with operators"

    @property
    def posterior(self) -> str:
        """The short word of the posterior: "aggregate", "true", or that of a family with an objective of its own."""
        return self.build_family().posterior or self.aggregate.target

    @property
    def slug(self) -> str:
        """Part of a file's name that other targets, weights and families do not share: "true-w300-realnvp"."""
        asked = self.aggregate
        parts: list[str] = [self.posterior]
        # A weight of which there is no choice (nothing given, or CVAE) is 1.
        parts += [f"w{number_of(asked.weight)}"] if asked.weight is not None and asked.given != "nothing" else []
        parts += [f"guided-w{number_of(asked.guidance)}"] if asked.guidance else []
        family = self.build_family()
        parts += [str(asked.family["name"])] if asked.family["name"] != self.posterior else []
        usual = type(family)()
        parts += [
            f"{called}-w{number_of(getattr(family, key))}"
            for key, called in family.weights.items()
            if getattr(family, key) != getattr(usual, key)
        ]
        parts += ["operators"] if family.base is not None else []
        parts += [asked.given] if asked.given == "nothing" or (asked.given == "text" and self.data.attributes) else []
        parts += ["top"] if asked.layers == "top" else []
        return "-".join(parts)

    @property
    def base(self) -> "FitSettings | None":
        """Settings of the finished fit that this one starts from; None where it starts anew.

        That is the plain q_agg which a guided one draws its candidates from, or what a family names as its own base.
        """
        before = self.build_family().base
        if not self.aggregate.guidance and before is None:
            return None
        changed: dict[str, Any] = {"guidance": 0.0, "candidates": None}
        if before is not None:
            changed["family"] = {"name": self.aggregate.family["name"], **plain(before)}
        return self.model_copy(update={"aggregate": self.aggregate.model_copy(update=changed)})

    @property
    def shape(self) -> tuple[Any, ...]:
        """What two fits must share for one to start from the other."""
        asked = self.aggregate
        return asked.given, asked.family, asked.text_network, asked.layers, asked.keep_all, self.data

    def build_family(self) -> Family:
        """The family that the settings name."""
        family: Family = build_member(mmgen.aggregates, self.aggregate.family, "aggregate.family")
        return family


def fit_defaults(given: Given) -> FitSettings:
    """What is fitted, and for how long, where nobody says otherwise.

    Nearly every caption of a training set is another one, so a network that reads captions soon knows them by heart:
    it is given fewer passes over them, and validation looks more often.
    """
    if given != "text":
        return FitSettings(aggregate=AggregateSettings(given=given))
    return FitSettings(
        aggregate=AggregateSettings(given=given, text_network=_READER),
        training=_fit_training(steps=2_000, batch=256, validate_every=100),
    )


def complete_fit_settings(values: dict[str, Any], model: ExperimentSettings) -> FitSettings:
    """Validate user-given values over the defaults and fill in what the model determines.

    Raises:
        SettingsError: Names every wrong key and value.
        UsageError: The model cannot be asked for it.
    """
    objective = model.build_objective()
    generates_text = model.data.text is not None and model.data.text.name in objective.demands.generates
    posterior_to_aggregate(model)
    asked = validate(FitSettings, values)
    given = asked.aggregate.given or ("text" if generates_text else "attributes")
    check_family(asked.build_family(), model.data, asked.aggregate.target, asked.aggregate.guidance)
    if given != "nothing" and getattr(model.data, given) is None:
        raise UsageError(f"--given got {given}, but the model's dataset has none; use --given nothing")
    defaults = fit_defaults(given).model_dump(mode="json", exclude={"data"})
    settings = validate(FitSettings, merge(defaults, values))
    if settings.aggregate.target != "true" and settings.aggregate.text_weight is not None:
        raise UsageError(
            f"--text-weight got {said(settings.aggregate.text_weight)}, expected nothing with --target "
            f"{settings.aggregate.target}, which is fitted to encodings; use --target true"
        )
    if given != "nothing" and settings.aggregate.target == "true":
        description = getattr(model.data, given).name
        # Decoders that see the description (CVAE) leave z independent of it: p(z | description) is p(z).
        if description not in (*objective.demands.generates, *objective.demands.conditions_on):
            raise UsageError(
                f"--target true needs p({given} | z), but this model generates no {given}; use --target aggregate"
            )
    check_guidance(settings.aggregate.guidance, settings.aggregate.target, given, model.data, objective)
    if settings.aggregate.candidates is not None and not settings.aggregate.guidance:
        raise SettingsError(
            f"setting 'aggregate.candidates' got {settings.aggregate.candidates}, expected nothing without --guidance"
        )
    dropout = settings.aggregate.text_network.dropout if settings.aggregate.text_network else 0.0
    if dropout:
        raise SettingsError(
            f"setting 'aggregate.text_network.dropout' got {dropout}, expected 0: "
            "a draw and its density are two readings of a caption, which must be the same"
        )
    family = {"name": settings.aggregate.family.get("name"), **plain(settings.build_family())}
    filled: dict[str, Any] = {"given": given, "family": family}
    if settings.aggregate.target == "true":
        filled["text_weight"] = resolve_text_weight(settings.aggregate.text_weight, given, model.data, objective)
    if settings.aggregate.guidance:
        filled["candidates"] = settings.aggregate.candidates or _CANDIDATES
    aggregate = settings.aggregate.model_copy(update=filled)
    return settings.model_copy(update={"aggregate": aggregate, "data": model.data})


def _build(settings: FitSettings, latent_size: int) -> Aggregate:
    data, given = settings.data, settings.aggregate.given
    condition: Condition = None
    if given == "attributes":
        condition = data.attributes.modality() if data.attributes else None
    elif given == "text":
        condition = data.text.modality() if data.text else None
    asked = settings.aggregate
    return Aggregate(latent_size, condition, settings.build_family(), asked.text_network, asked.layers)


def fit_aggregate(
    model_path: Path,
    dataset_path: Path,
    settings: FitSettings,
    out: Path,
    latents_path: Path | None = None,
    command: str = "",
    resume: Resume = "auto",
    base_path: Path | None = None,
) -> tuple[Work[Latents], Work[TrainingResult]]:
    """Two pieces of work, to be run in order: encoding the examples (cached), and fitting to them.

    Args:
        model_path: Model checkpoint.
        dataset_path: The dataset that it was trained on, or one like it.
        settings: Completed settings.
        out: Checkpoint to write, kind "aggregate".
        latents_path: Where encodings are cached; left out, beside the model.
        command: The command to record.
        resume: See :func:`mmgen.training.loop.train`.
        base_path: The fit to the same model that this one starts from, see :attr:`FitSettings.base`; it need not be
            there before the second piece of work begins.

    Raises:
        UsageError: The dataset is not like the model's own, or a file would be written over something else.
    """
    if (base_path is not None) != (settings.base is not None):
        raise UsageError("a fit starts from another one where it is guided or has operators, and only there")
    family = settings.build_family()
    fabric = make_fabric(settings.training)
    _, trained, model = load_model(model_path, fabric.device)
    through = posterior_to_aggregate(trained)
    data = trained.data
    with Dataset.open(dataset_path) as dataset:
        seen = [data.modalities[name] for name in through]
        check_data(dataset, model_path, data.attributes, data.text, *seen)
        shown = shown_by(trained, dataset)
    check_model(model, model_path, settings.aggregate.layers)
    check_shown(shown, settings, needs_words(data, through, shown))
    family.check(model, settings.aggregate.given or "attributes", settings.aggregate.layers)
    fitted = model.latent.layers[model.latent.top] if settings.aggregate.layers == "top" else model.latent_size
    settings.training.check_optimizer(lambda: _build(settings, fitted).parameters())
    precision = resolve_precision(settings.training.precision, fabric.device)
    examples, seed = settings.aggregate.examples, settings.training.seed
    what = Encoding(model_path, dataset_path, through, data.split, examples, seed, precision, data, shown)
    latents_path = latents_path or what.path()
    parents = {"model": model_path, "latents": latents_path, "dataset": dataset_path}
    parents |= {} if base_path is None else {"base": base_path}
    check_output(out, "aggregate", *parents.values())
    check_output(latents_path, "latents", *(path for role, path in parents.items() if role != "latents"))
    encoding = encode(what, model, latents_path, fabric.device, command)

    def build(device: torch.device) -> Built:
        latents = encoding.result
        with Dataset.open(dataset_path) as dataset:
            is_validation = np.isin(latents.rows, rows_of(dataset, trained.data.split, "val"))
        aggregate = _build(settings, fitted).to(device).over(model)
        places = fitted_places(latents.rows, is_validation, settings, shown), np.flatnonzero(is_validation)
        rows, validation = (LatentRows(latents, of, trained.data, device, aggregate.of_layers) for of in places)
        if not (torch.isfinite(rows.mean).all() and torch.isfinite(rows.log_sd).all()):
            raise DataError(f"{latents_path} holds encodings that are not finite: the model diverged; train it again")

        # The task: the family's own; else a guided fit starts from q_agg, a plain one from where the encodings are.
        asked, determines, base = settings.aggregate, {"latents": latents.header.content_id}, None
        task: Task
        if base_path is not None:
            header, base = load_base(base_path, settings, model_path, dataset_path, device)
            base.over(model)
            aggregate.load_state_dict({**aggregate.state_dict(), **base.state_dict()})
            determines["base"] = header.content_id
        own = family.task(aggregate, asked.keep_all)
        if own is not None:
            task = own
        elif base is not None:
            task = GuidedTask(aggregate, base, model, asked.keep_all, asked.guidance, asked.candidates or _CANDIDATES)
        else:
            if asked.target == "aggregate":
                aggregate.standardise(rows.mean, rows.log_sd)
            task = FitTask(aggregate, asked.target, model, asked.keep_all, asked.weight)
        facts = {"latent_size": model.latent_size} | described_fact(shown, settings)
        return Built(task, rows, validation, determines, facts=facts)

    stage = Stage(
        kind="aggregate",
        settings=settings.model_dump(mode="json"),
        training=settings.training,
        parents=parents,
        build=build,
        description=f"fitting {settings.name}",
        command=command,
    )

    def work() -> Generator[Progress, None, TrainingResult]:
        fitting = run_stage(stage, out, resume, fabric)  # now that the encodings are there
        yield from fitting
        return fitting.result

    return encoding, Work(stage.description, settings.training.steps, "step", work)


def load_base(
    path: Path, settings: FitSettings, model_path: Path, dataset_path: Path, device: torch.device | str = "cpu"
) -> tuple[Header, Aggregate]:
    """The fit that another one starts from, see :attr:`FitSettings.base`.

    Raises:
        UsageError: It is another posterior, of another model or dataset, or of another shape than the settings ask for.
    """
    expected = settings.base
    assert expected is not None
    header, found, base = load_aggregate(path, device)
    parents = {parent.role: parent.content_id for parent in header.parents}
    for role, file in (("model", model_path), ("dataset", dataset_path)):
        if parents.get(role) != read_header(file).content_id:
            raise UsageError(f"{path} was fitted to another {role} than {file}; give a {expected.name} of that {role}")
    if knows_too_much(header, settings.data):
        raise UsageError(
            f"{path} was fitted to descriptions that the training of {model_path} kept back, as earlier versions of "
            "mmgen did; fit it again"
        )
    if found.posterior != expected.posterior or found.base is not None:
        wanted = "the plain q_agg that is guided" if settings.aggregate.guidance else f"{expected.name} without them"
        raise UsageError(f"{path} is {found.name}, expected {wanted}")
    if found.shape != expected.shape:
        raise UsageError(
            f"{path} is a {found.aggregate.family['name']} given {found.aggregate.given}, expected the family, its "
            "settings, keep_all and what is given as asked for the fit that starts from it"
        )
    return header, base


def load_aggregate(path: Path, device: torch.device | str = "cpu") -> tuple[Header, FitSettings, Aggregate]:
    """A fitted aggregate in evaluation mode, with its header and settings.

    Raises:
        ArtifactError: The file is no aggregate checkpoint, or its tensors do not fit its settings.
    """

    def build(header: Header, tensors: Mapping[str, Tensor]) -> tuple[FitSettings, Aggregate]:
        settings = validate(FitSettings, header.settings)
        return settings, _build(settings, len(tensors["shift"]))

    return load_trained(path, "aggregate", build, device)
