"""Pages to explore: they hold what sample draws, need nothing else, and whatever stands in files stays text."""

import base64
import hashlib
import html
import io
import itertools
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import gaussian_kde

from mmgen.artifacts import Dataset, DatasetWriter
from mmgen.artifacts.samples import read_samples
from mmgen.errors import UsageError
from mmgen.figures.explore.asked import frequent, near
from mmgen.figures.explore.density import CELLS, Chart, apart, densities, inside, smoothed
from mmgen.figures.explore.make import Limits, make_explorer
from mmgen.figures.explore.sprites import STEP, pack, tiles
from mmgen.figures.plots._material import gather
from mmgen.figures.report.make import _explored, make_report
from mmgen.generation.decode import means
from mmgen.generation.descriptions import parse
from mmgen.generation.encodings import encoded_part, principal_plane
from mmgen.loading import load
from mmgen.modalities.attributes import AttributesDescription

HOSTILE = "</script><img src=x onerror=alert(1)>"
SMALL = Limits(number=2)


def page_of(paths: list[Path], out: Path, **options: Any) -> tuple[str, dict[str, Any]]:
    """The page's source, and the data in it."""
    source = make_explorer(paths, out, **options).run().read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', source, re.S)
    return source, json.loads(data)


def picture(sheets: dict[str, Any], number: int) -> np.ndarray:
    """One picture of a page, uint8 [H, W, 3], as the page's script finds it."""
    width, height = sheets["size"]
    encoded = sheets["images"][number // sheets["each"]].partition(",")[2]
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGB"))
    place = number % sheets["each"]
    left, top = place % sheets["columns"] * width, place // sheets["columns"] * height
    return sheet[top : top + height, left : left + width]


def as_on_the_page(images: np.ndarray) -> np.ndarray:
    """Means [n, 1, H, W] in the page's 16 greys, uint8 [n, H, W]."""
    return (np.rint(tiles(images)[..., 0] / STEP) * STEP).astype(np.uint8)


@pytest.fixture(scope="module")
def lively(world: Path, tmp_path_factory: pytest.TempPathFactory, stubs: SimpleNamespace) -> Path:
    """A folder with flat and its fits as in the world, trained until pictures of different z differ."""
    folder, data = tmp_path_factory.mktemp("lively"), world / "data.h5"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    tables = {"embedding": 4, "hidden": 8, "decoder_hidden": 8}
    stubs.train_tiny(data, folder / "flat.safetensors", {"name": "elbo"}, 2, steps=60, attribute_network=tables)
    for target, given, name in (
        ("true", "attributes", "true"),
        ("aggregate", "attributes", "aggregate"),
        ("aggregate", "nothing", "aggregate-nothing"),
    ):
        out = folder / f"flat-{name}.safetensors"
        stubs.fit_tiny(folder / "flat.safetensors", data, out, target, given, steps=30)
    torch.set_num_threads(threads)
    return folder


@pytest.fixture(scope="module")
def flat(lively: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A page about two fits, each guided as well, and their model."""
    out = tmp_path_factory.mktemp("explore") / "explore.html"
    files = [lively / f"flat-{name}.safetensors" for name in ("true", "aggregate", "aggregate-nothing")]
    return page_of(files, out, limits=SMALL, guidance=3.0, seed=5, command=f"mmgen explore {HOSTILE}")


def test_all_descriptions_are_there_and_every_posterior_answers(flat: tuple[str, dict[str, Any]]) -> None:
    _, data = flat
    (part,) = data["parts"]
    assert sorted(map(tuple, part["keys"])) == sorted(itertools.product((-1, 0, 1), repeat=2))
    assert part["selection"] == "" and part["words"][part["keys"].index([-1, -1])] == "anything"
    names = [source["name"] for source in part["sources"]]
    assert names[:2] == ["q_true(w = 1), exact", "q_agg"] and "q_agg guided (w = 3)" in names
    for source in part["sources"]:
        answered = list(range(9)) if source["rows"] is None else source["rows"]
        assert len(base64.b64decode(source["judged"])) == len(answered) * 2 * 2
        # Guidance holds to words: where nothing is said there are no pictures of it.
        missing = [part["words"][row] for row in range(9) if row not in answered]
        assert missing == (["anything"] if source["guidance"] else [])
    assert [one["name"] for one in data["references"]] == ["p(z)", "q(z)"]
    distinct = {picture(part["sources"][1]["pictures"], number).tobytes() for number in range(18)}
    assert len(distinct) > 12  # so that showing one for another would be seen


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
        for row in ([1, 0], [0, -1]):
            number = part["keys"].index(row)
            place = number if source["rows"] is None else source["rows"].index(number)
            out = tmp_path / f"{source['name']}-{number}.h5"
            given = ["--given", part["words"][number], "--posterior", source["posterior"], "-n", "2", "--seed", "5"]
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


def test_a_map_of_two_dimensions_shows_z_itself(world: Path, lively: Path, flat: tuple[str, dict[str, Any]]) -> None:
    _, data = flat
    found, loaded = data["map"], load(lively / "flat.safetensors")
    assert found["exact"] and found["axes"] == ["z1", "z2"] and "exactly" in found["density"]
    encodings = encoded_part(loaded, world / "data.h5", "test", 1500, 5)
    assert np.allclose(np.array(found["points"]) / 500 - 1, encodings.mean.numpy() / found["reach"], atol=2e-3)
    with Dataset.open(world / "data.h5") as stored:
        codes = stored.read_attributes("attributes", encodings.rows)
    assert base64.b64decode(found["codes"]) == codes.tobytes()
    # What is decoded at the cell above and to the right of the middle.
    middle, step = found["cells"] // 2, 2 * found["reach"] / found["cells"]
    (image,) = as_on_the_page(means(loaded, "image", torch.tensor([[step, 2 * step]])).numpy())
    shown = picture(found["pictures"], (middle + 2) * found["cells"] + middle + 1)
    assert (np.abs(shown[..., 0].astype(int) - image) <= STEP).all()
    # The density of a fitted Gaussian is what its own formula says, whatever is guided.
    (part,) = data["parts"]
    source = next(one for one in part["sources"] if one["name"] == "q_agg")
    cells, row = found["densityCells"], part["keys"].index([0, 1])
    line = (np.arange(cells) + 0.5) * 2 * found["reach"] / cells - found["reach"]
    z = torch.from_numpy(np.stack(np.meshgrid(line, line), -1).reshape(-1, 1, 2).astype(np.float32))
    fitted = load(lively / "flat-aggregate.safetensors")
    condition = parse(fitted, [part["words"][row]]).batch(fitted, 0)
    log_q = fitted.latent_log_prob("aggregate")(z, condition)[:, 0].detach()
    expected = inside(np.exp((log_q - log_q.max()).double().numpy()).reshape(cells, cells))
    drawn = picture(source["density"], row)[..., 0]
    assert (np.abs(drawn.astype(int) - np.rint(expected / STEP) * STEP) <= STEP).all() and drawn.max() == 255


def test_traversals_move_one_dimension_in_the_order_of_the_ranking(world: Path, tmp_path: Path) -> None:
    _, data = page_of([world / "telbo.safetensors"], tmp_path / "e.html", limits=Limits(dimensions=2))
    found, loaded = data["traversals"], load(world / "telbo.safetensors")
    values = [one["value"] for one in found["dimensions"]]
    assert len(values) == 2 and found["of"] == 3 and values == sorted(values, reverse=True)
    encodings = encoded_part(loaded, world / "data.h5", "test", 1500, 0)
    example, place, step = 1, 1, 7
    z = encodings.mean[np.flatnonzero(encodings.rows == found["rows"][example])].clone()
    dimension = found["dimensions"][place]["number"] - 1
    assert np.allclose(found["means"][example][place], z[0, dimension], atol=1e-3)
    z[0, dimension] = found["values"][place][step]
    (image,) = as_on_the_page(means(loaded, "image", z).numpy())
    shown = picture(found["pictures"], example * (1 + 2 * 11) + 1 + place * 11 + step)
    assert (np.abs(shown[..., 0].astype(int) - image) <= STEP).all()
    plane = principal_plane(encodings.mean)
    assert data["map"]["shares"] == [round(100 * share) for share in plane.shares]
    # What is decoded from the encodings themselves.
    beside = data["map"]["neighbours"]
    (image,) = as_on_the_page(means(loaded, "image", encodings.mean[beside["points"][3] :][:1]).numpy())
    assert (np.abs(picture(beside["pictures"], 3)[..., 0].astype(int) - image) <= STEP).all()
    assert "projected on the plane" in data["map"]["density"] and not data["map"]["exact"]


def test_parts_that_make_no_sense_are_left_out(world: Path, tmp_path: Path) -> None:
    _, data = page_of([world / "blind.safetensors"], tmp_path / "e.html", limits=SMALL)
    assert data["parts"] == [] and data["map"]["points"] and [one["name"] for one in data["references"]] == ["p(z)"]
    _, data = page_of([world / "cvae.safetensors"], tmp_path / "e.html", limits=SMALL)
    assert data["map"]["pictures"] is None and data["traversals"]["pictures"] and data["references"] == []
    assert [source["name"] for source in data["parts"][0]["sources"]] == ["p(z), the decoder sees y"]
    shutil.copy(world / "flat.safetensors", tmp_path)
    shutil.copy(world / "flat-true.safetensors", tmp_path)
    source, data = page_of([tmp_path / "flat-true.safetensors"], tmp_path / "e.html", limits=SMALL)
    assert data["map"] is None and data["traversals"] is None and len(data["parts"][0]["keys"]) == 9
    assert "Without its data there are no encodings" in source and "No judge was found" in source


def test_what_cannot_be_shown_is_refused_in_a_sentence(world: Path, tmp_path: Path) -> None:
    out = tmp_path / "e.html"
    with pytest.raises(UsageError, match=r"shows one model with what was fitted to it, got flat\.safetensors, telbo"):
        make_explorer([world / "flat.safetensors", world / "telbo.safetensors"], out)
    with pytest.raises(UsageError, match="got none; name files of one model"):
        make_explorer([world / "scores.jsonl"], out)
    with pytest.raises(UsageError, match=r"--dimensions got 3, but z of .* has 2"):
        make_explorer([world / "flat.safetensors"], out, limits=Limits(dimensions=3))
    with pytest.raises(UsageError, match=r"--max-size got 0.03 MB, but the page takes .* at the least"):
        make_explorer([world / "flat-true.safetensors"], out, limits=Limits(size=30_000)).run()
    assert not out.exists()


def test_fewer_descriptions_where_there_would_be_too_many(world: Path, tmp_path: Path) -> None:
    files = [world / "flat-true.safetensors"]
    _, data = page_of(files, tmp_path / "e.html", limits=Limits(2, descriptions=4))
    (part,) = data["parts"]
    assert part["keys"][0] == [-1, -1] and len(part["keys"]) == 4
    assert part["selection"].startswith("This page holds 4 of 9 descriptions: the most frequent in the data.")
    whole = len(make_explorer(files, tmp_path / "e.html", limits=Limits(100)).run().read_bytes())
    small, data = page_of(files, tmp_path / "e.html", limits=Limits(100, size=whole - 9_000))
    assert len(small.encode()) <= whole - 9_000 and 0 < len(data["parts"][0]["keys"]) < 9
    assert len(base64.b64decode(data["parts"][0]["sources"][0]["judged"])) == len(data["parts"][0]["keys"]) * 100 * 2


def test_the_same_files_and_seed_give_the_same_page(world: Path, tmp_path: Path) -> None:
    pages = [page_of([world / "flat-true.safetensors"], tmp_path / "e.html", limits=SMALL)[0] for _ in range(2)]
    assert pages[0] == pages[1]


def test_a_report_links_to_the_page_of_its_model_beside_it(world: Path, tmp_path: Path) -> None:
    page_of([world / "blind.safetensors"], tmp_path / "explore.html", limits=SMALL)
    report = make_report([world / "blind.safetensors"], tmp_path / "r.html").run().read_text()
    assert '<a href="explore.html">Explore</a>' in report
    assert _explored(tmp_path / "r.html", gather([world / "flat.safetensors"]).groups) == ""
    assert _explored(world / "r.html", gather([world / "flat.safetensors"]).groups) == ""


def test_colours_are_kept_within_the_losses_of_their_format(views: Path, tmp_path: Path) -> None:
    _, data = page_of([views / "one.safetensors"], tmp_path / "e.html", limits=SMALL)
    source, loaded = data["parts"][0]["sources"][0], load(views / "one.safetensors")
    assert source["pictures"]["images"][0].startswith("data:image/webp;base64,")
    row = data["parts"][0]["keys"].index([1, 0])
    drawn = tiles(loaded.sample("Large=yes Red=no", 2, posterior="own").cpu().numpy())
    shown = picture(source["pictures"], 2 * row).astype(int)
    assert data["remark"] == "" and np.abs(shown - drawn[0]).mean() < 6


# ---------------------------------------------------------------- captions

NAMES, WORDS = ("size", "colour", "side"), (("big", "small"), ("red", "blue"), ("left", "right"))


def _scenes(path: Path, spelled: bool) -> None:
    """60 pictures with captions of three words, which spell attributes, or free ones, the last of which is hostile."""
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, (60, 3)).astype(np.uint8)
    images = generator.integers(0, 255, (60, 1, 16, 16)).astype(np.uint8)
    vocabulary = [word for words in WORDS for word in words]
    vocabulary = vocabulary if spelled else [*vocabulary[:-1], HOSTILE]
    with DatasetWriter(
        path, size=60, settings={"recipe": "scenes"}, seed=0, command="mmgen make-data scenes"
    ) as writer:
        writer.add_image("image", shape=(1, 16, 16), layout="bytes")
        rows: dict[str, np.ndarray] = {
            "image": images,
            "text": (codes + np.array([0, 2, 4], np.uint8)).astype(np.uint16),
        }
        if spelled:
            writer.add_attributes("attributes", dict(zip(NAMES, map(list, WORDS), strict=True)))
            rows["attributes"] = codes
        writer.add_text("text", vocabulary, 3, list(NAMES) if spelled else [])
        writer.write(0, rows)
        writer.add_splits("iid", train=np.arange(40), val=np.arange(40, 50), test=np.arange(50, 60))


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory, stubs: SimpleNamespace) -> Path:
    """A folder with spelled, a model of captions in slots, with judge and fit; and free, one of free captions."""
    folder = tmp_path_factory.mktemp("scenes")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for name in ("spelled", "free"):
        _scenes(folder / f"{name}.h5", name == "spelled")
        objective = {"name": "elbo", "modalities": ["image", "text"], "given": ["image"]}
        words = {"embedding": 4, "hidden": 8, "head": 8}
        stubs.train_tiny(folder / f"{name}.h5", folder / f"{name}.safetensors", objective, text_network=words)
        stubs.fit_tiny(
            folder / f"{name}.safetensors",
            folder / f"{name}.h5",
            folder / f"{name}-fit.safetensors",
            "aggregate",
            "text",
        )
    info = AttributesDescription(name="attributes", names=NAMES, values=WORDS)
    stubs.save_judge(folder / "spelled.h5", folder / "judge.safetensors", 1, info, {"size": 90.0}, told=("side",))
    torch.set_num_threads(threads)
    return folder


def test_captions_with_slots_have_a_menu_for_each_word(scenes: Path, tmp_path: Path) -> None:
    _, data = page_of([scenes / "spelled-fit.safetensors"], tmp_path / "e.html", limits=SMALL, guidance=2.0)
    (part,) = data["parts"]
    assert [menu["name"] for menu in part["menus"]] == list(NAMES) and not any(menu["any"] for menu in part["menus"])
    assert len(part["keys"]) == 8 and data["judge"]["told"] == [2]
    row = part["keys"].index([1, 0, 1])
    assert part["words"][row] == "small red right"
    assert base64.b64decode(part["asked"])[3 * row : 3 * row + 3] == bytes([1, 0, 1])
    assert len(part["sources"]) == 2


def test_too_many_captions_are_those_near_some_of_the_data(scenes: Path, tmp_path: Path) -> None:
    limits = Limits(number=1, descriptions=6)
    _, data = page_of([scenes / "spelled-fit.safetensors"], tmp_path / "e.html", limits=limits)
    (part,) = data["parts"]
    assert len(part["keys"]) == 6 and part["starts"] == [0, 1, 2, 3, 4]
    assert "in at most two words" in part["selection"]


def test_free_captions_are_one_menu_and_stay_text(scenes: Path, tmp_path: Path) -> None:
    source, data = page_of([scenes / "free-fit.safetensors"], tmp_path / "e.html", limits=SMALL)
    (part,) = data["parts"]
    assert [menu["name"] for menu in part["menus"]] == ["caption"] and data["attributes"] is None
    assert any(HOSTILE in words for words in part["words"]) and HOSTILE not in source and "<img" not in source
    assert len(set(part["words"])) == len(part["words"]) == len(part["keys"])


# ---------------------------------------------------------------- what they are made of


def test_the_most_frequent_descriptions_come_first() -> None:
    """Against counting each of them."""
    codes = np.random.default_rng(1).choice(3, (50, 3), p=(0.6, 0.3, 0.1)).astype(np.uint8)
    codes[:5, 1] = 255
    found = np.stack(list(frequent(codes, (3, 3, 3))))
    assert sorted(map(tuple, found.tolist())) == sorted(itertools.product((0, 1, 2, 255), repeat=3))
    counts = [int(((codes == row) | (row == 255)).all(1).sum()) for row in found]
    assert counts == sorted(counts, reverse=True)
    shortest = list(itertools.islice(frequent(np.zeros((0, 2), np.uint8), (2, 2)), 9))
    assert [int((row != 255).sum()) for row in shortest] == [0, 1, 1, 1, 1, 2, 2, 2, 2]


def test_neighbours_differ_in_at_most_two_words() -> None:
    starts = np.array([[0, 0, 0], [2, 2, 2]])
    found = list(near(starts, [range(3)] * 3))
    assert len({tuple(key) for key in found}) == len(found)
    distances = [min(int((key != start).sum()) for start in starts) for key in found]
    assert distances == sorted(distances) and max(distances) == 2
    assert len(found) == 26  # all but 1, 1, 1


def test_densities_of_draws_are_kernel_estimates() -> None:
    """Against scipy's, for places without correlation: the same kernel and Scott's width with the effective number."""
    generator = np.random.default_rng(0)
    places, weights = generator.normal(0, (0.15, 0.25), (4000, 2)), generator.random(4000)
    cells = 61
    line = (np.arange(cells) + 0.5) * 2 / cells - 1
    grid = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    expected = gaussian_kde(places.T, weights=weights)(grid.T).reshape(cells, cells)
    found, beside = apart(smoothed(places, weights, cells))
    assert found.sum() + beside.sum() == pytest.approx(1)
    assert np.abs(found / found.sum() - expected / expected.sum()).max() < 0.08 * (expected / expected.sum()).max()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("middle", [0.0, 3.0, 6.0, 30.0])
def test_what_lies_beside_the_map_counts(exact: bool, middle: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Gaussian about (middle, 0) on a map from -3 to 3: 1 - Phi(3 - middle) of it is to the right."""
    plane = principal_plane(torch.randn(50, 2, generator=torch.manual_seed(0)))
    normal = torch.distributions.Normal(torch.tensor([middle, 0.0]), 1.0)
    loaded = SimpleNamespace(
        guidance=0.0, device="cpu", latent_log_prob=lambda _: lambda z, _: normal.log_prob(z.double()).sum(-1)
    )

    class One(SimpleNamespace):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, rows: slice) -> "One":
            return self

    asked = One(batch=lambda *_: None, key=lambda _: ())
    draws = middle * torch.tensor([1.0, 0.0]) + torch.randn(4000, 2, generator=torch.manual_seed(1))
    monkeypatch.setattr("mmgen.figures.explore.density.draw_latents", lambda *_: draws[None])
    source: Any = SimpleNamespace(loaded=loaded, posterior="q", path="p")
    ((levels, outside),) = densities(source, asked, Chart(plane, 3.0, exact), 0, {})
    right = 1 - torch.distributions.Normal(0.0, 1.0).cdf(torch.tensor(3 - middle)).item()
    if middle < 30:
        assert outside == pytest.approx(right, abs=0.01 if exact else 0.02)
    line = (np.arange(CELLS) + 0.5) * 6 / CELLS - 3
    squares = (line[None, :] - middle) ** 2 + line[:, None] ** 2
    for share in (0.5, 0.9):  # the disc that holds it, cut off where the map ends
        expected = (squares < -2 * np.log(1 - share)).mean()
        assert (levels[..., 0] / 255 > 1 - share).mean() == pytest.approx(expected, abs=0.02 if exact else 0.05)


def test_sheets_hold_every_picture_in_sixteen_greys() -> None:
    generator = np.random.default_rng(0)
    pictures = generator.integers(0, 256, (800, 60, 90, 1)).astype(np.uint8)
    sheets = pack(pictures)
    assert len(sheets.images) > 1
    for number in (0, 1, sheets.each - 1, sheets.each, 799):
        shown = picture(sheets.to_json(), number)
        assert (shown[..., 0] == np.rint(pictures[number, ..., 0] / STEP) * STEP).all()
        assert (shown == shown[..., :1]).all()
