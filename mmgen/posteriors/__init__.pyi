from ._arrays import latents_from as latents_from, tensor_from as tensor_from
from ._base import Posterior as Posterior, Posteriors as Posteriors
from ._guided import Guided as Guided, GuidedCache as GuidedCache
from ._likelihood import WordLikelihood as WordLikelihood
from ._plain import Encoder as Encoder, Fitted as Fitted, Prior as Prior, Recombined as Recombined
from ._tilt import NO_TILT as NO_TILT, AnyTilt as AnyTilt, Tilt as Tilt, tilts as tilts
