from .decode import pictures as pictures, wanted_images as wanted_images
from .descriptions import (
    as_words as as_words,
    batch_of as batch_of,
    check_read as check_read,
    chosen_posterior as chosen_posterior,
    complete as complete,
    describe as describe,
    parse as parse,
)
from .draws import Draws as Draws, draw as draw
from .encode import encode_pictures as encode_pictures
from .latents import draw_latents as draw_latents
from .loading import load as load
from .trained_model import TrainedModel as TrainedModel
from .translate import translate_pictures as translate_pictures
