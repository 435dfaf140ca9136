"""What a reader meets on a report's page and in its pictures: phones, dark rooms, keyboards, black pictures, words."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from mmgen.core.errors import UsageError
from mmgen.figures import plots
from mmgen.figures.drawing.blocks import Block, Column, picture_page
from mmgen.figures.drawing.page import Grid, lighten_dark_images
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.samples import describe_classifier_input, explain_red_frames
from mmgen.figures.drawing.style import SMALL, new_figure, render_figure
from mmgen.figures.drawing.tables import Panel, Tile, TileRow, image_grid, image_table, tile_table
from mmgen.figures.plots import _base as plotting
from mmgen.figures.plots._base import Plot
from mmgen.figures.report.curves import TrainingLog, draw_learning_curves, draw_term_curves
from mmgen.figures.report.make import make_report


class Elements(HTMLParser):
    """Start tags with their attributes, in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def source(world: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    files = [world / f"{name}.safetensors" for name in ("flat-true", "flat-aggregate")] + [world / "scores.jsonl"]
    return make_report(files, out).run().read_text(encoding="utf-8")


def test_tables_can_be_read_by_ear_and_reached_by_keyboard(source: str) -> None:
    elements = Elements(source)
    assert elements.of("th") and all(each.get("scope") in ("col", "row") for each in elements.of("th"))
    regions = [each for each in elements.of("div") if each.get("class") == "scroll"]
    assert regions and all(each.get("tabindex") == "0" and each.get("aria-label") for each in regions)
    labels = [each.get("aria-label") for each in regions]
    assert len(set(labels)) == len(labels) > 3 and "table" not in labels, "who jumps from one to the next is told which"


def test_alternative_texts_are_short_and_say_where_the_rest_is(source: str) -> None:
    pictures = [each["alt"] or "" for each in Elements(source).of("img")]
    assert len(pictures) > 5 and all(0 < len(text) < 90 and "described below" in text for text in pictures)


def test_the_page_opens_with_pictures_then_numbers_then_advice(source: str) -> None:
    sections = [each.get("id") for each in Elements(source).of("section")]
    assert sections[:4] == ["pictures", "findings", "scores", "samples"]
    assert source.index("Where real pictures lie (q_agg") < source.index(
        "What the model believes (q_true(w = 1), exact"
    )


def test_what_frames_mean_is_said_once_in_a_section(source: str) -> None:
    for section in re.findall(r"<section.*?</section>", source, re.S):
        assert section.count("Red frame: the judge reads") <= 1
    samples = source[source.index('<section id="pictures">') :]
    assert "Red frame: the judge reads" in samples[: samples.index("</section>")]


def test_a_picture_alone_says_what_its_page_says_once() -> None:
    picture = Picture("T", "Caption.", image_grid(np.ones((1, 1, 8, 8), np.float32)), "Note.")
    assert (picture.words, picture.full_caption) == ("Caption.", "Caption. Note.")


def test_what_is_drawn_from_comes_first_and_the_file_after_it(source: str) -> None:
    head = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', source[source.index('<section id="scores">') :])[:2]
    assert head == ["drawn from", "file"]


def test_measurements_stand_apart_from_settings_with_four_digits(source: str) -> None:
    settings = source[source.index('<section id="settings">') :]
    for part in re.findall(r"<details>.*?</details>", settings, re.S):
        chosen, _, measured = part.partition("<h3>Measured</h3>")
        assert "validation_bound" not in chosen and "held_out_accuracy" not in chosen
        for value in re.findall(r'<td class="text">(-?\d+\.\d+)</td>', measured):
            assert len(value.lstrip("-0.").replace(".", "")) <= 4
    assert "validation_bound" in settings


def test_nothing_on_a_phone_is_narrower_than_a_word(source: str) -> None:
    """Settings are laid out below each other there, and words of other tables may break but keep room."""
    style = source[source.index("<style>") : source.index("</style>")]
    phone = style[style.index("@media (max-width: 600px)") :]
    assert "table.pairs td { display: block" in phone and "figure img { max-width: none" in phone
    assert re.search(r"td\.text \{[^}]*min-width: \d", style)
    assert len(Elements(source).of("table")) > 3 and 'class="pairs"' in source
    # Whatever is wide is inside something that scrolls: tables of numbers, figures.
    plain = re.sub(r'<div class="scroll".*?</div>', "", source, flags=re.S)
    assert set(re.findall(r"<table[^>]*>", plain)) == {'<table class="pairs">'}


def test_a_dark_page_has_its_own_colours(source: str) -> None:
    style = source[source.index("<style>") : source.index("</style>")]
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w{6})", block))
        for block in re.findall(r":root \{ (?:color-scheme: light dark; )?(--ink[^}]*)\}", style)[:2]
    )
    assert "@media (prefers-color-scheme: dark)" in style and light.keys() == dark.keys()

    def luminance(colour: str) -> float:  # WCAG 2.1
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        low, high = sorted([luminance(one), luminance(other)])
        return (high + 0.05) / (low + 0.05)

    for colours in (light, dark):
        for name in ("ink", "muted", "accent", "wrong"):
            assert contrast(colours[name], colours["page"]) >= 4.5
        assert contrast(colours["ink"], colours["note"]) >= 4.5
    assert ".badge.missing { color: var(--page); background: var(--wrong)" in style, "the same contrast"
    assert not re.search(r"(?<!print )background: (white|#)", style)


