"""Networks of a model as ONNX files, checked against PyTorch before anybody relies on them, and what draws with them.

posterior.onnx computes z of words and noise, decoder.onnx the picture of z; words.json holds the words and the training
descriptions that complete them, and draw.py puts these together without PyTorch.
"""

import hashlib
import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import torch
from torch import Tensor, nn

from mmgen.artifacts import atomic_path
from mmgen.core.batch import Batch
from mmgen.core.errors import MmgenError, UsageError
from mmgen.core.extras import how_to_install
from mmgen.core.version import __version__
from mmgen.densities import SteeredDensity, Steering
from mmgen.generation import WORDS, TrainedModel, write_words
from mmgen.models import Model
from mmgen.posteriors import Aggregate

DECODER, POSTERIOR, SCRIPT = "decoder.onnx", "posterior.onnx", "draw.py"

TOLERANCE = 1e-4
"""Largest difference of a mean, in [0, 1], between ONNX Runtime and PyTorch, both in float32."""
_LATENT_TOLERANCE = 1e-3
"""Largest difference of z, in standard deviations of all z."""

_CHECKED = (1, 3, 64)
"""Numbers of examples that are compared."""


class _MeanDecoder(nn.Module):
    """Module that computes the mean image E[image | z] [B, C, H, W] from z [B, D]."""

    def __init__(self, model: Model, name: str) -> None:
        super().__init__()
        self.model, self.name = model, name

    def forward(self, z: Tensor) -> Tensor:
        return self.model.mean(self.name, z)


class _Drawer(nn.Module):
    """Module that computes z [B, D] from words [B, A], -1 where open, and noise [B, N]; of a flow that knows no words,
    guided by classifier-free guidance of a weight [1].
    """

    def __init__(self, fit: Aggregate) -> None:
        super().__init__()
        self.fit = fit

    def forward(self, words: Tensor, noise: Tensor, guidance: Tensor | None = None) -> Tensor:
        (name,), present = self.fit.reads, words >= 0
        context = self.fit.context(Batch({name: words.clamp_min(0)}, {name: present}))
        if guidance is None:
            u = self.fit.density.carry_noise(noise, context)
        else:
            assert isinstance(self.fit.density, SteeredDensity) and context is not None
            terms = (1 + guidance, context), (-guidance, torch.zeros_like(context))
            u = self.fit.density.steer_noise(noise, Steering(terms))
        return self.fit.shift + self.fit.scale * u


def export_onnx(loaded: TrainedModel, folder: Path) -> dict[str, str]:
    """Write a model's decoder and, for a posterior that is fitted to attributes, all that draws from words with it.

    Returns:
        The names of the files, with what each is.

    Raises:
        UsageError: The model has no decoder from z alone, or its posterior cannot be written; or the extra is missing.
    """
    main = loaded.observation
    if main is None or main.name not in loaded.model.generates or loaded.model.conditional_on or loaded.sharpener:
        raise UsageError(
            f"{loaded.model_path} has no decoder from z alone to pictures, which --onnx needs: conditional models and "
            "sharpeners read words too; leave --onnx out"
        )
    fit = None if loaded.fitted is None else _fit_of_words(loaded)
    facts = {"image": "E[image | z], 0 to 1, [B, " + ", ".join(map(str, main.event_shape)) + "]"}
    facts["z"] = f"float32 [B, {loaded.model.latent_size}]"
    if loaded.attributes is not None:
        facts["attributes"] = json.dumps(dict(zip(loaded.attributes.names, loaded.attributes.values, strict=True)))
    examples = [{"z": _noise(count, loaded.model.latent_size)} for count in _CHECKED]
    error = _export(_MeanDecoder(loaded.model, main.name), examples, "image", folder / DECODER, TOLERANCE, facts)
    files = {DECODER: f"p(picture given z) for ONNX: z to means; within {error:.1g} of PyTorch's here"}
    if fit is None or loaded.attributes is None:
        return files
    size, values = fit.density.noise_size or 0, loaded.attributes.values
    facts["words"] = f"int64 [B, {len(values)}], the place of each attribute's value, -1: open"
    facts["noise"] = f"float32 [B, {size}], standard Gaussian"
    examples = [{"words": _random_codes(values, count), "noise": _noise(count, size)} for count in _CHECKED]
    if isinstance(fit.density, SteeredDensity) and fit.density.knows_no_context:
        facts["guidance"] = "float32 [1], weight of classifier-free guidance, 0: none"
        examples = [{**one, "guidance": torch.tensor([place / 2])} for place, one in enumerate(examples)]
    files |= write_words(loaded, folder)
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (DECODER, WORDS)}
    facts["written with"] = json.dumps(digests)
    tolerance = _LATENT_TOLERANCE * float(fit.scale.max())
    error = _export(_Drawer(fit), examples, "z", folder / POSTERIOR, tolerance, facts)
    files[POSTERIOR] = f"q(z given words) for ONNX: words and noise to z; within {error:.1g} of PyTorch's here"
    script = resources.files("mmgen.commands").joinpath("templates", SCRIPT).read_text(encoding="utf-8")
    (folder / SCRIPT).write_text(script, encoding="utf-8")
    files[SCRIPT] = "draws from words with numpy, pillow and onnxruntime alone"
    return files


