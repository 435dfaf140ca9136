"""Descriptions of files in words, without loading them and without torch or matplotlib."""

import math
from pathlib import Path
from typing import Any

from mmgen.artifacts.bundle import read_array_shapes
from mmgen.artifacts.containers import read_header, read_tensor_table
from mmgen.artifacts.dataset import Dataset
from mmgen.artifacts.header import Header, is_available
from mmgen.artifacts.lineage import read_lineage
from mmgen.settings.config import to_json_values


def describe_file(path: Path) -> dict[str, Any]:
    """Return the header, contents and lineage of an artifact as nested values for JSON.

    Returns:
        kind, path, content_id, format_version, program_version, seed, command, settings, facts, trained (steps of the
        training, in words), contents, members (from outside mmgen, each with ``there``) and parents (a tree, each with
        ``found``).

    Raises:
        ArtifactError: It is no artifact.
    """
    node = read_lineage(path)
    header = node.header
    assert header is not None
    return {
        "path": str(path),
        "kind": header.kind,
        "content_id": header.content_id,
        "format_version": header.format_version,
        "program_version": header.program_version,
        "seed": header.seed,
        "command": header.command,
        "bytes": path.stat().st_size,
        **({"trained": training} if (training := format_training(header)) else {}),
        "contents": summarise_contents(path),
        "members": [member.to_json() | {"there": is_available(member)} for member in header.members],
        "facts": header.facts,
        "settings": header.settings,
        "parents": [parent.to_json() for parent in node.parents],
    }


def format_training(header: Header, done: int | None = None) -> str:
    """Return the length of a training and the step of the weights: "2,800 steps, weights of step 2,000".

    Args:
        header: Header of the file; its fact ``step`` is the step of the weights.
        done: Steps of the whole run; by default those in the header's settings.

    Returns:
        "" for an artifact that was not trained in steps.
    """
    saved_step, settings = header.facts.get("step"), header.settings.get("training")
    if type(saved_step) is not int or not isinstance(settings, dict):
        return ""
    weights = f"weights of step {saved_step:,}"
    if header.facts.get("finished") is False:
        return f"{weights}, not trained to the end"
    minutes, steps = settings.get("minutes"), settings.get("steps") if done is None else done
    if done is None and isinstance(minutes, int | float):
        return f"at most {minutes:g} minutes, {weights}"
    if type(steps) is not int or steps == saved_step:
        return f"{saved_step:,} steps"
    return f"{steps:,} steps, {weights}"


def summarise_contents(path: Path) -> dict[str, Any]:
    """Return a summary of an artifact: a dataset's modalities, factors and splits, or shapes of arrays or weights."""
    header = read_header(path)
    if header.kind == "dataset":
        with Dataset.open(path, verify=False) as data:
            return {
                "examples": data.size,
                "images": {i.name: {"shape": list(i.shape), "layout": i.layout} for i in data.images.values()},
                "attributes": {
                    a.name: dict(zip(a.names, map(list, a.values), strict=True)) for a in data.attributes.values()
                },
                "texts": {
                    t.name: {"words": list(t.vocabulary), "length": t.length, "spells": list(t.slots)}
                    | ({"captions": t.captions} if t.captions > 1 else {})
                    for t in data.texts.values()
                },
                "others": {
                    name: to_json_values(each)
                    for name, each in data.modalities.items()
                    if name not in {**data.images, **data.attributes, **data.texts}
                },
                "factors": {f.name: f"{f.meaning} [{f.unit}]" if f.unit else f.meaning for f in data.factors.values()},
                "splits": {
                    scheme: {part: len(data.split(scheme, part)) for part in ("train", "val", "test")}
                    for scheme in data.schemes
                },
            }
    if header.kind in ("latents", "samples"):
        return {name: list(shape) for name, shape in read_array_shapes(path).items()}
    sizes = [math.prod(tensor.shape) for tensor in read_tensor_table(path).tensors.values()]
    return {"tensors": len(sizes), "numbers": sum(sizes)}
