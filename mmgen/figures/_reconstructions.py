"""Test images beside what a model decodes from their encodings, for models that draw one kind of picture alone."""

import numpy as np
import torch

from mmgen.artifacts import Dataset
from mmgen.figures._pictures import Picture, Session
from mmgen.figures.grids import Panel, image_table
from mmgen.figures.translations import rows_to_show
from mmgen.queries import batch_of_queries

__all__ = ["reconstructed"]

_ACROSS = 12


def reconstructed(session: Session) -> list[Picture]:
    """Two rows of pictures, the true ones above the decoded ones; [] where the data are gone or models say more.

    Models of texts and those of several kinds of pictures have figures of their own.
    """
    from mmgen.translation import drawn_images

    model, dataset = session.model, session.group.dataset
    image, info, text = model.image, model.attributes, model.text
    if dataset is None or image is None or drawn_images(model) != [image.name]:
        return []
    if text is not None and text.name in model.model.decoders:
        return []
    with Dataset.open(dataset) as data:
        rows = rows_to_show(data, model.settings.data.split, _ACROSS, session.seed)
        if not len(rows):
            return []
        images = data.read_pixels(image.name, rows)
        codes = data.read_attributes(info.name, rows) if info is not None else None
        tokens = data.read_text(text.name, rows) if text is not None else None
    alone = model.model.answers((image.name,))
    condition, through = None, "q(z|x)"
    if alone:
        posterior = model.encode(images)
    else:
        posterior, through = model.encode(images, codes, tokens), "q(z|x,y)"
        condition = batch_of_queries(codes, info.name, str(model.device)) if codes is not None and info else None
    with torch.inference_mode():
        decoded = model.model.mean(image.name, posterior.mean, condition).float().cpu().numpy()
    labels = ["Test images", f"Decoded from the mean of {through}"]
    caption = f"{len(rows)} test images, drawn at random. Shown: means of p(image|z). Seed {session.seed}."
    return [Picture("Reconstructions", caption, image_table([Panel("", np.stack([images, decoded]))], labels))]
