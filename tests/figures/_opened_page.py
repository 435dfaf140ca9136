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

from tests.figures._pages_to_explore import picture

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


def check_description(opened: Opened, data: dict[str, Any], row: int, part: int = 0) -> None:
    """Every posterior shows its pictures of a description, framed and worded as the judge reads them."""
    described, attributes = data["parts"][part], data["attributes"]
    box = opened.page.query_selector_all(".part")[part]
    assert box.query_selector(".says").inner_text() == described["words"][row]
    for source, element in zip(described["sources"], box.query_selector_all(".source"), strict=True):
        figures = element.query_selector_all("figure")
        answered = list(range(len(described["keys"]))) if source["rows"] is None else source["rows"]
        if row not in answered:
            assert not any(figure.is_visible() for figure in figures)
            assert "Guidance needs words" in element.inner_text()
            continue
        for n, figure in enumerate(figures):
            number = answered.index(row) * data["number"] + n
            canvas = figure.query_selector("canvas")
            assert opened.shows(canvas, picture(source["pictures"], number)), (row, source["name"], n)
            assert f"picture {n + 1} of {source['name']}" in canvas.get_attribute("aria-label")
            if source["judged"] is None:
                continue
            width = len(attributes["names"])
            seen = np.frombuffer(base64.b64decode(source["judged"]), np.uint8)[number * width : (number + 1) * width]
            asked = np.frombuffer(base64.b64decode(described["asked"]), np.uint8)[row * width : (row + 1) * width]
            wrong = bool(((asked != seen) & (asked != 255)).any())
            assert ("wrong" in (figure.get_attribute("class") or "")) is wrong
            said = figure.query_selector("figcaption").inner_text()
            if wrong:
                words = [attributes["values"][a][seen[a]] for a in range(width) if asked[a] not in (255, seen[a])]
                assert said == f"✗ {', '.join(words)}"
            else:
                assert said == ("✓" if (asked != 255).any() else "")