def _fit_of_words(loaded: TrainedModel) -> Aggregate:
    """Return the fit that draws from attributes, or refuse what noise and attributes alone do not determine."""
    assert loaded.fitted is not None
    fit, attributes, main = loaded.fitted.aggregate, loaded.attributes, loaded.observation
    if attributes is None or fit.reads != (attributes.name,):
        reason = f"reads {', '.join(fit.reads) or 'nothing'}, expected attributes alone"
    elif fit.layers != "all":
        reason = "is of the top layer of z alone, expected one of all layers"
    elif fit.density.noise_size is None:
        reason = "is of a family whose draws are made of no Gaussian noise"
    elif main is None or main.picture_shape != tuple(main.event_shape):
        reason = "draws no pictures"
    else:
        return fit
    raise UsageError(
        f"--onnx got {loaded.path}, which {reason}; export its model alone, for its decoder: {loaded.model_path}"
    )


def _noise(count: int, size: int) -> Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(count))


def _random_codes(values: Sequence[Sequence[str]], count: int) -> Tensor:
    """Return random descriptions int64 [count, A], some of whose words are open."""
    generator = torch.Generator().manual_seed(count)
    return torch.stack([torch.randint(-1, len(each), (count,), generator=generator) for each in values], 1)


def _export(
    module: nn.Module, examples: Sequence[Mapping[str, Tensor]], output: str, out: Path, tolerance: float,
    facts: Mapping[str, str],
) -> float:  # fmt: skip
    """Write a module as an ONNX model, and return its largest deviation from PyTorch on ``examples``.

    Args:
        module: The module, whose arguments are ``examples``' names.
        examples: Inputs of several numbers of examples.
        output: Name of the output.
        out: The file.
        tolerance: Largest deviation.
        facts: What stands in the file's metadata.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401  # what torch writes ONNX with
    except ImportError as error:
        raise UsageError(
            f"--onnx needs {error.name}, which is not installed: {how_to_install('onnx')}; or leave the option out"
        ) from None
    module.eval()
    device = next(module.parameters()).device
    inputs = {name: value[:2].to(device) for name, value in examples[-1].items()}
    free = {name: None if len(value) == 1 else {0: torch.export.Dim("B")} for name, value in inputs.items()}
    with atomic_path(out) as temporary:
        try:
            with torch.inference_mode(), _silence_exporter():
                program = torch.onnx.export(
                    module, tuple(inputs.values()), dynamo=True, verbose=False, input_names=[*inputs],
                    output_names=[output], dynamic_shapes=tuple(free.values()),
                )  # fmt: skip
                assert program is not None
                for node in program.model.graph.all_nodes():  # whose lines of code name folders of this machine
                    node.metadata_props.clear()
                program.model.metadata_props.update({"made by": f"mmgen {__version__}", **facts})
                program.save(str(temporary), external_data=False)
        except (torch.onnx.errors.OnnxExporterError, RuntimeError) as error:
            first = (str(error).strip().splitlines() or [""])[0]
            raise MmgenError(f"{out.name} needs what ONNX cannot express ({first}); leave --onnx out") from None
        session = onnxruntime.InferenceSession(str(temporary), providers=["CPUExecutionProvider"])
        worst = 0.0
        for example in examples:
            with torch.inference_mode():
                expected = module(*(value.to(device) for value in example.values())).float().cpu()
            found = session.run([output], {name: value.numpy() for name, value in example.items()})[0]
            worst = max(worst, float((torch.from_numpy(found) - expected).abs().max()))
        if not worst <= tolerance:
            raise MmgenError(
                f"{out.name} differs from PyTorch by {worst:.2g}, expected at most {tolerance:.2g}; leave --onnx out"
            )
    return worst


@contextmanager
def _silence_exporter() -> Iterator[None]:
    """Suppress the warnings and messages of torch's ONNX exporter."""
    levels = {log: log.level for log in map(logging.getLogger, ("onnxscript", "onnx_ir", "torch.onnx"))}
    for log in levels:
        log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in levels.items():
            log.setLevel(level)
