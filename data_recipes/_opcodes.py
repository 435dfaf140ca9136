"""Arrays in old pickled files, read as data: nothing in them is imported, called or run.

Some public datasets exist in no other form. A pickle is a list of instructions; here they only build lists, tuples,
dictionaries, numbers and texts, and whatever would call a function becomes a :class:`Call` that says what would have
been called. Arrays and sparse matrices are then put together by our own code from the numbers in such calls.
"""

import codecs
import io
import pickletools
import re
from collections.abc import Callable, Iterator
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
        return _Machine().run(blob)
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


class _Machine:
    """Interpreter of the harmless instructions of a pickle, with a stack and a memory."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memory: dict[int, Any] = {}

    def run(self, blob: bytes) -> Any:
        for number, (name, argument) in enumerate(_read_instructions(blob)):
            if number > _MOST:
                raise ValueError(f"it has more than {_MOST:,} instructions")
            if name == "STOP":
                return self.stack.pop()
            step = _STEPS.get(name)
            if step is None:
                raise ValueError(f"it has the instruction {name}, which could run code")
            step(self, argument)
        raise ValueError("it ends too early")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop_to_mark(self) -> list[Any]:
        """Pop everything above the last mark, and the mark."""
        place = self.marks.pop()
        above = self.stack[place:]
        del self.stack[place:]
        return above

    def push_mark(self) -> None:
        self.marks.append(len(self.stack))

    def pop_values(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise ValueError("it has too few values")
        above = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return above

    def drop_value(self) -> None:
        self.pop_values(1)

    def push_call(self, _: Any) -> None:
        function, arguments = self.pop_values(2)
        if not isinstance(function, Call) or not isinstance(arguments, tuple):
            raise ValueError("it calls a value that is no function")
        self.push(Call(function.name, arguments))

    def set_object_state(self, _: Any) -> None:
        made, state = self.pop_values(2)
        if not isinstance(made, Call):
            raise ValueError("it sets the state of a value that is no object")
        made.state = state
        self.push(made)

    def set_dictionary_items(self, pairs: list[Any]) -> None:
        target = self.stack[-1]
        items = target.items if isinstance(target, Call) else target
        if not isinstance(items, dict):
            raise ValueError("it adds items to a value that is no dictionary")
        items.update(_pair_items(pairs))

    def extend_list(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise ValueError("it appends values to a value that is no list")
        target.extend(values)

    def store_in_memory(self, place: int) -> None:
        self.memory[place] = self.stack[-1]


def _pair_items(pairs: list[Any]) -> dict[Any, Any]:
    """Pair keys and values; keys are numbers or texts, since deep ones need deep recursion to hash."""
    if not all(isinstance(key, int | str | bytes) for key in pairs[::2]):
        raise ValueError("it has a key that is neither a number nor a text")
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def _push_function_by_argument(machine: _Machine, argument: str) -> None:
    machine.push(Call(".".join(argument.split(" "))))


def _push_function_by_stack(machine: _Machine, _: Any) -> None:
    module, name = machine.pop_values(2)
    if not isinstance(module, str) or not isinstance(name, str):  # to write out a deep one takes deep recursion
        raise ValueError("it has a function whose name is no text")
    machine.push(Call(f"{module}.{name}"))


def _pusher_of_constant(value: Any) -> "Callable[[_Machine, Any], None]":
    """Return the function for an instruction that pushes this value."""
    return lambda machine, _: machine.push(value)


def _push_argument(machine: _Machine, argument: Any) -> None:
    machine.push(argument)


def _pusher_of_collection(build: "Callable[[list[Any]], Any]") -> "Callable[[_Machine, Any], None]":
    """Return the function for an instruction that builds a collection of the values above the last mark."""
    return lambda machine, _: machine.push(build(machine.pop_to_mark()))


_STEPS: "dict[str, Callable[[_Machine, Any], None]]" = {
    **dict.fromkeys(("PROTO", "FRAME"), lambda machine, argument: None),
    **dict.fromkeys(
        (
            "INT", "LONG", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
            "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
            "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
        ),
        _push_argument,
    ),
    "NONE": _pusher_of_constant(None),
    "NEWTRUE": _pusher_of_constant(True),
    "NEWFALSE": _pusher_of_constant(False),
    "MARK": lambda machine, _: machine.push_mark(),
    "POP": lambda machine, _: machine.drop_value(),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "EMPTY_TUPLE": _pusher_of_constant(()),
    "LIST": _pusher_of_collection(list),
    "TUPLE": _pusher_of_collection(tuple),
    "DICT": _pusher_of_collection(lambda pairs: _pair_items(pairs)),
    "TUPLE1": lambda machine, _: machine.push(tuple(machine.pop_values(1))),
    "TUPLE2": lambda machine, _: machine.push(tuple(machine.pop_values(2))),
    "TUPLE3": lambda machine, _: machine.push(tuple(machine.pop_values(3))),
    "APPEND": lambda machine, _: machine.extend_list(machine.pop_values(1)),
    "APPENDS": lambda machine, _: machine.extend_list(machine.pop_to_mark()),
    "SETITEM": lambda machine, _: machine.set_dictionary_items(machine.pop_values(2)),
    "SETITEMS": lambda machine, _: machine.set_dictionary_items(machine.pop_to_mark()),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), lambda machine, place: machine.store_in_memory(int(place))),
    "MEMOIZE": lambda machine, _: machine.store_in_memory(len(machine.memory)),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda machine, place: machine.push(machine.memory[int(place)])),
    "GLOBAL": _push_function_by_argument,
    "STACK_GLOBAL": _push_function_by_stack,
    "REDUCE": _Machine.push_call,
    "NEWOBJ": _Machine.push_call,
    "BUILD": _Machine.set_object_state,
}  # fmt: skip


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
