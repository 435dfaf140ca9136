"""Table of the letters for shapes in docstrings and comments.

==  ==========================================================
B   examples in a batch
K   samples per example (importance samples, draws per query)
D   latent dimensions
C   channels
H   height in pixels
W   width in pixels
A   attributes
V   values of one attribute, or words of a vocabulary
S   sum of V over all attributes: width of a one-hot description
T   tokens
N   examples in a dataset
==  ==========================================================

Images are NCHW; on disk uint8 (bytes, or bits packed eight to a byte), in a network float32 in [0, 1].
Attribute values are integer codes; :data:`UNKNOWN` on disk marks a value that was not recorded, and a presence mask
says the same in memory. Log-densities, bounds and divergences are in nats.
"""

UNKNOWN: int = 255
"""Code of an unknown attribute in a dataset file (uint8); in memory the presence mask is False instead."""
