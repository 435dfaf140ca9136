"""Pages to explore in a real Chromium: every control is used, and the pictures that appear are the right ones.

Skipped where there is no Chromium: on Debian, ``apt-get install chromium``; elsewhere $CHROMIUM names the program.
"""

import base64
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.contrib.explore.make import Limits
from mmgen.contrib.explore.sprites import picture_bytes
from mmgen.generation import load
from mmgen.generation.decode import decode_means
from tests.contrib.explore._opened_page import Opened, check_description, choose, chromium, eventually, needs_chromium
from tests.contrib.explore._pages_to_explore import SMALL, lively, page_of, picture, scenes

__all__ = ["chromium", "lively", "scenes"]  # fixtures
pytestmark = needs_chromium


@pytest.mark.slow
def test_menus_and_pointer(lively: Path, tmp_path: Path, chromium: Any) -> None:
    """In short: a choice by keyboard and of a page drawn beforehand, without sliders and map; nothing is said."""
    out = tmp_path / "explore.html"
    _, data = page_of([lively / "flat-aggregate.safetensors"], out, limits=SMALL, guidance=3.0)
    (part,) = data["parts"]
    with Opened(chromium, out) as opened:
        check_description(opened, data, part["opening"])
        opened.page.query_selector_all("fieldset.words")[1].query_selector_all("button")[1].focus()
        opened.page.keyboard.press("Enter")
        check_description(opened, data, [part["opening"][0], 1])
        assert not any(opened.page.query_selector(one).is_visible() for one in ("#dimensions", "#map", "#finger"))
        opened.quiet()


_BROKEN = """() => [...document.querySelectorAll(".pictures figcaption")].flatMap((caption) => {
    const found = [];
    const walker = document.createTreeWalker(caption, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (const word of node.textContent.matchAll(/[^\\s-]+-?/g)) {
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            if (range.getClientRects().length > 1) found.push(word[0]);
        }
    }
    return found;
})"""
"""Words under pictures that go on in the next line."""


