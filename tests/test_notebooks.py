"""The committed notebooks are their scripts with outputs. `pytest -m slow` executes them on a tiny reader."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.tiny import save_tiny_reader

FOLDER = Path(__file__).parent.parent / "notebooks"
SCRIPTS = {path.stem: path for path in sorted((FOLDER / "src").glob("*.py"))}


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """What builds them. Its imports take a second, so that it is not imported where other tests run."""
    path = FOLDER / "build.py"
    spec = importlib.util.spec_from_file_location("notebooks_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_committed_notebook_is_its_script(build: ModuleType, name: str) -> None:
    notebook = build.nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    expected = build.notebook_of(build.cells_of(SCRIPTS[name].read_text(encoding="utf-8")))
    found = [(cell.cell_type, cell.id, cell.source) for cell in notebook.cells]
    assert found == [(cell.cell_type, cell.id, cell.source) for cell in expected.cells], "run: make notebooks"
    assert notebook.metadata == expected.metadata


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_committed_notebook_was_executed_in_order(build: ModuleType, name: str) -> None:
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    build.refuse_unfit(text, name)
    code = [cell for cell in build.nbformat.reads(text, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    kinds = {output.get("name", output.output_type) for output in outputs}
    assert kinds <= {"stdout", "execute_result", "display_data"}
    figures = [output.data for output in outputs if "<Figure" in output.get("data", {}).get("text/plain", "")]
    assert len(figures) >= 2
    assert all("image/png" in data for data in figures)


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_script_imports_exists(name: str) -> None:
    for node in ast.walk(ast.parse(SCRIPTS[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lrp4rag"):
            module = importlib.import_module(node.module or "")
            for imported in node.names:
                assert hasattr(module, imported.name), f"{node.module} has no {imported.name}"


def test_no_notebook_lacks_its_script() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(SCRIPTS)


def test_cells_are_told_apart(build: ModuleType) -> None:
    script = '"""Not a cell."""\n\n# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 1\n\n\n# %%\nx + 1\n'
    cells = [(cell.kind, cell.source) for cell in build.cells_of(script)]
    assert cells == [("markdown", "# Title\n\nText."), ("code", "x = 1"), ("code", "x + 1")]


def test_a_magic_is_one_in_the_notebook_only(build: ModuleType) -> None:
    cells = build.cells_of("# %%\n# %matplotlib inline\nx = 1  # %y\n")
    assert cells[0].source == "# %matplotlib inline\nx = 1  # %y"
    assert build.notebook_of(cells).cells[0].source == "%matplotlib inline\nx = 1  # %y"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("# %% [raw]\n# text\n", "not '# %% \\[raw\\]'"),
        ("# %% [markdown]\n# text\ncode\n", "does not start with"),
    ],
)
def test_what_is_no_cell_is_refused(build: ModuleType, script: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build.cells_of(script)


def test_progress_is_left_out(build: ModuleType) -> None:
    notebook = build.notebook_of([build.Cell("code", "x")])
    notebook.cells[0].outputs = [
        build.nbformat.v4.new_output("stream", name=name, text=name) for name in ("stderr", "stdout")
    ]
    notebook.metadata["language_info"]["version"] = "3.11.7"
    tidied = build.tidied(notebook)
    assert [output.name for output in tidied.cells[0].outputs] == ["stdout"]
    assert tidied.metadata["language_info"] == {"name": "python"}


@pytest.mark.parametrize(
    ("text", "message"), [("x" * 500_001, "bytes"), (f"saved to {FOLDER.parent}/out", "names a folder")]
)
def test_what_should_not_be_committed_is_refused(build: ModuleType, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build.refuse_unfit(text, "notebook")


# On a small sample; what a script does not have is left out.
SMALL = {"QUESTIONS": 14, "LENGTHS": (20, 60), "REPEATS": 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_on_a_tiny_reader(build: ModuleType, name: str, tmp_path: Path) -> None:
    # Its tokenizer knows few words, so prompts are long.
    reader = save_tiny_reader(tmp_path / "long", window=4096)
    script = SCRIPTS[name].read_text(encoding="utf-8")
    for setting, value in {**SMALL, "READER": str(reader)}.items():
        script = re.sub(rf"^{setting} = .*", f"{setting} = {value!r}", script, flags=re.MULTILINE)
    assert str(reader) in script
    notebook = build.executed(build.notebook_of(build.cells_of(script)))
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
