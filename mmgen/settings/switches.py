"""How a setting is spelled on a command line where its name and a value would not do: as switches, or by its place.

Other settings need nothing: ``size`` is ``--size PIXELS``, and what is true or false is ``--masks``.
"""

from dataclasses import dataclass
from typing import Any

__all__ = ["Positional", "Switch", "Switches", "placed"]


@dataclass(frozen=True)
class Switch:
    """An option that gives a setting one of its values.

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
    """Stands in the annotation of a field: these switches are its options. At most one of them may be typed.

    A switch whose value the field's own type does not have is understood and not shown, so that the field's validator
    can refuse it in words of its own.

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
    """Stands in the annotation of a field: it is given by its place behind the member's name, without an option.

    A field without a default must be given; several are given in the order of the fields.

    Attributes:
        metavar: What it is called in help and messages: "PICTURES".
    """

    metavar: str


def placed(schema: Any) -> list[str]:
    """The fields of a settings model that are given by their places, in order."""
    fields = schema.model_fields.items()
    return [name for name, field in fields if any(isinstance(one, Positional) for one in field.metadata)]
