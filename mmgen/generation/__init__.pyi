from .concepts import Gaps as Gaps, find_gaps as find_gaps
from .descriptions import (
    batch_of_descriptions as batch_of_descriptions,
    check_is_plain as check_is_plain,
    check_posterior_reads as check_posterior_reads,
    complete_descriptions as complete_descriptions,
    description_batch as description_batch,
    format_description as format_description,
    parse_descriptions as parse_descriptions,
    select_posterior as select_posterior,
)
from .draws import Draws as Draws, draw as draw
from .encode import (
    decode_latents as decode_latents,
    encode_pictures as encode_pictures,
    gaussian_posterior as gaussian_posterior,
    reconstruct_pictures as reconstruct_pictures,
)
from .latents import (
    WORDS as WORDS,
    can_complete as can_complete,
    check_open_words as check_open_words,
    read_completions as read_completions,
    write_words as write_words,
)
from .loading import load as load
from .trained_model import TrainedModel as TrainedModel
from .translations import translate_pictures as translate_pictures
