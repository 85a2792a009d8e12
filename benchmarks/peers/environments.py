"""Make the pinned environment of LXT, and find the Python of a peer.

    python -m benchmarks.peers.environments

About 1 GB, in ~/.cache/lrp4rag/peers. The other peers run in the environment of the benchmark itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import click

from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically

FOLDER = Path(__file__).parent
REQUIREMENTS = FOLDER / "requirements-lxt.txt"
LXT = "lxt==2.1"
"""Installed without its dependencies."""
COMPLETE = "requirements.txt"
"""Written last: the requirements that an environment was made from."""


def environment() -> Path:
    """Where LXT's environment lives; `XDG_CACHE_HOME` moves it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lrp4rag" / "peers" / "lxt"


def python_of(peer: str) -> Path:
    """The Python that a peer runs in; raises `InputError` where its environment was not made."""
    if peer != "lxt":
        return Path(sys.executable)
    mark = environment() / COMPLETE
    if not mark.is_file() or mark.read_text() != REQUIREMENTS.read_text():
        raise InputError("no environment; make it with: python -m benchmarks.peers.environments")
    return environment() / "bin" / "python"


def variables(peer: str) -> dict[str, str]:
    """Environment variables of a peer: it finds the benchmarks, no hub, and no foreign packages."""
    path = [str(FOLDER.parents[1])]
    if peer != "lxt" and os.environ.get("PYTHONPATH"):
        path.append(os.environ["PYTHONPATH"])
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
    return {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(path), "PYTHONWARNINGS": "ignore"}


@click.command()
def main() -> None:
    """Make the environment that LXT runs in, and try what it imports."""
    folder = environment()
    venv.create(folder, clear=True, with_pip=True)
    install = ["-m", "pip", "install", "--quiet"]
    for command in (
        [*install, "--requirement", str(REQUIREMENTS)],
        [*install, "--no-deps", LXT],
        ["-c", "from benchmarks.peers.methods import PEERS; PEERS['lxt'].prepare()"],
    ):
        subprocess.run([str(folder / "bin" / "python"), *command], check=True, env=variables("lxt"))
    write_atomically(folder / COMPLETE, REQUIREMENTS.read_text())
    click.echo(str(python_of("lxt")))


if __name__ == "__main__":
    main()
