"""Make the peers' pinned environments, and find their Python.

python -m benchmarks.peers.environments [NAME ...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import click

from lrp4rag.util.files import write_atomically

FOLDER = Path(__file__).parent
ALONE = {"lxt": "lxt==2.1", "inseq": None}
"""Peers with an environment of their requirements-NAME.txt, and a package that is installed without
dependencies. The others run in the environment of the benchmark itself."""
COMPLETE = "requirements.txt"
"""Written last: the requirements that an environment was made from."""


class UnavailableError(Exception):
    """A peer cannot run here; the message says why."""


def default_folder() -> Path:
    """Where the environments live; `XDG_CACHE_HOME` moves it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lrp4rag" / "peers"


def requirements(name: str) -> Path:
    return FOLDER / f"requirements-{name}.txt"


def python_of(peer: str, folder: Path) -> Path:
    """The Python that a peer runs in; raises `UnavailableError` where its environment was not made."""
    if peer not in ALONE:
        return Path(sys.executable)
    mark = folder / peer / COMPLETE
    if not mark.is_file() or mark.read_text() != requirements(peer).read_text():
        raise UnavailableError(
            f"no environment; make it with: python -m benchmarks.peers.environments {peer}"
        )
    return folder / peer / "bin" / "python"


def make(name: str, folder: Path) -> None:
    """Make one environment anew, and try what the peer imports; raises `CalledProcessError`."""
    where = folder / name
    if where.exists() and not (where / "pyvenv.cfg").is_file():
        raise click.ClickException(f"{where} is no virtual environment; name another folder")
    venv.create(where, clear=True, with_pip=True)
    install = ["-m", "pip", "install", "--quiet"]
    commands = [
        [*install, "--requirement", str(requirements(name))],
        *([[*install, "--no-deps", alone]] if (alone := ALONE[name]) else []),
        ["-c", f"from benchmarks.peers.methods import PEERS; PEERS[{name!r}].prepare()"],
    ]
    for command in commands:
        subprocess.run([str(where / "bin" / "python"), *command], check=True, env=surroundings(name))
    write_atomically(where / COMPLETE, requirements(name).read_text())


def surroundings(peer: str) -> dict[str, str]:
    """Environment variables of a peer: it finds the benchmarks, no hub, and no foreign packages."""
    path = [str(FOLDER.parents[1])]
    if peer not in ALONE and os.environ.get("PYTHONPATH"):
        path.append(os.environ["PYTHONPATH"])
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
    return {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(path), "PYTHONWARNINGS": "ignore"}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(ALONE)))
@click.option("--envs", type=click.Path(path_type=Path), help="Folder of the environments.")
def main(names: tuple[str, ...], envs: Path | None) -> None:
    """Make the pinned environments NAMES (default: all) that the peers run in.

    About 1 GB each; they go to ~/.cache/lrp4rag/peers unless --envs says otherwise. The peers that need
    none (lrp4rag itself, the paper's loop, captum) run in the environment of this command.
    """
    folder = envs or default_folder()
    for name in names or ALONE:
        try:
            python_of(name, folder)
        except UnavailableError:
            make(name, folder)
        click.echo(f"{name}: {python_of(name, folder)}")


if __name__ == "__main__":
    main()
