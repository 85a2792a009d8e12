"""Make the peers' pinned environments, and find their Python.

python -m benchmarks.peers.environments [NAME ...]
"""

from __future__ import annotations

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
ALONE = {"lxt": "lxt==2.1", "inseq": None}
"""Environments, each of its requirements-NAME.txt, and a package that is installed without dependencies."""
COMPLETE = "requirements.txt"
"""Written last: the requirements that an environment was made from."""


@dataclass(frozen=True)
class PeerProcess:
    """How a peer is started: its module, argument and environment."""

    module: str
    environment: str = MAIN
    arguments: tuple[str, ...] = ()


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


def requirements(name: str) -> Path:
    return FOLDER / f"requirements-{name}.txt"


def python_of(name: str, folder: Path) -> Path:
    """The Python of an environment; raises `UnavailableError` where it was not made."""
    if name == MAIN:
        return Path(sys.executable)
    mark = folder / name / COMPLETE
    if not mark.is_file() or mark.read_text() != requirements(name).read_text():
        raise UnavailableError(
            f"no environment; make it with: python -m benchmarks.peers.environments {name}"
        )
    return folder / name / "bin" / "python"


def make(name: str, folder: Path) -> None:
    """Make one environment anew, and try what the peer imports; raises `CalledProcessError`."""
    where = folder / name
    if where.exists() and not (where / "pyvenv.cfg").is_file():
        raise click.ClickException(f"{where} is no virtual environment; name another folder")
    shutil.rmtree(where, ignore_errors=True)
    python = str(where / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet"]
    commands = [
        [sys.executable, "-m", "venv", str(where)],
        [*install, "--requirement", str(requirements(name))],
        *([[*install, "--no-deps", alone]] if (alone := ALONE[name]) else []),
        [python, "-c", f"import benchmarks.peers.{name}_peer as peer; peer.load()"],
    ]
    for command in commands:
        subprocess.run(command, check=True, env=surroundings())
    write_atomically(where / COMPLETE, requirements(name).read_text())


def surroundings(environment: str = "") -> dict[str, str]:
    """Environment variables of a worker: it finds the benchmarks, no hub, and no foreign packages."""
    path = [str(FOLDER.parents[1])]
    if environment == MAIN and os.environ.get("PYTHONPATH"):
        path.append(os.environ["PYTHONPATH"])
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
    return {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(path), "PYTHONWARNINGS": "ignore"}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(ALONE)))
@click.option("--envs", type=click.Path(path_type=Path), help="Folder of the environments.")
@click.option("--anew", is_flag=True, help="Also make again what is there.")
def main(names: tuple[str, ...], envs: Path | None, anew: bool) -> None:
    """Make the pinned environments NAMES (default: all) that the peers run in.

    About 1 GB each; they go to ~/.cache/lrp4rag/peers unless --envs says otherwise. The peers that need
    none (lrp4rag itself, the paper's loop, captum) run in the environment of this command.
    """
    folder = envs or default_folder()
    for name in names or tuple(ALONE):
        try:
            if anew:
                make(name, folder)
            python = python_of(name, folder)
        except UnavailableError:
            make(name, folder)
            python = python_of(name, folder)
        click.echo(f"{name}: {python}")


if __name__ == "__main__":
    main()
