"""What rivals add to tables of the core's tests."""

from mmgen.testing.data import NUMBER

PACKAGES_OF_RECIPES = {"five-grounds": ("skimage",)}
SETTINGS_OF_RECIPES = {"five-grounds": {"source": "digits", "number": NUMBER}}  # which needs more digits of a kind
OF_POINTS = {"coherence", "probe"}
