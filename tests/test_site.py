"""The site: its navigation is the index of the pages, links survive the way into it, and faults in it are refused."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
DATA = [*ROOT.glob("benchmarks/results/*.toml")]
INDEX = (DOCS / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_index_has_every_page_once_in_one_of_four_groups() -> None:
    assert re.findall(r"^## (.+)$", INDEX, re.M) == ["Learn", "Do", "Look up", "Understand"]
    listed = re.findall(r"^\* \[.+?\]\(([^)#]+)\): \S", INDEX, re.M)
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*") if path.suffix in (".md", ".ipynb")]
    around = ["../README.md", "../benchmarks/RESULTS.md", "../CONTRIBUTING.md", "../CHANGELOG.md"]
    assert sorted(listed) == sorted([*around, *(page for page in pages if page != "README.md")])
    assert len(re.findall(r"^\* ", INDEX, re.M)) == len(listed), "a line of the index is one page"


def test_the_navigation_is_the_index(hooks: ModuleType) -> None:
    index = (
        "# Pages\n## Do\nFor tasks.\n* [Overview](../README.md): first\n* [`a` page](a.md): short\n### More\n"
        "* [Numbers](../benchmarks/RESULTS.md): b\n"
    )
    results = [
        "results/index.md",
        *(f"results/{name}.md" for name in sorted(path.stem for path in DATA) if name != "page"),
    ]
    assert hooks.navigation(index) == [
        {"Overview": "index.md"},
        {"All pages": "pages.md"},
        {"Do": [{"a page": "a.md"}, {"More": [{"Results": [*results]}]}]},
    ]


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("guidance.md", "../benchmarks/RESULTS.md#own-pictures", "results/index.md#own-pictures"),
        ("guidance.md", "flows.md", "flows.md"),
        ("results/index.md", "../docs/guidance.md#which-weight", "../guidance.md#which-weight"),
        ("results/index.md", "beside.py", "../files/benchmarks/beside.py.txt"),
        ("results/index.md", "results/page.toml", "../files/benchmarks/results/page.toml.txt"),
        ("results/index.md", "results/grids.toml", "grids.md"),
        ("results/index.md", "#own-pictures", "#own-pictures"),
        ("index.md", "docs/notebook.ipynb", "notebook.md"),
        ("index.md", "docs/README.md", "pages.md"),
        ("index.md", "LICENSE", "files/LICENSE.txt"),
        ("index.md", "https://example.org/docs/README.md", "https://example.org/docs/README.md"),
        ("index.md", "docs/no-such-page.md", "docs/no-such-page.md"),
        ("tutorials/one.md", "../../benchmarks/RESULTS.md", "../results/index.md"),
        ("tutorials/one.md", "../guidance.md", "../guidance.md"),
    ],
)
def test_links_lead_to_the_same_page_in_the_site(hooks: ModuleType, page: str, link: str, expected: str) -> None:
    text, needed = hooks.rewrite_links(f"See [this]({link}).", page)
    assert text == f"See [this]({expected})."
    assert all(path.is_file() for path in needed.values())
    code = f"`[this]({link})`\n```\n[this]({link})\n```\n"
    assert hooks.rewrite_links(code, page) == (code, {})


def test_links_work_on_a_forge() -> None:
    """They lead to files that are there without a built site."""
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), ROOT / "benchmarks" / "RESULTS.md"]
        for target in re.findall(
            r"\]\(([^)\s#]+)[^)\s]*\)",
            re.sub(r"^```.*?^```$|`[^`\n]+`", "", page.read_text("utf-8"), flags=re.S | re.M),
        )
        if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists()
    ]
    assert dead == []


def test_the_page_of_the_quickstart_stands_on_the_site_if_it_was_made(
    hooks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for made in (False, True):
        page = SimpleNamespace(meta={}, file=SimpleNamespace(src_uri="index.md"))
        monkeypatch.setattr(hooks, "FINISHED", tmp_path / "explore.html")
        (tmp_path / "explore.html").write_text("a page") if made else None
        text = hooks.on_page_markdown(readme, page, None, SimpleNamespace(get_file_from_path=lambda _: True))
        assert ("[a finished one](shapes.html)" in text) is made and "on the site a finished one" not in text


def test_a_notebook_becomes_a_page(hooks: ModuleType) -> None:
    page = hooks.notebook_page(json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8")))
    assert page.startswith("# ") and "```python\n" in page and "(data:image/png;base64," in page


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="#here">x</a><h1 id="here">', None),
        ('<a href="other.html#there">x</a><img src="data:image/png;base64,AA=="><a href="https://a.org">x</a>', None),
        ('<a href="#nowhere">x</a>', "index.html links to #nowhere, which is not there"),
        ('<a href="other.html#here">x</a>', "index.html links to other.html#here, which is not there"),
        ('<img src="gone.png">', "index.html links to gone.png, which is not there"),
        ('<script src="https://a.org/x.js"></script>', "index.html loads https://a.org/x.js"),
        ('<link href="//a.org/x.css">', "index.html loads //a.org/x.css"),
    ],
)
def test_a_site_with_faults_is_refused(hooks: ModuleType, body: str, fault: str | None, tmp_path: Path) -> None:
    from mkdocs.exceptions import PluginError

    (tmp_path / "index.html").write_text(body)
    (tmp_path / "other.html").write_text('<h1 id="there">')
    if fault is None:
        assert hooks.on_post_build(SimpleNamespace(site_dir=str(tmp_path))) is None
    else:
        with pytest.raises(PluginError, match=re.escape(fault)):
            hooks.on_post_build(SimpleNamespace(site_dir=str(tmp_path)))
