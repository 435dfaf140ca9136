"""Stopping when asked to: SIGINT and SIGTERM set a flag that the loop looks at between steps."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["StopRequest", "stop_on_signals"]

_SAME = 1.0  # seconds in which a terminal or a scheduler, and a program that runs this one, may all pass one request on


class StopRequest:
    """A request to stop: the number of the signal, or None."""

    signal_number: int | None = None


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a request to stop; a second one ends the process as usual."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may install handlers
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    asked_at = 0.0

    def act_as_usual() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked_at
        if request.signal_number is None:
            request.signal_number, asked_at = number, time.monotonic()
        elif time.monotonic() - asked_at > _SAME:
            act_as_usual()
            signal.raise_signal(number)

    for number in previous:
        signal.signal(number, handle)
    try:
        yield request
    finally:
        act_as_usual()
