from .decode import pictures as pictures, resolve_targets as resolve_targets
from .descriptions import (
    as_words as as_words,
    batch_of as batch_of,
    check_read as check_read,
    complete as complete,
    describe as describe,
    parse as parse,
    select_posterior as select_posterior,
)
from .draws import Draws as Draws, draw as draw
from .encode import encode_pictures as encode_pictures
from .latents import draw_latents as draw_latents
from .loading import load as load
from .trained_model import TrainedModel as TrainedModel
from .translate import translate_pictures as translate_pictures
