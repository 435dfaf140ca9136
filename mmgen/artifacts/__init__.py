"""What is on disk: headers and lineage, datasets, latents, samples and checkpoints (docs/artifacts.md).

Importing this package, reading a header and opening a dataset never import torch; only checkpoints do.
"""

from mmgen.artifacts.checkpoint import read_checkpoint, write_checkpoint
from mmgen.artifacts.dataset import PARTS, AttributesInfo, Dataset, FactorInfo, ImageInfo
from mmgen.artifacts.dataset_writer import DatasetWriter
from mmgen.artifacts.files import atomic_path, write_text_atomic
from mmgen.artifacts.header import FORMAT_VERSION, KINDS, Header, Parent
from mmgen.artifacts.lineage import find_parent, find_relatives, parent_of, read_header, reference, require_kind

__all__ = [
    "FORMAT_VERSION",
    "KINDS",
    "PARTS",
    "AttributesInfo",
    "Dataset",
    "DatasetWriter",
    "FactorInfo",
    "Header",
    "ImageInfo",
    "Parent",
    "atomic_path",
    "find_parent",
    "find_relatives",
    "parent_of",
    "read_checkpoint",
    "read_header",
    "reference",
    "require_kind",
    "write_checkpoint",
    "write_text_atomic",
]
