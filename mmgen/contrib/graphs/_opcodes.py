"""Arrays in old pickled files, read as data: nothing in them is imported, called or run.

Some public datasets exist in no other form. A pickle is a list of instructions; here they only build lists, tuples,
dictionaries, numbers and texts, and whatever would call a function becomes a :class:`Call` that says what would have
been called. Arrays and sparse matrices are then put together by our own code from the numbers in such calls.
"""

import codecs
import io
import pickletools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError, read_file

_MOST = 5_000_000
"""Largest number of instructions, far above those of the datasets: no file keeps the reader busy for ever."""
_LARGEST = 200 * 2**20
"""Bytes of a file, likewise."""
_NUMBERS = re.compile(r"[biufc]\d{1,2}")
_OPCODES = {opcode.code: opcode for opcode in pickletools.opcodes}
_PUSHES_ARGUMENT = {
    "INT", "LONG", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "NONE",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
}  # fmt: skip
"""Instructions that push a number, a text or nothing."""


@dataclass
class Call:
    """Description of a function call in a pickle; the call is never executed.

    Attributes:
        name: The function or class, "module.name".
        arguments: Its arguments.
        state: Later changes of the result: by BUILD, by assignment of items, by appending.
    """

    name: str
    arguments: tuple[Any, ...] = ()
    state: Any = None
    items: dict[Any, Any] = field(default_factory=dict)


def read_opcodes(path: Path) -> Any:
    """Read a pickle as plain values, with a :class:`Call` in place of each function call; nothing is executed.

    Raises:
        DataError: The file is missing, or holds other values than arrays, lists and dictionaries.
    """
    try:
        blob = read_file(path, _LARGEST)
    except CannotReadError as error:
        raise DataError(f"cannot read {path}: {error}; give the publisher's own file") from None
    try:
        return _run(blob)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, UnicodeError) as error:
        raise DataError(
            f"{path} holds something other than arrays, lists and dictionaries as pickled ({error}); "
            "give the publisher's own file"
        ) from None


def _read_instructions(blob: bytes) -> Iterator[tuple[str, Any]]:
    """Yield name and argument of each instruction of a pickle, by ``pickletools``."""
    source = io.BytesIO(blob)
    while code := source.read(1):
        opcode = _OPCODES.get(code.decode("latin-1"))
        if opcode is None:
            raise ValueError(f"it has the unknown instruction {code!r}")
        if opcode.name == "STRING":  # Python 2 wrote arrays so, and pickletools takes only ASCII for it
            quoted = source.readline().strip()
            if len(quoted) < 2 or quoted[:1] not in b"\"'" or quoted[:1] != quoted[-1:]:
                raise ValueError("it has a text without quotes")
            yield opcode.name, codecs.escape_decode(quoted[1:-1])[0].decode("latin-1")
        else:
            yield opcode.name, None if opcode.arg is None else opcode.arg.reader(source)


