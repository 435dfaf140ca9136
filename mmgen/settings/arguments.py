"""Checks of arguments when a public function is called: types, ranges, and misspelt keywords.

The decorator :func:`check_arguments` checks every call against the annotations, as strictly as the command line does:
``True``, ``"1"``, 1.5 and NaN are no seeds. numpy's numbers count as Python's.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache, wraps
from os import PathLike
from types import SimpleNamespace
from typing import Any, TypeVar, cast, get_type_hints

import numpy as np
from pydantic import ConfigDict, InstanceOf, TypeAdapter, ValidationError

from mmgen.core.errors import MmgenError, UsageError, clip, format_unknown_name

F = TypeVar("F", bound=Callable[..., Any])

_LONGEST_SHOWN = 120
_TIMES = "mM"  # dates and durations of numpy, whose missing ones Python writes as None

_WORDS = {
    "a valid string": "text",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a finite number": "a finite number",
    "a valid boolean": "True or False",
    "a valid dictionary": "a dictionary",
    "a valid mapping": "a dictionary",
    "an instance of Mapping": "a dictionary",
    "an instance of Sequence": "a list",
    "a valid list": "a list",
    "a valid tuple": "a list",
    "an instance of Path": "a path",
    "an instance of Dataset": "a dataset",
    "an instance of TrainedModel": "a model",
    "an instance of HasPath": "an object made from a file",
    "an instance of Watch": "a Watch",
    "'str' instances are not allowed as a Sequence value": "a list",
    "'bytes' instances are not allowed as a Sequence value": "a list",
    "None": "None",
}
"""Words for messages by pydantic's words."""

_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def format_value(value: Any) -> str:
    """Format a value for an error message: an array as its shape and type, any other value on one short line."""
    shape, kind = getattr(value, "shape", None), getattr(value, "dtype", None)
    if kind is not None and isinstance(shape, tuple) and shape:
        return f"an array {list(shape)} of {str(kind).removeprefix('torch.')}"
    try:
        return clip(" ".join(repr(value).split()), _LONGEST_SHOWN)
    except Exception:  # a foreign __repr__ may raise anything
        return f"a {type(value).__name__}"


def _convert_numpy_values(value: Any) -> Any:
    """Convert numpy scalars and vectors to Python numbers and lists; return anything else unchanged."""
    if isinstance(value, np.generic):
        return value if value.dtype.kind in _TIMES else value.item()
    is_vector = isinstance(value, np.ndarray) and value.ndim == 1
    return value.tolist() if is_vector and value.dtype.kind not in f"O{_TIMES}" else value


