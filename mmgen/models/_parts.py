"""Common parts of models: the modalities of the data, and a decoder for each."""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from mmgen.core.errors import SettingsError
from mmgen.modalities import Modality
from mmgen.models._settings import DataSettings

__all__ = ["available_modalities", "decoders_for", "networks_by_kind"]


def available_modalities(
    data: DataSettings, likelihoods: Mapping[str, str], needed: Iterable[str]
) -> dict[str, Modality]:
    """Return every modality of the data, by name, in their order.

    Args:
        data: The modalities that there are.
        likelihoods: p(x | z) by kind; left out, what the kind has by default.
        needed: Those that the objective looks at.

    Raises:
        SettingsError: One that is needed is missing, or a likelihood is none of its kind.
    """
    available = {name: each.modality(likelihoods.get(each.kind)) for name, each in data.modalities.items()}
    lacking = sorted(set(needed) - available.keys())
    if lacking:
        raise SettingsError(
            f"the objective needs the modality {lacking[0]}, "
            f"but the dataset holds {', '.join(sorted(available)) or 'none'}; "
            "choose another objective or dataset"
        )
    return available


def networks_by_kind(
    data: DataSettings, given: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the settings of networks by kind of modality.

    Args:
        data: The modalities that there are.
        given: Settings of the kinds that the model has keys of its own for; none are needed.
        settings: ``model.networks``: of other kinds, where they are not the defaults.

    Raises:
        SettingsError: There are settings of a kind that has none or is not in the data, or wrong ones.
    """
    others = {each.kind: each for each in data.modalities.values() if each.kind not in given}
    made = {kind: each.networks(settings.get(kind, {}), f"model.networks.{kind}") for kind, each in others.items()}
    for kind in settings:
        if made.get(kind) is None:
            known = [name for name, networks in made.items() if networks is not None]
            raise SettingsError(
                f"setting 'model.networks' got '{kind}', expected {' or '.join(known) or 'nothing'}: the kinds of this "
                "dataset whose networks are set there"
            )
    return {**given, **made}


def decoders_for(
    inputs: int, modalities: Mapping[str, Modality], networks: Mapping[str, Any]
) -> tuple[dict[str, Modality], dict[str, nn.Module]]:
    """Return a decoder [B, inputs] -> parameters of p(x_m | z) for each modality, and the generated modalities.

    Args:
        inputs: Size of what decoders see.
        modalities: What is decoded, by name.
        networks: What networks are made of, by kind.
    """
    made = {name: modality.decoder(inputs, networks.get(modality.kind)) for name, modality in modalities.items()}
    return {name: pair[0] for name, pair in made.items()}, {name: pair[1] for name, pair in made.items()}
