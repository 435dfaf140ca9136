"""The report: one page, nothing outside it, whatever stands in the files shown as text, every section there."""

import base64
import io
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mmgen.artifacts.contents import describe_file
from mmgen.artifacts.lineage import format_lineage, outline_lineage, read_lineage
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.figures.report import make
from mmgen.figures.report.make import make_report
from mmgen.figures.report.show import draw_contact_sheet
from mmgen.figures.session import gather_files

SECTIONS = ["pictures", "findings", "scores", "samples", "abstraction", "latents", "curves", "judge", "lineage"]
SECTIONS += ["settings"]


class Page(HTMLParser):
    """What a browser would see: tags, addresses, text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.sections: list[str] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        assert not any(name.startswith("on") for name in values)
        if tag == "section":
            self.sections.append(values["id"] or "")

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


@pytest.fixture(scope="module")
def source(world: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page about everything in the world."""
    out = tmp_path_factory.mktemp("report") / "report.html"
    names = ["flat-true", "flat-aggregate", "flat-aggregate-nothing", "telbo", "cvae"]
    files = [world / f"{name}.safetensors" for name in names] + [world / "scores.jsonl"]
    work = make_report(files, out, seed=3, command='mmgen report "<script>"')
    reports = [progress.done for progress in work]
    assert reports == list(range(1, len(work) + 1))
    assert work.result == out
    return out.read_text(encoding="utf-8")


def test_every_section_is_there_and_has_its_pictures(source: str) -> None:
    page = Page(source)
    assert page.sections == SECTIONS
    for title in (
        "The same words, drawn from each posterior",
        "Many descriptions, one image each",
        "q(z): learned prior",
        "Abstraction hierarchy",
        "Latent map: parity and magnitude",
        "Posteriors of descriptions in the latent plane",
        "Model, objective telbo",
        "Settings in which the models differ",
        "aggregate of the posteriors of",
    ):
        assert title in page.text or title in source, title


@pytest.mark.slow
def test_a_plain_conditional_vae_stands_left_of_the_one_other_model(world: Path, tmp_path: Path) -> None:
    """Under its own name, and without sections of its own; among several models it is one as any other."""
    files = [world / f"{name}.safetensors" for name in ("flat-aggregate", "cvae")]
    text = make_report(files, tmp_path / "r.html").run().read_text(encoding="utf-8")
    table = text[text.index('id="pictures"') :]
    assert table.index("A plain conditional VAE") < table.index("Where real pictures lie")
    assert "<title>Report on data" in text and "Model, objective cvae" in text
    alone = make_report(files[1:], tmp_path / "s.html").run().read_text(encoding="utf-8")
    assert "A plain conditional VAE" in alone and "<title>Report on data" in alone


def test_the_page_needs_nothing_else(source: str) -> None:
    page = Page(source)
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in page.addresses)
    assert not {"script", "link", "iframe", "object", "embed", "form", "base"} & set(page.tags)
    without_images = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", source)
    assert not re.search(r"(?i)https?:|url\(|@import|//[a-z]", without_images)
    assert "default-src 'none'" in source


def test_hostile_text_stays_text(source: str) -> None:
    assert "<script>" not in source
    assert '<script>alert("x")</script>' in Page(source).text


def test_pictures_are_pictures(source: str) -> None:
    addresses = re.findall(r'src="data:image/png;base64,([^"]+)"', source)
    assert len(addresses) > 15
    for address in addresses:
        Image.open(io.BytesIO(base64.b64decode(address))).verify()


def test_findings_and_scores_stand_beside_the_papers(source: str) -> None:
    text = " ".join(Page(source).text.split())
    found = Page(source[source.index('id="findings"') : source.index('id="scores"')]).text
    assert (
        "flat draws best from where real pictures lie (q_agg). 91.0 ± 0.5 % of the 2 given attributes are right" in text
    )
    assert "What the model believes q_true" in " ".join(found.split())
    assert "82.03 ± 1.37" not in text, "VE's pictures are others"
    # What is drawn from the prior is the model's, although an aggregate's file was asked.
    assert "p(z): prior flat 30.0 ± 0.5" in text


@pytest.mark.parametrize("name", ["blind", pytest.param("flat-true", marks=pytest.mark.slow)])
def test_the_same_files_and_seed_give_the_same_page(world: Path, tmp_path: Path, name: str) -> None:
    pages = [make_report([world / f"{name}.safetensors"], tmp_path / f"{i}.html").run().read_text() for i in range(2)]
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_a_report_takes_what_there_is(world: Path, tmp_path: Path) -> None:
    """Without dataset and judge: concepts come from the vocabulary, and the page says what is missing."""
    for name in ("flat.safetensors", "flat-true.safetensors"):
        shutil.copy(world / name, tmp_path)
    page = Page(make_report([tmp_path / "flat-true.safetensors"], tmp_path / "r.html").run().read_text())
    assert "cannot find the dataset" in page.text and "mmgen make-data" in page.text
    assert "No judge was found" in page.text
    assert page.sections == SECTIONS


