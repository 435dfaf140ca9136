"""The end of a command, in which finished files are written and their paths printed."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["last_moments"]


@contextmanager
def last_moments() -> Iterator[None]:
    """Ignore one Ctrl-C or SIGTERM in this block, so that a file and the line with its path go together."""
    # Else the file could be there and the command say that it was interrupted; given again, it would refuse to replace
    # what is finished.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def act_as_usual() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, lambda *_: act_as_usual())
    try:
        yield
    finally:
        act_as_usual()
