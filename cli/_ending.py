"""The end of a command, in which finished files are written and their paths printed."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ignore_first_interrupt"]


@contextmanager
def ignore_first_interrupt() -> Iterator[None]:
    """Ignore the first Ctrl-C or SIGTERM in this block, in which a finished file's path is printed."""
    # Else the command could report an interruption although the file is complete, and refuse to replace it when
    # repeated.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore_handlers() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, lambda *_: restore_handlers())
    try:
        yield
    finally:
        restore_handlers()
