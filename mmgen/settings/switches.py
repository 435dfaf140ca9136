"""Annotations of settings with a special form on the command line: switches and positional arguments.

Other settings need no mark: ``size`` is ``--size PIXELS``, and a setting that is true or false is ``--masks``.
"""

from dataclasses import dataclass
from typing import Any

__all__ = ["Positional", "Switch", "Switches", "positional_fields"]


@dataclass(frozen=True)
class Switch:
    """An option without a value that gives a setting one of its values.

    Attributes:
        name: As it is typed: "--grey".
        value: What the setting becomes.
        about: What it does, for the help.
    """

    name: str
    value: Any
    about: str


@dataclass(frozen=True)
class Switches:
    """Annotation of a field that is set by switches, of which at most one may be typed.

    A switch whose value the field's type does not have is hidden: the field's validator refuses it in its own words.

    Example:
        >>> from typing import Annotated
        >>> from mmgen.settings.config import Settings
        >>> ink = Switches((Switch("--grey", False, "Keep the grey levels."),))
        >>> class Pages(Settings):
        ...     binarise: Annotated[bool, ink] = True
        >>> [one.name for one in Pages.model_fields["binarise"].metadata[0].members]
        ['--grey']
    """

    members: tuple[Switch, ...]


@dataclass(frozen=True)
class Positional:
    """Annotation of a field that is a positional argument after the member's name.

    A field without a default must be given; several are given in the order of the fields.

    Attributes:
        metavar: What it is called in help and messages: "PICTURES".
    """

    metavar: str


def positional_fields(schema: Any) -> list[str]:
    """Return the names of the positional fields of a settings model, in order."""
    fields = schema.model_fields.items()
    return [name for name, field in fields if any(isinstance(one, Positional) for one in field.metadata)]
