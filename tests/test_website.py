"""What the documentation's site adds to its pages, and refuses; `make docs` builds all of it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).parent.parent


def hooks(name: str) -> ModuleType:
    """A file of hooks for MkDocs."""
    pytest.importorskip("mkdocs", reason="the site's tools are missing: pip install '.[docs]'")
    spec = importlib.util.spec_from_file_location(f"website_{name}", ROOT / f"website/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def outside() -> ModuleType:
    return hooks("outside")


@pytest.fixture(scope="module")
def elsewhere() -> ModuleType:
    return hooks("elsewhere")


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("docs/serve.md", "serve.md"),
        ("docs/guides/judge.md", "guides/judge.md"),
        ("ARCHITECTURE.md", "project/ARCHITECTURE.md"),
        ("benchmarks/peers/README.md", "project/benchmarks/peers/README.md"),
    ],
)
def test_files_have_one_place_in_the_site(outside: ModuleType, path: str, uri: str) -> None:
    assert outside.in_site(path) == uri
    assert outside.in_repository(uri) == path


def of_page(uri: str) -> SimpleNamespace:
    return SimpleNamespace(file=SimpleNamespace(src_uri=uri))


@pytest.mark.parametrize(
    ("uri", "given", "moved"),
    [
        ("README.md", "[it](../ARCHITECTURE.md)", "[it](project/ARCHITECTURE.md)"),
        ("README.md", "[it](serve.md#routes)", "[it](serve.md#routes)"),
        ("guides/explain.md", "[it](../serve.md)", "[it](../serve.md)"),
        (
            "baselines/README.md",
            "[it](../../benchmarks/README.md#passes)",
            "[it](../project/benchmarks/README.md#passes)",
        ),
        ("project/CONTRIBUTING.md", "[it](docs/serve.md)", "[it](../serve.md)"),
        ("project/CONTRIBUTING.md", "[it](ARCHITECTURE.md)", "[it](ARCHITECTURE.md)"),
        ("notebooks.md", "[it](../notebooks/rules.ipynb)", "[it](project/notebooks/rules.md)"),
        ("speed.md", "of [these runs](results/speed).", "of these runs."),
        ("README.md", "[it](https://example.org) [here](#there)", "[it](https://example.org) [here](#there)"),
        ("README.md", "[it](nowhere.md)", "[it](nowhere.md)"),
        ("judge.md", "```python skip\nx\n```", "```python\nx\n```"),
    ],
)
def test_links_lead_to_where_files_are(outside: ModuleType, uri: str, given: str, moved: str) -> None:
    assert outside.on_page_markdown(given, of_page(uri), None, None) == moved


@pytest.mark.parametrize(
    "loads",
    [
        '<script src="https://unpkg.com/mermaid"></script>',
        '<script src="//unpkg.com/mermaid"></script>',
        '<link rel="stylesheet" href="https://fonts.example.org/css">',
        '<img src="http://example.org/a.png">',
    ],
)
def test_a_page_that_loads_from_elsewhere_is_refused(elsewhere: ModuleType, loads: str) -> None:
    from mkdocs.exceptions import PluginError

    with pytest.raises(PluginError, match=r"serve\.md loads .*//"):
        elsewhere.on_post_page(f"<p>{loads}</p>", of_page("serve.md"), None)


def test_links_load_nothing(elsewhere: ModuleType) -> None:
    page = '<a href="https://example.org">x</a><script src="a.js"></script><img src="data:image/png,x">'
    assert elsewhere.on_post_page(page, of_page("serve.md"), None) == page


def test_examples_of_commands_are_code() -> None:
    help_text = "Judge.\n\n\b\nExamples:\n  lrp4rag a b\n  lrp4rag c\n\nMore text."
    assert hooks("commands").as_markdown(help_text) == (
        "Judge.\n\nExamples:\n\n      lrp4rag a b\n      lrp4rag c\n\nMore text."
    )
