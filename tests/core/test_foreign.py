"""Files that others made: only regular ones, never more than expected, and only the decoders that are wanted."""

import ast
import gzip
import io
import os
import stat
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import EpsImagePlugin, Image

from mmgen.core import pictures
from mmgen.core.errors import ArtifactError, DataError, MmgenError
from mmgen.core.foreign import CannotReadError, open_zip, read_file, read_member
from mmgen.core.pictures import FORMATS, decode_picture, read_picture
from mmgen.data_recipes._celeba import _landmarks
from mmgen.data_recipes._celeba._landmarks import decode_face
from mmgen.data_recipes._celeba._source import Source
from mmgen.data_recipes._own._folder import FolderSource
from mmgen.data_recipes._published import read_idx
from mmgen.data_recipes._scene_file import read_scene_file
from mmgen.data_recipes._sources import read_amat
from mmgen.data_recipes.dsprites import SpriteArchive
from mmgen.generation.examples import read_file_images
from tests.test_floors import SOURCES, name_of
from tests.worlds import added_rows

MB = 2**20


def _amat(path: Path) -> object:
    for part in ("train", "valid", "test"):
        (path.parent / f"binarized_mnist_{part}.amat").symlink_to(path)
    return read_amat(path.parent)


def _predictor(path: Path) -> object:
    pytest.importorskip("dlib")
    return _landmarks.load_predictor(path)


def _folder(path: Path) -> object:
    (path.parent / "pictures").mkdir()
    return FolderSource(path.parent / "pictures", path.rename(path.with_suffix(".csv")), ())


READERS: dict[str, Callable[[Path], object]] = {
    "picture": lambda path: read_file_images(path, (1, 16, 16)),
    "idx": lambda path: read_idx(path, 3),
    "amat": _amat,
    "celeba": lambda path: Source(path, "needed"),
    "scenes": lambda path: read_scene_file(path, 1, {}),
    "landmarks": _predictor,
    "table": _folder,
    "zip of pictures": lambda path: FolderSource(path, None, ()),
    "dsprites": SpriteArchive,
    **added_rows("READERS"),
}
"""All that reads a file which somebody else made, but for mmgen's own formats, tables and settings."""


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)  # a hole: takes no disk


def _empty(path: Path) -> None:
    path.touch()


@pytest.mark.parametrize("make", [_pipe, _huge, _empty, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_honest_file_is_refused_at_once(tmp_path: Path, reader: str, make: Callable[[Path], None]) -> None:
    path = tmp_path / "given"
    make(path)
    tracemalloc.start()
    try:
        with pytest.raises(MmgenError) as refused:
            READERS[reader](path)
        assert tracemalloc.get_traced_memory()[1] < 20 * MB
    finally:
        tracemalloc.stop()
    assert "\n" not in str(refused.value) and str(tmp_path) in str(refused.value)


def test_nobody_else_opens_pictures_or_unpacks() -> None:
    """Names of functions that decode or unpack without a bound; foreign.py and pictures.py are their one home."""
    unbounded = {"Image.open", "gzip.open", "gzip.decompress", "zlib.decompress", "zipfile.ZipFile", "np.load"}
    unbounded |= {"bz2.decompress", "lzma.decompress", "tarfile.open", "gzip.GzipFile", "shutil.unpack_archive"}

    def called(path: Path) -> set[str]:
        ends = {name.partition(".")[2] for name in unbounded}
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        calls = [node for node in nodes if type(node) is ast.Call and getattr(node.func, "attr", "") in ends]
        # A zip that is written holds what we put in.
        return {
            ast.unparse(call.func) for call in calls if not (len(call.args) > 1 and ast.unparse(call.args[1]) == "'w'")
        }

    calls = {name_of(path): called(path) & unbounded for path in SOURCES}
    assert {name for name, found in calls.items() if found} == {"mmgen.core.foreign", "mmgen.core.pictures"}


def _peak(work: Callable[[], object]) -> tuple[int, str]:
    """Most bytes held at once, and what was said."""
    tracemalloc.start()
    try:
        with pytest.raises((DataError, CannotReadError, ValueError)) as refused:
            work()
        return tracemalloc.get_traced_memory()[1], str(refused.value)
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    header = struct.pack(">4B3I", 0, 0, 8, 3, 5, 28, 28)
    for name, start, says in (("long", header, "or there are more"), ("zeros", b"", "it begins otherwise")):
        path = tmp_path / name
        path.write_bytes(gzip.compress(start + bytes(100 * MB)))
        peak, said = _peak(lambda path=path: read_idx(path, 3))
        assert peak < 10 * MB and says in said
    # A header that asks for more than there is makes no room for it.
    path.write_bytes(gzip.compress(struct.pack(">4B3I", 0, 0, 8, 3, 2**20, 28, 28) + bytes(1000)))
    peak, said = _peak(lambda: read_idx(path, 3))
    assert peak < 10 * MB and "or there are more" in said


@pytest.mark.slow_cases("14", "12")
@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_that_lies_about_a_size_is_not_unpacked(tmp_path: Path, packing: int) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", packing) as archive:
        archive.writestr("000001.jpg", bytes(100 * MB))
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<I", 100 * MB), struct.pack("<I", 1000)))
    with open_zip(path) as archive:
        (member,) = archive.infolist()
        assert member.file_size == 1000
        peak, said = _peak(lambda: read_member(archive, member, MB))
    assert peak < 10 * MB
    assert "damaged there" in said if packing == zipfile.ZIP_DEFLATED else "expected deflate or no compression" in said


def encoded(name: str, size: tuple[int, int] = (16, 16)) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size[::-1], 3), np.uint8)).save(buffer, name)
    return buffer.getvalue()


