from ._batches import batch_of_captions as batch_of_captions, batch_of_queries as batch_of_queries
from ._captions import (
    attributes_to_caption as attributes_to_caption,
    caption_to_attributes as caption_to_attributes,
    format_caption as format_caption,
    is_caption as is_caption,
    parse_caption as parse_caption,
)
from ._expression import Expression as Expression
from ._formatting import format_query as format_query, format_values as format_values, quote_value as quote_value
from ._free_text import (
    normalise_text as normalise_text,
    split_free_text as split_free_text,
    split_into_words as split_into_words,
    unknown_word_message as unknown_word_message,
)
from ._parser import parse as parse
from ._vocabulary import (
    AND as AND,
    ANYTHING as ANYTHING,
    IGNORE as IGNORE,
    IN_COMMON as IN_COMMON,
    NOT as NOT,
    OPERATORS as OPERATORS,
    OR as OR,
    UNSPECIFIED as UNSPECIFIED,
    TextVocabulary as TextVocabulary,
    Vocabulary as Vocabulary,
)
