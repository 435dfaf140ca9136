from ._base import Codec as Codec
from ._kl import KLAutoencoder as KLAutoencoder
from ._pixels import Pixels as Pixels
from ._tiny import TinyAutoencoder as TinyAutoencoder
from ._weights import Pretrained as Pretrained, read_pretrained as read_pretrained
