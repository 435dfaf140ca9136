"""Stop of training by SIGINT and SIGTERM, which set a flag that the loop checks between steps."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["StopRequest", "stop_on_signals"]

_REPEAT = (
    1.0  # seconds in which a terminal or a scheduler, and a program that runs this one, may all pass one request on
)


class StopRequest:
    """Request to stop a run, with the number of the signal; None if there was none."""

    signal_number: int | None = None


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM within a block into a request to stop; a second one ends the process."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may install handlers
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    requested_at = 0.0

    def restore_handlers() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal requested_at
        if request.signal_number is None:
            request.signal_number, requested_at = number, time.monotonic()
        elif time.monotonic() - requested_at > _REPEAT:
            restore_handlers()
            signal.raise_signal(number)

    for number in previous:
        signal.signal(number, handle)
    try:
        yield request
    finally:
        restore_handlers()
