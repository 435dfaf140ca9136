from ._aggregate import Aggregate as Aggregate, FlowGuidance as FlowGuidance
from ._arrays import latents_from as latents_from, tensor_from as tensor_from
from ._base import (
    FitParts as FitParts,
    Request as Request,
    Target as Target,
    drop_attributes as drop_attributes,
)
from ._candidates import CandidateStatistics as CandidateStatistics
from ._completions import Completions as Completions, distinct_descriptions as distinct_descriptions
from ._described_examples import read_described_codes as read_described_codes
from ._encode import posterior_to_aggregate as posterior_to_aggregate
from ._encoding import (
    LayeredPosterior as LayeredPosterior,
    encode_in_slices as encode_in_slices,
    encode_points as encode_points,
    means_in_slices as means_in_slices,
    posterior_of as posterior_of,
)
from ._fit import (
    describe_described_examples as describe_described_examples,
    fit_aggregate as fit_aggregate,
    is_finished_fit as is_finished_fit,
    load_aggregate as load_aggregate,
    load_base as load_base,
)
from ._guidance import (
    CFG as CFG,
    GRADIENT as GRADIENT,
    NO_GUIDANCE as NO_GUIDANCE,
    AnyGuidance as AnyGuidance,
    Guidance as Guidance,
    WordLikelihood as WordLikelihood,
)
from ._guided import Estimates as Estimates, Guided as Guided
from ._plain import Encoder as Encoder, Fitted as Fitted, Prior as Prior, Recombined as Recombined
from ._posterior import (
    SLOW as SLOW,
    GuidedPosterior as GuidedPosterior,
    Posterior as Posterior,
    Posteriors as Posteriors,
)
from ._settings import (
    AggregateSettings as AggregateSettings,
    FitSettings as FitSettings,
    complete_fit_settings as complete_fit_settings,
)
from ._steered import (
    ClassifierFree as ClassifierFree,
    GradientGuided as GradientGuided,
    guide_posteriors as guide_posteriors,
)
from .guided import few_candidates_warning as few_candidates_warning

def describe(name: str) -> str: ...
def get(name: str) -> type[Target]: ...
def import_all() -> dict[str, type[Target]]: ...
def names() -> list[str]: ...
