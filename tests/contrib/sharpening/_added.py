"""What sharpening adds to tables of the core's tests."""

from mmgen.contrib.sharpening import SharpeningSettings, load_sharpener

SCHEMAS = {"fit-sharpener": (SharpeningSettings,)}
LOADERS = {"sharpener": load_sharpener}
HUGE = [
    ("sharpener", {"sharpener": {"blocks": 10**5, "width": 4}}),
    ("sharpener", {"sharpener": {"width": 10**6}}),
]
WRITE = {"fit-sharpener": ["small.safetensors", "--steps", "2"]}