def test_every_format_is_read_whatever_the_file_is_called(tmp_path: Path) -> None:
    path = tmp_path / "picture.txt"
    for name in FORMATS:
        path.write_bytes(encoded(name))
        picture = read_picture(path, "RGB", size=(16, 16))
        assert picture.size == (16, 16) and np.asarray(picture).std() > 40, name


def test_postscript_never_starts_ghostscript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, program = tmp_path / "started", tmp_path / "gs"
    program.write_text(f"#!/bin/sh\ntouch {started}\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 16 16\n%%EndComments\nshowpage\n"
    for name in ("x.png", "x.eps"):
        (tmp_path / name).write_bytes(script)
        with pytest.raises(ArtifactError, match="no PNG, JPEG, WEBP, GIF, BMP or PPM picture"):
            read_file_images(tmp_path / name, (1, 16, 16))
    with pytest.raises(CannotReadError, match="no JPEG picture"):
        decode_face(script)
    assert not started.exists()


@pytest.mark.filterwarnings("ignore:IM image format:DeprecationWarning")
@pytest.mark.parametrize("name", ["IM", "TIFF", "ICO", "TGA", "PCX", "SGI", "DDS", "EPS", "PDF"])
def test_other_formats_are_named_and_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.png").write_bytes(encoded(name))
    with pytest.raises(ArtifactError, match="it is no PNG, JPEG, WEBP, GIF, BMP or PPM picture"):
        read_file_images(tmp_path / "x.png", (1, 16, 16))


def test_the_size_is_looked_at_before_anything_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("decoded")

    large = encoded("PNG", (300, 200))
    monkeypatch.setattr(pictures, "MOST_PIXELS", 300 * 200 - 1)
    for name in FORMATS:
        data = encoded(name, (300, 200))
        monkeypatch.setattr(type(Image.open(io.BytesIO(data))), "load", never)
        with pytest.raises(CannotReadError, match="300 x 200 pixels, expected at most 59,999"):
            decode_picture(data, "L")
        with pytest.raises(CannotReadError, match="300 x 200 pixels, expected 16 x 16"):
            decode_picture(data, "L", size=(16, 16))
    # A head that promises far more than Pillow itself allows, without a warning.
    head = large[:16] + struct.pack(">2I", 100_000, 100_000) + large[24:29]
    head += struct.pack(">I", zlib.crc32(head[12:29])) + large[33:]
    with pytest.raises(CannotReadError, match=r"exceeds limit|expected at most"):
        decode_picture(head, "L")


def test_pixels_of_more_than_8_bits_are_not_cut_off() -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.array([[0, 256, 65535]], np.uint16)).save(buffer, "PNG")
    with pytest.raises(CannotReadError, match=r"kind I;16, expected 8 bits a channel$"):
        decode_picture(buffer.getvalue(), "L")


@given(name=st.sampled_from(FORMATS), cut=st.integers(0, 900), place=st.integers(0, 400), value=st.binary(max_size=6))
def test_damaged_pictures_are_pictures_or_refused(name: str, cut: int, place: int, value: bytes) -> None:
    data = bytearray(encoded(name))
    data[place : place + len(value)] = value
    try:
        picture = decode_picture(bytes(data[: max(1, len(data) - cut)]), "RGB")
    except CannotReadError as error:
        picture, said = None, str(error)
    else:
        said = ""
    assert said.isprintable() and len(said) < 250
    assert picture is None or (picture.mode == "RGB" and picture.width * picture.height <= pictures.MOST_PIXELS)


def test_what_a_library_says_is_made_one_short_printable_line() -> None:
    said = str(CannotReadError("\x1b[2Jred\u202e" + "x" * 5000 + "\nsecond"))
    assert said.isprintable() and said.startswith("?[2Jred?") and len(said) == 203


def test_files_that_grow_or_hide_their_size_are_bounded() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("this system has no files that say they have 0 bytes")
    assert read_file(Path("/proc/self/status"), MB)
    with pytest.raises(CannotReadError, match="too many bytes, expected at most 10"):
        read_file(Path("/proc/self/status"), 10)
