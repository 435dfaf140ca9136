from ._attention import (
    PictureAttention as PictureAttention,
    Window as Window,
    WordAttention as WordAttention,
)
from ._attributes import (
    AttributeDecoder as AttributeDecoder,
    AttributeNetwork as AttributeNetwork,
    AttributeTables as AttributeTables,
    AttributeVectorEncoder as AttributeVectorEncoder,
    attribute_decoder as attribute_decoder,
)
from ._base import (
    ACTIVATIONS as ACTIVATIONS,
    Grid as Grid,
    ImageNetwork as ImageNetwork,
    Reshape as Reshape,
    dense_layers as dense_layers,
)
from ._convolutions import Conv2d as Conv2d
from ._graph import GraphConvolution as GraphConvolution, normalised_adjacency as normalised_adjacency
from ._grid import GridHead as GridHead, GridReader as GridReader
from ._lstm import CaptionReader as CaptionReader, LstmCell as LstmCell, LstmState as LstmState
from ._shared import SharedDecoder as SharedDecoder, SharedEncoder as SharedEncoder, SharedNetwork as SharedNetwork
from ._text import (
    BagDecoder as BagDecoder,
    TextDecoder as TextDecoder,
    TextEncoder as TextEncoder,
    TextNetwork as TextNetwork,
    text_encoder as text_encoder,
)
from ._vector import VectorNetwork as VectorNetwork

def describe(name: str) -> str: ...
def get(name: str) -> type[ImageNetwork]: ...
def import_all() -> dict[str, type[ImageNetwork]]: ...
def names() -> list[str]: ...
