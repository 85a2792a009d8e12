"""What the documentation's site adds to its pages, and refuses; `make docs` builds all of it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.browser import Open, browsing, faults_of, needs_browser, overflows

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
        ("benchmarks/README.md", "project/benchmarks/README.md"),
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


# A small site of the same making, in a real browser and from a disk.

HEADS = " | ".join(f"a_long_head_{k}" for k in range(30))
PAGE = """# Small

A [link](other.md) in a text with `code` and [`code` that leads](other.md) on.

```console
$ lrp4rag analyse --question "How tall is it?" --passage "It is 31 metres tall." --response "It is 41 metres."
```

```python
value = {"a": 1.5, "b": None}  # a comment
for name, one in value.items():
    print(f"{name}: {one!r}", len("text"), sep="\\n")
```

```yaml
policy: strict # a comment
bands: [{least: 0.5}]
```

| | HEADS |
|---|RULE
| a | HEADS |

## Again

### Parts

## Twice

### Parts
""".replace("HEADS", HEADS).replace("RULE", "---|" * 30)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="the site's tools are missing: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    (folder / "docs").mkdir()
    (folder / "docs/index.md").write_text(PAGE)
    (folder / "docs/other.md").write_text("# Other\n\nLighthouses are here.\n")
    hooks = ", ".join(str(ROOT / f"website/{name}.py") for name in ("accessible", "elsewhere"))
    (folder / "mkdocs.yml").write_text(
        f"INHERIT: {ROOT / 'website/mkdocs.yml'}\ndocs_dir: docs\nsite_dir: built\nhooks: [{hooks}]\n"
        f"theme: {{custom_dir: {ROOT / 'website/theme'}}}\n"
    )
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", "mkdocs.yml"]
    built = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "built"


@pytest.fixture(scope="module")
def open_page() -> Iterator[Open]:
    with browsing() as opened:
        yield opened


@needs_browser
@pytest.mark.parametrize(("scheme", "narrow"), [("light", True), ("dark", False)])
def test_nobody_is_left_out_of_the_site(open_page, site: Path, scheme: str, narrow: bool) -> None:
    page = open_page((site / "index.html").as_uri(), quiet=True, narrow=narrow, color_scheme=scheme)
    page.locator(".md-typeset__scrollwrap[tabindex]").wait_for()
    assert faults_of(page) == []
    assert not overflows(page)
    command = page.locator(".language-console code").first
    assert command.evaluate("(one) => one.scrollWidth <= one.clientWidth"), "a command is not cut"


@needs_browser
def test_search_works_from_a_disk(open_page, site: Path) -> None:
    page = open_page((site / "index.html").as_uri(), narrow=True)
    page.locator("label.md-header__button[for=__search]").click()
    page.locator(".md-search__input").click()
    page.keyboard.type("lighthouses", delay=20)
    assert "other.html" in page.locator(".md-search-result__link").first.get_attribute("href")
