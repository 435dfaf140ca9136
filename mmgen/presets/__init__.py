"""Settings of published experiments: one TOML file each, in a folder for its paper; each value with its source."""

from importlib import resources

__all__ = ["names", "text_of"]


def names() -> list[str]:
    """Names of all presets, ``folder/file`` without the ending."""
    return sorted(
        f"{folder.name}/{file.name.removesuffix('.toml')}"
        for folder in resources.files(__name__).iterdir()
        if folder.is_dir()
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    )


def text_of(name: str) -> str:
    """The preset called ``name``, as it is in the package."""
    return resources.files(__name__).joinpath(*f"{name}.toml".split("/")).read_text(encoding="utf-8")
