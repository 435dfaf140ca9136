"""Parts that models share: the modalities of the data, a decoder for each, and preparation for training."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.modalities import Modality
from mmgen.models._settings import DataSettings


def available_modalities(
    data: DataSettings, likelihoods: Mapping[str, str], needed: Iterable[str]
) -> dict[str, Modality]:
    """Return the modalities of the data by name, each with the likelihood that the settings choose.

    Args:
        data: Settings of the data.
        likelihoods: Names of p(x | z) by kind; others have their defaults.
        needed: Names of the modalities that the objective uses.

    Raises:
        SettingsError: A needed modality is missing, or a likelihood is not for its kind.
    """
    available = {name: each.modality(likelihoods.get(each.kind)) for name, each in data.modalities.items()}
    missing = sorted(set(needed) - available.keys())
    if missing:
        raise SettingsError(
            f"the objective needs the modality {missing[0]}, "
            f"but the dataset holds {', '.join(sorted(available)) or 'none'}; "
            "choose another objective or dataset"
        )
    return available


def networks_by_kind(
    data: DataSettings, own_settings: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return settings of encoder and decoder for each kind of modality: the model's own fields, or ``settings`` by
    kind.

    Args:
        data: The modalities that there are.
        own_settings: Settings of the kinds that the model has keys of its own for; none are needed.
        settings: ``model.networks``: of other kinds, where they are not the defaults.

    Raises:
        SettingsError: There are settings of a kind that has none or is not in the data, or wrong ones.
    """
    other_kinds = {each.kind: each for each in data.modalities.values() if each.kind not in own_settings}
    networks = {
        kind: each.read_network_settings(settings.get(kind, {}), f"model.networks.{kind}")
        for kind, each in other_kinds.items()
    }
    for kind in settings:
        if networks.get(kind) is None:
            known = [name for name, networks in networks.items() if networks is not None]
            raise SettingsError(
                f"setting 'model.networks' got '{kind}', expected {' or '.join(known) or 'nothing'}: the kinds of data "
                f"in this dataset whose networks have no setting of their own; leave model.networks.{kind} out"
            )
    return {**own_settings, **networks}


def make_decoders(
    inputs: Mapping[str, int], modalities: Mapping[str, Modality], networks: Mapping[str, Any]
) -> tuple[dict[str, Modality], dict[str, nn.Module]]:
    """Return for each modality, by name, its generated form and its decoder [B, inputs] -> parameters of p(x_m | z).

    Args:
        inputs: Size of each decoder's input, by name.
        modalities: The modalities to decode, by name.
        networks: Settings of networks by kind.
    """
    made = {name: modality.decoder(inputs[name], networks.get(modality.kind)) for name, modality in modalities.items()}
    return {name: pair[0] for name, pair in made.items()}, {name: pair[1] for name, pair in made.items()}


Examples = Callable[[int], Batch]
"""Returns a batch of so many examples at most, the same ones every time."""


@dataclass(frozen=True)
class Preparation:
    """Result of the preparation of a model for training.

    Attributes:
        facts: Measurements for the header of the checkpoint.
        run_settings: Values that identify the run besides the settings, such as a hash of given weights.
        note: A sentence for people; "" for none.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    run_settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
