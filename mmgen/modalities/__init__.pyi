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
from ._stored import are_distinct_texts as are_distinct_texts, element_json as element_json

def describe(name: str) -> str: ...
def get(name: str) -> type[Description]: ...
def import_all() -> dict[str, type[Description]]: ...
def names() -> list[str]: ...
