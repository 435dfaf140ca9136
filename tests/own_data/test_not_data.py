"""What lies beside pictures and is no data: hidden files, what systems keep, thumbnails; and names in zips."""

import io
import zipfile
from pathlib import Path

import pytest

from mmgen.core.errors import DataError
from mmgen.core.pictures import decode_picture
from mmgen.data_recipes._left_out import find_thumbnails, reason_to_skip
from mmgen.data_recipes._own._files import Files
from mmgen.data_recipes._own._folder import FolderSource
from tests.own_data._pictures import picture

NOT_DATA = [
    "@eaDir/a.png", "#recycle/a.png", "#snapshot/a.png", "@Recycle/a.png", "@Recently-Snapshot/a.png",
    "@tmp/a.png", "@sharebin/a.png", "$RECYCLE.BIN/a.png", "System Volume Information/a.png", "lost+found/a.png",
    ".AppleDouble/a.png", "__MACOSX/a.png", "._a.png", ".Trashes/a.png", ".Trash-1000/files/a.png", "Thumbs.db",
    ".thumbnails/normal/a.png", ".DS_Store", ".ipynb_checkpoints/a.png", ".git/a.png", ".svn/a.png", ".dvc/a.png",
    "a.png.part", "a.png.crdownload", "~$a.png", "My Previews.lrdata/0/a.png", ".picasaoriginals/a.png",
    ".stfolder/a.png", ".dropbox.cache/a.png", "SYNOPHOTO_THUMB_XL.jpg", "desktop.ini", "ehthumbs.db",
    "@__thumb/a.png", "@database/a.png", "_gsdata_/a.png", "_vti_cnf/a.png", "iPod Photo Cache/a.png", "__pycache__/a",
    "Photos.lrcat-data/a.png", "$Extend/a.png", "ZbThumbnail.info", "TheVolumeSettingsFolder/a.png", "Desktop DB",
]  # fmt: skip


@pytest.mark.parametrize("upper", [False, True], ids=["as they are", "in other case"])
@pytest.mark.parametrize("zipped", [False, True], ids=["folder", "zip"])
def test_what_systems_keep_is_left_out_and_counted(zipped: bool, upper: bool, tmp_path: Path) -> None:
    names = [name.swapcase() if upper else name for name in NOT_DATA]
    if zipped:
        with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
            for name in ("red/1.png", *names, *(f"blue/{name}" for name in names)):
                archive.writestr(name, b"x")
    for name in () if zipped else ("red/1.png", *names, *(f"blue/{name}" for name in names)):
        (tmp_path / "p" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "p" / name).write_bytes(b"x")
    files = Files(tmp_path / ("p.zip" if zipped else "p"))
    assert files.names == ["1.png"] and files.common_folder == "red/"
    assert sum(files.left_out.values()) == 2 * len(NOT_DATA)
    files.close()


@pytest.mark.parametrize(
    "name",
    [
        "@home",
        "#1",
        "recycle",
        "snapshot",
        "thumbs",
        "tmp",
        "lost",
        "x.party",
        "part",
        "git",
        "trash",
        "$5",
        "recycler",
        "cache",
    ],
)
def test_names_that_only_look_so_are_data(name: str) -> None:
    assert reason_to_skip(name) == ""


DOUBLES = {
    "in a folder inside": (["red/1.png", "red/thumbs/1.jpg"], ["red/thumbs/1.jpg"]),
    "in a folder above": (["red/1.png", "Thumbnails/red/1.png"], ["Thumbnails/red/1.png"]),
    "beside the pictures' own": (["images/a/1.png", "thumbs/a/1.png"], ["thumbs/a/1.png"]),
    "by an ending": (["1.jpg", "1_thumb.jpg", "thumb_1.jpg", "1-thumbnail.png"],
                     ["1_thumb.jpg", "thumb_1.jpg", "1-thumbnail.png"]),
    "by a size": (["red/1.jpg", "red/1-150x150.jpg", "red/1_small.jpg", "100x100/red/1.jpg"],
                  ["red/1-150x150.jpg", "100x100/red/1.jpg"]),
    "smaller ones in or around": (["red/1.png", "red/small/1.png", "resized/red/1.png"],
                                  ["red/small/1.png", "resized/red/1.png"]),
    "classes of sizes": (["small/1.png", "large/1.png", "mini/1.png", "web/1.png"], []),
    "a class of thumbs": (["fingers/1.png", "thumbs/1.png", "thumbs/2.png"], []),
    "without the large ones": (["thumbs/1.png", "2_thumb.png"], []),
    "another word": (["1.png", "1_large.png", "thumbscrews/1.png"], []),
}  # fmt: skip


@pytest.mark.parametrize("case", DOUBLES)
def test_thumbnails_are_those_of_which_the_picture_is_there(case: str) -> None:
    names, small = DOUBLES[case]
    assert find_thumbnails(names) == small


def test_thumbnails_are_said(tmp_path: Path) -> None:
    for n in range(3):
        for name in (f"red/{n}.png", f"red/thumbs/{n}.png"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(picture(n))
    source = FolderSource(tmp_path, None, ())
    assert source.names == ["0.png", "1.png", "2.png"]
    assert source.left_out == ["3 pictures that are thumbnails of others there: 'thumbs/0.png', 'thumbs/1.png', "
                               "'thumbs/2.png'"]  # fmt: skip


def archive_of(path: Path, *names: str, flags: int = 0) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            member = zipfile.ZipInfo(name)
            member.filename = name  # as it is, also with backslashes
            archive.writestr(member, picture(len(name)))
    if flags:
        data = path.read_bytes()
        at = data.index(b"PK\1\2")
        path.write_bytes(data[: at + 8] + bytes([flags]) + data[at + 9 :])
    return path


def test_backslashes_of_windows_are_slashes(tmp_path: Path) -> None:
    files = Files(archive_of(tmp_path / "p.zip", "pictures\\red\\1.png", "pictures\\blue\\2.png", "pictures\\blue\\"))
    assert files.names == ["blue/2.png", "red/1.png"] and files.common_folder == "pictures/"
    assert decode_picture(files.read("red/1.png", 10_000), "RGB").size == (16, 16)
    files.close()
    (tmp_path / "q").mkdir()
    for name in ("red\\1.png", "blue\\2.png"):  # as some programs unpack them
        (tmp_path / "q" / name).write_bytes(picture(1))
    assert Files(tmp_path / "q").names == ["blue/2.png", "red/1.png"]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("..\\evil.png",), "leads out of it"),
        (("a\\..\\..\\evil.png",), "leads out of it"),
        (("\\evil.png",), "leads out of it"),
        (("C:\\evil.png",), "leads out of it"),
        (("\\\\server\\share\\evil.png",), "leads out of it"),
        (("red/1.png", "red\\1.png"), "holds 'red/1.png' twice"),
        (("red/1.png", "red//1.png"), "holds 'red/1.png' twice"),
    ],
)
def test_wrong_names_in_zips(names: tuple[str, ...], says: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=says):
        Files(archive_of(tmp_path / "p.zip", *names))


def test_a_zip_with_a_password_is_refused_for_that_reason(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is a zip with a password, which '1.png' asks for; unpack it"):
        Files(archive_of(tmp_path / "p.zip", "1.png", flags=1))


def test_a_zip_of_zips_says_what_to_do(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("1.png", picture(1))
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        archive.writestr("pictures.zip", inner.getvalue())
    with pytest.raises(DataError, match=r"no pictures in .*, only '.zip'; unpack the .zip in it and name the folder"):
        FolderSource(tmp_path / "p.zip", None, ())
