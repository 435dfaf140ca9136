"""Loading a trained model from its file: ``mmgen.load(path)``."""

from pathlib import Path

from mmgen.artifacts import check_unchanged, find_parent, require_kind
from mmgen.artifacts.files import find_main_exported_file
from mmgen.artifacts.lineage import find_parent_file
from mmgen.core.errors import UsageError
from mmgen.core.worlds import require_added
from mmgen.generation.trained_model import TrainedModel
from mmgen.posteriors import Fitted, load_aggregate
from mmgen.settings.arguments import check_arguments
from mmgen.settings.kinds import FilePath
from mmgen.training.model_run import load_model
from mmgen.training.precision import resolve_device


@check_arguments
def load(path: FilePath, device: str = "cpu") -> TrainedModel:
    """Load a trained model, or a fitted posterior or a sharpener together with the files that they were fitted to.

    Args:
        path: The file, or a folder made by ``mmgen export``.
        device: Device of the networks: "cpu", "cuda" or "cuda:1".

    Example:
        >>> import mmgen
        >>> model = mmgen.load("mnist-a-telbo-aggregate-realnvp.safetensors")  # doctest: +SKIP
        >>> model.sample("digit=3 scale=big", n=16).shape  # doctest: +SKIP
        torch.Size([16, 1, 64, 64])

    Raises:
        ArtifactError: The file is unreadable, damaged, of another kind, or its parents are missing.
    """
    path = Path(path)
    if path.is_dir():
        path = find_main_exported_file(path)
    elif path.suffix.lower() == ".zip":
        raise UsageError(f"{path} is an archive, expected a file or a folder; unpack it and give the folder")
    torch_device = resolve_device(device)
    header = require_kind(path, "model", "aggregate", "sharpener")
    if header.kind == "sharpener":
        roles = [parent.role for parent in header.parents]
        source = find_parent(path, "aggregate" if "aggregate" in roles else "model")
        require_kind(source, "model", "aggregate")
        loaded = load(source, device)
        opener = require_added("mmgen.generation", "sharpener", "sharpening", f"{path}, a sharpener,")
        loaded.sharpener = opener.load_sharpener(path, torch_device)
        return loaded
    if header.kind == "model":
        header, settings, model = load_model(path, torch_device)
        return TrainedModel((path, header), (path, header), settings, model, torch_device)
    header, fit, aggregate = load_aggregate(path, torch_device)
    record = next(parent for parent in header.parents if parent.role == "model")
    model_path = find_parent_file(path, record)
    model_header, settings, model = load_model(model_path, torch_device)
    check_unchanged(model_path, record.content_id, model_header)
    target = fit.build_target()
    whole = fit.aggregate.given == "attributes" and fit.aggregate.keep_all == 1
    fitted = Fitted(target.posterior, aggregate.attach_model(model), model.latent_size, target.weights, whole)
    return TrainedModel((path, header), (model_path, model_header), settings, model, torch_device, fitted)
