"""Networks that a page computes itself, in Chromium: they draw, encode and read what the model does."""

import base64
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from mmgen import networks
from mmgen.contrib.explore.make import Limits
from mmgen.contrib.explore.networks import BITS, UnknownOperation, pack_bits, trace_network
from mmgen.contrib.explore.sprites import picture_bytes
from mmgen.generation import load
from mmgen.generation.decode import decode_means
from mmgen.generation.encode import encode_pictures
from mmgen.generation.encodings import encode_split
from mmgen.networks._base import ImageNetwork
from tests.contrib.explore._opened_page import Opened, choose, chromium, eventually, needs_chromium
from tests.contrib.explore._pages_to_explore import HOSTILE, page_of

__all__ = ["chromium"]  # fixtures
pytestmark = needs_chromium
LIMITS = Limits(number=3)
WORDS = {"embedding": 4, "hidden": 8, "decoder_hidden": 8}
DRAWERS = ["convolutional", "dcgan", "mlp", "residual", "spatial-broadcast", "spatial-transformer", "strided"]


def _numbers(opened: Opened, expression: str) -> np.ndarray:
    return np.array(opened.page.evaluate(f"Array.from({expression})"), np.float64)


def _latents(described: dict[str, Any]) -> np.ndarray:
    levels = np.frombuffer(base64.b64decode(described["z"]), "<i2")
    return (levels * described["scale"]).reshape(-1, described["width"]).astype(np.float32)


@pytest.fixture(scope="module")
def places(world: Path, tmp_path_factory: pytest.TempPathFactory, stubs: SimpleNamespace) -> Path:
    """A folder with models that draw and place digits, and that draw colours; each with a fit."""
    folder = tmp_path_factory.mktemp("live")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    drawer = {"name": "spatial-transformer", "background": -0.5, "sheet": 12, "fully_connected": [32]}
    objective = {"name": "elbo", "given": ["image"], "beta": 0.01}
    stubs.train_tiny(
        world / "data.h5",
        folder / "grey.safetensors",
        objective,
        4,
        steps=250,
        attribute_network=WORDS,
        image_network=drawer,
    )
    stubs.fit_tiny(
        folder / "grey.safetensors", world / "data.h5", folder / "grey-fit.safetensors", "aggregate", "attributes", 30
    )
    torch.set_num_threads(threads)
    return folder


@pytest.fixture(scope="module")
def grey(places: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("grey") / "explore.html"
    return out, page_of([places / "grey-fit.safetensors"], out, limits=LIMITS, guidance=2.0)[1]


@pytest.mark.slow
def test_every_network_that_draws_is_computed_as_torch_does(grey: tuple[Path, Any], chromium: Any) -> None:
    """All decoders and their encoders, with averages of batch norm as after training, of grey and coloured pictures."""
    with Opened(chromium, grey[0]) as opened:
        for name in DRAWERS:
            member = networks.get(name)
            assert issubclass(member, ImageNetwork)
            for channels in (1, 3):
                shape = (channels, 32, 32)
                torch.manual_seed(channels)
                grounds = {"grounds": channels == 3} if name == "spatial-transformer" else {}
                network = member(**member.settings_for_sides((32,)), **grounds)
                decoder, encoder = network.decoder(5, shape).eval(), network.encoder(shape)[0].eval()
                for module in (*decoder.modules(), *encoder.modules()):
                    if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d):
                        nn.init.uniform_(module.running_mean, -0.3, 0.3)
                        nn.init.uniform_(module.running_var, 0.5, 2)
                for network_of, example in ((decoder, torch.randn(1, 5)), (encoder, torch.rand(1, *shape))):
                    traced = trace_network(network_of, example)
                    traced = traced.with_bits(dict.fromkeys(traced.weights, 16))
                    expected = traced(example).flatten().double().numpy()
                    described, given = json.dumps(traced.to_json()), example.flatten().tolist()
                    found = _numbers(opened, f"new Network({described}).run({given})")
                    assert np.abs(found - expected).max() < 1e-4 * max(1, np.abs(expected).max()), (name, channels)


