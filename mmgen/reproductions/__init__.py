"""How published tables are made again: one TOML list of commands and numbers per table, to be read and edited."""

from importlib import resources

__all__ = ["names", "text_of"]


def names() -> list[str]:
    """Names of the lists in the package."""
    files = (resources.files(__name__)).iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def text_of(name: str) -> str:
    """The list called ``name``, as it is in the package."""
    return (resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8")
