"""A model taken along: ONNX files and a script draw from words without PyTorch what mmgen sample draws."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import mmgen
from mmgen.commands._onnx import SCRIPT, TOLERANCE, export_onnx
from mmgen.commands.export import Export
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import Watch
from mmgen.generation import WORDS, write_words
from mmgen.generation.descriptions import parse_descriptions
from mmgen.generation.draws import draw
from mmgen.training import precision

DOCS = Path(__file__).resolve().parents[2] / "docs"
TINY = {"model": {"latent_size": 3}, "training": {"validate_every": 5}}
FAMILIES: dict[str, dict[str, Any]] = {
    "gaussian": {"hidden": [8]},
    "mixture": {"hidden": [8], "components": 4},
    "realnvp": {"hidden": [8], "steps": 2},
    "nsf": {"hidden": [8], "steps": 1},
    "rectified-flow": {"width": 8, "blocks": 1, "steps": 3},
}
WRONG = {
    ("-n", "0"): "-n/--number: got 0, expected 1 to ",
    ("-n", "1000000"): "-n/--number: got 1000000, expected 1 to ",
    ("--seed", "-1"): "--seed: got -1, expected 0 to ",
    ("--guidance", "nan"): "--guidance: got nan, expected 0 to 100",
    ("--guidance", "inf"): "--guidance: got inf, expected 0 to 100",
    ("--guidance", "1e30"): "--guidance: got 1e30, expected 0 to 100",
    ("-o", "nope/x.png"): "-o got nope/x.png, expected a picture, such as NAME.png, in a folder that is there",
    ("-o", "x.xyz"): "-o got x.xyz, expected a picture",
    ("-o", "x"): "-o got x, expected a picture",
}
"""What draw.py refuses, with words of the sentence."""
DESCRIPTIONS = ["", "ground=night", "shape=heart colour=red", "shape=star size=big ground=sky"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of small pictures, and a fit of every family."""
    folder = tmp_path_factory.mktemp("shapes")
    data, model = folder / "shapes.h5", folder / "model.safetensors"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    mmgen.make_data("shapes", data, number=300, size=16, workers=1, progress=False)
    few: dict[str, Any] = {"batch": 16, "precision": "32-true", "progress": False}
    mmgen.train(data, model, objective="elbo", steps=5, settings=TINY, **few)
    for name, family in FAMILIES.items():
        settings = {"aggregate": {"family": {"name": name, **family}}, "training": {"validate_every": 5}}
        mmgen.fit_aggregate(model, folder / f"{name}.safetensors", steps=5, examples=100, settings=settings, **few)
    mmgen.fit_aggregate(model, folder / "nothing.safetensors", given="nothing", steps=2, examples=100, **few)
    torch.set_num_threads(threads)
    return folder


def _script(folder: Path, monkeypatch: pytest.MonkeyPatch, runtime: ModuleType | SimpleNamespace) -> dict[str, Any]:
    """What draw.py of a folder defines."""
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    names: dict[str, Any] = {"__name__": "draw", "__file__": str(folder / SCRIPT)}
    exec(compile((folder / SCRIPT).read_text("utf-8"), SCRIPT, "exec"), names)
    return names


