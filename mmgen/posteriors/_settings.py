"""Settings of a fit: the density, its target, and its training."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

import mmgen.densities
import mmgen.posteriors
from mmgen.core.errors import SettingsError, UsageError
from mmgen.densities import Family
from mmgen.latent.space import LatentSpace
from mmgen.modalities.text import TextDescription
from mmgen.models import DataSettings
from mmgen.networks import TextNetwork
from mmgen.posteriors._aggregate import Aggregate, Condition, Given, Layers
from mmgen.posteriors._base import Request, Target, find_condition, given_names
from mmgen.posteriors._encode import posterior_to_aggregate
from mmgen.results.naming import PosteriorName
from mmgen.settings.config import Settings, build_member, merge, to_json_values, validate
from mmgen.training.model_run import ExperimentSettings
from mmgen.training.settings import TrainingSettings

_FAMILY = "realnvp"
_READER = TextNetwork(embedding=32, hidden=128, dropout=0.0)


def _convert_target_name(target: Any) -> Any:
    """Convert the boolean that ``name = true`` is in TOML and --set to "true", the name of the target."""
    return {**target, "name": "true"} if isinstance(target, dict) and target.get("name") is True else target


class AggregateSettings(Settings):
    """Settings of a fitted density: its target, family and condition."""

    target: Annotated[dict[str, Any], BeforeValidator(_convert_target_name)] = Field(
        default_factory=lambda: {"name": "aggregate"}
    )
    """Target of the fit by name, and its own settings."""
    family: dict[str, Any] | None = None
    """Family of densities by name, and its own settings; left out, realnvp, or the only one of the target."""
    given: Given | None = None
    """Modality that it is conditioned on: attributes, text, data of another kind by name, or nothing (the learned prior
    q(z)); left out, text where the model generates text, else attributes. Several with commas, any of which may be
    unknown: attributes,image."""
    layers: Layers = "all"
    """Layers of z that are fitted, where a model has several: all, or the top one (p(z) draws the others)."""
    keep_all: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of descriptions that stay whole during fitting; from the others attributes are dropped at random, which
    keeps a density of few examples from overfitting. With 1 descriptions cannot be drawn with --no-complete."""
    text_network: TextNetwork | None = None
    """Widths of the network that reads sentences, trained with the density; left out, chosen for small data."""
    examples: Annotated[int, Field(ge=1)] = 100_000
    """Training examples that are encoded at most."""


def _default_training(**changes: Any) -> TrainingSettings:
    # Flows are small: large batches use the cores better, and the schedule's end settles them.
    common: dict[str, Any] = {
        "steps": 6_000,
        "batch": 512,
        "learning_rate": 2e-3,
        "schedule": "cosine",
        "gradient_clip": 10.0,
        "precision": "32-true",
    }
    return TrainingSettings(**common | changes)


class FitSettings(Settings):
    """Settings that determine a fitted posterior of a given model."""

    aggregate: AggregateSettings = Field(default_factory=AggregateSettings)
    training: TrainingSettings = Field(default_factory=_default_training)
    data: DataSettings = Field(default_factory=DataSettings)
    """Data of the model; filled in."""

    @property
    def name(self) -> str:
        """Name of the posterior in tables."""
        target = self.build_target()
        name = PosteriorName.of_fit(target.posterior, target.weights, self.aggregate.given != "nothing")
        return f"{name}{target.name_suffix}"

    @property
    def file_name_part(self) -> str:
        """Part of a file name that is unique for target, weights and family: "true-w300-realnvp"."""
        options, target = self.aggregate, self.build_target()
        # A weight of q(z) is always 1.
        parts = [target.posterior, *(target.file_name_parts if options.given != "nothing" else [])]
        parts += [self.family_name] if target.family is None else []
        usual = ("attributes",) if self.data.attributes else ("attributes", "text")
        parts += [options.given.replace(",", "-")] if options.given is not None and options.given not in usual else []
        parts += ["top"] if options.layers == "top" else []
        return "-".join(parts)

    @property
    def base(self) -> "FitSettings | None":
        """Settings of the finished fit that this one starts from; None for a fit from scratch."""
        base_target = self.build_target().base
        if base_target is None:
            return None
        target = {"name": base_target.posterior, **to_json_values(base_target)}
        return self.model_copy(update={"aggregate": self.aggregate.model_copy(update={"target": target})})

    @property
    def settings_to_match(self) -> tuple[Any, ...]:
        """Values of settings, except the target, that a fit and the fit it starts from must share."""
        options = self.aggregate
        return options.given, options.family, options.text_network, options.layers, options.keep_all, self.data

    @property
    def family_name(self) -> str:
        """Name of the family of densities."""
        return str((self.aggregate.family or {}).get("name") or self.build_target().family or _FAMILY)

    def build_family(self) -> Family:
        """Build the family of densities that the settings name."""
        family: Family = build_member(
            mmgen.densities, {"name": self.family_name, **(self.aggregate.family or {})}, "aggregate.family"
        )
        return family

    def build_target(self) -> Target:
        """Build the target that the settings name."""
        target: Target = build_member(mmgen.posteriors, self.aggregate.target, "aggregate.target")
        return target

    def build(self, latent: LatentSpace) -> Aggregate:
        """Build the density over points of ``latent``."""
        options, target = self.aggregate, self.build_target()
        found = [find_condition(self.data, name) for name in given_names(options.given or "")]
        described, *others = [(None if each is None else each.modality(), each) for each in found]
        condition: Condition = described[0]
        return Aggregate(
            latent,
            condition,
            self.build_family(),
            options.text_network,
            options.layers,
            lambda: target.build_networks(latent.size, condition),
            described=described[1],
            further=[(modality, each) for modality, each in others if modality is not None and each is not None],
        )


