"""Files: headers and lineage, datasets, latents, samples and checkpoints (docs/artifacts.md).

Importing this package, reading a header and opening a dataset never import torch; only checkpoints do.
"""

from mmgen.artifacts.containers import read_checkpoint, read_header, require_kind, write_checkpoint
from mmgen.artifacts.dataset import PARTS, Dataset
from mmgen.artifacts.dataset_writer import DatasetWriter
from mmgen.artifacts.elements import FactorInfo
from mmgen.artifacts.files import atomic_path, check_replaceable, write_text_atomic
from mmgen.artifacts.header import FORMAT_VERSION, KINDS, Header, Parent
from mmgen.artifacts.latents import Latents, read_latents, write_latents
from mmgen.artifacts.lineage import (
    check_nothing_lost,
    check_output,
    check_unchanged,
    find_parent,
    find_record,
    find_relatives,
    parent_record,
)
from mmgen.artifacts.samples import Samples, read_samples, write_samples

__all__ = [
    "FORMAT_VERSION",
    "KINDS",
    "PARTS",
    "Dataset",
    "DatasetWriter",
    "FactorInfo",
    "Header",
    "Latents",
    "Parent",
    "Samples",
    "atomic_path",
    "check_nothing_lost",
    "check_output",
    "check_replaceable",
    "check_unchanged",
    "find_parent",
    "find_relatives",
    "find_record",
    "read_checkpoint",
    "read_header",
    "read_latents",
    "read_samples",
    "parent_record",
    "require_kind",
    "write_checkpoint",
    "write_latents",
    "write_samples",
    "write_text_atomic",
]
