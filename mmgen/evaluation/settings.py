"""Settings of an evaluation: how scores are measured."""

from typing import Annotated, Literal

from pydantic import Field

from mmgen.settings.config import Settings

POINTS = ("number", "split", "part")
"""Settings that say which data points there are."""
DESCRIPTIONS = ("queries", "dropped", "draws", "split", "part")
"""Settings that say which descriptions are asked for, and how many pictures of each are drawn."""
ENCODINGS = ("encodings", "split", "part")
"""Settings that say which images are encoded."""

Count = Annotated[int, Field(ge=1)]


class EvaluationSettings(Settings):
    """Settings of an evaluation: numbers of examples and draws, split and seed."""

    protocol: Literal["exact", "paper"] = "exact"
    """Definition of coverage: exact (base 2, training frequencies, bias below the standard error) or paper (as VE)."""
    dropped: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    """Numbers of attributes to leave out of queries; None for 0, 1, 2, 3 as far as there are attributes, from more on
    where no example has all of them known, and for 0 where whole captions are asked for."""
    draws: Count = 24
    """Pictures of each query, at least."""
    queries: Count = 1000
    """Descriptions to draw, at most, for each number of open attributes: a random choice if there are more. For
    captions, the number of examples whose captions are drawn."""
    samples: Count = 100
    """Importance samples K of log p(x) and log p(x, y) per data point (WG: 1000, CelebA 100); of label-accuracy, draws
    of z. Under a rectified flow, whose log densities are integrals, 10 by default."""
    proposal: Literal["mixture", "auto", "image", "joint", "description"] = "mixture"
    """Proposal of importance samples. mixture: evenly q(z | image), q(z | all modalities) and p(z), those that exist.
    Or one alone. image: q(z | image), as in WG's Table 2; joint: q(z | all modalities), as in WG's supplement;
    description: q(z | description); auto: q(z | image) if it exists."""
    text_samples: Count = 5000
    """Importance samples of log p(y), the denominator of log p(x|y), per distinct description (WG: 5000);
    100 by default under a q(z) that is a rectified flow."""
    number: Count = 1000
    """Data points of log-likelihoods and active units."""
    pool: Annotated[int, Field(ge=2)] = 200
    """Examples among which retrieval looks for the right one, N; its pairs are this number squared."""
    encodings: Annotated[int, Field(ge=40)] = 20_000
    """Images that metrics of disentanglement encode, at most; each repeat looks at half of them."""
    factors: tuple[str, ...] | None = None
    """Factors that disentanglement is measured of: attributes and whole-number factors by name; all by default."""
    split: str = ""
    """Split scheme that queries and points come from; the one that the model was trained on if empty."""
    part: Literal["train", "val", "test"] = "test"
    """Part of the split that queries and points come from."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of all draws."""
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"
    """Arithmetic of networks; densities are always fp32 or better."""