@pytest.fixture
def words(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What draw.py defines, without networks."""
    source = Path(mmgen.__file__).parent / "commands" / "templates" / SCRIPT
    (tmp_path / SCRIPT).write_bytes(source.read_bytes())
    write_words(mmgen.load(made / "gaussian.safetensors"), tmp_path)
    facts = SimpleNamespace(custom_metadata_map={"written with": "{}"})
    session = SimpleNamespace(get_inputs=list, get_modelmeta=lambda: facts)
    return _script(tmp_path, monkeypatch, SimpleNamespace(InferenceSession=lambda path: session))


def test_the_script_completes_open_words_as_mmgen_does(made: Path, words: dict[str, Any]) -> None:
    known = mmgen.load(made / "gaussian.safetensors").completions
    unlike = np.array([0, 0, 0, 0])
    while (known.rows == unlike).all(1).any():  # near descriptions lend their words where none agrees
        unlike[0] += 1
    for codes in (np.full(4, -1), np.array([4, -1, -1, 3]), np.array([*unlike[:3], -1]), unlike):
        rows, shares = words["complete"](codes)
        whole, of = np.unique(rows, axis=0, return_inverse=True)
        expected, probabilities = known.complete(np.where(codes < 0, UNKNOWN, codes).astype(np.uint8))
        if (codes >= 0).all():
            assert (rows == codes).all()
            continue
        found = dict(zip(map(tuple, whole.tolist()), np.bincount(of.reshape(-1), shares), strict=True))
        assert {row: share for row, share in found.items() if share} == pytest.approx(
            dict(zip(map(tuple, expected.tolist()), probabilities, strict=True))
        )


def test_the_script_reads_words_with_and_without_their_attribute(words: dict[str, Any]) -> None:
    for text in ("shape=heart colour=red", "red heart", "'shape=heart' red"):
        assert words["read"](text).tolist() == [4, 0, -1, -1]
    assert words["read"]("").tolist() == [-1] * 4
    for wrong in ("shape=hart", "form=heart", "heart star", "NOT red"):
        with pytest.raises(SystemExit, match=r"is no word, .* expected shape=circle\|square"):
            words["read"](wrong)
    with pytest.raises(SystemExit, match=r"cannot read \"shape='heart\" \(No closing quotation\); put "):
        words["read"]("shape='heart")


@pytest.mark.slow
@pytest.mark.parametrize(("family", "weight"), [*((name, 0.0) for name in FAMILIES), ("rectified-flow", 1.5)])
def test_the_same_noise_is_the_same_picture(
    made: Path, tmp_path: Path, family: str, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred pictures of parts of a description, within a grey level."""
    runtime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    loaded = mmgen.load(made / f"{family}.safetensors")
    assert loaded.fitted is not None
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():  # as if they had learned much
        for module, sd in (loaded.fitted.aggregate.density, 0.3), (loaded.model, 0.1):
            for weights in module.parameters():
                weights += sd * torch.randn(weights.shape, generator=generator)
    export_onnx(loaded, tmp_path)
    monkeypatch.setattr(precision, "_cpu_flags", frozenset)  # in bf16 a decoder itself is two grey levels off
    noises: list[torch.Tensor] = []
    plain = torch.randn

    def recorded(*shape: Any, **options: Any) -> torch.Tensor:
        noises.append(plain(*shape, **options))
        return noises[-1]

    asked = parse_descriptions(loaded, DESCRIPTIONS)
    with monkeypatch.context() as patched:
        patched.setattr(torch, "randn", recorded)
        drawn = draw(loaded.guided(f"cfg:{weight}" if weight else 0.0), asked, 25, posterior="aggregate", seed=1)
    size = loaded.fitted.aggregate.density.noise_size
    assert size is not None
    noise = torch.cat([each.reshape(-1, size) for each in noises if each.shape[-1] == size])
    script = _script(tmp_path, monkeypatch, runtime)
    assert drawn.completed is not None and len(noise) == 100
    whole = drawn.completed.reshape(100, -1).astype(int)
    found = script["draw"](whole, noise.numpy(), weight)
    means = drawn.means.reshape(100, *drawn.means.shape[2:]).transpose(0, 2, 3, 1)
    assert np.abs(found - np.rint(means.clip(0, 1) * 255)).max() <= 1
    assert found.std(0).max() > 5, "other words and noise are other pictures"
    plainly = script["draw"](whole, noise.numpy())
    assert (np.abs(plainly.astype(int) - found).max() > 1) == bool(weight)


@pytest.mark.slow
def test_an_export_draws_without_pytorch(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    Export(made / "rectified-flow.safetensors", tmp_path / "out", onnx=True).run()
    written = {path.name: path for path in (tmp_path / "out").iterdir()}
    assert not any(b"/mmgen/" in written[name].read_bytes() for name in ("decoder.onnx", "posterior.onnx")), "no paths"
    assert "python draw.py shape=circle -n 16" in written["README.md"].read_text()

    def typed(*options: str) -> subprocess.CompletedProcess[str]:
        barred = "import sys; sys.modules.update(torch=None, mmgen=None)"
        run = f"{barred}; sys.argv[1:] = {[*options]}; import runpy; runpy.run_path('draw.py', run_name='__main__')"
        environment = {**os.environ, "PYTHONSAFEPATH": "1"}
        command = [sys.executable, "-c", run]
        return subprocess.run(command, cwd=tmp_path / "out", env=environment, capture_output=True, text=True)

    drawn = []
    for seed in ("0", "0", "1"):
        done = typed("shape=heart colour=red", "-n", "10", "-o", "hearts.png", "--seed", seed, "--guidance", "1")
        assert (done.returncode, done.stderr) == (0, "")
        drawn.append(np.asarray(Image.open(tmp_path / "out" / "hearts.png")))
    assert drawn[0].shape == (32, 128, 3) and (drawn[0] == drawn[1]).all() and (drawn[0] != drawn[2]).any()
    assert typed("hart").returncode == 1
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for options, says in WRONG.items():
        done = typed(*options)
        assert done.returncode in (1, 2) and says in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr
    assert typed("-n", "70", "-o", "many.png").returncode == 0
    words = (tmp_path / "out" / WORDS).read_bytes()
    for changed in (words.replace(b'"circle", "square"', b'"square", "circle"'), b"[" * 10**5, b"\xff", None):
        (tmp_path / "out" / WORDS).unlink()
        if changed is not None:
            (tmp_path / "out" / WORDS).write_bytes(changed)
        done = typed("red heart", "-o", "changed.png")
        assert done.returncode == 1 and done.stderr.startswith("draw.py: ") and done.stderr.count("\n") == 1
        assert "words.json" in done.stderr
    (tmp_path / "out" / WORDS).write_bytes(words)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {path.name for path in before} | {"many.png"}
    (tmp_path / "out").rename(tmp_path / "shapes")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "onnx.md").read_text("utf-8"), re.S)
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["image"].shape == (1, 3, 16, 16)


