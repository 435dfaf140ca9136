"""The site in a real Chromium, opened as files: search answers, nothing asks another host, no page is too wide."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("mkdocs")
PROGRAM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium; $CHROMIUM names one"),
]
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as program:
        browser = program.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_search_answers_without_a_network(site: Path, chromium: Any, scheme: str) -> None:
    context = chromium.new_context(color_scheme=scheme)
    page, requests, faults = context.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto((site / "index.html").as_uri())
    assert page.evaluate("document.body.dataset.mdColorScheme") == ("slate" if scheme == "dark" else "default")
    page.keyboard.press("/")
    page.keyboard.type("aggregated posterior")
    results = page.locator(".md-search-result__item")
    results.first.wait_for(timeout=20_000)
    titles = [title.casefold() for title in results.locator("h1").all_inner_texts()]
    assert any("aggregated posterior" in title for title in titles[:3]), titles
    assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in requests) and not faults
    context.close()


@pytest.mark.parametrize("name", ["index", "results", "settings", "notebook", "tutorials/aggregated-posterior"])
def test_no_page_is_wider_than_a_phone(site: Path, chromium: Any, name: str) -> None:
    page = chromium.new_page(viewport={"width": 360, "height": 740})
    page.goto((site / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()
