from ._captions import (
    attributes_to_caption as attributes_to_caption,
    caption_to_attributes as caption_to_attributes,
    format_caption as format_caption,
    is_caption as is_caption,
    normalise_text as normalise_text,
    parse_caption as parse_caption,
    split_free_text as split_free_text,
    split_into_words as split_into_words,
    unknown_word_message as unknown_word_message,
)
from ._parser import Expression as Expression, parse as parse
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
    batch_of_captions as batch_of_captions,
    batch_of_queries as batch_of_queries,
    format_query as format_query,
    format_values as format_values,
    quote_value as quote_value,
)