def test_an_aggregate_without_its_model_is_left_out_with_a_word(world: Path, tmp_path: Path) -> None:
    shutil.copy(world / "flat-true.safetensors", tmp_path)
    page = Page(make_report([tmp_path / "flat-true.safetensors"], tmp_path / "r.html").run().read_text())
    assert "its model is missing; make it again with: mmgen train data.h5" in page.text


def test_scores_and_logs_alone_make_a_page(world: Path, tmp_path: Path) -> None:
    files = [world / "scores.jsonl", world / "flat.log.jsonl"]
    page = Page(make_report(files, tmp_path / "r.html", title="Only numbers").run().read_text())
    assert "Only numbers" in page.text and "91.0 ± 0.5" in page.text and "Log alone" in page.text


@pytest.mark.slow
def test_a_model_of_images_alone_is_mapped_by_its_nearest_images(world: Path, tmp_path: Path) -> None:
    """VE Fig. 7a: without p(y|z), a point has the colour of the training image that maps closest to it."""
    text = Page(make_report([world / "blind.safetensors"], tmp_path / "r.html").run().read_text()).text
    assert "Latent map: parity and magnitude" in text
    assert "coloured by the nearest of 100 training images" in text


def test_what_a_report_cannot_show_is_named(world: Path, tmp_path: Path) -> None:
    stranger = tmp_path / "notes.txt"
    stranger.write_text("hello")
    with pytest.raises(ArtifactError, match="neither HDF5 nor safetensors"):
        gather_files([stranger])
    broken = tmp_path / "scores.jsonl"
    broken.write_text('{"metric": "correctness"}\n')
    with pytest.raises(ArtifactError, match="line 1 is no score"):
        gather_files([broken])
    with pytest.raises(UsageError, match="got no files, expected a checkpoint"):
        gather_files([])
    with pytest.raises(ArtifactError, match="is no folder"):
        make_report([world / "scores.jsonl"], tmp_path / "nowhere" / "r.html").run()


def test_lineage_is_a_tree_with_missing_parents_marked(world: Path, tmp_path: Path) -> None:
    lines = format_lineage(read_lineage(world / "flat-aggregate.safetensors"))
    assert "flat-aggregate.safetensors" in lines[0] and "verified" in lines[0]
    assert any("└─ " in line and "data.h5" in line for line in lines)
    assert sum("data.h5" in line and "as above" not in line for line in lines) == 1
    shutil.copy(world / "flat.safetensors", tmp_path)
    lonely = format_lineage(read_lineage(tmp_path / "flat.safetensors"))
    assert "MISSING, make it again with: mmgen make-data" in lonely[1]
    roots = [read_lineage(world / f"{name}.safetensors") for name in ("flat", "flat-true")]
    assert outline_lineage(roots)[0][0] == 0
    assert outline_lineage(roots)[0][1].path.name == "flat-true.safetensors"  # flat is listed below it


def test_describe_says_what_is_inside(world: Path) -> None:
    data = describe_file(world / "data.h5")
    assert data["contents"]["examples"] == 160
    assert data["contents"]["splits"]["iid"] == {"train": 100, "val": 20, "test": 40}
    fitted = describe_file(world / "flat-true.safetensors")
    assert [parent["role"] for parent in fitted["parents"]] == ["model", "latents", "dataset"]
    assert fitted["contents"]["tensors"] > 0 and fitted["settings"]["aggregate"]["target"]["name"] == "true"
    assert describe_file(world / "flat-latents.h5")["contents"]["mean"] == [120, 2]  # train and val


@pytest.mark.parametrize("name", ["data.h5", "judge.safetensors"])
def test_contact_sheets(world: Path, name: str) -> None:
    sheet = draw_contact_sheet(world / name, count=4)
    assert len(sheet.boxes) == 4
    assert np.asarray(sheet.image).std() > 0


def test_no_contact_sheet_of_what_has_no_images(world: Path) -> None:
    with pytest.raises(UsageError, match="is of kind latents, which holds no images"):
        draw_contact_sheet(world / "flat-latents.h5")
    with pytest.raises(UsageError, match=r"holds no images, .* draw some with mmgen sample"):
        draw_contact_sheet(world / "flat.safetensors")


def test_a_stage_that_the_template_forgets_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any work; "map" is no name in it, although "maps" is."""
    monkeypatch.setitem(make._STAGES, "map", lambda session: [])
    with pytest.raises(RuntimeError, match="does not show the stage 'map'; add a section"):
        make_report([tmp_path / "none.safetensors"], tmp_path / "report.html")