@pytest.mark.slow_cases("8")
@pytest.mark.parametrize("bits", [*BITS, 7, 15])
def test_weights_survive_their_packing(grey: tuple[Path, Any], chromium: Any, bits: int) -> None:
    top = 2 ** (bits - 1)
    levels = np.random.default_rng(bits).integers(-top, top, 101)
    with Opened(chromium, grey[0]) as opened:
        packed = [*pack_bits(levels, bits)]
        found = _numbers(opened, f"unpack({packed}, {bits}, {len(levels)})")
    assert (found == levels).all()


def test_operations_that_no_page_knows_are_refused() -> None:
    with pytest.raises(UnknownOperation, match="an operation aten"):
        trace_network(lambda x: x.sort().values, torch.randn(1, 4)).to_json()
    with pytest.raises(UnknownOperation, match="multiplies two computed matrices"):
        trace_network(lambda x: x @ (x.T @ x), torch.randn(1, 4)).to_json()

    def by_its_values(x: Tensor) -> Tensor:
        if x.sum() > 0:
            raise ValueError("only of negative numbers")
        return x

    with pytest.raises(UnknownOperation, match="cannot be traced"):
        trace_network(by_its_values, torch.ones(1, 4))


@pytest.mark.parametrize("error", [AttributeError, TypeError, AssertionError])
def test_a_bug_is_no_network_that_cannot_be_traced(error: type[Exception]) -> None:
    def broken(_: Tensor) -> Tensor:
        raise error("a bug")

    with pytest.raises(error, match="a bug"):
        trace_network(broken, torch.ones(1, 4))


