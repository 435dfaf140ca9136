"""Published tables to be made again: an experiment file (TOML) for each, or a folder with one for each dataset."""

from importlib import resources

from mmgen.core.parsing import parse_toml

__all__ = ["datasets_of_table", "experiment_names", "experiment_text", "default_dataset_of"]


def experiment_names() -> list[str]:
    """Return the names of the experiments that mmgen comes with: "cremer-table1", "wu-table2/mnist"."""
    files = []
    for file in resources.files(__package__).iterdir():
        if file.name.endswith(".toml") and not file.name.startswith("_"):
            files.append(file.name)
        elif file.is_dir():
            files += [f"{file.name}/{part.name}" for part in file.iterdir() if part.name.endswith(".toml")]
    return sorted(name.removesuffix(".toml") for name in files)


def datasets_of_table(table: str) -> list[str]:
    """Return the datasets for which mmgen has an experiment file of this table; [] if there is one file for all."""
    return [name.split("/")[1] for name in experiment_names() if name.startswith(f"{table}/")]


def experiment_text(name: str) -> str:
    """Return the text (TOML) of an experiment file that mmgen comes with."""
    return resources.files(__package__).joinpath(*f"{name}.toml".split("/")).read_text(encoding="utf-8")


def default_dataset_of(table: str) -> str | None:
    """Return the dataset on which a table is reproduced by default; None if there is only one."""
    for dataset in datasets_of_table(table):
        if parse_toml(experiment_text(f"{table}/{dataset}")).get("usual"):
            return dataset
    return None
