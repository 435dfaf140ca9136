"""What a model reads off z of attributes: log p(what was asked | z), and p(value | z) of each."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.descriptions import Expression
from mmgen.generation.files import ModelFiles
from mmgen.modalities.attributes import Attributes

__all__ = ["attributes_of", "codes_of", "log_of_expression", "readings"]


def attributes_of(files: ModelFiles, needing: str = "NOT and OR need", instead: str = "describe by that") -> Attributes:
    """The attributes that a model generates.

    Args:
        files: The model or aggregate.
        needing: What needs them, as the sentence begins that refuses it.
        instead: What to do without, as it ends.

    Raises:
        UsageError: It generates none.
    """
    info = files.attributes
    modality = files.model.modalities.get(info.name) if info is not None else None
    if not isinstance(modality, Attributes):
        raise UsageError(
            f"{needing} p(attributes | z), but {files.model_path} generates "
            f"{' and '.join(files.generated_words)} alone: {instead}"
        )
    return modality


def codes_of(files: ModelFiles, condition: Batch) -> dict[str, Tensor]:
    """What descriptions say by each modality of words, as numbers; -1 where they say nothing."""
    known = [part.name for part in (files.attributes, files.text) if part is not None]
    one = condition.select(known)
    return {name: torch.where(one.present[name].reshape(1, -1), one.values[name], -1) for name in one.values}


def log_of_expression(modality: Attributes, logits: Tensor, expression: Expression) -> Tensor:
    r"""log p(expression | z), exactly: attributes are independent given z. Logits [..., S] -> [...], fp64.

    .. math:: \log \sum_{parts} \prod_k \sum_{v \in part_k} p(y_k = v \mid z)
    """
    table = modality.log_probabilities(logits).double()  # [..., A, V]
    found = torch.full(logits.shape[:-1], -math.inf, dtype=torch.float64, device=logits.device)
    for part in expression.disjoint_boxes:
        allowed = torch.from_numpy(part).to(logits.device)
        rows = (~allowed).any(1).nonzero().flatten()
        sums = table[..., rows, :].masked_fill(~allowed[rows], -math.inf).logsumexp(-1)
        found = torch.logaddexp(found, sums.sum(-1))
    return found


def readings(files: ModelFiles, z: Tensor, asked: Sequence[int], parameters: Tensor | None = None) -> Tensor:
    """p(a_k = v | z) [..., S] over the S values v of some attributes k, fp64.

    Args:
        files: A model that generates attributes.
        z: Latents [..., D].
        asked: Which attributes.
        parameters: What the decoder makes of z, where that is known already.
    """
    modality = attributes_of(files)
    with torch.autocast(z.device.type, enabled=False):
        logits = files.model.decode(modality.name, z) if parameters is None else parameters
        every = modality.log_probabilities(logits).double().exp()
        return torch.cat([every[..., k, : modality.sizes[k]] for k in asked], -1)