def test_drawings_in_lines_are_turned_on_a_dark_page_and_those_whose_colours_are_named_are_not(source: str) -> None:
    lines, photo = draw_learning_curves([]), new_figure(2, 2)
    photo.add_subplot().imshow(np.zeros((2, 2)))
    assert Picture("t", "c", lines).ground == "lines"
    grid = image_grid(np.ones((1, 1, 8, 8), np.float32))
    found = [Picture("t", "c", photo), Picture("t", "c", lines, telling=True), Picture("t", "c", grid)]
    assert {picture.ground for picture in found} == {"paper"}
    assert {each.get("class") for each in Elements(source).of("img")} == {"lines", "paper"}
    assert re.search(r"img\.lines \{ filter: invert", source) and "img.paper { filter: bright" in source


def _sizes(figure: Figure) -> list[float]:
    render_figure(figure, 40)
    texts = [text for axes in figure.axes for text in (*axes.texts, axes.title)]
    for axes in figure.axes:
        texts += [*axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label, axes.yaxis.label]
        legend = axes.get_legend()
        texts += legend.get_texts() if legend is not None else []
    return [text.get_fontsize() for text in texts if text.get_text()]


def test_drawings_have_type_of_nine_points_at_the_size_that_the_page_shows() -> None:
    steps = np.arange(1, 9) * 100
    log = TrainingLog("run", steps, steps / 10.0, -1.0 / steps, {f"term {i}": -1.0 / steps for i in range(6)}, steps)
    for figure, room in ((draw_learning_curves([log]), 522), (draw_term_curves(log), 1072)):
        assert min(_sizes(figure)) >= SMALL >= 9
        assert 96 * figure.get_figwidth() <= room  # else the page makes it smaller, and the type with it


def test_labels_of_axes_are_whole() -> None:
    steps = np.arange(1, 9) * 100
    log = TrainingLog("run", steps, steps / 10.0, -1.0 / steps, {"log p(attributes|z)": -1.0 / steps}, steps)
    for figure in (draw_learning_curves([log]), draw_term_curves(log)):
        render_figure(figure, 80)
        for axes in figure.axes:
            for label in filter(Text.get_text, (axes.xaxis.label, axes.yaxis.label, axes._left_title)):
                box = label.get_window_extent()
                assert box.x0 >= 0 and box.y0 >= 0 and box.y1 <= figure.bbox.y1 and box.x1 <= figure.bbox.x1


