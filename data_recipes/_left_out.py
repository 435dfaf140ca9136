"""Detection of files beside pictures that are no data: hidden files, systems' files, thumbnails, partial downloads."""

import posixpath
import re
from collections.abc import Collection

__all__ = ["find_thumbnails", "reason_to_skip"]

_SYSTEMS = re.compile(
    r"""@(eadir|tmp|recycle|recently-snapshot|snapshots?|sharebin|transcode|upload_cache|database|syno.*|__.+)
    |\#(recycle|snapshot|archive)
    |~snapshot|\$recycle\.bin|recycle\.bin|(?-i:RECYCLER)|system\ volume\ information|lost\+found|found\.\d{3}
    |\$(extend|winreagent)|config\.msi|onedrivetemp|_gsdata_|_vti_(cnf|pvt)|__pycache__
    |__macosx|network\ trash\ folder|temporary\ items|thevolumesettingsfolder|ipod\ photo\ cache|desktop\ d[bf]
    |(eh)?thumbs(_vista)?\.db|zbthumbnail\.info|desktop\.ini|icon\r|picasa\.ini|syno(photo|file)_.*
    |.*\.(lrdata|lrcat-data|lrprev|cocatalog|thumbnails)
    |~\$.*""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""Names that operating systems, network storage and editors give to what they keep for themselves."""

_UNFINISHED = re.compile(r".*\.(part|partial|crdownload|download|filepart|!ut|opdownload|aria2)", re.IGNORECASE)

_SMALL = r"(thumb(nail)?s?|previews?|tn|\d{2,4}x\d{2,4})"
_WITHIN = r"(small|mini|resized|low-?res|web)"
"""Further names of folders of small pictures, in or around those of the pictures; small and large are classes."""
_SMALL_ANYWHERE = re.compile(f"{_SMALL}|{_WITHIN}", re.IGNORECASE)
_SMALL_FOLDER = re.compile(rf"[._]*{_SMALL}[._]*", re.IGNORECASE)
_WITHIN_FOLDER = re.compile(rf"[._]*{_WITHIN}[._]*", re.IGNORECASE)
_SMALL_FILE = re.compile(rf"({_SMALL}[-_. ]+(?P<behind>.+))|((?P<before>.+)[-_. ]+{_SMALL})", re.IGNORECASE)
_LARGE_FOLDERS = {"image", "images", "img", "picture", "pictures", "photo", "photos", "original", "originals", "full",
                  "large", "fullsize"}  # fmt: skip


def reason_to_skip(name: str, is_file: bool = True) -> str:
    """Return the reason why a file or folder of this name is not part of a dataset; "" if it is data.

    Example:
        >>> [reason_to_skip(name) for name in (".DS_Store", "@eaDir", "$RECYCLE.BIN", "x.png.part", "red", "@home")]
        ['hidden', 'of systems: thumbnails, bins', 'of systems: thumbnails, bins', 'unfinished downloads', '', '']
    """
    if name.startswith(".") and name not in (".", ".."):
        return "hidden"
    if _SYSTEMS.fullmatch(name):
        return "of systems: thumbnails, bins"
    return "unfinished downloads" if is_file and _UNFINISHED.fullmatch(name) else ""


def find_thumbnails(names: Collection[str]) -> list[str]:
    """Return the pictures that are thumbnails of other pictures in ``names``, by their names or folders.

    Example:
        >>> find_thumbnails(
        ...     ["red/1.png", "red/thumbs/1.png", "red/2.png", "red/2_thumb.png", "fingers/3.png", "thumbs/3.png"]
        ... )
        ['red/thumbs/1.png', 'red/2_thumb.png']
    """
    some = [name for name in names if _SMALL_ANYWHERE.search(name)]
    stems = {posixpath.splitext(name)[0].casefold() for name in names} if some else set()
    return [name for name in some if any(large.casefold() in stems for large in _names_of_large_picture(name))]


def _names_of_large_picture(name: str) -> list[str]:
    """Return possible names, without endings, of the large picture of which ``name`` may be a thumbnail."""
    larger = []
    parts = posixpath.splitext(name)[0].split("/")
    for level, folder in enumerate(parts[:-1]):
        if _WITHIN_FOLDER.fullmatch(folder):
            larger.append("/".join((*parts[:level], *parts[level + 1 :])))
        elif _SMALL_FOLDER.fullmatch(folder):
            for others in ((), *((large,) for large in _LARGE_FOLDERS)):
                larger.append("/".join((*parts[:level], *others, *parts[level + 1 :])))
    if match := _SMALL_FILE.fullmatch(parts[-1]):
        larger.append("/".join((*parts[:-1], match["behind"] or match["before"])))
    return larger
