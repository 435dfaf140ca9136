"""Descriptions of files in words, without loading them and without torch or matplotlib."""

import math
from pathlib import Path
from typing import Any

from mmgen.artifacts.ancestors import lineage
from mmgen.artifacts.bundle import bundle_shapes
from mmgen.artifacts.containers import read_header, tensor_table
from mmgen.artifacts.dataset import Dataset
from mmgen.artifacts.header import Header
from mmgen.artifacts.members import is_there
from mmgen.settings.config import json_values

__all__ = ["contents", "describe", "trained"]


def describe(path: Path) -> dict[str, Any]:
    """Return everything that a file says about itself, as plain values.

    Returns:
        kind, path, content_id, format_version, program_version, seed, command, settings, facts, trained (of what was
        trained: its steps, in words), contents, members (what is not part of mmgen, and whether it is there) and
        lineage (a tree of parents, each with ``found``).

    Raises:
        ArtifactError: It is no artifact.
    """
    node = lineage(path)
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
        **({"trained": said} if (said := trained(header)) else {}),
        "contents": contents(path),
        "members": [member.to_json() | {"there": is_there(member)} for member in header.members],
        "facts": header.facts,
        "settings": header.settings,
        "parents": [parent.to_json() for parent in node.parents],
    }


def trained(header: Header, done: int | None = None) -> str:
    """Describe how long something was trained and which weights a file holds: "2,800 steps, weights of step 2,000".

    Args:
        header: The file's; its fact ``step`` is that of the weights.
        done: Steps of the whole run, where somebody knows them; by default those that its settings ask for.

    Returns:
        "" of what was not trained in steps.
    """
    kept, chosen = header.facts.get("step"), header.settings.get("training")
    if type(kept) is not int or not isinstance(chosen, dict):
        return ""
    weights = f"weights of step {kept:,}"
    if header.facts.get("finished") is False:
        return f"{weights}, not trained to the end"
    minutes, whole = chosen.get("minutes"), chosen.get("steps") if done is None else done
    if done is None and isinstance(minutes, int | float):
        return f"at most {minutes:g} minutes, {weights}"
    if type(whole) is not int or whole == kept:
        return f"{kept:,} steps"
    return f"{whole:,} steps, {weights}"


def contents(path: Path) -> dict[str, Any]:
    """Summarise a file without loading it all: modalities, factors and splits; or arrays; or weights."""
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
                    for t in data.texts.values()
                },
                "others": {
                    name: json_values(each)
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
        return {name: list(shape) for name, shape in bundle_shapes(path).items()}
    sizes = [math.prod(tensor.shape) for tensor in tensor_table(path).tensors.values()]
    return {"tensors": len(sizes), "numbers": sum(sizes)}
