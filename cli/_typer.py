"""What the command line takes from inside typer: the one file to look at when a version of typer breaks help."""

from typing import Any

from mmgen.cli._options import LARGEST_SEED


def type_of(parameter: Any) -> str:
    """Return the name of a parameter's type, that of an item for a list."""
    return str(parameter.bare_type()).removeprefix("list[").removesuffix("]")


def simplify_parameter_help(parameter: Any) -> None:
    """Show a parameter's default in help exactly as its option states it, and hide the largest 64-bit seed."""
    if isinstance(parameter.show_default, str):
        parameter._get_default_string = lambda **_: parameter.show_default
    if parameter.param_type_name == "argument":
        parameter.display_type_rich = lambda **_: None  # its name explains it
    if str(LARGEST_SEED) in str(parameter._get_number_range_help_str()):
        parameter._get_number_range_help_str = lambda: None


def has_arguments(context: Any) -> bool:
    """Return True if a group was given arguments that it has not parsed yet."""
    return bool(context._protected_args)