def test_pictures_are_those_of_sample_within_one_level(
    places: Path, grey: tuple[Path, dict[str, Any]], chromium: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every posterior for several descriptions; `mmgen sample` in full precision, whatever the processor has."""
    monkeypatch.setattr("mmgen.training.precision._cpu_flags", frozenset)
    out, data = grey
    (part,) = data["parts"]
    assert {bits for _, rows, bits in data["live"]["decoder"]["constants"] if rows} <= {*BITS}
    with Opened(chromium, out, reduced_motion="reduce") as opened:
        for key in ([0, 1], [1, 0]):
            choose(opened, key)
            boxes = opened.page.query_selector_all(".part .source")
            for source, box in zip(part["sources"], boxes, strict=True):
                loaded = load(places / source["file"]).guided(source["guidance"])
                drawn = loaded.sample(_typed(data, key), 3, posterior=source["posterior"], seed=0)
                for image, canvas in zip(picture_bytes(drawn.numpy()), box.query_selector_all("canvas"), strict=True):
                    shown = opened.pixels(canvas)[..., :3].astype(int)
                    assert np.abs(shown - image).max() <= 1, (source["name"], key)
        opened.quiet()
    assert len({z.tobytes() for z in _latents(part["sources"][0]["pictures"])}) > 9


def _typed(data: dict[str, Any], row: list[int]) -> str:
    """A whole description as a person types it."""
    names, values = data["attributes"]["names"], data["attributes"]["values"]
    return " ".join(f"{name}='{words[code]}'" for name, words, code in zip(names, values, row, strict=True))


@pytest.mark.slow
def test_colours_within_one_level(views: Path, tmp_path: Path, chromium: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmgen.training.precision._cpu_flags", frozenset)
    out = tmp_path / "explore.html"
    _, data = page_of([views / "one.safetensors"], out, limits=LIMITS)
    source, loaded = data["parts"][0]["sources"][0], load(views / "one.safetensors")
    drawn = picture_bytes(loaded.sample("Large=yes Red=no", 3, posterior=source["posterior"], seed=0).numpy())
    with Opened(chromium, out, reduced_motion="reduce") as opened:
        choose(opened, [1, 0])
        for image, canvas in zip(drawn, opened.page.query_selector_all(".part .source canvas"), strict=False):
            assert image.shape[-1] == 3 and np.abs(opened.pixels(canvas)[..., :3].astype(int) - image).max() <= 1
        opened.quiet()


@pytest.mark.slow
def test_sliders_of_all_dimensions_together(
    world: Path, places: Path, grey: tuple[Path, dict[str, Any]], chromium: Any
) -> None:
    """By keys and by a click on a strip: the picture is that of all sliders, and so are the strips."""
    out, data = grey
    found, loaded = data["traversals"], load(places / "grey.safetensors")
    encodings = encode_split(loaded, world / "data.h5", "test", 1500, 0)
    chosen = torch.from_numpy(np.searchsorted(encodings.rows, found["rows"]))
    starts = _latents(found["z"])
    assert np.abs(starts - encodings.mean[chosen].numpy()).max() < 1e-3
    with Opened(chromium, out) as opened:
        page, z = opened.page, starts[1].copy()
        page.query_selector_all("#examples button")[1].click()
        sliders = page.query_selector_all("#rows input")
        for place, slider in enumerate(sliders):
            slider.focus()
            page.keyboard.press("End" if place % 2 else "Home")
            z[found["dimensions"][place]["number"] - 1] = float(slider.get_attribute("max" if place % 2 else "min"))
        assert _is_drawn(opened, loaded, "#moved", z)
        strip, steps = page.query_selector("#rows .strip canvas"), len(found["values"][0])
        assert eventually(lambda: page.query_selector("#rows").get_attribute("data-ready") == "yes")
        frames = opened.pixels(strip)[..., 0].astype(int)
        for step, value in enumerate(found["values"][0]):
            z[found["dimensions"][0]["number"] - 1] = value
            (image,) = picture_bytes(decode_means(loaded, "image", torch.from_numpy(z[None])).numpy())
            pitch = frames.shape[1] // steps + 1
            assert np.abs(frames[:, step * pitch : step * pitch + 16] - image[..., 0]).max() <= 1
        strip.scroll_into_view_if_needed()
        width = strip.bounding_box()["width"]
        strip.click(position={"x": 3.5 * width / steps, "y": 5}, force=True)
        z[found["dimensions"][0]["number"] - 1] = found["values"][0][3]
        assert _is_drawn(opened, loaded, "#moved", z)
        page.get_by_role("button", name="Back to the start").click()
        assert _is_drawn(opened, loaded, "#moved", starts[1])
        page.query_selector("#dimensions-buttons button:nth-child(2)").click()
        assert eventually(lambda: not _is_drawn(opened, loaded, "#moved", starts[1], wait=False))
        # What the model reads: its own words' decoder.
        said = page.query_selector("#rebuilt-says").inner_text()
        shares = decode_means(loaded, "attributes", torch.from_numpy(starts[1:2]))[0]
        for values, share in zip(data["attributes"]["values"], shares, strict=True):
            assert values[int(share.argmax())] in said
        opened.quiet()


def _is_drawn(opened: Opened, loaded: Any, selector: str, z: np.ndarray, wait: bool = True) -> bool:
    """Whether a canvas shows the picture of z within one level."""
    (image,) = picture_bytes(decode_means(loaded, "image", torch.from_numpy(z[None].astype(np.float32))).numpy())
    canvas = opened.page.query_selector(selector)

    def is_close() -> bool:
        return bool(np.abs(opened.pixels(canvas)[..., :3].astype(int) - image).max() <= 1)

    return eventually(is_close) if wait else is_close()


@pytest.mark.slow
def test_the_map_decodes_wherever_the_pointer_is(places: Path, grey: tuple[Path, Any], chromium: Any) -> None:
    """By mouse, by touch and by keys."""
    out, data = grey
    found, loaded = data["map"], load(places / "grey.safetensors")
    centre, axes = np.array(found["plane"]["centre"]), np.array(found["plane"]["axes"])
    with Opened(chromium, out, has_touch=True) as opened:
        page, chart = opened.page, opened.page.query_selector("#chart")
        chart.scroll_into_view_if_needed()
        area = chart.bounding_box()
        for x, y in ((0.123, 0.877), (0.5, 0.031), (0.901, 0.402)):
            place = area["x"] + x * area["width"], area["y"] + y * area["height"]
            if y > 0.5:
                page.touchscreen.tap(*place)
            else:
                page.mouse.move(*place)
            across, up = area["x"], area["y"]
            z = centre + (2 * (place[0] - across) / area["width"] - 1) * axes[0]
            z += (1 - 2 * (place[1] - up) / area["height"]) * axes[1]
            assert _is_drawn(opened, loaded, "#under", z)
        chart.focus()
        page.keyboard.press("Home")
        assert _is_drawn(opened, loaded, "#under", centre)
        page.keyboard.press("Shift+ArrowRight")
        assert _is_drawn(opened, loaded, "#under", centre + 0.2 * axes[0])
        page.get_by_role("button", name="Take it to the sliders").first.click()
        assert _is_drawn(opened, loaded, "#moved", centre + 0.2 * axes[0])
        opened.quiet()


@pytest.mark.slow
def test_a_picture_turns_into_the_next_and_its_twins_light_up(
    places: Path, grey: tuple[Path, Any], chromium: Any
) -> None:
    out, data = grey
    (part,), loaded = data["parts"], load(places / "grey.safetensors")
    pictures = part["sources"][1]["pictures"]
    with Opened(chromium, out) as opened:
        page = opened.page
        page.evaluate(
            """() => { window.seen = new Set();
            const canvas = document.querySelectorAll(".part .source")[1].querySelector("canvas");
            const look = () => { window.seen.add(canvas.z.join()); requestAnimationFrame(look); }; look(); }"""
        )
        choose(opened, [0, 1])
        row = page.evaluate("parts[0].storedRow(0)")
        figures = page.query_selector_all(".part .source:nth-child(2) figure")
        for n, figure in enumerate(figures):
            figure.query_selector("canvas").evaluate("(canvas, n) => (canvas.id = `picture${n}`)", n)
            assert _is_drawn(opened, loaded, f"#picture{n}", _latents(pictures)[row * 3 + n])
        assert page.evaluate("window.seen.size") > 2, "between the first picture and the last"
        figures[1].hover()
        twins = [figure.get_attribute("class") or "" for figure in page.query_selector_all(".part .source figure")]
        assert ["twin" in one for one in twins] == [n % 3 == 1 for n in range(len(twins))]
        figures[0].query_selector("button").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        assert _is_drawn(opened, loaded, "#moved", _latents(pictures)[row * 3 + 1])
        opened.quiet()


@pytest.mark.slow
def test_the_encoder_reads_what_is_drawn(
    places: Path, grey: tuple[Path, Any], chromium: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the mouse and with keys: what is shown is what the model makes of exactly these pixels."""
    monkeypatch.setattr("mmgen.training.precision._cpu_flags", frozenset)
    out, _ = grey
    loaded = load(places / "grey.safetensors")
    with Opened(chromium, out, has_touch=True) as opened:
        page, paper = opened.page, opened.page.query_selector("#paper")
        paper.scroll_into_view_if_needed()

        def check() -> np.ndarray:
            assert eventually(lambda: paper.get_attribute("data-ready") == "yes")
            image = np.rint(opened.pixels(paper)[None, ..., 0].astype(np.float32) / 255)  # the data are black and white
            encoded = encode_pictures(loaded, image[None]).mean.numpy()[0]
            page.wait_for_timeout(50)
            canvas = opened.pixels(page.query_selector("#again"))[..., 0].astype(int)
            (expected,) = picture_bytes(decode_means(loaded, "image", torch.from_numpy(encoded[None])).numpy())
            assert np.abs(canvas - expected[..., 0]).max() <= 3  # the encoder's weights are rounded as well
            return image

        page.get_by_role("button", name="Clear").click()
        blank = check()
        area = paper.bounding_box()
        page.mouse.move(area["x"] + 20, area["y"] + 20)
        page.mouse.down()
        page.mouse.move(area["x"] + 150, area["y"] + 200, steps=6)
        page.mouse.up()
        drawn = check()
        assert np.abs(drawn - blank).sum() > 5
        page.touchscreen.tap(area["x"] + area["width"] * 0.8, area["y"] + area["height"] * 0.3)
        assert np.abs(check() - drawn).sum() > 0.5
        page.get_by_role("button", name="Clear").click()
        paper.focus()
        for key in (" ", "ArrowLeft", "ArrowUp", "ArrowUp", " "):
            page.keyboard.press(key)
        assert "pen up" in page.query_selector("#pen-says").inner_text()
        assert np.abs(check() - blank).sum() > 1
        page.query_selector("#papers button").click()
        check()
        page.get_by_role("button", name="Show it on the map").click()
        page.get_by_role("button", name="Take it to the sliders").last.click()
        assert len(page.query_selector_all("#nearby canvas")) == 6
        opened.quiet()


@pytest.mark.slow
def test_a_tour_of_four_steps(grey: tuple[Path, Any], chromium: Any) -> None:
    out, _ = grey
    with Opened(chromium, out) as opened:
        page = opened.page
        tour, says = page.query_selector("#tour"), page.query_selector("#tour-says")
        assert not tour.is_visible()
        page.get_by_role("button", name="Show me around").click()
        texts = []
        for step in range(4):
            assert page.query_selector("#tour-place").inner_text() == f"{step + 1} of 4"
            texts.append(says.inner_text())
            if step == 2:
                assert page.query_selector("#density").evaluate("one => one.value") != ""
            if step == 3:
                rows = [each.inner_text().lower() for each in page.query_selector_all("#parts h3") if each.is_visible()]
                assert {*re.findall("“([^”]+)”", texts[3])} <= {*rows}, "it names what is on the screen"
                assert ("Red frames" in texts[3]) == bool(page.query_selector("#parts .wrong"))
            page.query_selector("#tour-next").click()
        assert len(set(texts)) == 4 and not tour.is_visible()
        assert not any(sign in text for text in texts for sign in ("q(", "p(", "|"))
        assert page.evaluate("document.activeElement.id") == "tour-start"
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        assert not tour.is_visible()
        opened.quiet()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("#parity=odd&magnitude=high", "odd, high"), ("#magnitude=high&.draw=3", "high"),
        ("#NOT+parity=odd&magnitude=nonsense", "not odd"), ("#NOT+parity=odd&NOT+parity=even", "not odd"),
        (f"#parity={HOSTILE}", "anything"), ("#__proto__=odd&constructor=x", None), ("#%", None),
        ("#" + "parity=" + "x" * 100_000, "anything"), ("#words", None), ("#parity=odd&.draw=-1e999", "odd"),
    ],
)  # fmt: skip
def test_words_stand_in_the_address(
    grey: tuple[Path, Any], chromium: Any, tmp_path: Path, address: str, expected: str | None
) -> None:
    """They are read from it, and written into it; nonsense leaves a menu open, and none of it the usual words."""
    out, data = grey
    (part,) = data["parts"]
    usual = [data["attributes"]["values"][m][value] for m, value in enumerate(part["opening"]) if value >= 0]
    with Opened(chromium, out) as opened:
        page = opened.page
        page.goto(out.as_uri() + address)
        page.reload()
        assert page.query_selector(".part .says").inner_text() == (", ".join(usual) if expected is None else expected)
        assert page.evaluate("parts[0].draw") == (3 if "draw=3" in address else 0)
        assert page.query_selector("img") is None and page.evaluate("window.ran") is None
        choose(opened, [0, -1])
        page.get_by_role("button", name="Draw three more").click()
        page.get_by_role("link", name="Map").click()
        assert page.evaluate("location.hash").startswith("#parity=even&.draw=")
        assert page.evaluate("document.activeElement.id") == "map"
        draw = page.evaluate("parts[0].draw")
        page.reload()
        assert page.query_selector(".part .says").inner_text() == "even" and page.evaluate("parts[0].draw") == draw
        page.evaluate("location.hash = '#NOT+parity=odd'")
        assert eventually(lambda: page.query_selector(".part .says").inner_text() == "not odd")
        assert opened.said == []
