"""The site in a real Chromium, opened as files: search answers, nothing asks another host, no page is too wide."""

import os
import re
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


SELL = "questions.html#may-i-sell-share-or-publish-what-i-draw-licence-license-copyright-commercial-use"
VISITORS = "questions.html#how-do-i-share-my-model-or-put-it-on-a-web-site-so-that-visitors-draw-in-their-browser"
WORDS = (
    "multimodal-vaes.html#words-of-papers-conditional-and-unconditional-coherence-cross-modal-generation-"
    "modality-specific-latents-jsd-mmjsd"
)
ASKED = {
    "my pictures are all the same": "questions.html#my-pictures-are-all-the-same-look-alike-vary-too-little",
    "blurry pictures": "questions.html#my-pictures-are-blurred-blurry-not-sharp",
    "two things at once": "questions.html#my-pictures-show-two-things-at-once",
    "how do I use my GPU": "questions.html#do-i-need-a-gpu-how-do-i-use-my-gpu",
    "slurm": "gpus.html#slurm",
    "out of memory": "questions.html#out-of-memory",
    "bigger pictures": "questions.html#can-i-have-bigger-pictures-of-higher-resolution",
    "how many pictures do I need": "questions.html#how-many-pictures-do-i-need",
    "how long does it take": "questions.html#how-long-does-it-take",
    "continue training": "questions.html#how-do-i-continue-an-interrupted-stopped-training-or-start-anew",
    "how to cite": "questions.html#how-do-i-cite-mmgen-or-mention-it-in-a-paper",
    "licence of what I drew": SELL,
    "may I sell pictures": SELL,
    "no GPU": "questions.html#do-i-need-a-gpu-how-do-i-use-my-gpu",
    "visitors draw in browser": VISITORS,
    "docker": "questions.html#does-it-run-in-docker",
    "windows": "questions.html#does-it-run-on-windows-or-a-mac",
    "install without make": "questions.html#how-do-i-install-it-without-make",
    "serve over http": "questions.html#how-do-i-serve-it-over-http-as-an-api",
    "few labels": "questions.html#i-have-few-labels",
    "free text": "questions.html#can-i-type-a-whole-sentence-free-text-as-a-prompt",
    "which model should I take": "questions.html#which-model-should-i-take",
    "JSD": WORDS,
    "mmJSD": WORDS,
    "conditional coherence": WORDS,
    "unconditional coherence": WORDS,
    "cross-modal generation": WORDS,
    "modality-specific": WORDS,
    "lookup": WORDS,
    "retrieval": "measures.html#retrieval-a-rival",
    "where are my files": "questions.html#where-are-the-files-and-what-made-them",
}


def test_questions_in_a_users_words_lead_to_their_answers(site: Path, chromium: Any) -> None:
    page = chromium.new_page()
    page.goto((site / "index.html").as_uri())
    links, missed = page.locator(".md-search-result__link"), []
    for question, answer in ASKED.items():
        page.keyboard.press("/")
        page.locator("input.md-search__input").fill("")
        page.keyboard.type(question)
        links.first.wait_for(state="attached", timeout=20_000)
        page.wait_for_timeout(1000)  # until the results are those of this question
        found = [Path(re.sub(r"[?][^#]*", "", links.nth(number).get_attribute("href"))).name for number in range(2)]
        missed += [] if answer in found else [(question, found)]
        page.keyboard.press("Escape")
    page.close()
    assert len(missed) <= 2, missed


@pytest.mark.parametrize("name", ["index", "results/index", "settings", "notebook", "tutorials/aggregated-posterior"])
def test_no_page_is_wider_than_a_phone(site: Path, chromium: Any, name: str) -> None:
    page = chromium.new_page(viewport={"width": 360, "height": 740})
    page.goto((site / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()


def test_what_screen_readers_and_keyboards_meet(site: Path, chromium: Any) -> None:
    """Without axe: no heading of a table is empty, buttons to copy are no landmarks, wide tables take the focus."""
    page = chromium.new_page(viewport={"width": 390, "height": 800})
    page.goto((site / "multimodal-vaes.html").as_uri())
    page.wait_for_selector(".md-code__nav", state="attached")
    page.wait_for_timeout(300)
    assert page.evaluate("[...document.querySelectorAll('th')].every((each) => each.textContent)")
    assert page.evaluate("[...document.querySelectorAll('.md-code__nav')].every((each) => each.role === 'none')")
    wide = (
        "[...document.querySelectorAll('.md-typeset__scrollwrap')].filter((one) => one.scrollWidth > one.clientWidth)"
    )
    assert page.evaluate(f"{wide}.length > 0 && {wide}.every((one) => one.tabIndex === 0)")
    page.close()


@pytest.mark.skipif("AXE" not in os.environ, reason="$AXE names axe.min.js of axe-core")
@pytest.mark.parametrize("width", [390, 1366])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "name", ["index", "own-data", "measures", "multimodal-vaes", "onnx", "questions", "results/index"]
)
def test_pages_are_readable_for_everyone(site: Path, chromium: Any, scheme: str, name: str, width: int) -> None:
    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    page = context.new_page()
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_timeout(500)  # colours fade in
    page.evaluate(Path(os.environ["AXE"]).read_text("utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    assert not [each["id"] for each in found]
    context.close()


def test_the_site_is_small_and_a_finished_page_is_two_clicks_away(site: Path, chromium: Any) -> None:
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 10_000_000
    page = chromium.new_page()
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name="a finished one").click()
    assert page.get_by_role("heading", name="Pictures for words").is_visible()
