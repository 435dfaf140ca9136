"""Turns the pages of the repository into a site; ``mkdocs.yml`` names it.

``docs/README.md`` is the navigation: a heading a group, a line a page. Pages outside ``docs``, the notebook and the
data of results become pages of the site, links between all of them keep working on a forge, and other files that pages
link to come along.
"""

import json
import os
import posixpath
import re
import runpy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "benchmarks/RESULTS.md": "results/index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "docs/notebook.ipynb": "notebook.md",
}
# Rank in the search; of other pages 1.
BOOST = {
    "questions.md": 4.0,
    "multimodal-vaes.md": 2.0,
    "glossary.md": 2.0,
    "results/index.md": 0.3,
    "changelog.md": 0.3,
}
RESULTS = runpy.run_path(str(ROOT / "benchmarks" / "results.py"))
OUTSIDE |= {f"benchmarks/results/{name}.toml": f"results/{name}.md" for name in RESULTS["names"]()}
FINISHED = ROOT / "quickstart" / "explore.html"
"""The page to play with that ``make quickstart`` made, if it did; README speaks of it."""
ORIGIN = {page: path for path, page in OUTSIDE.items()}


def to_page(path: str) -> str:
    """Return where the site has a file of the repository."""
    return OUTSIDE.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path}.txt")


def navigation(index: str) -> list[dict[str, Any]]:
    """Read groups and pages from an index: ``## Group``, ``### Group within``, ``* [Title](page): what it is``."""
    groups: list[dict[str, Any]] = [{"Overview": "index.md"}, {"All pages": "pages.md"}]
    for line in index.splitlines():
        if heading := re.fullmatch(r"(##+) (.+)", line):
            pages: list[dict[str, Any]] = []
            (groups if heading[1] == "##" else next(iter(groups[-1].values()))).append({heading[2]: pages})
        elif entry := re.match(r"\* \[(.+?)\]\(([^)#]+)\)", line):
            page = to_page(posixpath.normpath(f"docs/{entry[2]}"))
            pages += [{entry[1].replace("`", ""): page}] if page != "index.md" else []
            if page == "results/index.md":
                pages[-1] = {"Results": [page, *(f"results/{name}.md" for name in RESULTS["names"]())]}
    return groups


def notebook_page(notebook: dict[str, Any]) -> str:
    """Write the cells of a notebook and what they show as Markdown."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in data:
                parts.append(f"![What the cell shows](data:image/png;base64,{data['image/png'].strip()})")
            else:
                parts.append(data.get("text/html") or f"```text\n{''.join(data['text/plain'])}\n```")
    return "\n\n".join(parts) + "\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the navigation from the index."""
    config.nav = navigation((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside ``docs``, the notebook, and the pages that follow from the code."""
    for path, page in OUTSIDE.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        text = notebook_page(json.loads(text)) if path.endswith(".ipynb") else text
        text = RESULTS["tables"](Path(path).stem) if path.endswith(".toml") else text
        files.append(File.generated(config, page, content=text))
    files.remove(files.get_file_from_path("README.md"))  # which would be the first page
    if FINISHED.is_file():
        files.append(File.generated(config, "shapes.html", abs_src_path=str(FINISHED)))
    for page, make in runpy.run_path(str(ROOT / "docs" / "generate.py"))["PAGES"].items():
        files.remove(files.get_file_from_path(page))  # what a forge shows in its place
        files.append(File.generated(config, page, content=make()))
    return files


def rewrite_links(markdown: str, page: str) -> tuple[str, dict[str, Path]]:
    """Turn links of a page between files of the repository into links of the site, and return what they lead to."""
    folder, needed = posixpath.dirname(ORIGIN.get(page, f"docs/{page}")), {}

    def link(match: re.Match[str]) -> str:
        target, hash_, anchor = match[1].partition("#")
        path = posixpath.normpath(posixpath.join(folder, target))
        if not target or urlsplit(target).scheme or not (ROOT / path).is_file():
            return match[0]
        there = to_page(path)
        needed[there] = ROOT / path
        return f"]({posixpath.relpath(there, posixpath.dirname(page) or '.')}{hash_}{anchor})"

    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", markdown, flags=re.S | re.M)  # code stays as it is
    text = "".join(part if n % 2 else re.sub(r"\]\(([^)\s]+)\)", link, part) for n, part in enumerate(parts))
    return text, needed


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page, take in other files that they lead to, and rank the page in the search."""
    name = page.file.src_uri
    markdown = markdown.replace(
        " (on the site a finished one)", " ([a finished one](shapes.html))" if FINISHED.is_file() else ""
    )
    page.meta["search"] = {"boost": BOOST.get(name, 1.0)}
    if ORIGIN.get(name, "").endswith(".toml"):
        page.meta["search"] = {"exclude": True}  # lunr finds words that are nowhere among very many numbers, and fails
    text, needed = rewrite_links(markdown, page.file.src_uri)
    for there, path in needed.items():
        if files.get_file_from_path(there) is None:
            files.append(File.generated(config, there, abs_src_path=str(path)))
    return text


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Drop the backslashes of bars in code within tables, as forges do; a heading without words becomes a cell."""
    html = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", html)
    return re.sub(r"<td.*?</td>", lambda cell: cell[0].replace(r"\|", "|"), html, flags=re.S)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the dialog of the search, which the theme leaves without a name."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


class Links(HTMLParser):
    """Collect what a page of the site links to, what it loads, and the names in it that links may end with."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.names: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep names and addresses of one tag."""
        found = dict(attrs)
        self.names |= {found.get("id") or "", found.get("name") or ""}
        for address in filter(None, (found.get("href"), found.get("src"))):
            (self.links if tag == "a" else self.loaded).append(address)


@event_priority(-200)  # after the search of the plugin offline is written
def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site with a link that leads nowhere, or with a page that loads something from another host."""
    site = Path(config.site_dir)
    # The search reads search_index.js, in English.
    for needless in (*site.rglob("*.map"), *site.glob("search/*.json"), *site.glob("assets/javascripts/lunr/**/*.js")):
        needless.unlink()
    pages = {page: Links(page) for page in sorted(site.rglob("*.html")) if page.name != "404.html"}
    faults = []
    for page, found in pages.items():
        for address in [*found.links, *found.loaded]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in found.loaded and parts.scheme != "data":
                    faults.append(f"{page.relative_to(site)} loads {address}")
                continue
            there = Path(os.path.normpath(page.parent / unquote(parts.path))) if parts.path else page
            there = there / "index.html" if there.is_dir() else there
            if not there.is_file() or (there in pages and unquote(parts.fragment) not in pages[there].names):
                faults.append(f"{page.relative_to(site)} links to {address}, which is not there")
    if faults:
        raise PluginError("\n".join(faults))
