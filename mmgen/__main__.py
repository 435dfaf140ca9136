"""The program: ``mmgen``, and ``python -m mmgen`` for where that is not on the path.

Ctrl-C is heard from the first moment to the last; only while Python itself starts is there nobody to say so.
"""

# Of these none is read from a file: until the current folder is off the import path, nothing else may be imported.
import _signal  # type: ignore[import-not-found]  # signal itself is a file
import atexit
import os
import sys

__all__ = ["main"]

_SAYINGS = {_signal.SIGINT: "interrupted"}
_TERM = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGXCPU")
_SAYINGS |= {getattr(_signal, name): "terminated" for name in _TERM if hasattr(_signal, name)}


def _leave(number: int, frame: object) -> None:
    """End the process at once; no work has begun, so nothing needs to be tidied up."""
    os.write(2, f"mmgen: {_SAYINGS[number]}\n".encode())
    os._exit(128 + number)


def _not_lost(unraisable: "sys.UnraisableHookArgs") -> None:
    """Repeat a signal if it came while Python ignored exceptions, when it no longer counts as the same request."""
    numbers = {"KeyboardInterrupt": _signal.SIGINT, "Terminated": _signal.SIGTERM}
    number = numbers.get(unraisable.exc_type.__name__)
    if number is None:
        sys.__unraisablehook__(unraisable)
        return
    import threading

    again = threading.Timer(1.1, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _leave_the_current_folder() -> None:
    """Remove the current folder from the import path, where ``python -m mmgen`` puts it first."""
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    sys.path[:] = [entry for entry in sys.path if entry not in ("", here)]


def main() -> None:
    """Run the command that was typed; leaves through SystemExit with its exit code."""
    heard = [number for number in _SAYINGS if _signal.getsignal(number) != _signal.SIG_IGN]  # as of a job of nohup

    def hear(handler: object) -> None:
        for number in heard:
            _signal.signal(number, handler)

    hear(_leave)
    sys.unraisablehook = _not_lost
    atexit.register(hear, _signal.SIG_IGN)  # the last of all that happens at exit
    _leave_the_current_folder()
    from mmgen.cli._main import Terminated, main as program

    code = 1
    try:
        program()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
        raise
    except (KeyboardInterrupt, Terminated) as error:  # again, while what the first one had ended was tidied up
        number = error.number if isinstance(error, Terminated) else _signal.SIGINT
        code = 128 + number
        os.write(2, f"mmgen: {_SAYINGS[number]}\n".encode())
        raise SystemExit(code) from None
    finally:  # all is done and said: a signal only makes it quicker
        hear(lambda *_: os._exit(code))


if __name__ == "__main__":
    main()
