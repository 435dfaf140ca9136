"""Likelihoods of dense data by name."""

import mmgen.likelihoods
from mmgen.core.errors import SettingsError
from mmgen.likelihoods import Likelihood


def dense_likelihood(name: str, setting: str, data_in_words: str) -> Likelihood:
    """Return the likelihood of pixels or real numbers called ``name``; messages name the setting and the data."""
    likelihood = mmgen.likelihoods.get(name)
    if not issubclass(likelihood, Likelihood):
        dense = [n for n, member in mmgen.likelihoods.import_all().items() if issubclass(member, Likelihood)]
        raise SettingsError(
            f"{setting} got '{name}', which is no likelihood of {data_in_words}; expected one of {', '.join(dense)}"
        )
    result: Likelihood = likelihood()
    return result
