"""Flows that a page draws from itself, in Chromium: its draws and mixtures are those of Python, for every word."""

import base64
import itertools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import mmgen
from mmgen.artifacts import Dataset, read_header
from mmgen.classifier import load_classifier
from mmgen.commands.export import Export
from mmgen.contrib.explore.make import Limits
from mmgen.contrib.explore.sprites import picture_bytes
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import parse
from mmgen.generation import load
from mmgen.generation.classifiers import classify_images
from mmgen.generation.decode import decode_means
from tests.contrib.explore._opened_page import Opened, choose, chromium, eventually, needs_chromium
from tests.contrib.explore._pages_to_explore import page_of

__all__ = ["chromium"]  # fixtures
pytestmark = needs_chromium
GUIDANCE = 1.5
WORDS = {"embedding": 4, "hidden": 8, "decoder_hidden": 8}


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory, stubs: SimpleNamespace) -> Path:
    """A folder with shapes.h5 of small pictures, a model, a flow of it, a Gaussian, and a judge."""
    folder = tmp_path_factory.mktemp("shapes")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    mmgen.make_data("shapes", folder / "shapes.h5", number=700, size=16, workers=1, progress=False)
    objective = {"name": "elbo", "given": ["image"], "beta": 0.01}
    data, model = folder / "shapes.h5", folder / "model.safetensors"
    stubs.train_tiny(data, model, objective, 4, steps=60, attribute_network=WORDS)
    flow = {"name": "rectified-flow", "width": 24, "blocks": 2, "steps": 4}
    stubs.fit_tiny(model, data, folder / "flow.safetensors", "aggregate", "attributes", 150, family=flow)
    stubs.fit_tiny(model, data, folder / "gaussian.safetensors", "aggregate", "attributes", 30)
    with Dataset.open(data) as opened:
        info = opened.attributes["attributes"]
    stubs.save_judge(data, folder / "judge.safetensors", 3, info, {"shape": 90.0})
    torch.set_num_threads(threads)
    return folder


