"""One picture by name: what ``mmgen plot`` draws. One file per figure; each takes opened files and gives a picture."""

from mmgen.registry import Registry

_registry = Registry(__name__, "figure")
names = _registry.names
get = _registry.get
describe = _registry.describe
