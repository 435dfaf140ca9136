"""How fast, how lean and how small: ``mmgen make-data mnist-a`` at its published size.

    python benchmarks/make_data.py --mnist DIR [--workers N] [--number N]

Prints seconds, images per second, the largest sum of resident memory of all processes (sampled four times a second,
pages shared between processes counted in each), CPU seconds, the file's size and its content id. Linux only.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mmgen.artifacts import read_header

# The limits that the generator is meant to keep on two cores.
SECONDS, MEMORY_MIB, FILE_MB = 60, 2048, 250


def family(pid: int) -> list[int]:
    """List a process and all its descendants."""
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += family(int(child))
    except OSError:
        pass  # ended meanwhile
    return found


def resident_mib(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", required=True, help="folder with MNIST's files")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--number", type=int, default=700_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mnist-a.h5"
        arguments = ["--mnist", options.mnist, "--number", options.number, "--workers", options.workers, "-o", path]
        command = [sys.executable, "-c", "from mmgen.cli._main import main; main()", "make-data", "mnist-a"]
        load = os.getloadavg()[0]
        start = time.perf_counter()
        process = subprocess.Popen([*command, *map(str, arguments)])
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, sum(resident_mib(pid) for pid in family(process.pid)))
            time.sleep(0.25)
        seconds = time.perf_counter() - start
        if process.returncode:
            raise SystemExit(process.returncode)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        size = path.stat().st_size / 1e6
        print(f"images      {options.number:,} with {options.workers} workers; load before: {load:.1f}")
        print(f"wall        {seconds:.1f} s ({options.number / seconds:,.0f} images/s; limit {SECONDS} s)")
        print(f"CPU         {usage.ru_utime + usage.ru_stime:.1f} s")
        print(f"memory      {peak:.0f} MiB in all processes (limit {MEMORY_MIB} MiB)")
        print(f"file        {size:.1f} MB (limit {FILE_MB} MB)")
        print(f"content id  {read_header(path).content_id}")


if __name__ == "__main__":
    main()
