from ._base import (
    ROWS as ROWS,
    Description as Description,
    Element as Element,
    Modality as Modality,
    StoredArray as StoredArray,
    View as View,
    whole as whole,
)
from ._described import Described as Described
from ._graph import Graph as Graph
from ._members import describe as describe, get as get, importable as importable, names as names
from ._stored import distinct_texts as distinct_texts, element_json as element_json
