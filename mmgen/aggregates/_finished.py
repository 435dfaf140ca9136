"""Which fits are there already, so that a fit that starts from another one makes that one only once."""

from pathlib import Path

from mmgen.aggregates._fit import FitSettings
from mmgen.artifacts import read_header, require_kind
from mmgen.config import validate
from mmgen.errors import ArtifactError, SettingsError
from mmgen.training.state import is_finished, state_path

__all__ = ["is_fit"]


def is_fit(path: Path, settings: FitSettings, model_path: Path, dataset_path: Path) -> bool:
    """Whether a finished fit of just these settings to this model on this dataset lies at ``path``, with no run of it
    going on.
    """
    if not path.exists() or state_path(path).exists():
        return False
    try:
        header = require_kind(path, "aggregate")
        found = validate(FitSettings, header.settings)  # what earlier files do not say is as it was then
    except (ArtifactError, SettingsError):
        return False
    parents = {parent.role: parent.content_id for parent in header.parents}
    made_from = {"model": model_path, "dataset": dataset_path}
    same = all(parents.get(role) == read_header(file).content_id for role, file in made_from.items())
    return same and found == settings and is_finished(header)
