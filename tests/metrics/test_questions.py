"""The kind of descriptions that metrics draw for."""

from types import SimpleNamespace
from typing import Any

import pytest

from mmgen.evaluation.queries import Questions
from mmgen.modalities.text import TextDescription

TEXT = TextDescription(vocabulary=("big", "red"), length=2)


@pytest.mark.parametrize(("conditional_on", "asked"), [(("text",), True), (("attributes",), False), ((), False)])
def test_a_decoder_of_captions_is_asked_by_captions_whatever_z_is_drawn_from(
    conditional_on: tuple[str, ...], asked: bool
) -> None:
    """The prior reads nothing, but the decoder does."""
    model = SimpleNamespace(conditional_on=conditional_on)
    loaded = SimpleNamespace(text=TEXT, model=model, guidance=None, description_kind=None)
    evaluation: Any = SimpleNamespace(loaded=loaded, settings=None, posteriors=("prior",), ignores_text=lambda _: True)
    questions = Questions(evaluation)
    assert questions.whole_captions is questions.free_captions is asked