@pytest.fixture(scope="module")
def page(shapes: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("page") / "explore.html"
    files = [shapes / "flow.safetensors", shapes / "judge.safetensors"]
    return out, page_of(files, out, limits=Limits(number=3), guidance=f"cfg:{GUIDANCE}")[1]


def _rows(part: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(part["rows"]), "<i2").reshape(-1, len(part["menus"]))


def _draw(loaded: Any, noise: np.ndarray, codes: list[int], guidance: float) -> np.ndarray:
    """z of noise under a description by the midpoint rule, with the network's own velocity in double precision."""
    fit = loaded.posteriors["aggregate"].unguided.aggregate
    network = fit.density.network.double()
    context = fit.condition.describe(torch.tensor([codes]), torch.ones(1, len(codes), dtype=torch.bool)).double()

    def velocity(u: torch.Tensor, t: float) -> torch.Tensor:
        along, blank = (
            network(u, torch.tensor([t]).double(), network.condition(each)) for each in (context, 0 * context)
        )
        return (1 + guidance) * along - guidance * blank

    u, steps = torch.from_numpy(noise).double()[None], fit.density.family.steps
    for number in range(steps):
        half = u + velocity(u, number / steps) / (2 * steps)
        u = u + velocity(half, (number + 0.5) / steps) / steps
    return (fit.shift + fit.scale * u).detach().numpy()[0]


def test_the_page_draws_what_the_flow_draws(shapes: Path, page: tuple[Path, Any], chromium: Any) -> None:
    """From the same noise: z within 0.01, pictures within two grey levels, plain and guided; the judge too."""
    out, data = page
    (part,), loaded = data["parts"], load(shapes / "flow.safetensors")
    plain, judge = load(shapes / "model.safetensors"), load_classifier(shapes / "judge.safetensors", "cpu")
    assert [source["flow"] for source in part["sources"]] == [0, 0] and part["held"] == 0
    with torch.no_grad(), Opened(chromium, out, reduced_motion="reduce") as opened:
        for chosen in ([3, 0, 1, 2], [5, 4, 0, 0]):
            choose(opened, chosen)
            assert eventually(lambda: opened.page.evaluate("jobs.length === 0"))
            for place, source in enumerate(part["sources"]):
                guidance = source["steered"]["weight"] if source["steered"] else 0.0
                assert guidance == (GUIDANCE if place == 0 else 0.0)
                for n, figure in enumerate(
                    opened.page.query_selector_all(f".part .source:nth-child({place + 1}) figure")
                ):
                    noise = np.array(opened.page.evaluate(f"[...parts[0].noise({n})]"), np.float32)
                    drawn = np.array(opened.page.evaluate(f"[...parts[0].sources[{place}].latents[{n}]]"))
                    expected = _draw(loaded, noise, chosen, guidance)
                    assert np.abs(drawn - expected).max() < 0.01, (chosen, place, n)
                    mean = decode_means(plain, "image", torch.from_numpy(expected[None]).float())
                    shown = opened.pixels(figure.query_selector("canvas"))[..., :3].astype(int)
                    assert np.abs(shown - picture_bytes(mean.numpy())[0]).max() <= 2
                    (read,) = classify_images(judge, mean.numpy(), np.full((1, 4), UNKNOWN, np.uint8))
                    wrong = [
                        words[code]
                        for words, code, asked in zip(judge.values, read, chosen, strict=True)
                        if code != asked
                    ]
                    said = figure.query_selector("figcaption").inner_text()
                    assert said == (f"✗ {', '.join(wrong)}" if wrong else "✓")
        opened.quiet()


@pytest.mark.slow
def test_an_exported_page_draws_from_words_and_shows_nothing_else(shapes: Path, tmp_path: Path, chromium: Any) -> None:
    """By the same flow, also where nothing but the exported folder is left."""
    files = {"judge": shapes / "judge.safetensors", "page": True}
    Export(shapes / "flow.safetensors", tmp_path / "out", **files).run()
    for name in ("model", "aggregate", "judge"):
        (tmp_path / "out" / f"{name}.safetensors").unlink()
    with Opened(chromium, tmp_path / "out" / "index.html", reduced_motion="reduce") as opened:
        choose(opened, [3, 0, 1, 2])
        assert eventually(lambda: opened.page.evaluate("jobs.length === 0"))
        drawn = opened.page.query_selector_all(".part .source figure canvas")
        before = [opened.pixels(canvas) for canvas in drawn]
        assert len({each.tobytes() for each in before}) == len(before) == 6
        assert all(figure.inner_text()[:1] in "✓✗" for figure in opened.page.query_selector_all(".source figcaption"))
        opened.page.query_selector("button:text-is('Draw six more')").click()
        assert eventually(lambda: not np.array_equal(opened.pixels(drawn[0]), before[0]))
        for hidden in ("nav", "#dimensions", "#map", "#finger", "#tour"):
            assert not opened.page.query_selector(hidden).is_visible()
        assert not opened.page.query_selector_all(".notice, #references figure")
        assert str(shapes) not in opened.page.content()
        opened.quiet()


@pytest.mark.slow
def test_mixtures_are_those_of_python(shapes: Path, page: tuple[Path, Any], chromium: Any) -> None:
    """Shares of whole descriptions, for words, words excluded, and words that no training picture has together."""
    out, data = page
    (part,), known = data["parts"], load(shapes / "flow.safetensors").completions
    info, rows = known.attributes, _rows(part)
    trained = int(np.count_nonzero(part["counts"]))
    order = [int(np.flatnonzero((known.rows == row).all(1))[0]) for row in rows[:trained]]
    assert trained == len(known.rows) < len(rows) == 288 and sorted(order) == list(range(trained))
    assert part["counts"][:trained] == known.counts[order].tolist()
    generator, unseen = np.random.default_rng(0), rows[trained : trained + 10].tolist()
    parts = [[max(int(generator.integers(-2, len(words))), -1) for words in info.values] for _ in range(40)]
    with Opened(chromium, out) as opened:
        for chosen in [*parts, *unseen]:
            excluded = [
                [*map(int, generator.choice(len(words), generator.integers(0, len(words)), replace=False))]
                if value < 0 and generator.random() < 0.3 else []
                for value, words in zip(chosen, info.values, strict=True)
            ]  # fmt: skip
            wish = f"{{ chosen: {chosen}, excluded: {excluded}.map((each) => new Set(each)) }}"
            found = opened.page.evaluate(f"parts[0].descriptions.shares({wish}, {trained})")
            codes = np.array([value if value >= 0 else UNKNOWN for value in chosen], np.uint8)
            expression = None
            if any(excluded):
                pairs = zip(info.names, info.values, chosen, excluded, strict=True)
                said = [
                    text
                    for name, words, value, others in pairs
                    for text in [
                        *([f"{name}={words[value]}"] if value >= 0 else []),
                        *(f"NOT {name}={words[other]}" for other in others),
                    ]
                ]
                expression = parse(" ".join(said), info)
                if not expression.matches(known.rows).any():
                    continue
            expected = known.probabilities(codes, expression)[order]
            assert np.abs(np.array(found) - expected).max() < 1e-12, (chosen, excluded)


@pytest.mark.slow
def test_draws_follow_the_shares_and_keep_the_words(page: tuple[Path, Any], chromium: Any) -> None:
    """Each picture alone is drawn by the shares, and all of a draw are spread over them."""
    out, data = page
    (part,) = data["parts"]
    rows, counts = _rows(part), np.array(part["counts"])
    with Opened(chromium, out) as opened:
        choose(opened, [2, -1, -1, 1])
        drawn = np.array(
            opened.page.evaluate(
                """() => Array.from({ length: 600 }, (_, draw) => {
                    parts[0].draw = draw;
                    return [0, 1, 2].map((n) => parts[0].complete(n));
                })"""
            )
        )
        assert (drawn[..., 0] == 2).all() and (drawn[..., 3] == 1).all()
        agree = (rows[:, 0] == 2) & (rows[:, 3] == 1)
        big = counts[agree & (rows[:, 2] == 0)].sum() / counts[agree].sum()
        for n in range(3):
            assert (drawn[:, n, 2] == 0).mean() == pytest.approx(big, abs=0.06)
        places = [np.array(opened.page.evaluate("[0, 1, 2].map((n) => parts[0].uniform(n))")) for _ in range(2)]
        assert sorted((3 * places[0]).astype(int)) == [0, 1, 2] and (places[0] == places[1]).all()
        noise = np.array(opened.page.evaluate("[...gaussian(randomStream('test'), 20000)]"))
        assert abs(noise.mean()) < 0.03 and noise.var() == pytest.approx(1, abs=0.04)
        assert np.abs(noise).max() < 6 and abs((noise[:-1] * noise[1:]).mean()) < 0.03


@pytest.mark.slow_cases("1400", "390")
@pytest.mark.parametrize("width", [1400, 390])
def test_every_word_can_be_chosen(page: tuple[Path, Any], chromium: Any, width: int) -> None:
    """One after the other: nothing is ever greyed out, the pictures change, and all words are said."""
    out, data = page
    (part,) = data["parts"]
    with Opened(chromium, out, width=width, reduced_motion="reduce") as opened:
        found = opened.page
        found.get_by_role("button", name="Anything").click()
        before, pressed = "", 0
        for m, menu in enumerate(found.query_selector_all("fieldset.words")):
            buttons = menu.query_selector_all("button")
            assert [button.inner_text() for button in buttons] == part["menus"][m]["values"]
            for value, button in enumerate(buttons):
                button.click()
                pressed += 1
                assert eventually(lambda: found.evaluate("jobs.length === 0"))
                assert found.query_selector("button:disabled, option:disabled, fieldset:disabled") is None
                assert button.get_attribute("aria-pressed") == "true"
                assert found.evaluate("parts[0].wish.chosen")[m] == value
                assert part["menus"][m]["values"][value] in found.query_selector(".says").inner_text().split(", ")
                shown = b"".join(
                    opened.pixels(canvas).tobytes() for canvas in found.query_selector_all(".part .sources canvas")
                )
                assert shown != before, part["menus"][m]["values"][value]
                before = shown
        assert pressed == 18 and found.evaluate("document.documentElement.scrollWidth") <= width
        opened.quiet()


@pytest.mark.slow
def test_a_second_press_excludes_and_a_third_leaves_open(page: tuple[Path, Any], chromium: Any) -> None:
    out, _ = page
    with Opened(chromium, out) as opened:
        found = opened.page
        found.get_by_role("button", name="Anything").click()
        size = found.query_selector("fieldset[data-menu=size]").query_selector_all("button")
        for _ in range(2):
            size[0].focus()
            found.keyboard.press("Enter")
        assert size[0].inner_text() == "not big" and size[0].get_attribute("aria-pressed") == "true"
        assert found.query_selector(".says").inner_text() == "not big"
        assert {found.evaluate(f"parts[0].complete({n})")[2] for n in range(3)} == {1}
        assert "NOT size=big" in found.query_selector("details code").text_content()
        size[1].click()
        size[1].click()
        assert found.query_selector(".says").inner_text() == "not big", "one value of a menu remains"
        size[0].click()
        assert found.query_selector(".says").inner_text() == "anything" and size[0].inner_text() == "big"
        found.locator("#parts").get_by_role("button", name="At random").click()
        assert found.query_selector(".says").inner_text() != "anything"
        opened.quiet()


@pytest.mark.slow
def test_a_combination_that_no_training_picture_has(page: tuple[Path, Any], chromium: Any) -> None:
    out, data = page
    (part,) = data["parts"]
    row = [int(value) for value in _rows(part)[part["counts"].index(0)]]
    with Opened(chromium, out) as opened:
        choose(opened, row)
        assert "No training picture has these words together" in opened.page.query_selector(".part").inner_text()
        assert opened.page.evaluate("parts[0].complete(0)") == row
        assert eventually(lambda: opened.page.evaluate("jobs.length === 0"))
        assert np.ptp(opened.pixels(opened.page.query_selector(".part .sources canvas"))[..., :3]) > 0
        opened.quiet()


@pytest.mark.slow
def test_more_draws_and_a_link_to_them(page: tuple[Path, Any], chromium: Any) -> None:
    out, _ = page
    with Opened(chromium, out, permissions=["clipboard-read", "clipboard-write"], reduced_motion="reduce") as opened:
        found = opened.page

        def shown() -> list[bytes]:
            assert eventually(lambda: found.evaluate("jobs.length === 0"))
            return [opened.pixels(canvas).tobytes() for canvas in found.query_selector_all(".part .sources canvas")]

        first = shown()
        found.get_by_role("button", name="Draw three more").click()
        second = shown()
        assert not set(first) & set(second)
        found.get_by_role("button", name="Link to this").click()
        assert eventually(lambda: "Copied." in found.query_selector(".part").inner_text())
        link = found.evaluate("navigator.clipboard.readText()")
        assert re.fullmatch(rf"{re.escape(out.as_uri())}#shape=\w+&\.draw=1", link)
        found.get_by_role("button", name="Anything").click()
        assert shown() != second
        found.goto(link)
        found.reload()
        assert shown() == second
        found.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        found.get_by_role("button", name="Link to this").click()
        assert found.get_by_label("Link to this").input_value() == link, "where a browser does not let it copy"


@pytest.mark.slow
def test_from_one_word_to_another(shapes: Path, page: tuple[Path, Any], chromium: Any) -> None:
    """At its ends the slider shows the pictures of both words from the same noise, between them others."""
    out, _ = page
    loaded = load(shapes / "flow.safetensors")
    with torch.no_grad(), Opened(chromium, out, reduced_motion="reduce") as opened:
        found = opened.page
        choose(opened, [3, 1, 0, 2])
        slider = found.query_selector(".between input")
        found.locator(".between select").nth(2).select_option("heart")
        assert [select.input_value() for select in found.query_selector_all(".between select")] == ["0", "3", "4"]
        seen = []
        for key, codes in (("Home", [3, 1, 0, 2]), ("End", [4, 1, 0, 2])):
            slider.focus()
            found.keyboard.press(key)
            assert eventually(lambda: found.evaluate("jobs.length === 0"))
            for n, canvas in enumerate(found.query_selector_all(".between canvas")):
                noise = np.array(found.evaluate(f"[...parts[0].noise({n})]"), np.float32)
                z = torch.from_numpy(_draw(loaded, noise, codes, GUIDANCE)[None]).float()
                expected = picture_bytes(decode_means(loaded, "image", z).numpy())[0]
                assert np.abs(opened.pixels(canvas)[..., :3].astype(int) - expected).max() <= 2, (key, n)
            seen.append(opened.pixels(found.query_selector(".between canvas")).tobytes())
        slider.fill("50")
        assert slider.get_attribute("aria-valuetext") == "50 % star, 50 % heart"
        assert eventually(lambda: found.evaluate("jobs.length === 0"))
        seen.append(opened.pixels(found.query_selector(".between canvas")).tobytes())
        assert len(set(seen)) == 3
        found.select_option(".between select", "1")
        address = found.evaluate("location.hash")
        assert ".change=shape&.from=star&.to=heart&.at=50" in address
        found.reload()
        assert found.query_selector(".between input").input_value() == "50" and opened.said == []


@pytest.mark.slow
def test_stored_pictures_beside_a_flow_answer_every_word(shapes: Path, tmp_path: Path, chromium: Any) -> None:
    """A Gaussian is no flow: its pictures of whole descriptions are stored, or of some, and mixtures are of these."""
    out = tmp_path / "explore.html"
    files = [shapes / f"{name}.safetensors" for name in ("flow", "gaussian")]
    source, data = page_of(files, out, limits=Limits(number=40))
    (part,) = data["parts"]
    assert sorted(one["flow"] is None for one in part["sources"]) == [False, True] and part["held"] == 288
    _, data = page_of(files, out, limits=Limits(number=40, size=len(source.encode()) - 150_000))
    (part,) = data["parts"]
    held, rows = part["held"], _rows(part)
    assert 0 < held < 288 and f"pictures of {held} of 288 whole descriptions" in part["selection"]
    with Opened(chromium, out, reduced_motion="reduce") as opened:
        for chosen in itertools.chain(rows[[0, held - 1, held, 287]].tolist(), ([5, -1, -1, -1],)):
            choose(opened, chosen)
            best = max(
                int((row[np.array(chosen) >= 0] == np.array(chosen)[np.array(chosen) >= 0]).sum())
                for row in rows[:held]
            )
            for n in range(40):
                row = rows[opened.page.evaluate(f"parts[0].storedRow({n})")]
                assert sum(one == other for one, other in zip(row, chosen, strict=True)) == best
            assert all(canvas.is_visible() for canvas in opened.page.query_selector_all(".part .sources canvas"))
        opened.quiet()


@pytest.mark.slow
def test_densities_of_clouds_are_kernel_estimates(page: tuple[Path, Any], chromium: Any) -> None:
    """Of one description against scipy's, for places without correlation: the same kernel and a third of Scott's width
    with the effective number, so that stripes stay apart; of several descriptions kernels are as wide as each of them.
    """
    from scipy.stats import gaussian_kde

    out, _ = page
    generator = np.random.default_rng(0)
    places, weights = generator.normal(0, (0.3, 0.35), (300, 2)), generator.random(300)
    cells = 31
    line = (np.arange(cells) + 0.5) * 2 / cells - 1
    grid = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    density = gaussian_kde(places.T, lambda kde: kde.scotts_factor() / 3, weights)(grid.T)
    order = np.argsort(-density)
    expected = np.empty(len(grid))
    expected[order] = 1 - (np.cumsum(density[order]) - density[order]) / density.sum()
    with Opened(chromium, out) as opened:
        points = [[*map(float, place), float(weight), 0] for place, weight in zip(places, weights, strict=True)]
        found = opened.page.evaluate(f"contours({points})")
        assert np.abs(np.array(found["inside"]).ravel() - expected)[expected > 0.02].max() < 0.06
        assert found["outside"] == pytest.approx(weights[(np.abs(places) > 1).any(1)].sum() / weights.sum())
        both = [
            [x - 0.6 + 1.2 * half, y, 1, half]
            for half in (0, 1)
            for x, y in generator.normal(0, 0.05, (40, 2)).tolist()
        ]
        inside = np.array(opened.page.evaluate(f"contours({both})")["inside"])
        assert inside[15, 6] > 0.5 and inside[15, 25] > 0.5 and inside[15, 15] < 0.01, "and none between them"
        stripes = [
            [x + 0.4 * (n % 4) - 0.6, y, 1, 0] for n, (x, y) in enumerate(generator.normal(0, 0.04, (400, 2)).tolist())
        ]
        inside = np.array(opened.page.evaluate(f"contours({stripes})")["inside"])[15]
        line = [round((0.2 * n - 0.6 + 1) * cells / 2 - 0.5) for n in range(7)]
        assert all(inside[line[::2]] > 0.1) and all(inside[line[1::2]] < 0.1), "pale shade in stripes, none in gaps"
        far = opened.page.evaluate("contours([[1e21, -1e20, 1, 0], ...Array.from({ length: 30 }, () => [0, 0, 1, 0])])")
        assert np.isfinite(np.array(far["inside"])).all()


@pytest.mark.slow
def test_the_title_names_the_data(page: tuple[Path, Any], shapes: Path, tmp_path: Path) -> None:
    assert "<title>Shapes, drawn from words</title>" in page[0].read_text(encoding="utf-8")
    assert read_header(shapes / "shapes.h5").settings["recipe"] == "shapes"
    source, _ = page_of([shapes / "flow.safetensors"], tmp_path / "e.html", limits=Limits(1), title="Mine")
    assert "<h1>Mine</h1>" in source
