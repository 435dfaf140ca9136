from ._base import (
    ROWS as ROWS,
    Description as Description,
    Element as Element,
    Modality as Modality,
    StoredArray as StoredArray,
    View as View,
    all_present as all_present,
    observed_modalities as observed_modalities,
)
from ._described import Described as Described
from ._graph import Graph as Graph
from ._members import describe as describe, get as get, import_all as import_all, names as names
from ._stored import are_distinct_texts as are_distinct_texts, element_json as element_json
