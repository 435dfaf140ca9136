"""mmgen: generative models of images and text, from data to figures.

The library floor. It never prints and never imports the command line; long work is an iterable of
:class:`mmgen.core.progress.Progress`. Importing this module is cheap: torch is loaded by the first call that needs it.
"""

from mmgen.core.version import __version__
from mmgen.core.worlds import added_files

_ADDED = sorted(path.stem for path in added_files("mmgen.commands").values())
"""Commands of worlds beside the core, which are functions too."""
TYPE_CHECKING = False  # as in typing, without the time that its import takes: the program hears Ctrl-C after this
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Concatenate

    from mmgen.artifacts import Dataset
    from mmgen.commands import make_function
    from mmgen.commands.compare import Compare
    from mmgen.commands.evaluate import Evaluate
    from mmgen.commands.export import Export
    from mmgen.commands.fill_gaps import FillGaps
    from mmgen.commands.fit_aggregate import FitAggregate
    from mmgen.commands.make_data import MakeData
    from mmgen.commands.plot import Plot
    from mmgen.commands.report import Report
    from mmgen.commands.sample import Sample
    from mmgen.commands.show import Show
    from mmgen.commands.train import Train
    from mmgen.commands.train_classifier import TrainClassifier
    from mmgen.evaluation.likelihoods import log_likelihood as log_likelihood
    from mmgen.generation import load as load

    compare = make_function(Compare)
    evaluate = make_function(Evaluate)
    export = make_function(Export)
    fill_gaps = make_function(FillGaps)
    fit_aggregate = make_function(FitAggregate)
    make_data: Callable[Concatenate[str, ...], Dataset] = make_function(MakeData)  # with the settings of its recipe
    plot = make_function(Plot)
    report = make_function(Report)
    sample = make_function(Sample)
    show = make_function(Show)
    train = make_function(Train)
    train_classifier = make_function(TrainClassifier)

__all__ = [
    "__version__",
    "compare",
    "evaluate",
    "export",
    "fill_gaps",
    "fit_aggregate",
    "load",
    "log_likelihood",
    "make_data",
    "plot",
    "report",
    "sample",
    "show",
    "train",
    "train_classifier",
    *_ADDED,
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
    if name in __all__:
        from mmgen.commands import make_function, stage_class

        globals()[name] = make_function(stage_class(name))
        return globals()[name]
    raise AttributeError(f"module 'mmgen' has no attribute {name!r}")
