"""A page in Chromium: what it shows, what it says, what it asks for."""

import base64
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.contrib.explore._pages_to_explore import picture

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
PROGRAM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium; $CHROMIUM names one")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as program:
        browser = program.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page in a browser, with all that it said and asked for."""

    def __init__(self, browser: Any, path: Path, width: int = 1400, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_function("document.querySelector('footer') !== null")

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def pixels(self, canvas: Any) -> np.ndarray:
        """What is on a canvas, uint8 [H, W, 4]."""
        width, height, encoded = canvas.evaluate(
            """canvas => {
                const copy = new OffscreenCanvas(canvas.width, canvas.height);
                const pen = copy.getContext("2d", { willReadFrequently: true });
                pen.drawImage(canvas, 0, 0);
                const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
                let text = "";
                for (let n = 0; n < data.length; n += 8192) text += String.fromCharCode(...data.subarray(n, n + 8192));
                return [canvas.width, canvas.height, btoa(text)];
            }"""
        )
        return np.frombuffer(base64.b64decode(encoded), np.uint8).reshape(height, width, 4)

    def shows(self, canvas: Any, expected: np.ndarray) -> bool:
        """Whether a canvas shows a picture uint8 [H, W, 3], pixel by pixel, within a moment."""
        return eventually(lambda: np.array_equal(self.pixels(canvas)[..., :3], expected))

    def quiet(self) -> None:
        """Nothing was said on the console, and nothing asked for but the page itself and what is in it."""
        assert self.said == []
        assert [url for url in self.asked if not url.startswith("data:")] == [self.page.url.partition("#")[0]]


def eventually(true: Callable[[], bool]) -> bool:
    """Whether it comes true within a moment: sheets are decoded when they are first wanted."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.01)
    return False


def choose(opened: Opened, chosen: list[int], part: int = 0) -> None:
    """Press the words of a part so that these values are chosen, -1 for an open menu."""
    box = opened.page.query_selector_all(".part")[part]
    box.query_selector("button:text-is('Anything')").click()
    for menu, value in zip(box.query_selector_all("fieldset.words"), chosen, strict=True):
        if value >= 0:
            menu.query_selector_all("button")[value].click()


def check_description(opened: Opened, data: dict[str, Any], chosen: list[int], part: int = 0) -> None:
    """Every posterior shows stored pictures of the chosen words, framed and worded as the judge reads them."""
    described, attributes = data["parts"][part], data["attributes"]
    rows = np.frombuffer(base64.b64decode(described["rows"]), "<i2").reshape(-1, len(chosen))
    asked, box = np.array(chosen), opened.page.query_selector_all(".part")[part]
    agree = ((rows == asked) | (asked < 0)).all(1)
    for source, element in zip(described["sources"], box.query_selector_all(".source"), strict=True):
        for n, figure in enumerate(element.query_selector_all("figure")):
            row = opened.page.evaluate(f"parts[{part}].storedRow({n})")
            assert agree[row] or not agree[: described["held"]].any()
            number, canvas = row * data["number"] + n, figure.query_selector("canvas")
            assert opened.shows(canvas, picture(source["pictures"], number)), (chosen, source["name"], n)
            assert f"picture {n + 1} of {source['name']}" in canvas.get_attribute("aria-label")
            if source["judged"] is None:
                continue
            width = len(attributes["names"])
            seen = np.frombuffer(base64.b64decode(source["judged"]), np.uint8)[number * width : (number + 1) * width]
            places = [menu["attribute"] for menu in described["menus"]]
            wanted = {a: value for a, value in zip(places, chosen, strict=True) if value >= 0 <= a}
            wrong = [attributes["values"][a][seen[a]] for a in sorted(wanted) if seen[a] != wanted[a]]
            assert ("wrong" in (figure.get_attribute("class") or "")) is bool(wrong)
            said = figure.query_selector("figcaption").inner_text()
            if wrong:
                assert said == f"✗ {', '.join(wrong)}"
            else:
                assert said.startswith("✓") is bool(wanted)
