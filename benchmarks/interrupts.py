"""Does Ctrl-C end a command at any time? Interrupts ``mmgen train`` at random moments, and says how long it goes on.

    python benchmarks/interrupts.py [--number N] [--seconds T] [--seed S] [--signal INT|TERM]

Each training begins anew, with a state that is saved; the signal comes after 0 to T seconds, so that it falls into
imports, the first step, training and validation. Prints a line each: when it came, processor and wall seconds until the
end, exit code and last words. Ends with 1 if one takes more than 5 seconds of processor. Linux only.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST = 5.0
PATIENCE = 120.0
PROGRAM = [sys.executable, "-P", "-m", "mmgen"]
TRAIN = ["train", "d.h5", "--preset", "quickstart/pictures", "--steps", "100000", "--batch", "16"]
TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def interrupt(folder: Path, number: int, after: float, sent: signal.Signals) -> float:
    """Start a training, send it a signal, and return its processor seconds from then to its end."""
    with (folder / f"{number}.txt").open("w") as log:
        command = [*PROGRAM, *TRAIN, "-o", f"{number}.safetensors"]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    time.sleep(after)
    before, began = processor_seconds(process.pid), time.monotonic()
    os.kill(process.pid, sent)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        took = time.monotonic() - began
        if pid:
            break
        if took > PATIENCE:
            print(f"{number} did not end; left to be looked at: process {process.pid}", flush=True)
            return float("inf")
        time.sleep(0.02)
    used = usage.ru_utime + usage.ru_stime - before
    words = (folder / f"{number}.txt").read_text(errors="replace").strip().splitlines()[-1:] or [""]
    code = os.waitstatus_to_exitcode(status)
    print(f"{number}\t{after:.2f}\t{used:.2f}\t{took:.2f}\t{code}\t{words[0][:100]}", flush=True)
    return used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--signal", choices=["INT", "TERM"], default="INT")
    options = parser.parse_args()
    moments = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make = ["make-data", "shapes", "--number", "400", "--size", "32", "-o", "d.h5"]
        subprocess.run([*PROGRAM, *make], cwd=folder, check=True, capture_output=True)
        sent = signal.Signals[f"SIG{options.signal}"]
        used = [interrupt(folder, n, moments.uniform(0, options.seconds), sent) for n in range(options.number)]
    slow = sum(one > MOST for one in used)
    print(f"{len(used)} interrupts; most processor seconds until the end {max(used):.2f}; {slow} above {MOST:.0f}")
    sys.exit(slow > 0)


if __name__ == "__main__":
    main()
