"""Nothing that is given is ignored: every kind of model and fitted posterior, of description, and every way to ask."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset, DatasetWriter, read_header, read_samples
from mmgen.cli._main import main
from mmgen.errors import MmgenError, UsageError
from mmgen.figures.plots._material import gather
from mmgen.figures.plots._session import Source, draw_all, open_session
from mmgen.figures.report.scores import score_tables
from mmgen.generation.descriptions import check_read, parse, posterior_for
from mmgen.generation.draws import draw
from mmgen.generation.latents import draw_latents
from mmgen.loading import TrainedModel, load
from mmgen.metrics._draw import JudgedPictures
from mmgen.metrics._evaluation import Evaluation, EvaluationSettings
from mmgen.metrics._queries import Queries
from mmgen.metrics.correctness import Correctness
from mmgen.metrics.coverage import Coverage
from mmgen.modalities.attributes import AttributesDescription
from mmgen.score import read_scores

WORDS = ("red", "blue", "big", "small")
GIVEN = {"attributes": ("colour=red", "colour=blue"), "caption": ("big red", "small blue")}
FILES = ("labels", "elbo", "both", "jmvae", "cvae", "bare", "elbo-attributes", "elbo-text", "elbo-nothing", "elbo-true")
WEIGHTS = (0.0, 2.0)


@pytest.fixture(scope="module")
def folder(stubs: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data with attributes and free text; models that read or say one of them, both or none; and what was fitted."""
    folder = tmp_path_factory.mktemp("read")
    data, generator = folder / "data.h5", np.random.default_rng(0)
    codes = np.stack([np.arange(60) % 2, np.arange(60) // 2 % 2], 1).astype(np.uint8)
    tokens = np.stack([2 + codes[:, 1], codes[:, 0], np.full(60, 4)], 1).astype(np.uint16)
    with DatasetWriter(data, size=60, settings={"recipe": "toy"}, seed=0, command="mmgen make-data") as writer:
        writer.add_image("image", shape=(1, 16, 16), layout="bits")
        writer.add_attributes("attributes", {"colour": ["red", "blue"], "size": ["big", "small"]})
        writer.add_text("text", WORDS, 3)
        packed = np.packbits(generator.integers(0, 2, (60, 256), np.uint8), axis=1)
        writer.write(0, {"image": packed, "attributes": codes, "text": tokens})
        writer.add_splits("iid", train=np.arange(40), val=np.arange(40, 50), test=np.arange(50, 60))
    labels = {"attribute_network": {"embedding": 4, "hidden": 8, "decoder_hidden": 8}}
    words = {"text_network": {"embedding": 4, "hidden": 8, "head": 8}}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for name, objective, networks in (
        ("labels", {"name": "mvae", "modalities": ["image", "attributes"], "weights": {}, "subsets": 0}, labels),
        ("elbo", {"name": "elbo", "modalities": ["image", "attributes"]}, labels),
        ("both", {"name": "mvae", "modalities": ["image", "text", "attributes"], "weights": {}}, words | labels),
        ("jmvae", {"name": "jmvae", "description": "text"}, words),
        ("cvae", {"name": "cvae"}, labels),
        ("bare", {"name": "elbo", "modalities": ["image"]}, {}),
    ):
        stubs.train_tiny(data, folder / f"{name}.safetensors", objective, 2, **networks)
    for target, given in (("aggregate", "attributes"), ("aggregate", "text"), ("aggregate", "nothing")):
        stubs.fit_tiny(folder / "elbo.safetensors", data, folder / f"elbo-{given}.safetensors", target, given)
    stubs.fit_tiny(folder / "elbo.safetensors", data, folder / "elbo-true.safetensors", "true", "attributes")
    torch.set_num_threads(threads)
    return folder


def opened(folder: Path, name: str, weight: float) -> TrainedModel | None:
    """The file, guided; None where it says no words to guide by."""
    loaded = load(folder / f"{name}.safetensors")
    if weight and not loaded.generated_words:
        with pytest.raises(UsageError, match="guidance needs"):
            loaded.guided(weight)
        return None
    return loaded.guided(weight)


def depends(loaded: TrainedModel, posterior: str, one: str, other: str) -> bool:
    """Whether pictures of two descriptions differ, though they are drawn from the same stream of randomness."""
    found = []
    for words in (one, other):
        batch = parse(loaded, [words]).batch(loaded, 0)
        z = loaded.latent_sampler(posterior)(batch, 3, torch.Generator().manual_seed(0))[:, 0]
        every = batch.repeat(3) if loaded.model.conditional_on else None
        found.append(loaded.model.mean("image", z, every))
    return not torch.equal(*found)


def refusal(way: Callable[[], Any]) -> str:
    """Why it is refused; "" if it is not."""
    try:
        way()
    except UsageError as error:
        return str(error)
    return ""


@torch.no_grad()
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("name", FILES)
def test_a_description_is_read_or_refused(folder: Path, name: str, kind: str, weight: float) -> None:
    loaded = opened(folder, name, weight)
    if loaded is None:
        return
    one, other = GIVEN[kind]
    asked = parse(loaded, [one])
    for posterior in loaded.posteriors:
        ways: list[Callable[[], Any]] = [
            lambda p=posterior: loaded.sample(one, 2, p),  # type: ignore[misc]
            lambda p=posterior: draw(loaded, asked, 2, posterior=p),  # type: ignore[misc]
        ]
        refused = [refusal(way) for way in (lambda p=posterior: check_read(loaded, p, asked), *ways)]  # type: ignore[misc]
        if any(refused):
            assert all(refused[1:]), refused
            assert all(any(why in text for why in ("reads", "generates")) for text in refused[1:]), refused
            continue
        assert depends(loaded, posterior, one, other), (name, posterior, kind, weight)


@pytest.mark.parametrize(
    ("name", "posterior", "words", "said"),
    [
        ("labels", None, "big red", r"posterior 'own' of \S+ reads attributes: give attribute=value of colour, size$"),
        ("elbo-attributes", None, "big red", "posterior 'aggregate' of .* reads attributes"),
        ("elbo-true", None, "big red", "posterior 'true' of .* reads attributes"),
        ("elbo-text", None, "colour=red", "posterior 'aggregate' of .* reads text: give a caption$"),
        ("jmvae", None, "colour=red", "posterior 'own' of .* reads text"),
        ("cvae", None, "big red", "posterior 'own' of .* reads attributes"),
        ("elbo", None, "colour=red", "draws the same z whatever is given; fit something .* or draw with guidance"),
        ("bare", None, "colour=red", "draws the same z whatever is given; fit something to descriptions first"),
        ("elbo-nothing", None, "colour=red", "draws the same z whatever is given"),
        ("elbo-attributes", "prior", "colour=red", "for posterior 'prior' of .*, which reads none"),
    ],
)
def test_what_is_not_read_is_one_sentence_from_python_and_the_program(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    posterior: str | None,
    words: str,
    said: str,
) -> None:
    file = folder / f"{name}.safetensors"
    with pytest.raises(UsageError, match=said):
        load(file).sample(words, 2, posterior)
    out = tmp_path / "s.png"
    options = ["--posterior", posterior] if posterior else []
    assert program("sample", file, "--given", words, "-o", out, *options) == 2
    complaint = capsys.readouterr().err.strip().splitlines()
    assert len(complaint) == 1 and complaint[0].startswith("mmgen: ")
    assert not out.exists()


def program(*words: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def test_own_posterior_and_pictures_read_what_is_given_too(folder: Path) -> None:
    labels = load(folder / "labels.safetensors")
    with pytest.raises(UsageError, match="reads attributes"):
        labels.posterior("big red")
    with pytest.raises(MmgenError, match="infers no z from image and text"):
        labels.translate(np.zeros((1, 1, 16, 16), np.float32), description="big red")


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("name", ["elbo-attributes", "elbo-nothing", "labels", "both", "cvae"])
def test_the_same_z_and_pictures_from_everywhere(
    folder: Path, name: str, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program (which draws by ``draw``), Python and metrics: bit for bit in z, to rounding in pictures."""
    loaded = opened(folder, name, weight)
    if loaded is None:
        return
    decoded: list[torch.Tensor] = []
    decode = type(loaded.model).decode

    def watch(self: Any, which: str, z: torch.Tensor, condition: Any = None) -> torch.Tensor:
        if which == "image":
            decoded.append(z.clone())
        return decode(self, which, z, condition)

    monkeypatch.setattr(type(loaded.model), "decode", watch)
    queries = Queries(np.array([[1, 0], [0, 255]], np.uint8), np.ones(2), 0)
    described = ["colour=blue size=big", "colour=red"]
    for posterior in loaded.posteriors:
        if not loaded.reads(posterior):
            continue
        drawn = draw(loaded, parse(loaded, described), 300, posterior=posterior, seed=4)
        judged = JudgedPictures(loaded, None, 4)  # type: ignore[arg-type]  # no judge is needed to draw
        monkeypatch.setattr(JudgedPictures, "sampled", property(lambda self: True))
        pieces = list(judged.pictures(queries, posterior, 300))
        decoded.clear()
        pictures = [loaded.sample(words, 300, posterior, seed=4) for words in described]
        z = torch.cat(decoded).reshape(2, 300, -1)
        assert np.array_equal(drawn.z, z.numpy())
        for row in range(2):
            torch.testing.assert_close(pictures[row], torch.from_numpy(drawn.means[row]))
        for piece in pieces:
            torch.testing.assert_close(piece.means, torch.from_numpy(drawn.means[piece.rows, piece.draws]))
            same = piece.seen == torch.from_numpy(drawn.sampled[piece.rows, piece.draws])
            assert same.float().mean() > 0.999  # a pixel at the edge of rounding may turn
        assert sum((piece.rows.stop - piece.rows.start) * piece.means.shape[1] for piece in pieces) == 600
        decoded.clear()
        list(judged.pictures(queries, posterior, 300))
        assert torch.equal(torch.cat(decoded).reshape(2, 300, -1), z)
        more = draw(loaded, parse(loaded, described[:1]), 300, posterior=posterior, seed=4)
        assert np.array_equal(more.z[0], drawn.z[0])
        further = next(judged.pictures(queries, posterior, 300, have=300))
        assert not np.array_equal(further.means[0].numpy(), drawn.means[0, : further.means.shape[1]])


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("name", ["elbo-attributes", "elbo-nothing", "labels", "jmvae", "cvae"])
def test_one_stream_of_randomness_in_every_product(folder: Path, tmp_path: Path, name: str, weight: float) -> None:
    """The program, Python, the pictures that `eval` judges, and figures: the same z and pictures of a description."""
    loaded = opened(folder, name, weight)
    if loaded is None or not loaded.reads(loaded.default_posterior):
        return
    words = "red big" if loaded.reads(loaded.default_posterior) == ("text",) else "colour=red size=big"
    out, number, seed = tmp_path / "s.h5", 5, 3
    options = ("--guidance", weight) if weight else ()
    file = folder / f"{name}.safetensors"
    assert program("sample", file, "--given", words, "-n", number, "--seed", seed, "-o", out, *options) == 0
    samples = read_samples(out)
    posterior = samples.header.settings["posterior"]
    means, sampled, z = samples.images, samples.images_sampled, samples.z
    assert sampled is not None

    torch.testing.assert_close(loaded.sample(words, number, seed=seed), torch.from_numpy(means))

    asked = parse(loaded, [words])
    assert np.array_equal(draw_latents(loaded, posterior, asked, number, seed)[0].numpy(), z)

    # A figure draws by its session; its sources have the posterior, guided or not.
    session = open_session(gather([file]).groups[0], seed, guidance=weight)
    sources = [s for s in (*session.sources, *session.priors) if s.loaded.guidance == weight]
    shown = [s for s in sources if s.posterior == posterior] or [Source("its own", loaded, posterior, file)]
    ((_, drawn),) = draw_all(session, asked, number, shown[:1])
    assert np.array_equal(drawn.z[0], z)
    np.testing.assert_allclose(drawn.means[0], means, atol=1e-6)

    if asked.tokens is None:  # metrics ask by attributes
        queries = Queries(asked.codes, np.ones(1), 0)
        (piece,) = JudgedPictures(loaded, None, seed).pictures(queries, posterior, number)  # type: ignore[arg-type]  # no judge is needed to draw
        np.testing.assert_allclose(piece.means[0].numpy(), means, atol=1e-6)
        assert (np.rint(255 * piece.seen[0].numpy()) == sampled).mean() > 0.999


def test_posteriors_that_are_taken_unless_told(folder: Path) -> None:
    def taken(name: str, words: str, weight: float = 0.0) -> str:
        loaded = load(folder / f"{name}.safetensors").guided(weight)
        return posterior_for(loaded, parse(loaded, [words]))

    assert taken("labels", "colour=red") == "own" and taken("elbo-true", "colour=red") == "true"
    assert taken("elbo-text", "") == "prior" and taken("elbo-nothing", "") == "aggregate"
    assert taken("elbo", "colour=red", 2.0) == "prior" and taken("elbo-nothing", "colour=red", 2.0) == "aggregate"
    assert taken("cvae", "colour=red") == "own"


def test_guidance_reaches_every_output(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, samples = folder / "elbo-nothing.safetensors", tmp_path / "s.h5"
    words = "colour=red NOT size=big OR colour=blue"
    assert program("sample", file, "--given", words, "--guidance", "2", "-n", "3", "-o", samples) == 0
    settings = read_header(samples).settings
    assert (settings["guidance"], settings["base"], settings["given"]) == (2.0, "learned prior", [words])
    assert program("sample", file, "--given", words, "--guidance", "2", "-n", "3", "-o", tmp_path / "s.png") == 0
    fitted, lines = folder / "elbo-attributes.safetensors", tmp_path / "scores.jsonl"
    many = ["-m", "log-likelihood", "--number", "10", "--samples", "20"]
    assert program("eval", fitted, *many, "--guidance", "0,1", "--guidance", "3", "-o", lines) == 0
    scores = [json.loads(line) for line in lines.read_text().splitlines()]
    kinds = [(s["posterior"], s.get("guidance"), s.get("base")) for s in scores if s["protocol"] == "importance"]
    assert kinds == [("aggregate", None, None), ("guided", 1.0, "aggregate"), ("guided", 3.0, "aggregate")]
    assert all(s["quantity"] == "log p(x|y)" and ("guidance" in s) == ("base" in s) for s in scores)
    page = tmp_path / "r.html"
    assert program("report", fitted, lines, "--guidance", "3", "-o", page) == 0
    assert page.read_text().count("q_agg guided (w = 3)") > 1 and "q_agg guided (w = 1)" in page.read_text()
    kept, balanced = tmp_path / "b.h5", ("--guidance", "2:balanced")
    assert program("sample", fitted, "--given", "colour=red", *balanced, "-n", "3", "-o", kept) == 0
    assert read_header(kept).settings["balanced"] and "balanced" not in settings
    assert program("eval", fitted, *many, "--guidance", "2,2:balanced", "-o", tmp_path / "b.jsonl") == 0
    told = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert [one.get("balanced", False) for one in told if one["protocol"] == "importance"] == [False, True]
    assert program("report", fitted, *balanced, "-o", tmp_path / "b.html") == 0
    assert "q_agg guided (w = 2, balanced)" in (tmp_path / "b.html").read_text()
    assert program("plot", "hierarchy", fitted, "--guidance", "3", "-o", tmp_path / "h.png") == 0
    assert "q_agg guided (w = 3)" in capsys.readouterr().err


def test_questions_that_no_words_can_guide_are_refused_before_any_work(folder: Path) -> None:
    """jmvae says whole captions of free text, elbo says attributes: coverage leaves attributes out."""
    with Dataset.open(folder / "data.h5") as data:
        for name, refused in (("jmvae", True), ("elbo", False), ("both", False)):
            loaded = load(folder / f"{name}.safetensors").guided(1.0)
            evaluation = Evaluation(loaded, data, None, ("prior",), EvaluationSettings(seed=7))
            assert evaluation.needs_captions == refused and not evaluation.ignores_text("prior")
            assert bool(refusal(lambda e=evaluation: Coverage().check(e))) == refused
            asked = Evaluation(loaded, data, None, ("prior",), EvaluationSettings(seed=7, dropped=(1,)))
            assert bool(refusal(lambda e=asked: Correctness().check(e))) == refused
            assert evaluation.loaded.guide("prior") is loaded.guided(1.0, 7).guide("prior")  # the pool of the seed
            unguided = Evaluation(loaded.guided(0.0), data, None, ("prior",), EvaluationSettings())
            assert not unguided.needs_captions and unguided.ignores_text("prior")


def test_scores_say_what_was_guided_and_how_far_candidates_went(
    folder: Path, tmp_path: Path, stubs: SimpleNamespace
) -> None:
    info = AttributesDescription(
        name="attributes", names=("colour", "size"), values=(("red", "blue"), ("big", "small"))
    )
    judge, lines = tmp_path / "judge.safetensors", tmp_path / "scores.jsonl"
    accuracy = {"colour": 90.0, "size": 90.0, "mean": 90.0}
    stubs.save_judge(folder / "data.h5", judge, 1, info, accuracy, held_out_images={"colour": 9, "size": 9})
    asked = ["--dropped", "0,1", "--draws", "3", "--judge", judge, "--guidance", "2", "-o", lines]
    assert program("eval", folder / "elbo-nothing.safetensors", "-m", "correctness", "-m", "coverage", *asked) == 0
    scores = read_scores(lines)
    assert {(score.metric, score.given) for score in scores} == {
        ("correctness", 2),
        ("correctness", 1),
        ("coverage", 1),
    }
    for score in scores:
        assert (score.posterior, score.guidance, score.base) == ("guided", 2.0, "learned prior")
        told = score.extra["guidance"]
        assert told["candidates"] == 60_000
        assert 1 <= told["smallest_effective_sample_size"] <= told["median_effective_sample_size"] <= 60_000
    (table, *_) = score_tables(scores, {})
    assert [row.posterior for row in table.rows] == ["q(z) guided (w = 2): q(z) times p(y|z)^2"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ["sample", "elbo", "--given", "colour=red", "--guidance", "-1"],
            "guidance got -1, expected a number",
        ),
        (["sample", "elbo", "--given", "colour=red", "--guidance", "nan"], "guidance got nan, expected"),
        (["sample", "elbo", "--guidance", "3"], "a description that says nothing"),
        (["sample", "elbo", "--from", "image", "--guidance", "3"], "got --guidance too"),
        (["sample", "cvae", "--given", "colour=red", "--guidance", "3"], "guidance needs p"),
        (["sample", "elbo", "--given", "colour=red", "--guidance", "3:even"], "such as 3, or 3:balanced"),
        (["eval", "elbo-attributes", "--guidance", "0:balanced"], "expected a weight above 0, such as 3:balanced"),
        (["sample", "jmvae", "--given", "big red", "--guidance", "3:balanced"], "needs p(attributes | z), but"),
        (["sample", "both", "--given", "big red", "--guidance", "3:balanced"], "got a caption, which does not say"),
        (["sample", "elbo-attributes", "--given", "colour=red OR colour=blue"], "only drawing with guidance above 0"),
        (["eval", "elbo-attributes", "--guidance", "1;3"], "--guidance got 1;3, expected a number from 0"),
        (["eval", "elbo-attributes", "--guidance", "1,inf"], "guidance got inf, expected"),
        (["eval", "elbo-attributes", "-m", "active-units", "--guidance", "1"], "got guidance for active-units, which"),
        (["eval", "bare", "-m", "log-likelihood", "--guidance", "1"], "guidance needs p"),
        (["plot", "contours", "elbo-attributes", "--guidance", "2"], "leave out --guidance"),
        (["plot", "hierarchy", "cvae", "--guidance", "2"], "guidance needs p"),
        (["plot", "hierarchy", "elbo-attributes", "--guidance", "-2"], "guidance got -2, expected"),
        (
            ["plot", "hierarchy", "elbo-attributes", "--guidance", "2", "--given", "NOT colour=red"],
            "plain descriptions",
        ),
        (["report", "cvae", "--guidance", "2"], "guidance needs p"),
        (["plot", "hierarchy", "labels", "--given", "big red"], "reads attributes"),
        (["plot", "hierarchy", "elbo-attributes", "--given", "big red"], "reads attributes"),
        (["plot", "contours", "elbo-attributes", "--given", "big red"], "reads attributes"),
        (["plot", "contours", "elbo-text", "--given", "colour=red"], "reads text"),
        (["plot", "contours", "elbo", "--given", "big red"], "says and reads no text"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], said: str
) -> None:
    at = 2 if command[0] == "plot" else 1
    words = [*command[:at], folder / f"{command[at]}.safetensors", *command[at + 1 :]]
    out = tmp_path / "out.html" if command[0] == "report" else tmp_path / "out.png"
    assert program(*words, "-o", out) in (1, 2)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("mmgen: ")]
    assert len(told) == 1 and said in told[0], told
    assert list(tmp_path.iterdir()) == []


def test_guided_descriptions_are_told_right_from_wrong(folder: Path) -> None:
    """The judge's verdict on negation and alternatives is about the whole description."""

    class Judge:
        names, values = ("colour", "size"), (("red", "blue"), ("big", "small"))
        told: tuple[str, ...] = ()
        device = torch.device("cpu")

        def predict(self, images: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
            return torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]] * 8, dtype=torch.uint8)[: len(images)]

    loaded = load(folder / "elbo-nothing.safetensors").guided(1.0)
    asked = parse(loaded, ["colour=red NOT size=big", "NOT colour=red OR size=big", "colour=blue"])
    drawn = draw(loaded, asked, 4, posterior="aggregate", judge=Judge())  # type: ignore[arg-type]
    assert drawn.wrong is not None and loaded.attributes is not None
    assert drawn.wrong.tolist() == [[True, False, True, True], [False, True, False, False], [True, True, False, False]]
    assert drawn.right == (1 + 3 + 2, 12)
    assert drawn.remark(0, 0, loaded.attributes) == "judge: red, big" and drawn.remark(0, 1, loaded.attributes) == ""
    assert drawn.remark(2, 0, loaded.attributes) == "judge: red"