def _run(blob: bytes) -> Any:
    """Follow the harmless instructions of a pickle with a stack and a memory; refuse all others."""
    stack: list[Any] = []
    marks: list[int] = []
    memory: dict[int, Any] = {}

    def pop(count: int) -> list[Any]:
        if len(stack) < count:
            raise ValueError("it has too few values")
        return pop_from(len(stack) - count)

    def pop_from(place: int) -> list[Any]:
        above = stack[place:]
        del stack[place:]
        return above

    for number, (name, argument) in enumerate(_read_instructions(blob)):
        if number > _MOST:
            raise ValueError(f"it has more than {_MOST:,} instructions")
        if name in _PUSHES_ARGUMENT:
            stack.append(argument)
            continue
        match name:
            case "PROTO" | "FRAME":
                pass
            case "STOP":
                return stack.pop()
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                memory[int(argument)] = stack[-1]
            case "MEMOIZE":
                memory[len(memory)] = stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                stack.append(memory[int(argument)])
            case "MARK":
                marks.append(len(stack))
            case "POP":
                pop(1)
            case "NEWTRUE" | "NEWFALSE":
                stack.append(name == "NEWTRUE")
            case "EMPTY_LIST" | "EMPTY_DICT" | "EMPTY_TUPLE":
                stack.append({"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}[name]())
            case "LIST":
                stack.append(pop_from(marks.pop()))
            case "TUPLE":
                stack.append(tuple(pop_from(marks.pop())))
            case "DICT":
                stack.append(_pair_items(pop_from(marks.pop())))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(tuple(pop(int(name[-1]))))
            case "APPEND" | "APPENDS":
                values = pop(1) if name == "APPEND" else pop_from(marks.pop())
                if not isinstance(stack[-1], list):
                    raise ValueError("it appends values to a value that is no list")
                stack[-1].extend(values)
            case "SETITEM" | "SETITEMS":
                pairs = pop(2) if name == "SETITEM" else pop_from(marks.pop())
                items = stack[-1].items if isinstance(stack[-1], Call) else stack[-1]
                if not isinstance(items, dict):
                    raise ValueError("it adds items to a value that is no dictionary")
                items.update(_pair_items(pairs))
            case "GLOBAL":
                stack.append(Call(".".join(argument.split(" "))))
            case "STACK_GLOBAL":
                names = pop(2)
                if not all(isinstance(one, str) for one in names):  # to write out a deep one takes deep recursion
                    raise ValueError("it has a function whose name is no text")
                stack.append(Call(".".join(names)))
            case "REDUCE" | "NEWOBJ":
                function, arguments = pop(2)
                if not isinstance(function, Call) or not isinstance(arguments, tuple):
                    raise ValueError("it calls a value that is no function")
                stack.append(Call(function.name, arguments))
            case "BUILD":
                state = pop(1)[0]
                if not isinstance(stack[-1], Call):
                    raise ValueError("it sets the state of a value that is no object")
                stack[-1].state = state
            case _:
                raise ValueError(f"it has the instruction {name}, which could run code")
    raise ValueError("it ends too early")


def _pair_items(pairs: list[Any]) -> dict[Any, Any]:
    """Pair keys and values; keys are numbers or texts, since deep ones need deep recursion to hash."""
    if not all(isinstance(key, int | str | bytes) for key in pairs[::2]):
        raise ValueError("it has a key that is neither a number nor a text")
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def _raw_bytes(value: Any) -> bytes:
    """Return the raw bytes of an array from any of their three forms in pickles."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("latin-1")
    if isinstance(value, Call) and value.name == "_codecs.encode" and isinstance(value.arguments[0], str):
        return value.arguments[0].encode("latin-1")
    raise TypeError("it has an array without numbers")


def _parse_dtype(value: Any) -> np.dtype[Any]:
    if not isinstance(value, Call) or value.name != "numpy.dtype":
        raise TypeError("it has an array without a type")
    code, order = value.arguments[0], value.state[1] if value.state else "|"
    if not isinstance(code, str) or not _NUMBERS.fullmatch(code) or order not in ("<", ">", "|", "="):
        raise TypeError("it has an array of other values than numbers")
    return np.dtype(f"{order}{code}")


def build_array(value: Any) -> NDArray[Any]:
    """Build the array that a :class:`Call` describes; raise TypeError or ValueError for anything else."""
    if not isinstance(value, Call) or not value.name.endswith("multiarray._reconstruct") or value.state is None:
        raise TypeError("it has another value where an array is expected")
    _, shape, dtype, fortran, raw = value.state
    numbers = np.frombuffer(_raw_bytes(raw), _parse_dtype(dtype))
    return numbers.reshape(shape, order="F" if fortran else "C")


def build_matrix(value: Any) -> Any:
    """Build the ``scipy.sparse.csr_array`` that a :class:`Call` describes; raise TypeError or ValueError otherwise."""
    from scipy.sparse import csr_array

    state = value.state if isinstance(value, Call) else None
    if not isinstance(state, dict) or not {"data", "indices", "indptr"} <= {str(key) for key in state}:
        raise TypeError("it has another value where a sparse matrix is expected")
    shape = state["_shape"] if "_shape" in state else state["shape"]
    parts = tuple(build_array(state[name]) for name in ("data", "indices", "indptr"))
    matrix = csr_array(parts, shape=tuple(int(side) for side in shape))
    matrix.check_format(full_check=True)
    return matrix
