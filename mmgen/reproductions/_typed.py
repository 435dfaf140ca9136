"""What two commands have to have in common so that they make the same file, as far as words can tell."""

from mmgen.reproductions._stages import PROGRAM, split

__all__ = ["choices", "is_typed", "words"]

_FILES = (".h5", ".safetensors")
_MOST = 20_000  # characters; no command of a person or of a list has more

_OUTPUT = ("-o", "--output")
_MACHINE = (*_OUTPUT, "--workers", "--scheduler", "--seed")
"""Options of make-data that change nothing of what it makes, and the seed, which headers tell."""


def is_typed(command: str) -> bool:
    """Whether a recorded command is one of the program's, and not a caller's own word for what it did."""
    return command.startswith(f"{PROGRAM} ")


def words(command: str) -> list[str]:
    """A command word by word, without where it writes, and with files by their kind alone: their content is compared.

    Commands with the same words make the same file; those with others may.
    """
    return [word for option in _options(command, _OUTPUT) for word in option]


def choices(command: str) -> list[list[str]]:
    """Each option with its values, in no order, without those that change nothing of a dataset; paths by their names.

    Commands with other choices make other datasets, but for defaults that only one of them says.
    """
    named = [[word.rstrip("/").rpartition("/")[2] for word in option] for option in _options(command, _MACHINE)]
    return sorted(named)


def _options(command: str, left_out: tuple[str, ...]) -> list[list[str]]:
    """What comes before the first option, then every option with what follows it."""
    try:
        typed = split(command) if len(command) <= _MOST else [command]
    except ValueError:  # quotes without an end, as nobody can have typed
        typed = [command]
    options: list[list[str]] = [[]]
    for word in typed:
        if word.startswith("-") and not word[1:2].isdecimal():
            options.append([word])
        else:
            options[-1].append(word)
    kept = [[_kind(word) for word in option] for option in options]
    for option in kept[1:]:
        if option[0] in left_out:
            kept[0] += option[2:]  # what follows its value stands for itself
        elif option[0] == "--overwrite":
            kept[0] += option[1:]
    return [kept[0], *(option for option in kept[1:] if option[0] not in (*left_out, "--overwrite"))]


def _kind(word: str) -> str:
    """A file by its kind, everything else as it is."""
    return next((kind for kind in _FILES if word.endswith(kind) and "=" not in word), word)
