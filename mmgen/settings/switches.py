"""Annotations of settings for the command line: options without values (switches), and positional arguments.

Other settings need no annotation: ``size`` is ``--size PIXELS``, and a setting that is true or false is ``--masks``.
"""

from dataclasses import dataclass
from typing import Any

__all__ = ["Positional", "Switch", "Switches", "positional_fields"]


@dataclass(frozen=True)
class Switch:
    """Option without a value, such as --grey, that gives a setting one of its values.

    Attributes:
        name: Name of the option: "--grey".
        value: Value that the option gives to the setting.
        about: Help text.
    """

    name: str
    value: Any
    about: str


@dataclass(frozen=True)
class Switches:
    """Annotation of a setting that options without values set, at most one of them at a time.

    A switch is hidden in the help if its value is outside the field's type; the field's validator then refuses it.

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
    """Annotation of a setting that is a positional argument of its command.

    A field without a default is required; several follow in the order of the fields.

    Attributes:
        metavar: Name in help and messages: "PICTURES".
    """

    metavar: str


def positional_fields(schema: Any) -> list[str]:
    """Return the names of the settings of a model that are positional arguments, in order."""
    fields = schema.model_fields.items()
    return [name for name, field in fields if any(isinstance(one, Positional) for one in field.metadata)]