def plain_settings(value: Any, name: str = "settings") -> Any:
    """Return settings as values that a file can hold: arrays, and numbers of numpy and torch, become Python's.

    Raises:
        UsageError: One is neither text, a number of at most 64 bits, true or false, a path, nor a list or dictionary of
            them; or one contains itself.

    Example:
        >>> plain_settings({"training.batch": np.int64(8), "model.channels": np.array([4, 4])})
        {'training.batch': 8, 'model.channels': [4, 4]}
    """
    if hasattr(value, "tolist") and getattr(value.dtype, "kind", "") not in {*_TIMES}:
        with suppress(RuntimeError):  # a sparse tensor, or one without numbers
            value = value.tolist()
    try:
        if isinstance(value, Mapping):
            return {key: plain_settings(inner, str(key)) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [plain_settings(inner, name) for inner in value]
    except RecursionError:
        raise UsageError(f"{name} got {format_value(value)}, expected values that do not contain themselves") from None
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise UsageError(f"{name} got {format_value(value)}, expected a whole number of at most 64 bits")
    if value is None or isinstance(value, str | int | float | PathLike):
        return value
    raise UsageError(f"{name} got {format_value(value)}, expected text, a number, True or False, or a list of them")


def unknown_argument_error(function: Callable[..., Any], name: str, further_names: Iterable[str] = ()) -> UsageError:
    """Build the error for an unknown keyword argument of a function, with the nearest known one.

    Args:
        function: The function.
        name: The unknown keyword.
        further_names: Keywords that the function accepts besides those of its signature.
    """
    listed = [
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.name != "self" and one.kind is not one.VAR_KEYWORD
    ]
    return UsageError(format_unknown_name(f"argument of {function.__name__}", name, [*listed, *further_names]))


def _bind_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> inspect.BoundArguments:
    signature = _signature(function)
    names = signature.parameters
    if not any(one.kind is one.VAR_KEYWORD for one in names.values()):
        for name in keywords:
            if name not in names:
                raise unknown_argument_error(function, name)
    try:
        return signature.bind(*args, **keywords)
    except TypeError as error:
        listed = ", ".join(name for name in names if name != "self")
        raise UsageError(f"{function.__name__}: {error}; its arguments are {listed}") from None


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


@cache  # of functions, which live as long as the program
def _argument_validators(function: Callable[..., Any]) -> dict[str, TypeAdapter[Any]]:
    """Return a pydantic validator for each argument of a function, by name."""
    inner = inspect.unwrap(function)
    # The type of the result may be imported only for type checkers.
    arguments = SimpleNamespace(__annotations__={k: v for k, v in inner.__annotations__.items() if k != "return"})
    hints = get_type_hints(arguments, getattr(inner, "__globals__", {}), include_extras=True)
    kinds = inspect.signature(function).parameters
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    listed = [name for name in hints if name in kinds and kinds[name].kind not in several]
    return {name: _validator_of_type(hints[name]) for name in listed}


def _validator_of_type(hint: Any) -> TypeAdapter[Any]:
    if is_dataclass(hint):  # an instance; a dictionary is not converted
        return TypeAdapter(InstanceOf[hint])
    return TypeAdapter(hint, config=ConfigDict(strict=True, arbitrary_types_allowed=True, allow_inf_nan=False))


def _format_validation_error(name: str, value: Any, error: ValidationError) -> str:
    """Format pydantic's errors about the argument ``name`` as a message: "NAME got VALUE, expected RANGE"."""
    faults = error.errors(include_url=False, include_context=True)
    for fault in faults:
        if fault["type"] == "value_error":
            return f"{name} {fault['ctx']['error']}"
    ranges = [fault for fault in faults if fault["type"].startswith(("greater", "less", "finite"))]
    words = list(dict.fromkeys(_format_expectation(fault) for fault in ranges or faults))
    return f"{name} got {format_value(value)}, expected {' or '.join(words)}"


def _format_expectation(fault: Any) -> str:
    """Format the value that one of pydantic's errors expects, in plain words: "a whole number"."""
    if fault["type"] in _BOUNDS:
        words, limit = _BOUNDS[fault["type"]]
        return f"{words} {fault['ctx'][limit]:,}"
    words = fault["msg"].removeprefix("Input should be ").removeprefix("Input is not ")
    return _WORDS.get(words, words)


def check_arguments(function: F) -> F:
    """Decorate a function so that each call checks the arguments against their annotations.

    Raises:
        UsageError: At a call with an unknown keyword, or an argument of another type or range.

    Example:
        >>> from mmgen.settings.kinds import Count, Seed
        >>> @check_arguments
        ... def draw(n: Count = 1, seed: Seed = 0) -> int:
        ...     return n
        >>> draw(n=3)
        3
        >>> draw(n=True)
        Traceback (most recent call last):
        mmgen.core.errors.UsageError: n got True, expected a whole number
    """

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        bound = _bind_arguments(function, args, keywords)
        adapters = _argument_validators(function)
        for name, value in bound.arguments.items():
            if name in adapters:
                plain = _convert_numpy_values(value)
                try:
                    adapters[name].validate_python(plain)
                except ValidationError as error:
                    raise UsageError(_format_validation_error(name, value, error)) from None
                bound.arguments[name] = plain
        try:
            return function(*bound.args, **bound.kwargs)
        except MmgenError as error:  # whose message names options of the command line
            error.name_arguments({f"--{name.replace('_', '-')}": name for name in adapters})
            raise

    return cast(F, call)
