"""A signal in the last moments: the file is there and its path printed, or neither."""

import os
import signal

import pytest

from mmgen.cli._streams import ignore_first_interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_comes_too_late_unless_it_comes_twice(number: signal.Signals) -> None:
    heard = []
    before = signal.signal(number, lambda *_: heard.append(number))
    try:
        with ignore_first_interrupt():
            os.kill(os.getpid(), number)
            assert heard == []
            os.kill(os.getpid(), number)
            assert heard == [number]
        os.kill(os.getpid(), number)
        assert heard == [number, number]
    finally:
        signal.signal(number, before)


def test_who_ignores_signals_goes_on_doing_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ignore_first_interrupt():
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
