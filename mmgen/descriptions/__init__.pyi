from ._batches import batch_of_captions as batch_of_captions, batch_of_queries as batch_of_queries
from ._captions import (
    caption_of_codes as caption_of_codes,
    codes_of_caption as codes_of_caption,
    format_caption as format_caption,
    is_caption as is_caption,
    parse_caption as parse_caption,
)
from ._expression import Expression as Expression
from ._formatting import format_query as format_query, format_values as format_values, quoted as quoted
from ._free_text import (
    one_spelling as one_spelling,
    words_of as words_of,
    words_of_free_text as words_of_free_text,
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
