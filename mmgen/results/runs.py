"""Training runs behind scores: a digest of their settings without seeds, and a common name of several runs."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

__all__ = ["common_name", "run_record"]

_NOT_OF_THE_RUN = ("seed", "device", "devices", "log_to")
"""Settings of training that may differ between seeds of the same run."""


def run_record(
    name: str,
    seeds: Sequence[int],
    settings: Sequence[Mapping[str, Any]],
    data: Iterable[str],
    *,
    members: Iterable[Mapping[str, str]] = (),
    initial_runs: Iterable[str] = (),
) -> dict[str, str]:
    """Describe a training run for the field ``run`` of its scores: name, digest of its settings, seed.

    Args:
        name: Name of the run's file, without ending.
        seeds: Seeds of the model, and of the fit to it.
        settings: Settings of the model, and of the fit to it.
        data: Content ids of the training datasets.
        members: Members from outside mmgen, as in headers.
        initial_runs: Digests of runs whose weights it began with, or content ids if only these are known.

    Example:
        >>> one, other = (run_record("a", [seed], [{"training": {"seed": seed, "steps": 9}}], []) for seed in (0, 1))
        >>> one["settings"] == other["settings"], one["seed"], other["seed"]
        (True, '0', '1')
    """
    plain = [{**part, "training": _without_seed(part.get("training"))} for part in settings]
    parts: list[Any] = [plain, sorted(data)]
    further = [sorted(json.dumps(dict(one), sort_keys=True) for one in members), sorted(initial_runs)]
    parts += further if any(further) else []
    text = json.dumps(parts, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return {"name": name, "settings": digest, "seed": "/".join(map(str, dict.fromkeys(seeds)))}


def _without_seed(training: Any) -> Any:
    if not isinstance(training, Mapping):
        return training
    return {key: value for key, value in training.items() if key not in _NOT_OF_THE_RUN}


def common_name(names: Sequence[str]) -> str:
    """Return the common part of the names of training runs that differ only in their seed.

    Example:
        >>> common_name(["telbo", "telbo-seed1"]), common_name(["telbo-0", "telbo-1"]), common_name(["telbo-2"])
        ('telbo', 'telbo', 'telbo-2')
    """
    if len(set(names)) == 1:
        return names[0]
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    common = re.sub(r"[-_. ]*(?:seed|run)?[-_. ]*$", "", "".join(letters[0] for letters in alike))
    return common or names[0]
