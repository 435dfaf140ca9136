"""mmgen: generative models of images and text, from data to figures.

The library floor. It never prints and never imports the command line; long work is an iterable of
:class:`mmgen.progress.Progress`. Importing this module is cheap: torch is loaded by the first call that needs it.
"""

from typing import TYPE_CHECKING, Any

from mmgen.version import __version__

if TYPE_CHECKING:
    from mmgen.loading import load as load

__all__ = ["__version__", "load"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})  # so that Tab finds what is loaded late


def __getattr__(name: str) -> Any:
    # `mmgen.load` pulls in torch, which takes seconds; `import mmgen` and `mmgen --help` must not pay for it.
    if name == "load":
        from mmgen.loading import load

        return load
    raise AttributeError(f"module 'mmgen' has no attribute {name!r}")
