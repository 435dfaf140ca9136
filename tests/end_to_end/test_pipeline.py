"""Real processes and real pipes: every stage prints the path of what it made and nothing else; killed work resumes."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mmgen.artifacts import read_checkpoint, read_header

MMGEN = [sys.executable, "-m", "cli"]
ROOT = Path(__file__).resolve().parents[2]
TINY = [
    "--set", "model.image_network.channels=[8,8]", "--set", "model.hidden=32", "--set", "model.latent_size=4",
    "--set", "training.validate_every=20", "--set", "training.validation_examples=64", "--device", "cpu",
]  # fmt: skip


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def mmgen(folder: Path, *arguments: str, given: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*MMGEN, *arguments], cwd=folder, input=given, capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small dataset and a judge."""
    folder = tmp_path_factory.mktemp("pipeline")
    made = mmgen(folder, "make-data", "mnist-a", "--source", "digits", "--size", "32", "--number", "1500", "-o", "d.h5")
    assert made.stdout == "d.h5\n"
    judged = mmgen(folder, "train-classifier", "d.h5", "--network", "small", "--steps", "30", "-o", "judge.safetensors")
    assert judged.stdout == "judge.safetensors\n"
    return folder


def test_stages_compose_in_a_pipe(folder: Path) -> None:
    """train | fit-aggregate | eval, as a shell runs it; the last stage prints JSON lines, the others a path each."""
    trained = mmgen(folder, "train", "-", "--objective", "elbo", "--steps", "40", *TINY, given="d.h5\n")
    assert trained.stdout == "d-elbo.safetensors\n"
    fitted = mmgen(folder, "fit-aggregate", "-", "--steps", "30", "--examples", "500", given=trained.stdout)
    assert fitted.stdout == "d-elbo-aggregate-realnvp.safetensors\n"
    scored = mmgen(
        folder, "eval", "-", "--metric", "correctness", "--metric", "coverage", "--draws", "4", "--json",
        given=fitted.stdout,
    )  # fmt: skip
    lines = [json.loads(line) for line in scored.stdout.splitlines()]
    assert {line["metric"] for line in lines} == {"correctness", "coverage"}
    for line in lines:
        assert {
            "value",
            "stderr",
            "unit",
            "better",
            "n",
            "given",
            "protocol",
            "posterior",
            "judge_accuracy",
        } <= line.keys()
        assert line["n"] > 0
    (folder / "scores.jsonl").write_text(scored.stdout)
    drawn = mmgen(folder, "sample", fitted.stdout.strip(), "--given", "digit=3 scale=big", "-n", "4", "-o", "grid.png")
    assert drawn.stdout == "grid.png\n"
    assert (folder / "grid.png").read_bytes()[:4] == b"\x89PNG"
    reported = mmgen(folder, "report", fitted.stdout.strip(), "scores.jsonl", "-o", "report.html")
    assert reported.stdout == "report.html\n"
    header = read_header(folder / "d-elbo-aggregate-realnvp.safetensors")
    assert {parent.role for parent in header.parents} == {"model", "latents", "dataset"}


def test_a_failed_stage_stops_the_pipe_with_one_sentence(folder: Path) -> None:
    failed = mmgen(folder, "fit-aggregate", "-", given="", code=1)
    assert failed.stdout == ""
    assert "the command before" in failed.stderr


def train_arguments(name: str, steps: int) -> list[str]:
    return ["train", "d.h5", "--objective", "telbo", "--steps", str(steps), *TINY, "-o", f"{name}.safetensors"]


