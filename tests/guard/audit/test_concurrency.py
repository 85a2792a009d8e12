"""Writers share one chain, and none loses what it was told is there."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lrp4rag.guard.audit import AuditLog

ROOT = Path(__file__).parents[3]
WRITER = """
import sys
from pathlib import Path
from lrp4rag.guard.audit import AuditLog

url, name, count, key = sys.argv[1:]
with AuditLog.open(url, key=Path(key), texts=True) as log:
    for number in range(int(count)):
        print(log.append({"id": f"{name}-{number}"}, {"question": "what?"}).id, flush=True)
"""


def writer(url, name, count, key):
    command = [sys.executable, "-c", WRITER, str(url), name, str(count), str(key)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def append_together(url, key):
    """Two processes and four threads make one log, 12 entries each, all from the start."""
    processes = [writer(url, f"process{number}", 12, key) for number in range(2)]
    with AuditLog.open(url, key=key, texts=True) as log, ThreadPoolExecutor(4) as threads:

        def work(name):
            return [log.append({"id": f"{name}-{number}"}, {"question": "what?"}) for number in range(12)]

        for made in threads.map(work, ["a", "b", "c", "d"]):
            assert [one.sequence for one in made] == sorted(one.sequence for one in made)
        for process in processes:
            process.communicate(timeout=60)
            assert process.returncode == 0
        found = log.verify()
        assert (found.problems, found.entries) == ([], 72)
        assert {entry.id.split("-")[0] for entry in log.entries()} >= {"process0", "process1", "a", "d"}


def test_threads_and_processes_append_to_one_chain(tmp_path):
    append_together(f"sqlite:///{tmp_path}/audit.db", tmp_path / "key")


def test_what_a_killed_writer_was_told_is_there(tmp_path):
    told = []
    for run in range(2):
        process = writer(tmp_path / "audit.db", f"run{run}", 10_000, tmp_path / "key")
        told += [process.stdout.readline().strip() for _ in range(20 + run)]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.read().split()
        process.wait()
        process.stdout.close()
    with AuditLog.open(tmp_path / "audit.db", texts=True) as log:
        found = log.verify()
        assert found.problems == []
        assert len(told) >= 41
        assert all(log.texts(id) == {"question": "what?"} for id in told)
        assert len(told) <= found.entries <= len(told) + 2