@pytest.mark.slow
def test_the_files_say_what_goes_in_and_comes_out(made: Path, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    loaded = mmgen.load(made / "rectified-flow.safetensors")
    export_onnx(loaded, tmp_path)
    for name in ("decoder.onnx", "posterior.onnx"):
        session = runtime.InferenceSession(str(tmp_path / name))
        facts = session.get_modelmeta().custom_metadata_map
        assert facts["image"] == "E[image | z], 0 to 1, [B, 3, 16, 16]" and facts["z"] == "float32 [B, 3]"
        assert json.loads(facts["attributes"])["ground"] == ["white", "sand", "sky", "night"]
        assert {each.name for each in (*session.get_inputs(), *session.get_outputs())} <= {*facts}
    z = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    (found,) = runtime.InferenceSession(str(tmp_path / "decoder.onnx")).run(["image"], {"z": z.numpy()})
    with torch.inference_mode():
        torch.testing.assert_close(torch.from_numpy(found), loaded.model.mean("image", z), atol=TOLERANCE, rtol=0)


@pytest.mark.slow
def test_a_model_alone_has_its_decoder_and_says_what_is_missing(made: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    said: list[str] = []
    watch = Watch()
    watch.say = said.append  # type: ignore[method-assign]
    Export(made / "model.safetensors", tmp_path / "out", onnx=True, progress=watch).run()
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names & {"decoder.onnx", "posterior.onnx", "draw.py"} == {"decoder.onnx"}
    assert any("model.safetensors draws from no words: fit a posterior with" in one for one in said)


def test_what_attributes_and_noise_do_not_determine_is_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"nothing\.safetensors, which reads nothing, expected attributes alone; "):
        export_onnx(mmgen.load(made / "nothing.safetensors"), tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UsageError, match=r"onnxruntime, which is not installed: pip install .*'.\[onnx\]'"):
        export_onnx(mmgen.load(made / "gaussian.safetensors"), tmp_path)
    assert not list(tmp_path.iterdir())
