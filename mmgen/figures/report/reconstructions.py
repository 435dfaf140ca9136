"""Test images with their reconstructions, for models that draw a single kind of picture."""

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.descriptions import batch_of_queries
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.tables import Panel, image_table
from mmgen.figures.session import Session
from mmgen.generation.decode import decode_means, drawable_pictures
from mmgen.generation.encode import encode_examples, encode_pictures
from mmgen.generation.examples import read_examples
from mmgen.generation.images import random_test_rows

__all__ = ["draw_reconstructions"]

_ACROSS = 12


def draw_reconstructions(session: Session) -> list[Picture]:
    """Draw test images, each above its reconstruction; [] without the model's dataset.

    The result is [] for models of texts and of several kinds of pictures, which have other figures.
    """
    model, dataset = session.model, session.group.dataset
    main, info, text = model.observation, model.attributes, model.text
    if dataset is None or main is None or drawable_pictures(model) != [main.name]:
        return []
    if text is not None and text.name in model.model.generates:
        return []
    with Dataset.open(dataset) as data:
        rows = random_test_rows(data, model.settings.data.split, _ACROSS, session.seed)
        if not len(rows):
            return []
        shown = read_examples(model, data, rows)
    condition, through = None, "q(z|x)"
    if model.model.has_posterior((main.name,)):
        posterior = encode_pictures(model, shown.images)
    else:
        posterior, through = encode_examples(model, shown), "q(z|x,y)"
        if shown.codes is not None and info is not None:
            condition = batch_of_queries(shown.codes, info.name, str(model.device))
    decoded = main.pictures(decode_means(model, main.name, posterior.mean, condition).cpu().numpy())
    images = main.pictures(shown.images)
    labels = ["Test images", f"Decoded from the mean of {through}"]
    caption = f"{len(rows)} test images, drawn at random. Shown: means of p({main.name}|z). Seed {session.seed}."
    return [Picture("Reconstructions", caption, image_table([Panel("", np.stack([images, decoded]))], labels))]
