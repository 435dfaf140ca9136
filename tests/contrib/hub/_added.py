"""What the hub adds to tables of the core's tests."""

from mmgen.testing.data import NUMBER
from tests.own_data._pictures import write_classes

SMALL_SOURCES = {"dataset": lambda folder, _: str(write_classes(folder, NUMBER))}
PACKAGES_OF_RECIPES = {"hub": ("datasets",)}
RECIPES_OF_SOURCES = {"hub"}
