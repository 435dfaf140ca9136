"""Capabilities of models that objectives may need, with messages for models that lack them."""

from collections.abc import Collection

from mmgen.core.errors import SettingsError

CAPABILITIES = {
    "density": (
        "density of z, since its encoder is deterministic",
        "use an objective without a divergence (balanced-edges with beta = 0), or a variational model",
    ),
    "reparameterised": (
        "draws of labels in z that pass a gradient",
        "use semi-supervised, which sums over them, or another model",
    ),
    "labels in z": (
        "labels as a part of z, to be summed over where they are unknown",
        "set model.name=semi-supervised-vae, or choose another objective",
    ),
    "gaussian": (
        "posterior that is one Gaussian, since z has layers that depend on each other or posteriors are mixtures",
        "use elbo, or model multimodal-vae with an inference that mixes nothing",
    ),
    "independent": (
        "likelihood of an example that depends on its own z alone, so that draws of z cannot be weighed example by "
        "example",
        "use elbo, or one draw",
    ),
    "subsets": (
        "posterior for every subset of modalities",
        "choose another objective or another model",
    ),
    "mixture": (
        "posterior that is a mixture, which the objective trains",
        "leave model.inference out, or choose another objective",
    ),
    "private latents": (
        "layers of z that belong to one modality",
        "set their sizes by model.private_sizes.image=4 and so on, or use mmvae",
    ),
    "fixed encoder": (
        "encoder that is fixed, so that words can be read off encodings without a bound",
        "set model.name=autoencoder, or choose another objective",
    ),
    "split attributes": (
        "network for each single attribute",
        "set model.attribute_network.experts to 'each', or objective.split_attributes to false",
    ),
}
"""For each capability, words for what a model without it lacks, and advice; plug-ins may use further names."""

USUAL_NEEDS = frozenset({"density", "reparameterised"})
"""Capabilities that most objectives need."""


def check_capabilities(name: str, capabilities: Collection[str], needs: Collection[str]) -> None:
    """Refuse a model that lacks a capability which the objective needs.

    Args:
        name: Name of the model.
        capabilities: Capabilities of the model.
        needs: Capabilities that the objective needs.

    Raises:
        SettingsError: The model lacks a capability.
    """
    lacking = [each for each in (*CAPABILITIES, *sorted(set(needs) - CAPABILITIES.keys())) if each in needs]
    lacking = [each for each in lacking if each not in capabilities]
    if not lacking:
        return
    unknown = "choose another objective or another model"
    words, advice = zip(*(CAPABILITIES.get(each, (f"'{each}'", unknown)) for each in lacking), strict=True)
    raise SettingsError(f"model '{name}' has no {' and no '.join(words)}, which the objective needs; {advice[0]}")
