"""Small pictures, and tables of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmgen.data_recipes import Survey
from mmgen.data_recipes.folder import Folder
from mmgen.settings.config import validate
from tests.own_data._pictures import picture, zipped

N = 24
NAMES = [f"{n:02d}.png" for n in range(N)]
PICTURES = {name: picture(n) for n, name in enumerate(NAMES)}
COLOURS = [("red", "blue")[n % 2] for n in range(N)]


def contents(folder: Path, files: Mapping[str, bytes | str], zip_it: bool = False, **settings: Any) -> Survey:
    """What would be made of a folder of these files, and of the pictures of NAMES unless red/00.png is among them."""
    folder = folder / "p"
    pictures = () if "red/00.png" in files else NAMES
    for name, data in {**{name: PICTURES[name] for name in pictures}, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    where = zipped(folder, folder.with_suffix(".zip")) if zip_it else folder
    return validate(Folder, {"pictures": where, "size": 8, **settings}).survey(0, 1).run()


def values(made: Survey, name: str = "colour") -> list[str]:
    """An attribute's value of each picture."""
    return [(*made.attributes[name], *[""] * 255)[code] for code in made.labels.codes[name]]


def table(sign: str = ",", head: str = "", tail: str = "", quote: str = "", end: str = "\n", first: str = "") -> str:
    """A table of pictures and colours."""
    rows = [("file_name", "colour"), *zip(NAMES, COLOURS, strict=True)]
    lines = [sign.join(f"{quote}{cell}{quote}" for cell in row) for row in rows]
    return head + end.join([first + lines[0], *lines[1:]]) + end + tail


def numbered(names: str, *cells: Any) -> str:
    return "\n".join([names, *(",".join(map(str, (n, NAMES[n], COLOURS[n], *cells))) for n in range(N))])
