"""How published tables are made again: one TOML list of commands and numbers per table, to be read and edited.

A table of several datasets is a folder with one list for each.
"""

from importlib import resources

from mmgen.core.parsing import parse_toml

__all__ = ["datasets_of", "names", "text_of", "usual_dataset_of"]


def names() -> list[str]:
    """Names of the lists in the package: "cremer-table1", "wu-table2/mnist"."""
    found = []
    for file in resources.files(__package__).iterdir():
        if file.name.endswith(".toml"):
            found.append(file.name)
        elif file.is_dir():
            found += [f"{file.name}/{part.name}" for part in file.iterdir() if part.name.endswith(".toml")]
    return sorted(name.removesuffix(".toml") for name in found)


def datasets_of(table: str) -> list[str]:
    """Datasets that a table is measured on, where it has a list for each; [] for a list of its own."""
    return [name.split("/")[1] for name in names() if name.startswith(f"{table}/")]


def text_of(name: str) -> str:
    """The list called ``name``, as it is in the package."""
    return resources.files(__package__).joinpath(*f"{name}.toml".split("/")).read_text(encoding="utf-8")


def usual_dataset_of(table: str) -> str | None:
    """The dataset that a table is meant of where none is said: that of the list which says ``usual``."""
    for dataset in datasets_of(table):
        if parse_toml(text_of(f"{table}/{dataset}")).get("usual"):
            return dataset
    return None
