"""Stages of an experiment on the workers of a Dask cluster, which has a queue of its own."""

import hashlib
import socket
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mmgen.cli._console import say
from mmgen.cli._runs import StageRun, StageRunner, run_stage
from mmgen.core.errors import Interrupted, MmgenError
from mmgen.experiments import Stage

_CHECK_SECONDS = 30.0  # seconds, whether a cluster still has workers
_LOGGED_LINES = 50  # lines of a command that failed


def run_on_cluster(stages: Sequence[Stage], folder: Path, address: str) -> bool:
    """Run every stage whose output file is missing, on a Dask cluster; return whether any stage ran."""
    from mmgen.data_recipes import (
        FIRST_WORKER_SECONDS,
        cluster_client,
        cluster_error_types,
        failed_cluster_error,
        no_workers_error,
    )

    with cluster_client(address) as client:
        try:
            client.wait_for_workers(1, timeout=FIRST_WORKER_SECONDS)
        except TimeoutError:
            raise no_workers_error(address) from None
        try:
            with client.as_current():
                return _ClusterRunner(stages, folder.resolve(), client).run()
        except cluster_error_types() as error:
            raise failed_cluster_error(address, error) from None


class _ClusterRunner(StageRunner):
    """Runner of stages on the workers of a Dask cluster."""

    location = "on the cluster"

    def __init__(self, stages: Sequence[Stage], folder: Path, client: Any) -> None:
        super().__init__(stages, folder)
        self.client = client

    def submit_stage(self, index: int, earlier_files: list[str], inputs: list[str]) -> Any:
        stage = self.stages[index]
        # The same name for the same stage: submitted twice, by two processes, it runs once.
        name = hashlib.sha256(f"{self.folder}\n{stage.makes}\n{stage.command_line}".encode()).hexdigest()[:24]
        return self.client.submit(
            _run_on_worker, stage, str(self.folder), earlier_files, inputs, key=f"mmgen-{name}", pure=False
        )

    def wait_for_stages(self) -> Iterable[Any]:
        from distributed import wait

        try:
            return list(wait(list(self.running), timeout=_CHECK_SECONDS, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            if not self.client.scheduler_info()["workers"]:
                say("the cluster lost all its workers; waiting for new ones")
            return ()

    def stop_stages(self) -> None:
        for future in self.running:
            future.cancel()


def _run_on_worker(stage: Stage, folder: str, earlier_files: list[str], inputs: list[str]) -> StageRun:
    """Run a stage on this worker of the cluster, which logs its messages; an error quotes the last message."""
    from distributed import Reschedule, get_worker

    worker = get_worker()
    key = worker.get_current_task()
    host = socket.gethostname()

    def is_needed() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled" and worker.status.name == "running"

    missing = next((name for name in (".", *inputs) if not Path(folder, name).exists()), None)
    if missing is not None:
        raise MmgenError(
            f"the worker on {host} does not see {Path(folder, missing)}: choose a folder that all machines share "
            "(--output)"
        )
    with tempfile.TemporaryFile() as log:
        try:
            return run_stage(stage, Path(folder), earlier_files, log=log, is_needed=is_needed)
        except Interrupted:
            raise Reschedule from None  # to another worker, if this one is leaving and somebody still waits
        except MmgenError as error:
            log.seek(0)
            lines = log.read().decode(errors="replace").strip().splitlines()
            sys.stderr.write("\n".join(lines[-_LOGGED_LINES:]) + "\n")
            last = f": {lines[-1].removeprefix('mmgen: ')}" if lines else ""
            raise MmgenError(f"{error} (on {host}{last})") from None
