"""Pages to explore: they hold what sample draws, need nothing else, and whatever stands in files stays text."""

import base64
import hashlib
import html
import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen.artifacts import Dataset, read_header
from mmgen.artifacts.pages import find_page_link
from mmgen.artifacts.samples import read_samples
from mmgen.contrib.explore.density import DRAWS
from mmgen.contrib.explore.make import Limits, make_explorer
from mmgen.contrib.explore.sprites import STEP, picture_bytes
from mmgen.core.errors import UsageError
from mmgen.figures.report.make import make_report
from mmgen.generation import load
from mmgen.generation.descriptions import parse_descriptions
from mmgen.generation.encodings import encode_split, principal_plane
from mmgen.generation.latents import draw_latents
from tests.contrib.explore._pages_to_explore import HOSTILE, SMALL, as_on_the_page, lively, page_of, picture

__all__ = ["lively"]  # fixtures


@pytest.fixture(scope="module")
def flat(lively: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A page about two fits, each guided as well, and their model."""
    out = tmp_path_factory.mktemp("explore") / "explore.html"
    files = [lively / f"flat-{name}.safetensors" for name in ("true", "aggregate", "aggregate-nothing")]
    return page_of(files, out, limits=SMALL, guidance=3.0, seed=5, command=f"mmgen explore {HOSTILE}")


def test_all_descriptions_are_there_and_every_posterior_answers(flat: tuple[str, dict[str, Any]]) -> None:
    _, data = flat
    (part,) = data["parts"]
    assert sorted(map(tuple, _rows(part))) == sorted(itertools.product((0, 1), repeat=2))
    assert part["selection"] == "" and part["held"] == 4 and sum(part["counts"]) == 100, "of the training part"
    assert [value >= 0 for value in part["opening"]] == [True, False]
    names = [source["name"] for source in part["sources"]]
    assert names[0] == "q_agg guided (w = 3)" and names[-2:] == ["q_agg", "q_true(w = 1), exact"], "the best first"
    assert [source["plain"] for source in part["sources"] if source["name"] in names[-2:]] == [
        "where real pictures lie",
        "what the model believes",
    ]
    for source in part["sources"]:
        assert len(base64.b64decode(source["judged"])) == 4 * 2 * 2
        assert source["clouds"] is None
    assert data["map"] is data["traversals"] is None, "it decodes nothing itself"
    assert [one["name"] for one in data["references"]] == ["p(z)", "q(z)"]
    distinct = {picture(part["sources"][-2]["pictures"], number).tobytes() for number in range(8)}
    assert len(distinct) > 4  # so that showing one for another would be seen


def test_pictures_are_those_that_sample_draws(
    lively: Path, flat: tuple[str, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same description, seed and posterior from the command line, one description at a time, and its judge."""
    from mmgen.cli._main import main

    _, data = flat
    (part,) = data["parts"]
    path = lively / "flat-aggregate.safetensors"
    assert data["remark"] == ""
    for source in part["sources"][1:4]:
        for row in ([1, 0], [0, 1]):
            number = place = _rows(part).index(row)
            out = tmp_path / f"{source['name']}-{number}.h5"
            given = ["--given", _typed(data, row), "--posterior", source["posterior"], "-n", "2", "--seed", "5"]
            file = [] if source["file"] != path.name else [str(path)]
            if not file:
                continue
            with pytest.raises(SystemExit) as left:
                main(
                    ["sample", *file, *given, "--guidance", str(source["guidance"]), "-o", str(out), "--device", "cpu"]
                )
            assert left.value.code == 0
            samples = read_samples(out)
            for n, image in enumerate(as_on_the_page(samples.images)):
                shown = picture(source["pictures"], place * 2 + n)
                # At most a grey apart, where arithmetic of several pictures together rounds otherwise.
                assert (np.abs(shown[..., 0].astype(int) - image) <= STEP).all()
                assert (shown[..., 0] == image).mean() > 0.99
            judged = np.frombuffer(base64.b64decode(source["judged"]), np.uint8).reshape(-1, 2, 2)[place]
            assert samples.attributes_judged is not None
            assert (judged == samples.attributes_judged).all()
    capsys.readouterr()


def test_the_page_needs_nothing_else_and_runs_only_its_own_script(flat: tuple[str, dict[str, Any]]) -> None:
    source, _ = flat
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html.unescape(source))
    assert policy is not None and policy[1].startswith("default-src 'none'; img-src data:; ")
    (script,), (style,) = (
        re.findall(r"<script>(.*?)</script>", source, re.S),
        re.findall(r"<style>(.*?)</style>", source, re.S),
    )
    for text, kind in ((script, "script-src"), (style, "style-src")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy[1]
    assert "unsafe" not in policy[1]
    bare = re.sub(r"data:image/(png|webp);base64,[A-Za-z0-9+/=]+", "", source)
    assert not re.search(r"(?i)https?:|url\(|@import|<link|<iframe|\sstyle=|\son[a-z]+=\"", bare)
    assert "innerHTML" not in script and "eval" not in script


def test_hostile_text_stays_text(flat: tuple[str, dict[str, Any]]) -> None:
    source, data = flat
    assert source.count("<script") == 2 and source.count("</script>") == 2 and "<img" not in source
    assert data["attributes"]["values"][1][0] == '<script>alert("x")</script>'


def test_a_map_of_two_dimensions_shows_z_itself(world: Path, lively: Path, tmp_path: Path) -> None:
    """Of a page that decodes pictures itself, whose posteriors have stored z."""
    files = [lively / "flat-true.safetensors", lively / "flat-aggregate.safetensors"]
    _, data = page_of(files, tmp_path / "e.html", limits=Limits(2), seed=5)
    found, loaded = data["map"], load(lively / "flat.safetensors")
    assert found["exact"] and found["axes"] == ["z1", "z2"]
    encodings = encode_split(loaded, world / "data.h5", "test", 1500, 5)
    assert np.allclose(np.array(found["points"]) / 500 - 1, encodings.mean.numpy() / found["reach"], atol=2e-3)
    with Dataset.open(world / "data.h5") as stored:
        codes = stored.read_attributes("attributes", encodings.rows)
    assert base64.b64decode(found["codes"]) == codes.tobytes()
    beside = found["neighbours"]
    levels = np.frombuffer(base64.b64decode(beside["pictures"]["z"]), "<i2").reshape(-1, 2)
    assert np.allclose(levels * beside["pictures"]["scale"], encodings.mean[beside["points"]], atol=1e-3)
    # The clouds are draws of z, which lie about the mean of the fitted Gaussian.
    (part,) = data["parts"]
    source = next(one for one in part["sources"] if one["name"] == "q_agg")
    clouds = np.frombuffer(base64.b64decode(source["clouds"]), np.uint8).reshape(4, -1, 2)
    assert clouds.shape[1] == DRAWS
    fitted = load(lively / "flat-aggregate.safetensors")
    for row, cloud in zip(_rows(part), clouds, strict=True):
        z = draw_latents(fitted, "aggregate", parse_descriptions(fitted, [_typed(data, row)]), DRAWS, 5)[0].numpy()
        assert np.allclose((cloud / 127.5 - 1) * 3 * found["reach"], z, atol=0.013 * found["reach"])


def _rows(part: dict[str, Any]) -> list[list[int]]:
    """The whole descriptions of a part."""
    levels = np.frombuffer(base64.b64decode(part["rows"]), "<i2").reshape(-1, len(part["menus"]))
    return [[int(value) for value in row] for row in levels]


def _typed(data: dict[str, Any], row: list[int]) -> str:
    """A whole description as a person types it."""
    names, values = data["attributes"]["names"], data["attributes"]["values"]
    return " ".join(f"{name}='{words[code]}'" for name, words, code in zip(names, values, row, strict=True))


def test_sliders_are_in_the_order_of_the_ranking(world: Path, tmp_path: Path) -> None:
    _, data = page_of([world / "telbo.safetensors"], tmp_path / "e.html", limits=Limits(dimensions=2))
    found, loaded = data["traversals"], load(world / "telbo.safetensors")
    values = [one["value"] for one in found["dimensions"]]
    assert len(values) == 2 and found["of"] == 3 and values == sorted(values, reverse=True)
    encodings = encode_split(loaded, world / "data.h5", "test", 1500, 0)
    example, place = 1, 1
    z = encodings.mean[np.flatnonzero(encodings.rows == found["rows"][example])]
    assert np.allclose(found["means"][example][place], z[0, found["dimensions"][place]["number"] - 1], atol=1e-3)
    levels = np.frombuffer(base64.b64decode(found["z"]["z"]), "<i2").reshape(-1, 3)
    assert np.allclose(levels[example] * found["z"]["scale"], z[0], atol=1e-3)
    plane = principal_plane(encodings.mean)
    assert data["map"]["shares"] == [round(100 * share) for share in plane.shares]
    assert "projected on the plane" in data["map"]["density"] and not data["map"]["exact"]


@pytest.mark.slow
def test_parts_that_make_no_sense_are_left_out(world: Path, tmp_path: Path) -> None:
    _, data = page_of([world / "blind.safetensors"], tmp_path / "e.html", limits=SMALL)
    assert data["parts"] == [] and [one["name"] for one in data["references"]] == ["p(z)"]
    _, data = page_of([world / "cvae.safetensors"], tmp_path / "e.html", limits=SMALL)
    assert data["references"] == []
    assert [source["name"] for source in data["parts"][0]["sources"]] == ["plain conditional VAE"]
    shutil.copy(world / "flat.safetensors", tmp_path)
    shutil.copy(world / "flat-true.safetensors", tmp_path)
    source, data = page_of([tmp_path / "flat-true.safetensors"], tmp_path / "e.html", limits=Limits(2))
    assert data["live"] and data["map"] is None and data["traversals"] is None and len(data["parts"][0]["counts"]) == 4
    assert "Without its data there are no encodings" in source and "No judge looked at these images. Make one" in source


def test_a_page_says_why_it_does_not_decode_pictures_itself(world: Path, tmp_path: Path) -> None:
    source, data = page_of([world / "cvae.safetensors"], tmp_path / "e.html", limits=Limits(2))
    assert data["live"] is data["map"] is data["traversals"] is None and data["parts"][0]["sources"][0]["pictures"]
    said = "drawn beforehand, so that it has neither sliders nor a map: the decoder reads words besides z."
    assert said in source and 'href="#map"' not in source
    with pytest.raises(
        UsageError, match=r"--dimensions got 2, but the page has no sliders; leave it out\. .* reads words"
    ):
        page_of([world / "cvae.safetensors"], tmp_path / "f.html", limits=Limits(2, dimensions=2))
    assert not (tmp_path / "f.html").exists()
    source, data = page_of([world / "blind.safetensors"], tmp_path / "e.html", limits=Limits(2, weights=100))
    assert data["live"] is data["map"] is None and data["references"][0]["pictures"] and "weights would take" in source


@pytest.mark.slow
def test_what_cannot_be_shown_is_refused_in_a_sentence(world: Path, tmp_path: Path) -> None:
    out = tmp_path / "e.html"
    with pytest.raises(UsageError, match=r"needs one model and its fitted posteriors, got flat\.safetensors, telbo"):
        make_explorer([world / "flat.safetensors", world / "telbo.safetensors"], out)
    with pytest.raises(UsageError, match="got none; give the files of one model"):
        make_explorer([world / "scores.jsonl"], out)
    with pytest.raises(UsageError, match=r"--dimensions got 3, but z of .* has 2"):
        make_explorer([world / "flat.safetensors"], out, limits=Limits(dimensions=3))
    with pytest.raises(UsageError, match=r"--max-size got 0.03 MB, but the page takes at least .* MB"):
        make_explorer([world / "flat-true.safetensors"], out, limits=Limits(size=30_000)).run()
    assert not out.exists()


@pytest.mark.slow
def test_fewer_descriptions_where_there_would_be_too_many(world: Path, tmp_path: Path) -> None:
    files = [world / "flat-true.safetensors"]
    whole = len(make_explorer(files, tmp_path / "e.html", limits=Limits(100, weights=0)).run().read_bytes())
    small, data = page_of(files, tmp_path / "e.html", limits=Limits(100, size=whole - 4_000, weights=0))
    (part,) = data["parts"]
    assert len(small.encode()) <= whole - 4_000 and 0 < part["held"] < 4 == len(part["counts"])
    assert part["selection"].startswith(f"This page holds pictures of {part['held']} of 4 whole descriptions")
    assert len(base64.b64decode(part["sources"][0]["judged"])) == part["held"] * 100 * 2


def test_the_same_files_and_seed_give_the_same_page(world: Path, tmp_path: Path) -> None:
    pages = [page_of([world / "flat-true.safetensors"], tmp_path / "e.html", limits=SMALL)[0] for _ in range(2)]
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_report_and_page_link_to_each_other_whichever_is_made_first(world: Path, tmp_path: Path) -> None:
    """Beside each other they are found; what is named need not be there yet; pages of other models are passed over."""
    model, page, report = world / "blind.safetensors", tmp_path / "explore.html", tmp_path / "report.html"
    known = read_header(model).content_id
    assert find_page_link(report, "explore", [known]) == "", "there is none"
    assert '<a href="explore.html">Explore</a>' in make_report([model], report, explore=page).run().read_text()
    source, _ = page_of([model], page, limits=SMALL)
    assert '<a href="report.html">Report</a>' in source
    assert find_page_link(report, "explore", ["another", known]) == "explore.html", "as of a report that is made now"
    for kind in ("report", "explore"):
        assert (
            find_page_link(tmp_path / "x.html", kind, ["another"])
            == ""
            == find_page_link(world / "x.html", kind, ["another"])
        )
        assert (
            find_page_link(tmp_path / "sub" / "x.html", kind, [], tmp_path / "later & more.html")
            == "../later%20%26%20more.html"
        )
        assert find_page_link(tmp_path / "x.html", kind, [], tmp_path / f"{kind}.html") == f"{kind}.html"


@pytest.mark.parametrize("kind", ["report", "explore"])
@pytest.mark.parametrize("named", ["thesis.html", "x.html", "data.h5", "folder.html", "page", "javascript:alert(1)"])
def test_a_link_is_to_a_page_of_the_other_kind(kind: Any, named: str, tmp_path: Path) -> None:
    (tmp_path / "thesis.html").write_text("<h1>mine</h1>")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UsageError, match=f"^--{kind} got .*{re.escape(named)}"):
        find_page_link(tmp_path / "x.html", kind, [], tmp_path / named)


def test_colours_are_kept_within_the_losses_of_their_format(views: Path, tmp_path: Path) -> None:
    _, data = page_of([views / "one.safetensors"], tmp_path / "e.html", limits=SMALL)
    source, loaded = data["parts"][0]["sources"][0], load(views / "one.safetensors")
    assert source["pictures"]["images"][0].startswith("data:image/webp;base64,")
    row = _rows(data["parts"][0]).index([1, 0])
    drawn = picture_bytes(loaded.sample("Large=yes Red=no", 2, posterior="own", seed=0).cpu().numpy())
    shown = picture(source["pictures"], 2 * row).astype(int)
    assert data["remark"] == "" and np.abs(shown - drawn[0]).mean() < 6