def test_progress_of_a_judge_calls_nothing_a_bound(world: Path, tmp_path: Path) -> None:
    from mmgen.classifier._training import ClassifierSettings, train_classifier

    training = {"steps": 2, "batch": 8, "log_every": 1, "device": "cpu"}
    settings = ClassifierSettings.model_validate({"network": "small", "training": training})
    work = train_classifier(world / "data.h5", tmp_path / "judge.safetensors", settings)
    shown = {name for progress in work for name in progress.values}
    assert "log p(labels|image)" in shown and "bound" not in shown


DARK = np.full((2, 1, 16, 16), 0.1, np.float32)
BRIGHT = np.pad(np.ones((2, 1, 8, 8), np.float32), ((0, 0), (0, 0), (4, 4), (4, 4)))
PAGES = {
    "grid": lambda images: image_grid(images, note="Note."),
    "table": lambda images: image_table([Panel("a", images[:, None])], ["x", "y"][: len(images)], note="Note."),
    "tiles": lambda images: tile_table([TileRow("x", [[Tile(image) for image in images]])], note="Note."),
    "blocks": lambda images: picture_page([Block("b", [Column(images)])], note="Note."),
}


@pytest.mark.parametrize("page", PAGES)
def test_nearly_black_pictures_are_seen_to_be_pictures(page: str) -> None:
    def inside(grid: Grid, number: int) -> np.ndarray:
        left, top, right, bottom = grid.boxes[number]
        return np.asarray(grid.image)[top:bottom, left:right]

    as_they_are = PAGES[page](BRIGHT)
    assert as_they_are.remark == "" and inside(as_they_are, 0).min() == 0
    mixed = PAGES[page](np.concatenate([DARK[:1], BRIGHT[:1]]))
    assert mixed.remark.startswith("1 of 2 pictures is nearly black")
    assert inside(mixed, 1).min() == 31 and inside(mixed, 1).max() == 255  # 12 % of white, and white
    assert inside(mixed, 0).min() == 53  # 31 + 0.88 * 26
    assert mixed.image.height > as_they_are.image.height  # the note says it, too
    assert PAGES[page](DARK).remark.startswith("All 2 pictures are nearly black")
    assert Picture("t", "Caption.", mixed).words == f"Caption. {mixed.remark}"


def test_the_ground_is_the_same_for_all_pictures_of_a_page() -> None:
    dark, bright = np.zeros((1, 2, 2, 3), np.uint8), np.full((1, 4, 4, 3), 255, np.uint8)
    (first, second), remark = lighten_dark_images([dark, bright])
    assert (first == 31).all() and (second == 255).all() and remark.startswith("1 of 2")
    (alone,), remark = lighten_dark_images([bright])
    assert alone is bright and remark == ""
    assert lighten_dark_images([dark])[1].startswith("The picture is nearly black")


def test_what_the_judge_looks_at_is_said_alike_everywhere() -> None:
    assert describe_classifier_input(True) in explain_red_frames({}, True) and "not binary" in explain_red_frames(
        {}, False
    )
    assert "if data are binary" in explain_red_frames({}) and "No judge" in explain_red_frames(None, True)


@pytest.mark.parametrize("name", plots.names())
def test_figures_refuse_by_headers_what_they_cannot_show(
    name: str, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is loaded: a wrong number of models, a latent space of another size."""

    def never(*_: object) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr(plotting, "open_session", never)
    member: Plot = plots.get(name)
    telbo, flat = world / "telbo.safetensors", world / "flat.safetensors"
    if member.shows == "plane":
        with pytest.raises(UsageError, match="has 3 latent dimensions, expected 2"):
            plotting.draw_plot(name, [telbo])
    if member.shows in ("model", "plane"):
        with pytest.raises(UsageError, match=rf"{name} needs one model .* got telbo\.safetensors, flat\.safetensors"):
            plotting.draw_plot(name, [telbo, flat])
    assert {"contours", "latent-map"} == {each for each in plots.names() if plots.get(each).shows == "plane"}