def fit_defaults(given: Given, reads_sentences: bool) -> FitSettings:
    """Return the default settings of a fit for a condition, which may be sentences."""
    if not reads_sentences:
        return FitSettings(aggregate=AggregateSettings(given=given))
    return FitSettings(
        aggregate=AggregateSettings(given=given, text_network=_READER),
        training=_default_training(steps=2_000, batch=256, validate_every=100),
    )


def _check_text_network(network: TextNetwork | None, given: Given, reads_sentences: bool) -> None:
    """Refuse settings of the network of captions that a fit would not use: it reads them, if any, and decodes none."""
    if network is None:
        return
    if not reads_sentences:
        raise SettingsError(
            f"aggregate.text_network got settings, but a fit given {given} reads no captions; leave them out, or use "
            "--given text"
        )
    # Without dropout, since a draw and its density need the same encoding of a caption.
    unused = {name: getattr(TextNetwork(), name) for name in ("head", "batch_norm", "activation")} | {"dropout": 0.0}
    for name, expected in unused.items():
        if getattr(network, name) != expected:
            raise SettingsError(
                f"setting 'aggregate.text_network.{name}' got {getattr(network, name)}, expected {expected}: a fit "
                "reads captions, always the same way, and decodes none; leave it out"
            )


def complete_fit_settings(values: dict[str, Any], model: ExperimentSettings) -> FitSettings:
    """Check settings of a fit, and fill in defaults and values that follow from the model.

    Raises:
        SettingsError: Some keys or values are wrong; the message names all of them.
        UsageError: The model does not support the fit.
    """
    objective = model.build_objective()
    generates_text = model.data.text is not None and model.data.text.name in objective.demands.generates
    posterior_to_aggregate(model)
    given: Given = validate(FitSettings, values).aggregate.given or ("text" if generates_text else "attributes")
    names = given_names(given)
    found = [find_condition(model.data, name) for name in names]
    reads_sentences = any(isinstance(each, TextDescription) for each in found)
    defaults = fit_defaults(given, reads_sentences).model_dump(mode="json", exclude={"data"})
    settings = validate(FitSettings, merge(defaults, values))
    latent = model.model.latent_space(model.data) if settings.aggregate.layers == "all" else None
    if by_family := settings.build_family().training_defaults(latent):
        settings = validate(FitSettings, merge(merge(defaults, {"training": {**by_family}}), values))
    target, request = settings.build_target(), Request(given, model.data, objective)
    if (len(names) > 1 or given in model.data.observed) and settings.aggregate.target["name"] != "aggregate":
        raise UsageError(
            f"--given got {given}, expected attributes, text or nothing for --target "
            f"{settings.aggregate.target['name']}; use --target aggregate"
        )
    if given != "nothing" and (None in found or len(set(names)) < len(names)):
        if model.data.attributes is None and model.data.text is None:
            target.complete_settings(request)  # a target that needs words says so
        every = ("attributes", "text", *model.data.observed)
        known = ", ".join(name for name in every if find_condition(model.data, name) is not None)
        raise UsageError(
            f"--given got {given}, expected one of {known}, which the model's dataset has, or several of them with "
            "commas; choose another, or use --given nothing"
        )
    if len(names) > 1 and settings.aggregate.keep_all == 1:
        raise UsageError(
            f"aggregate.keep_all got 1 for --given {given}, expected less, since a fit that always sees all of them "
            "answers for no subset; leave it out"
        )
    if target.family is not None and settings.family_name != target.family:
        raise UsageError(
            f"--family got {settings.family_name}, expected {target.family}, the only one for --target "
            f"{settings.aggregate.target['name']}; leave it out"
        )
    if target.needs_likelihood and not settings.build_family().by_likelihood:
        raise UsageError(
            f"--family got {settings.family_name}, whose log density takes too long for --target "
            f"{settings.aggregate.target['name']}, which needs it at every step; use --family {_FAMILY}"
        )
    target = target.complete_settings(request)
    _check_text_network(settings.aggregate.text_network, given, reads_sentences)
    completed = {
        "given": given,
        "family": {"name": settings.family_name, **to_json_values(settings.build_family())},
        "target": {"name": settings.aggregate.target["name"], **to_json_values(target)},
    }
    aggregate = settings.aggregate.model_copy(update=completed)
    return settings.model_copy(update={"aggregate": aggregate, "data": model.data})