def killed_and_resumed(folder: Path, name: str, steps: int, kills: list[float], number: int) -> None:
    """Run a training, end it by a signal after each delay, and run it to its end."""
    for delay in kills:
        process = subprocess.Popen(
            [*MMGEN, *train_arguments(name, steps)],
            cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(delay)
        process.send_signal(number)
        process.wait()
        for path in folder.glob(f"{name}*.safetensors"):
            read_checkpoint(path)  # whole, or not there
    mmgen(folder, *train_arguments(name, steps))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_training_resumes_to_the_result_of_an_uninterrupted_one(folder: Path, number: int) -> None:
    steps = 120
    mmgen(folder, *train_arguments("whole", steps))
    name = f"killed{int(number)}"
    killed_and_resumed(folder, name, steps, [7.0], number)
    for tail in (".safetensors", ".last.safetensors"):
        one = read_checkpoint(folder / f"whole{tail}")[1]
        two = read_checkpoint(folder / f"{name}{tail}")[1]
        assert one.keys() == two.keys()
        assert all(one[key].equal(two[key]) for key in one)


@pytest.mark.slow
def test_random_kills_of_training_never_leave_half_a_file(folder: Path) -> None:
    generator = random.Random(0)
    mmgen(folder, *train_arguments("uninterrupted", 2_000))
    killed_and_resumed(folder, "random", 2_000, [generator.uniform(2, 15) for _ in range(8)], signal.SIGKILL)
    one = read_checkpoint(folder / "uninterrupted.last.safetensors")[1]
    two = read_checkpoint(folder / "random.last.safetensors")[1]
    assert all(one[key].equal(two[key]) for key in one)


@pytest.mark.slow
def test_random_kills_of_make_data_never_leave_half_a_file(tmp_path: Path) -> None:
    generator = random.Random(1)
    for _ in range(6):
        process = subprocess.Popen(
            [*MMGEN, "make-data", "mnist-a", "--source", "digits", "-o", "d.h5"],
            cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        time.sleep(generator.uniform(0.5, 6))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if (tmp_path / "d.h5").exists():
            assert read_header(tmp_path / "d.h5").kind == "dataset"


def malformed(folder: Path) -> dict[str, Path]:
    """Files that are not what a command expects."""
    data = (folder / "d.h5").read_bytes()
    files = {
        "truncated": data[: len(data) // 2],
        "empty": b"",
        "text": b"not an artifact at all, just words\n",
        "pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94.",
    }
    paths = {}
    for name, content in files.items():
        paths[name] = folder / f"bad-{name}"
        paths[name].write_bytes(content)
    paths["wrong kind"] = folder / "judge.safetensors"
    paths["missing"] = folder / "is-not-there.h5"
    paths["folder"] = folder
    return paths


@pytest.mark.parametrize("command", ["train", "train-classifier", "fit-aggregate", "eval", "sample", "show"])
def test_malformed_inputs_get_one_sentence(folder: Path, command: str) -> None:
    options = {"eval": ["--metric", "correctness"]}.get(command, [])
    script = (
        "import sys\nfrom cli._main import main\n"
        "for path in sys.argv[2:]:\n"
        "    try: main([sys.argv[1], path, *OPTIONS])\n"
        "    except SystemExit as left: print('EXIT', left.code, file=sys.stderr)\n"
    ).replace("OPTIONS", repr(options))
    paths = malformed(folder)
    if command == "show":  # it takes any kind
        del paths["wrong kind"]
    done = subprocess.run(
        [sys.executable, "-c", script, command, *map(str, paths.values())],
        cwd=folder, capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 2 * len(paths), done.stderr
    for sentence, code in zip(lines[::2], lines[1::2], strict=True):
        assert sentence.startswith("mmgen: ")
        assert code in ("EXIT 1", "EXIT 2")


def test_a_missing_parent_is_named_with_the_command_that_makes_it(folder: Path, tmp_path: Path) -> None:
    mmgen(folder, "train", "d.h5", "--objective", "elbo", "--steps", "20", *TINY, "-o", "orphan.safetensors")
    moved = tmp_path / "orphan.safetensors"
    moved.write_bytes((folder / "orphan.safetensors").read_bytes())
    done = mmgen(tmp_path, "fit-aggregate", str(moved), code=1)
    assert "mmgen make-data mnist-a --source digits" in done.stderr
