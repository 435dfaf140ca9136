"""Checks of inferences."""

import torch

import mmgen.inference
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.inference import Inference
from mmgen.testing.small import inference_parts, refuses, small_batch

__all__ = ["GIVEN", "build_inference", "check_posterior", "check_inference", "check_subsets"]

GIVEN = (("image",), ("attributes",), ("image", "attributes"))
"""What posteriors are asked of."""


def check_inference(name: str) -> None:
    """Check all posteriors of an inference: those of each set of inputs, and those of subsets."""
    for inputs in GIVEN:
        check_posterior(name, inputs)
    check_subsets(name)


def build_inference(name: str, inputs: tuple[str, ...]) -> Inference | None:
    """Build the inference for one set of inputs; None if it refuses this set."""
    torch.manual_seed(0)
    try:
        made = mmgen.inference.get(name)(inference_parts(), frozenset([inputs]))
    except SettingsError:
        return None
    return made if made.has_posterior(inputs) else None


def _change_other_modalities(batch: Batch, inputs: tuple[str, ...]) -> Batch:
    """Return the batch with other values in all modalities that are not inputs."""
    other = {"image": 1 - batch.values["image"], "attributes": 1 - batch.values["attributes"].clamp(max=1)}
    return Batch({name: v if name in inputs else other[name] for name, v in batch.values.items()}, batch.present)


def check_posterior(name: str, inputs: tuple[str, ...]) -> None:
    """Check a posterior's shapes, gradients, independence of other modalities, and error for missing ones."""
    inference = build_inference(name, inputs)
    if inference is None:
        assert any(build_inference(name, other) for other in GIVEN), (
            f"{name} answers none of {GIVEN}: test what it is for"
        )
        return
    batch = small_batch()
    q = inference.posterior(batch, inputs)
    for part, tensor in (("mean", q.mean), ("log_sd", q.log_sd)):
        assert tensor.shape == (5, 3), f"{part} has the shape {tuple(tensor.shape)} for 5 examples, expected (5, 3)"
        assert tensor.isfinite().all(), f"{part} is not finite"
    torch.testing.assert_close(inference.posterior(batch, inputs[::-1]).mean, q.mean)
    torch.testing.assert_close(inference.posterior(_change_other_modalities(batch, inputs), inputs).mean, q.mean)
    (q.mean.sum() + q.log_sd.sum()).backward()
    moved = any(p.grad is not None and p.grad.abs().sum() > 0 for p in inference.parameters())
    assert moved, "no gradient reaches its parameters"
    with refuses(UsageError, f"needs {inputs[-1]}, which the batch lacks"):
        inference.posterior(Batch({n: v for n, v in batch.values.items() if n != inputs[-1]}, batch.present), inputs)
    assert not inference.has_posterior(("smell",))


def check_subsets(name: str) -> None:
    """Check that an inference with ``any_subset`` has a posterior for each subset, equal to that of :meth:`infer`."""
    inference, batch = next(filter(None, (build_inference(name, inputs) for inputs in reversed(GIVEN)))), small_batch()
    units = [("image", None), ("attributes", None)]
    chosen = [[True, False], [False, True], [True, True]]
    if not inference.any_subset:
        # Not a user's mistake: whoever asks has not looked at any_subset, so it is Python's own error.
        with refuses(NotImplementedError, "no posterior for every subset"):
            inference.infer_subsets(batch, units, chosen)
        return
    q = inference.infer_subsets(batch, units, chosen)
    assert q.mean.shape == (3, 5, 3)
    for one, inputs in enumerate(GIVEN):
        torch.testing.assert_close(q.mean[one], inference.posterior(batch, inputs).mean)
        torch.testing.assert_close(q.log_sd[one], inference.posterior(batch, inputs).log_sd)
