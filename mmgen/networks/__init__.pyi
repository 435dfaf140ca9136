from ._attributes import (
    AttributeDecoder as AttributeDecoder,
    AttributeNetwork as AttributeNetwork,
    AttributeTables as AttributeTables,
    AttributeVectorEncoder as AttributeVectorEncoder,
    attribute_columns as attribute_columns,
    attribute_decoder as attribute_decoder,
    attribute_widths as attribute_widths,
)
from ._base import (
    ACTIVATIONS as ACTIVATIONS,
    Conv2d as Conv2d,
    Grid as Grid,
    ImageNetwork as ImageNetwork,
    Reshape as Reshape,
    dense_layers as dense_layers,
)
from ._shared import (
    GridHead as GridHead,
    GridReader as GridReader,
    SharedDecoder as SharedDecoder,
    SharedEncoder as SharedEncoder,
    SharedNetwork as SharedNetwork,
    VectorNetwork as VectorNetwork,
)
from ._text import (
    BagDecoder as BagDecoder,
    CaptionReader as CaptionReader,
    LstmCell as LstmCell,
    LstmState as LstmState,
    TextDecoder as TextDecoder,
    TextEncoder as TextEncoder,
    TextNetwork as TextNetwork,
    text_encoder as text_encoder,
)

def describe(name: str) -> str: ...
def get(name: str) -> type[ImageNetwork]: ...
def import_all() -> dict[str, type[ImageNetwork]]: ...
def names() -> list[str]: ...