@pytest.fixture(scope="module")
def long_words(lively: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("words") / "explore.html"
    source, _ = page_of([lively / "flat-aggregate.safetensors"], out, limits=Limits(2))
    out.write_text(source.replace('"even"', '"counterclockwise"').replace('"odd"', '"upside-counterdown"'))
    return out


@pytest.mark.parametrize("width", [1400, 320, pytest.param(420, marks=pytest.mark.slow)])
def test_no_word_is_broken_and_nothing_is_wider_than_the_screen(long_words: Path, chromium: Any, width: int) -> None:
    """With long words, whose values are wrong under some picture; with all that can be opened."""
    with Opened(chromium, long_words, width=width) as opened:
        page = opened.page
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        page.select_option("#density", "0")
        captions = "[...document.querySelectorAll('.pictures figcaption')].map((one) => one.textContent).join()"
        seen = ""
        for chosen in itertools.product((-1, 0, 1), repeat=2):
            choose(opened, [*chosen])
            assert page.evaluate(_BROKEN) == []
            seen += page.evaluate(captions)
        assert "counter" in seen and page.evaluate("document.documentElement.scrollWidth") == width
        opened.quiet()


@pytest.fixture(scope="module")
def flat(lively: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("browser") / "explore.html"
    files = [lively / f"flat-{name}.safetensors" for name in ("true", "aggregate", "aggregate-nothing")]
    return out, page_of(files, out, limits=Limits(number=3, weights=0), guidance=3.0)[1]


@pytest.mark.slow
def test_every_description_by_menu_and_button(flat: tuple[Path, dict[str, Any]], chromium: Any) -> None:
    out, data = flat
    with Opened(chromium, out) as opened:
        menus = opened.page.query_selector_all("fieldset.words")
        assert [menu.get_attribute("data-menu") for menu in menus] == ["parity", "magnitude"]
        for chosen in itertools.product((-1, 0, 1), repeat=2):
            choose(opened, [*chosen])
            check_description(opened, data, [*chosen])
        said = set()
        for _ in range(30):
            opened.page.get_by_role("button", name="At random").click()
            said.add(opened.page.query_selector(".part .says").inner_text())
        assert len(said) > 3
        references = opened.page.query_selector_all("#references .source")
        for source, element in zip(data["references"], references, strict=True):
            for n, canvas in enumerate(element.query_selector_all("canvas")):
                assert opened.shows(canvas, picture(source["pictures"], n))
        opened.page.get_by_text("Draw such pictures yourself").click()
        typed = opened.page.query_selector("details code").inner_text().split("\n")
        assert all(line.startswith("mmgen sample 'flat-") for line in typed)
        opened.quiet()


def _colours(opened: Opened, colour: str) -> int:
    """Pixels of exactly one colour on the map."""
    pixels = opened.pixels(opened.page.query_selector("#chart"))
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return int((pixels[..., :3] == wanted).all(-1).sum())


@pytest.fixture(scope="module")
def live(lively: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A page that decodes pictures itself, from stored z."""
    out = tmp_path_factory.mktemp("browser") / "explore.html"
    files = [lively / f"flat-{name}.safetensors" for name in ("true", "aggregate", "aggregate-nothing")]
    return out, page_of(files, out, limits=Limits(number=3), guidance=3.0)[1]


@pytest.mark.slow
def test_the_map_by_colour_and_density(live: tuple[Path, dict[str, Any]], chromium: Any) -> None:
    out, data = live
    found, (part,) = data["map"], data["parts"]
    with Opened(chromium, out) as opened:
        page, chart = opened.page, opened.page.query_selector("#chart")
        chart.scroll_into_view_if_needed()
        # Colours: each attribute's own, one value alone, none at all.
        codes = np.frombuffer(base64.b64decode(found["codes"]), np.uint8).reshape(-1, 2)
        assert set(np.unique(codes)) == {0, 1}
        for attribute in range(2):
            page.select_option("#colour", str(attribute))
            colours = found["colours"][attribute]
            assert all(_colours(opened, colour) > 0 for colour in colours)
            button = page.query_selector_all("#legend button")[1]
            button.click()
            assert button.get_attribute("aria-pressed") == "true"
            assert _colours(opened, colours[0]) == 0 < _colours(opened, colours[1])
            button.click()
            assert _colours(opened, colours[0]) > 0
        page.select_option("#colour", "-1")
        assert _colours(opened, found["colours"][0][0]) == 0 and page.query_selector("#legend button") is None
        # Densities: where most of the stored draws of the chosen words lie, it is darker than where none do.
        choose(opened, [1, 0])
        rows = np.frombuffer(base64.b64decode(part["rows"]), "<i2").reshape(-1, 2).tolist()
        for place, source in enumerate(part["sources"]):
            page.select_option("#density", str(place))
            assert eventually(lambda: chart.get_attribute("data-density") == "ready")
            clouds = np.frombuffer(base64.b64decode(source["clouds"]), np.uint8).reshape(part["held"], -1, 2)
            places = (clouds[rows.index([1, 0])] / 127.5 - 1) * found["around"]
            asked = f"new Promise((done) => parts[0].sources[{place}].cloud((points) => done(contours(points).inside)))"
            levels = np.array(page.evaluate(asked))
            pixels, side = opened.pixels(chart).astype(int), len(levels)
            middles = ((np.arange(side) + 0.5) / side * len(pixels)).astype(int)
            drawn = pixels[::-1][np.ix_(middles, middles)]
            orange = (drawn[..., 0] == 230) & (drawn[..., 2] == 0)
            assert (orange & (drawn[..., 3] > 150))[levels > 0.8].mean() > 0.5
            assert not orange[levels < 0.02].any()
            inside = places[(np.abs(places) < 1).all(1)]
            assert orange.mean() < 0.9 and "high" not in page.query_selector("#density-about").inner_text()
            outside = round(100 * (1 - len(inside) / len(places)))
            said = page.query_selector("#density-about").inner_text().replace("\u00a0", " ")
            assert (f" {outside} % of it lie outside" in said) is (0 < outside < 100)
        page.select_option("#density", "")
        assert eventually(lambda: chart.get_attribute("data-density") == "")
        opened.quiet()


@pytest.mark.slow
def test_the_nearest_encoding_beside_a_plane(world: Path, tmp_path: Path, chromium: Any) -> None:
    out = tmp_path / "explore.html"
    _, data = page_of([world / "telbo.safetensors"], out, limits=Limits(2))
    found, beside, loaded = data["map"], data["map"]["neighbours"], load(world / "telbo.safetensors")
    levels = np.frombuffer(base64.b64decode(beside["pictures"]["z"]), "<i2").reshape(-1, beside["pictures"]["width"])
    z = torch.from_numpy((levels * beside["pictures"]["scale"]).astype(np.float32))
    decoded = picture_bytes(decode_means(loaded, "image", z).numpy()).astype(int)
    points = np.array(found["points"])[beside["points"]]
    codes = np.frombuffer(base64.b64decode(found["codes"]), np.uint8).reshape(-1, 2)[beside["points"]]
    with Opened(chromium, out) as opened:
        chart, near = opened.page.query_selector("#chart"), opened.page.query_selector("#near")
        opened.page.select_option("#colour", "0")
        chart.scroll_into_view_if_needed()
        area = chart.bounding_box()
        for value in (None, 1):
            if value is not None:
                opened.page.query_selector_all("#legend button")[value].click()
                chart.scroll_into_view_if_needed()
                area = chart.bounding_box()
            for column, row in ((5, 7), (20, 20), (38, 11)):
                x, y = (column + 0.5) / 41, (row + 0.5) / 41
                opened.page.mouse.move(area["x"] + x * area["width"], area["y"] + (1 - y) * area["height"])
                distances = np.square(points - np.array([x, y]) * 1000).sum(1)
                if value is not None:
                    distances[codes[:, 0] != value] = np.inf
                place = int(distances.argmin())
                assert eventually(
                    lambda place=place: np.abs(opened.pixels(near)[..., :3].astype(int) - decoded[place]).max() <= 1
                )
                words = [data["attributes"]["values"][a][code] for a, code in enumerate(codes[place])]
                assert ", ".join(words) in opened.page.query_selector("#near-says").inner_text()
        opened.quiet()


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 420), ("dark", 420), ("light", 320)])
def test_phones(live: tuple[Path, dict[str, Any]], chromium: Any, scheme: str, width: int) -> None:
    """By touch, without anything wider than the screen, in light and in dark."""
    out, data = live
    options = {"color_scheme": scheme, "has_touch": True, "is_mobile": True, "reduced_motion": "reduce"}
    with Opened(chromium, out, width=width, **options) as opened:
        page = opened.page
        page.query_selector("#chart").scroll_into_view_if_needed()
        area = page.query_selector("#chart").bounding_box()
        page.touchscreen.tap(area["x"] + area["width"] * 0.25, area["y"] + area["height"] * 0.75)
        where = f"at {-0.5 * data['map']['reach']:.1f}"
        assert eventually(lambda: page.query_selector("#under-says").inner_text().startswith(where))
        page.query_selector("#examples button:nth-child(2)").tap()
        assert opened.shows(page.query_selector("#original"), picture(data["traversals"]["originals"], 1))
        page.select_option("#density", "0")
        page.query_selector("details summary").tap()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        inside = """() => [...document.querySelectorAll("main *")].filter(one => one.offsetParent
            && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.tagName)"""
        assert page.evaluate(inside) == []
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 25, 28)"}[scheme]
        opened.quiet()


@pytest.mark.slow
def test_captions_in_slots_and_free(scenes: Path, tmp_path: Path, chromium: Any) -> None:
    out = tmp_path / "spelled.html"
    _, data = page_of([scenes / "spelled-fit.safetensors"], out, limits=SMALL)
    with Opened(chromium, out) as opened:
        for chosen in itertools.product((-1, 1), repeat=3):
            choose(opened, [*chosen])
            check_description(opened, data, [*chosen])
        opened.quiet()
    out = tmp_path / "free.html"
    _, data = page_of([scenes / "free-fit.safetensors"], out, limits=SMALL)
    with Opened(chromium, out) as opened:
        for row in (-1, 0, len(data["parts"][0]["captions"]) - 1):
            choose(opened, [row])
            check_description(opened, data, [row])
        assert opened.page.query_selector("img") is None
        opened.quiet()


@pytest.mark.slow
def test_names_out_of_files_stay_text_and_the_policy_is_in_force(
    live: tuple[Path, dict[str, Any]], chromium: Any
) -> None:
    out, data = live
    hostile = data["attributes"]["values"][1][0]
    assert "<script>" in hostile
    with Opened(chromium, out) as opened:
        page = opened.page
        assert page.query_selector_all("fieldset.words")[1].inner_text().count(hostile) == 1
        page.select_option("#colour", "1")
        assert page.query_selector("#legend button").inner_text() == hostile
        opened.quiet()
        refused = """async () => {
            const seen = [];
            document.addEventListener("securitypolicyviolation", event => seen.push(event.effectiveDirective));
            await fetch("http://127.0.0.1:9/").catch(() => {});
            const image = new Image(); image.src = "http://127.0.0.1:9/x.png";
            const script = document.createElement("script");
            try { script.text = "window.ran = true"; } catch { seen.push("trusted types"); }
            document.body.append(script);
            document.body.setAttribute("style", "color: red");
            await new Promise(done => setTimeout(done, 200));
            return [seen, window.ran === undefined];
        }"""
        seen, idle = page.evaluate(refused)
        assert idle and {"connect-src", "img-src"} <= set(seen)
        assert "trusted types" in seen and "style-src-attr" in seen
