"""Likelihoods of dense data by name."""

import mmgen.likelihoods
from mmgen.core.errors import SettingsError
from mmgen.likelihoods import Likelihood

__all__ = ["dense_likelihood"]


def dense_likelihood(name: str, setting: str, what: str) -> Likelihood:
    """Return the likelihood of independent numbers that a setting names; ``what`` it is to be of, for messages."""
    likelihood = mmgen.likelihoods.get(name)
    if not issubclass(likelihood, Likelihood):
        dense = [n for n, member in mmgen.likelihoods.importable().items() if issubclass(member, Likelihood)]
        raise SettingsError(
            f"{setting} got '{name}', which is no likelihood of {what}; expected one of {', '.join(dense)}"
        )
    made: Likelihood = likelihood()
    return made
