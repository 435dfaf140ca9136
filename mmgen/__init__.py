"""mmgen: generative models of images and text, from data to figures.

The library floor. It never prints and never imports the command line; long work is an iterable of
:class:`mmgen.core.progress.Progress`. Importing this module is cheap: torch is loaded by the first call that needs it.
"""

from mmgen.core.version import __version__

TYPE_CHECKING = False  # as in typing, without the time that its import takes: the program hears Ctrl-C after this
if TYPE_CHECKING:
    from typing import Any

    from mmgen.commands import function
    from mmgen.commands.evaluate import Evaluate
    from mmgen.commands.fit_aggregate import FitAggregate
    from mmgen.commands.notebook import (
        make_data as make_data,
        sample as sample,
    )
    from mmgen.commands.train import Train
    from mmgen.commands.train_classifier import TrainClassifier
    from mmgen.evaluation.likelihoods import log_likelihood as log_likelihood
    from mmgen.generation import load as load

    evaluate = function(Evaluate)
    fit_aggregate = function(FitAggregate)
    train = function(Train)
    train_classifier = function(TrainClassifier)

_STAGES = ("evaluate", "fit_aggregate", "train", "train_classifier")
_NOTEBOOK = ("make_data", "sample")

__all__ = [
    "__version__",
    "evaluate",
    "fit_aggregate",
    "load",
    "log_likelihood",
    "make_data",
    "sample",
    "train",
    "train_classifier",
]


def __dir__() -> list[str]:
    return sorted(__all__)  # so that Tab finds what is loaded late, and nothing that is not for people


def __getattr__(name: str) -> "Any":
    # What computes pulls in torch, which takes seconds; `import mmgen` and `mmgen --help` must not pay for it.
    if name == "load":
        from mmgen.generation import load

        return load
    if name == "log_likelihood":
        from mmgen.evaluation.likelihoods import log_likelihood

        return log_likelihood
    if name in _STAGES:
        from mmgen.commands import function, stage_called

        globals()[name] = function(stage_called(name))
        return globals()[name]
    if name in _NOTEBOOK:
        from mmgen.commands import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module 'mmgen' has no attribute {name!r}")
