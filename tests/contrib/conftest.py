"""Fixtures of the core's tests, for those of worlds beside the core."""

from tests.data_recipes.conftest import small_mnist as small_mnist
from tests.figures.conftest import readers as readers, stubs as stubs, views as views, world as world
