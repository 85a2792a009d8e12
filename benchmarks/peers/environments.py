"""Make the peers' pinned environments, and find their Python.

    python -m benchmarks.peers.environments [NAME ...]

An environment that cannot be made leaves its reason behind, which the benchmark then reports.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from lrp4rag.files import write_atomically

FOLDER = Path(__file__).parent
MAIN = "main"
"""The environment that the benchmark itself runs in."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment from `requirements-NAME.txt`, then packages without their dependencies."""

    name: str
    imports: str
    alone: tuple[str, ...] = ()

    @property
    def requirements(self) -> Path:
        return FOLDER / f"requirements-{self.name}.txt"

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.requirements.read_bytes() + repr(self.alone).encode()).hexdigest()


@dataclass(frozen=True)
class PeerProcess:
    """How a peer is started: its module, argument and environment."""

    module: str
    environment: str = MAIN
    arguments: tuple[str, ...] = ()


ENVIRONMENTS = {
    # importing lxt.efficient needs torchvision or its stand-in, see lxt_peer.py
    "lxt": Environment("lxt", "benchmarks.peers.lxt_peer as peer; peer.patch()", ("lxt==2.1",)),
    "inseq": Environment("inseq", "inseq"),
}

PEERS = {
    "ours": PeerProcess("ours"),
    "lxt": PeerProcess("lxt_peer", "lxt"),
    "paper-loop": PeerProcess("paper_loop"),
    "captum-gradient": PeerProcess("captum_peer", arguments=("captum-gradient",)),
    "captum-ablation": PeerProcess("captum_peer", arguments=("captum-ablation",)),
    "inseq": PeerProcess("inseq_peer", "inseq"),
}


class UnavailableError(Exception):
    """A peer cannot run here; the message says why."""


def default_folder() -> Path:
    """Where the environments live; `XDG_CACHE_HOME` moves it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lrp4rag" / "peers"


def python_of(name: str, folder: Path) -> Path:
    """The Python of an environment; raises `UnavailableError` where it was not made."""
    if name == MAIN:
        return Path(sys.executable)
    mark, failure = folder / name / "complete", folder / f"{name}.failed"
    if mark.is_file() and mark.read_text() == ENVIRONMENTS[name].fingerprint:
        return folder / name / "bin" / "python"
    if failure.is_file():
        raise UnavailableError(f"its environment could not be made: {failure.read_text()}")
    raise UnavailableError(f"no environment; make it with: python -m benchmarks.peers.environments {name}")


def make(environment: Environment, folder: Path) -> None:
    """Make one environment anew; raises `UnavailableError`, and leaves the reason in NAME.failed."""
    where, failure = folder / environment.name, folder / f"{environment.name}.failed"
    if where.exists() and not (where / "pyvenv.cfg").is_file():
        raise UnavailableError(f"{where} is no virtual environment; name another folder")
    shutil.rmtree(where, ignore_errors=True)
    failure.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    for command in commands(environment, where):
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=surroundings())
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
            why = f"{' '.join(command[1:4])}: {lines[-1]}"
            write_atomically(failure, why)
            raise UnavailableError(why)
    write_atomically(where / "complete", environment.fingerprint)


def commands(environment: Environment, where: Path) -> list[list[str]]:
    """What makes an environment; the last command tries what the peer imports."""
    python = str(where / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet"]
    return [
        [sys.executable, "-m", "venv", str(where)],
        [*install, "--requirement", str(environment.requirements)],
        *([*install, "--no-deps", package] for package in environment.alone),
        [python, "-c", f"import {environment.imports}"],
    ]


def surroundings(environment: str = "") -> dict[str, str]:
    """Environment variables of a worker: it finds the benchmarks, no hub, and no foreign packages."""
    path = [str(FOLDER.parents[1])]
    if environment == MAIN and os.environ.get("PYTHONPATH"):
        path.append(os.environ["PYTHONPATH"])
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
    return {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(path), "PYTHONWARNINGS": "ignore"}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(ENVIRONMENTS)))
@click.option("--envs", type=click.Path(path_type=Path), help="Folder of the environments.")
@click.option("--anew", is_flag=True, help="Also make again what is there.")
def main(names: tuple[str, ...], envs: Path | None, anew: bool) -> None:
    """Make the pinned environments NAMES (default: all) that the peers run in.

    About 1 GB each; they go to ~/.cache/lrp4rag/peers unless --envs says otherwise. The peers that need
    none (lrp4rag itself, the paper's loop, captum) run in the environment of this command.
    """
    folder, failed = envs or default_folder(), False
    for name in names or tuple(ENVIRONMENTS):
        try:
            if not anew:
                click.echo(f"{name}: {python_of(name, folder)}")
                continue
        except UnavailableError:
            pass
        try:
            make(ENVIRONMENTS[name], folder)
            click.echo(f"{name}: {python_of(name, folder)}")
        except UnavailableError as error:
            click.echo(f"{name}: {error}", err=True)
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
