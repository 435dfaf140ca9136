"""``make-data RECIPE --dry-run`` is a check: what the run itself would refuse first, it refuses in the same words."""

from pathlib import Path
from typing import Any, get_args

import pytest

from mmgen import data_recipes
from mmgen.cli._main import main
from mmgen.data_recipes._celeba import _landmarks
from tests.data_recipes._faces import build_celeba
from tests.worlds import added

NO_SOURCES = ("landmarks", "metadata")


def sources() -> list[tuple[str, str]]:
    """Recipes and their settings that name what is the user's."""
    found = []
    for name in data_recipes.names():
        for field, info in data_recipes.get(name).model_fields.items():
            is_path = Path in (info.annotation, *get_args(info.annotation))
            if field == "dataset" or (is_path and field not in NO_SOURCES):
                found.append((name, field))
    return found


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and the sentence of a command."""
    with pytest.raises(SystemExit) as left:
        main(["make-data", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return int(left.value.code or 0), out, next((one for one in err.splitlines() if one.startswith("mmgen: ")), "")


def options(field: str, place: str) -> list[str]:
    return [place] if field == "dataset" else [f"--{field.replace('_', '-')}", place]


def test_all_recipes_that_read_something_are_looked_at() -> None:
    own = {
        "binary-mnist", "celeba-18", "celeba-transforms", "celeba-words", "dsprites", "fashion-mnist", "folder",
        "mnist", "mnist-2bit", "mnist-a", "multimnist", "two-objects",
    }  # fmt: skip
    assert {name for name, _ in sources()} >= own.union(*added("RECIPES_OF_SOURCES"))


@pytest.mark.slow_cases("celeba-transforms-celeba-nowhere")
@pytest.mark.parametrize("place", ["nowhere", "empty", "text.npz"])
@pytest.mark.parametrize(("name", "field"), sources())
def test_a_wrong_source_is_refused_by_a_dry_run_as_by_the_run(
    name: str,
    field: str,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if name == "hub" and (place == "nowhere" or pytest.importorskip("datasets") is None):
        pytest.skip("that would be a name on the hub, which is asked")
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("text.npz").write_text("nothing of the kind")
    arguments = [name, *([place] if name == "folder" else options(field, place))]
    code, out, sentence = said(capsys, *arguments, "--dry-run")
    assert (code, out) != (0, "") and code in (1, 2) and not out and sentence.isprintable()
    assert said(capsys, *arguments, "-o", "d.h5") == (code, out, sentence)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "text.npz"]


@pytest.mark.parametrize("fault", ["missing-image", "extra-image", "wrong-count", "wrong-list", "missing-partition"])
def test_faces_and_lists_that_do_not_fit(
    fault: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(build_celeba(tmp_path / "celeba", 20, faults=[fault]))
    monkeypatch.chdir(tmp_path)
    code, out, sentence = said(capsys, "celeba-18", "--celeba", folder, "--dry-run")
    assert (code, out) == (1, "") and said(capsys, "celeba-18", "--celeba", folder)[2] == sentence


def test_settings_and_what_is_to_do_are_said(
    small_mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = said(capsys, "mnist", "--mnist", str(small_mnist), "--copies", "2", "--dry-run")
    assert code == 0 and "copies = 2\n" in out and "to do: making mnist, 120 images\n" in out
    assert f"{small_mnist} is not MNIST as published" in out and not list(tmp_path.iterdir())


@pytest.mark.parametrize("out", ["nowhere/d.h5", "other.h5", "m"])
def test_a_place_where_nothing_can_be_written_is_refused(
    out: str, small_mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m").mkdir()
    Path("other.h5").write_text("somebody's")
    arguments = ["mnist", "--mnist", str(small_mnist), "-o", out]
    code, printed, sentence = said(capsys, *arguments, "--dry-run")
    assert code in (1, 2) and not printed and (code, printed, sentence) == said(capsys, *arguments)


def test_what_would_be_downloaded_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(data_recipes._sources, "cache_folder", lambda name: tmp_path / name)
    code, out, _ = said(capsys, "mnist", "--dry-run")
    assert code == 0 and "to do first: downloading train-images-idx3-ubyte.gz" in out and "11,594,722 bytes" in out


def test_faces_are_looked_at_before_a_predictor_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mmgen.data_recipes import celeba_transforms

    monkeypatch.setattr(celeba_transforms, "require_faces_extra", lambda: None)
    monkeypatch.setattr(_landmarks, "find_predictor_file", lambda given: None)
    monkeypatch.chdir(tmp_path)
    assert (
        "there is no folder or zip nowhere" in said(capsys, "celeba-transforms", "--celeba", "nowhere", "--dry-run")[2]
    )
    folder = str(build_celeba(tmp_path / "celeba", 20))
    code, out, _ = said(capsys, "celeba-transforms", "--celeba", folder, "--dry-run")
    assert code == 0 and "to do first: downloading shape_predictor_68_face_landmarks.dat, 99,693,937 bytes" in out
