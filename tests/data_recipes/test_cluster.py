"""``make-data --scheduler``: a Dask cluster of two processes makes the same file, and what is wrong is said shortly."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mmgen import data_recipes
from mmgen.artifacts import Dataset
from tests.data_recipes._faces import build_celeba

pytest.importorskip("distributed")


def run(*arguments: object, cwd: Path, program: str = "") -> subprocess.CompletedProcess[str]:
    program = f"{program}\nfrom mmgen.cli._main import main; main()"
    command = [sys.executable, "-c", program, "make-data", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    last = done.stderr.strip().split("\n")[-1]
    assert last.startswith("mmgen: ")
    return last


class Cluster:
    """A scheduler, and workers of one thread each, as the documentation starts them."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.log = folder / "scheduler.log"
        self._start("scheduler", self.log, "--host", "127.0.0.1", "--port", "0")
        until = time.monotonic() + 60
        while not (found := re.search(r"tcp://127\.0\.0\.1:\d+", self.log.read_text())):
            assert time.monotonic() < until
            time.sleep(0.05)
        self.address = found[0]
        for i in range(workers):
            options = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
            self._start("worker", folder / f"worker-{i}.log", self.address, *options)

    def _start(self, what: str, log: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "dask", what, "--no-dashboard", *arguments]
        with log.open("wb") as talk:
            process = subprocess.Popen(command, stdout=talk, stderr=talk, env=os.environ | {"OMP_NUM_THREADS": "1"})
        self.processes.append(process)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.send_signal(signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), workers=2)
    yield cluster
    cluster.stop()


def content(path: Path) -> str:
    with Dataset.open(path) as dataset:
        return dataset.header.content_id


@pytest.mark.slow
def test_a_cluster_makes_the_same_two_objects(cluster, tmp_path):
    settings = ["--number", 60, "--size", 16, "--samples", 1, "--seed", 3]
    done = run("two-objects", *settings, "--scheduler", cluster.address, "-o", "far.h5", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "far.h5\n")
    recipe = data_recipes.get("two-objects")(number=60, size=16, samples=1)
    recipe.make(tmp_path / "near.h5", seed=3, workers=1, chunk=13).run()
    assert content(tmp_path / "far.h5") == content(tmp_path / "near.h5")


@pytest.mark.slow
def test_other_recipes_know_clusters_too_and_a_lost_worker_does_not_matter(cluster, small_mnist, tmp_path):
    recipe = data_recipes.get("mnist-a")(mnist=small_mnist, number=3000)
    work = iter(work_of_cluster := recipe.make(tmp_path / "far.h5", workers=cluster.address, chunk=20))
    next(work)
    lost = cluster.processes.pop()
    lost.kill()
    lost.wait()
    for _ in work:
        pass
    assert work_of_cluster.result == tmp_path / "far.h5"
    recipe.make(tmp_path / "near.h5", workers=1).run()
    assert content(tmp_path / "far.h5") == content(tmp_path / "near.h5")


@pytest.mark.slow
def test_a_cluster_needs_no_copy_of_celeba(cluster, tmp_path):
    """Files are read where the file is written; workers get their bytes."""
    celeba = build_celeba(tmp_path / "c", 20, zipped="all")
    recipe = data_recipes.get("celeba-words")(celeba=celeba)
    recipe.make(tmp_path / "far.h5", workers=cluster.address, chunk=3).run()
    recipe.make(tmp_path / "near.h5", workers=1).run()
    assert content(tmp_path / "far.h5") == content(tmp_path / "near.h5")


@pytest.mark.slow
def test_no_scheduler_is_one_sentence(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = run("mnist", "--source", "digits", "--scheduler", f"tcp://127.0.0.1:{port}", cwd=tmp_path)
    assert done.returncode == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1" in sentence(done)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["localhost", "host:8786", "tcp://host", "tcp://:1", "http://host:80", "tcp://h:x"])
def test_an_address_that_is_none_is_refused(address, tmp_path):
    from mmgen.core.errors import UsageError
    from mmgen.data_recipes._base import map_on_cluster

    with pytest.raises(UsageError, match="expected the address that 'dask scheduler' prints"):
        next(map_on_cluster(len, [], address))


GREETING = bytes.fromhex("3a00000000000000") + b"\x01" + bytes(7) + b"*" + bytes(7)
GREETING += b"\x83\xabcompression\xc0\xa6python\x93\x03\x0b\x07\xafpickle-protocol\x05"
STRANGERS = {
    "silent": (b"", False),
    "leaves": (b"", True),
    "another protocol": (b"HTTP/1.1 400 Bad Request\r\n\r\n", False),
    "a length without end": (b"\xff" * 4000, False),
    "zeros": (bytes(4000), False),
    "greets and leaves": (GREETING, True),
    "greets and talks nonsense": (GREETING + b"\xff" * 4000, False),
    "greets and is silent": (GREETING, False),
}
"""What a server says that is no scheduler, and whether it leaves then."""


@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_is_no_scheduler_is_one_sentence_soon(stranger, monkeypatch, capfd):
    from mmgen.core.errors import MmgenError
    from mmgen.data_recipes import _base

    monkeypatch.setattr(_base, "ANSWER_SECONDS", 0.4)
    says, leaves = STRANGERS[stranger]
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = []

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connections.append(server.accept()[0])
                    connections[-1].sendall(says)
                    if leaves:
                        connections[-1].close()

        threading.Thread(target=answer, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(MmgenError, match=r"no Dask scheduler answers.*: check the address"):
            _base.cluster_client(address)
        assert time.monotonic() - began < 5
    for connection in connections:
        connection.close()
    assert "Traceback" not in capfd.readouterr().err
