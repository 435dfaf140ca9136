"""Make the files of tests/golden anew: ``python -m tests.artifacts.remake_golden``, after a change of the format.

Also needed where settings that the aggregate or the training state hold are renamed or removed.
"""

import contextlib
import json
import shlex
import tempfile
from pathlib import Path

from mmgen.artifacts import FORMAT_VERSION, read_header
from mmgen.cli._main import main
from tests.artifacts.conftest import make_checkpoint, make_dataset, make_latents, make_samples

GOLDEN = Path(__file__).parents[1] / "golden"
CLASSIFIER = {
    "settings": {
        "classifier": {
            "image_shape": [1, 3, 5], "names": ["digit", "scale"], "network": "tiny", "told": [],
            "values": [["0", "1", "2"], ["big", "small"]],
        },
        "training": {"steps": 3},
    },
    "facts": {
        "held_out_accuracy": {"digit": 50.0, "mean": 75.0, "scale": 100.0},
        "held_out_correct": {"digit": 5, "scale": 10}, "held_out_images": {"digit": 10, "scale": 10},
    },
    "command": "mmgen train-classifier dataset.h5",
}  # fmt: skip
COMMANDS = """
make-data mnist-a --source digits --size 16 --number 300 --workers 1 -o tiny.h5
train tiny.h5 --objective elbo --steps 3 --batch 16 --device cpu --keep-state --set training.learning_rate=0.01 \
 --set model.image_network.name=mlp --set model.image_network.hidden=[4] --set model.hidden=8 \
 --set model.latent_size=2 --set model.head_layers=0 --set model.attribute_network.embedding=2 \
 --set model.attribute_network.hidden=4 --set model.attribute_network.decoder_hidden=4 \
 --set training.validation_examples=15 -o model.safetensors
fit-aggregate model.safetensors --family realnvp --steps 3 --examples 100 --device cpu \
 --set aggregate.family.steps=1 --set aggregate.family.hidden=[4] -o aggregate.safetensors
"""


def remake() -> None:
    """Write all files and their content ids."""
    for old in GOLDEN.iterdir():
        old.unlink()

    def place(kind: str, ending: str) -> Path:
        return GOLDEN / f"{kind}-v{FORMAT_VERSION}.{ending}"

    dataset = place("dataset", "h5")
    make_dataset(dataset, facts={"colours": 2})
    make_latents(place("latents", "h5"))
    make_samples(place("samples", "h5"))
    make_checkpoint(place("model", "safetensors"), dataset=dataset)
    make_checkpoint(place("sharpener", "safetensors"), "sharpener", dataset, command="mmgen fit-sharpener tiny.h5")
    make_checkpoint(place("classifier", "safetensors"), "classifier", dataset, **CLASSIFIER)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for line in COMMANDS.strip().splitlines():
            with contextlib.suppress(SystemExit):
                main(shlex.split(line))
        place("aggregate", "safetensors").write_bytes(Path("aggregate.safetensors").read_bytes())
        place("training-state", "safetensors").write_bytes(Path("model.last.safetensors").read_bytes())
    ids = {path.name: read_header(path).content_id for path in sorted(GOLDEN.iterdir())}
    (GOLDEN / "content-ids.json").write_text(json.dumps(ids, indent=2) + "\n")


if __name__ == "__main__":
    remake()
