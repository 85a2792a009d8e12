"""Build the notebooks from the scripts in `src` (percent format), and execute them.

    python notebooks/build.py                 # all of them
    python notebooks/build.py rules           # one

A script is what is edited and reviewed; the notebook beside it is the script with its outputs. A cell
starts with `# %%`, one of text with `# %% [markdown]`. A magic such as `# %matplotlib inline` is a comment in
the script, since it is no Python.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import nbformat
from nbclient import NotebookClient

from lrp4rag.util.files import write_atomically

FOLDER = Path(__file__).parent
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LARGEST = 500_000  # bytes of a notebook with its outputs
SECONDS_PER_CELL = 3600

Kind = Literal["markdown", "code"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a script."""

    kind: Kind
    source: str


def scripts() -> list[Path]:
    return sorted((FOLDER / "src").glob("*.py"))


def cells_of(script: str) -> list[Cell]:
    """The cells of a script in percent format; what stands before the first is not part of any."""
    _, *parts = re.split(r"^# %%(.*)\n", script, flags=re.MULTILINE)
    return [_cell(head.strip(), body.strip("\n")) for head, body in zip(parts[::2], parts[1::2], strict=True)]


def _cell(head: str, body: str) -> Cell:
    if head == "":
        return Cell("code", body)
    if head != "[markdown]":
        raise ValueError(f"a cell starts with '# %%' or '# %% [markdown]', not '# %% {head}'")
    lines = body.split("\n")
    if not all(line == "#" or line.startswith("# ") for line in lines):
        raise ValueError(f"a line of a text cell does not start with '# ':\n{body}")
    return Cell("markdown", "\n".join(line[2:] for line in lines))


def notebook_of(cells: list[Cell]) -> Any:
    """A notebook without outputs. Equal cells give an equal notebook."""
    make = {"markdown": nbformat.v4.new_markdown_cell, "code": _new_code_cell}
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": KERNEL, "language_info": {"name": "python"}},
        cells=[make[cell.kind](cell.source, id=f"cell-{k}") for k, cell in enumerate(cells, 1)],
    )
    nbformat.validate(notebook)
    return notebook


def _new_code_cell(source: str, id: str) -> Any:
    return nbformat.v4.new_code_cell(re.sub(r"^# (%\w)", r"\1", source, flags=re.MULTILINE), id=id)


def executed(notebook: Any) -> Any:
    """The notebook with its outputs; raises `CellExecutionError` where a cell fails."""
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        startup_timeout=SECONDS_PER_CELL,
        kernel_name=KERNEL["name"],
        resources={"metadata": {"path": str(FOLDER)}},
        record_timing=False,
    )
    return tidied(client.execute())


def tidied(notebook: Any) -> Any:
    """Without what differs between runs: progress (all of it is on stderr), and versions of the kernel."""
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def refuse_unfit(text: str, name: str) -> None:
    """Raise `ValueError` for a notebook that is too large, or that tells where it was made."""
    if len(text.encode()) > LARGEST:
        raise ValueError(f"{name} has {len(text.encode()):,} bytes, more than {LARGEST:,}")
    for place in {str(FOLDER.resolve().parent), str(Path.home()), sys.prefix} - {"/", "/usr", "/usr/local"}:
        if json.dumps(place)[1:-1] in text:
            raise ValueError(f"{name} names a folder of this machine: {place}")


def build(script: Path) -> Path:
    """Execute a script's notebook and write it beside this file."""
    text = nbformat.writes(executed(notebook_of(cells_of(script.read_text(encoding="utf-8"))))) + "\n"
    refuse_unfit(text, script.stem)
    path = FOLDER / f"{script.stem}.ipynb"
    write_atomically(path, text)
    return path


def main(names: list[str]) -> None:
    known = {script.stem: script for script in scripts()}
    for name in names or known:
        if name not in known:
            raise SystemExit(f"no script '{name}'; there are {', '.join(known)}")
        print(f"{name}: executing", file=sys.stderr, flush=True)
        path = build(known[name])
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
