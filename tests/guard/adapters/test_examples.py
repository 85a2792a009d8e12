"""The examples, on real weights: they run as they stand."""

from __future__ import annotations

import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

from lrp4rag import Detector
from lrp4rag.guard.service.access import new_token
from lrp4rag.guard.service.app import create_app
from lrp4rag.guard.service.settings import Settings
from tests.guard.service.conftest import listening
from tests.guard.service.scripted_upstream import Script, events, serving

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "adapters"
LIBRARIES = {
    "haystack_pipeline": "haystack",
    "langchain_chain": "langchain_core",
    "llama_index_engine": "llama_index",
}
MARK = " [not verified]"


def run(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


def test_each_example_is_tested() -> None:
    assert {path.stem for path in FOLDER.iterdir() if path.suffix == ".py"} == {*LIBRARIES, "openai_client"}


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_example_of_a_library(
    name: str, bundled: Detector, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence is grounded and let out as it is, the other is marked."""
    if find_spec(LIBRARIES[name]) is None:
        pytest.skip(f"{LIBRARIES[name]} is not installed: make test-adapters")
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    printed = run(name, capsys)
    right, wrong = "(is 31 metres tall|is 16 weeks)", "(in 1850|twice a year at any age)"
    assert re.search(rf"{right}\. [^\[\]]*{wrong}\.{re.escape(MARK)}", printed), printed
    assert re.search(r"(decision|whole): +mark", printed)


def test_the_example_of_openais_client(
    bundled: Detector, capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, hashed = new_token()
    script = Script()
    script.stream = events("The tower is 31 metres tall. It was desi", "gned by Robert Stevenson in 1850.")
    with serving(script) as upstream:
        audit = f"sqlite:///{tmp_path / 'audit.db'}"
        app = create_app(Settings.load(None, audit=audit, tokens={"app": hashed}, upstream=upstream), bundled)
        with listening(app) as url:
            monkeypatch.setenv("LRP4RAG_URL", url)
            monkeypatch.setenv("LRP4RAG_TOKEN", token)
            printed = run("openai_client", capsys)
    marked = f"It was designed by Robert Stevenson in 1850.{MARK}"
    assert printed.startswith(f"The tower is 31 metres tall. {marked}\n\n")
    assert "decision: mark" in printed
