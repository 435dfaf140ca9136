"""Checks before a fit begins: whether it is finished, and how many described examples it has."""

from pathlib import Path

from mmgen.artifacts import Dataset, read_header, require_kind
from mmgen.core.errors import ArtifactError, SettingsError
from mmgen.posteriors._described_examples import check_described, examples_described_in_training, needs_descriptions
from mmgen.posteriors._encode import posterior_to_aggregate
from mmgen.posteriors._settings import FitSettings
from mmgen.settings.config import validate
from mmgen.training.model_run import read_experiment
from mmgen.training.state import is_finished, state_path

__all__ = ["describe_described_examples", "is_finished_fit"]


def is_finished_fit(path: Path, settings: FitSettings, model_path: Path, dataset_path: Path) -> bool:
    """Return True if ``path`` holds a finished fit of these settings, model and dataset that no run is continuing."""
    if not path.exists() or state_path(path).exists():
        return False
    try:
        header = require_kind(path, "aggregate")
        finished = validate(FitSettings, header.settings)
    except (ArtifactError, SettingsError):
        return False
    parents = {parent.role: parent.content_id for parent in header.parents}
    files = {"model": model_path, "dataset": dataset_path}
    has_same_parents = all(parents.get(role) == read_header(file).content_id for role, file in files.items())
    return has_same_parents and finished == settings and is_finished(header)


def describe_described_examples(model_path: Path, dataset_path: Path, settings: FitSettings) -> str:
    """Describe in one sentence how many examples with a description a fit has; "" if all have one.

    Raises:
        DataError: There are too few described examples.
    """
    model = read_experiment(read_header(model_path).settings)
    with Dataset.open(dataset_path) as dataset:
        described_examples = examples_described_in_training(model, dataset)
    return check_described(
        described_examples, settings, needs_descriptions(model.data, posterior_to_aggregate(model), described_examples)
    )
