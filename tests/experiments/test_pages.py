"""Pages of results are made of their records and of nothing else."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiments.claim import PAGE
from experiments.pages import RENDERERS, render
from experiments.results_page import RESULTS, Results, Took, write_record
from lrp4rag.util.errors import InputError
from tests.experiments.cli.conftest import run  # noqa: F401

DOCS = Path(__file__).parents[2] / "experiments" / "results"


def kind_of(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")).get("kind")


FOLDERS = [path.parent for path in sorted(DOCS.glob(f"*/{RESULTS}")) if kind_of(path) in RENDERERS]


def copied(name: str, tmp_path: Path, **changed: Any) -> Path:
    """The record of a page, without the fields that are changed to None."""
    record = json.loads((DOCS / name / RESULTS).read_text(encoding="utf-8")) | changed
    folder = tmp_path / name
    folder.mkdir()
    (folder / RESULTS).write_text(json.dumps({key: one for key, one in record.items() if one is not None}))
    return folder


def test_every_kind_has_a_page() -> None:
    assert {kind_of(folder / RESULTS) for folder in FOLDERS} == set(RENDERERS)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_page_is_what_its_record_and_its_template_make(folder: Path, tmp_path: Path) -> None:
    """Where a template changed, `python -m experiments page FOLDER` writes its pages again."""
    out = tmp_path / folder.name
    out.mkdir()
    shutil.copy(folder / RESULTS, out)
    page, *_, record = render(out)
    assert page.read_bytes() == (folder / PAGE).read_bytes()
    assert record.read_bytes() == (folder / RESULTS).read_bytes()
    for table in folder.glob("*.csv"):
        assert (out / table.name).read_bytes() == table.read_bytes()
    shown = set(re.findall(r"\]\((\w[\w.-]+\.(?:png|csv|json))\)", page.read_text(encoding="utf-8")))
    assert shown <= {path.name for path in out.iterdir()}


def test_the_command_writes_several_and_says_so(run, tmp_path: Path) -> None:  # noqa: F811
    folders = [copied(name, tmp_path) for name in ("ragulator", "worth")]
    printed = " ".join(run("page", *folders).stdout.split())
    for folder in folders:
        assert (folder / PAGE).read_bytes() == (DOCS / folder.name / PAGE).read_bytes()
        assert f"{folder.name}/{PAGE}" in printed.replace(" ", "")


def test_a_folder_without_a_record_is_refused(run, tmp_path: Path) -> None:  # noqa: F811
    result = run("page", tmp_path, code=2)
    assert f"there is no {RESULTS} here" in " ".join(result.stderr.split())
    assert not (tmp_path / PAGE).exists()


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        (
            {"kind": "lrp4rag experiments magic"},
            "kind",
            "no page is known of 'lrp4rag experiments magic'",
        ),
        ({"kind": None}, "kind", "missing"),
        ({"kind": 3}, "kind", "not what"),
        ({"lines": None}, "lines", "missing"),
        ({"lines": {}}, "lines", "not what lrp4rag experiments worth writes"),
        ({"lines": [{"level": "tokens"}]}, "lines", "not what lrp4rag experiments worth writes"),
        ({"seeds": "three"}, "seeds", "not what lrp4rag experiments worth writes"),
        ({"reader": None}, "reader", "missing"),
        ({"command": ["x"]}, "command", "not what"),
        ({"took": {"seconds": 1}}, "took", "not what"),
    ],
)
def test_a_broken_field_is_named(changed: dict[str, Any], field: str, words: str, tmp_path: Path) -> None:
    folder = copied("worth", tmp_path, **changed)
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        render(folder)
    assert (caught.value.path, caught.value.field) == (folder / RESULTS, field)


def test_parts_that_do_not_fit_together_are_told(tmp_path: Path) -> None:
    record = json.loads((DOCS / "worth" / RESULTS).read_text(encoding="utf-8"))
    folder = copied("worth", tmp_path, lines=record["lines"][:3])
    with pytest.raises(InputError, match="do not fit together"):
        render(folder)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"kind": NaN}'])
def test_what_is_no_record_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text(content)
    with pytest.raises(InputError, match="not the record of a page"):
        render(tmp_path)


def test_a_record_says_how_long_it_took_and_its_page_too(tmp_path: Path) -> None:
    write_record(tmp_path / "some", "lrp4rag experiments x", {"a": 1})
    took = Results.of(tmp_path / "some").get("took", Took)
    assert 0 < took.seconds < 1e6
    assert took.cores >= 1
    assert (Took(29, 1).words, Took(7260.0, 2).words) == ("29 s on 1 core", "121 min on 2 cores")
    folder = copied("worth", tmp_path, took={"seconds": 7260.0, "cores": 2})
    page = render(folder)[0].read_text(encoding="utf-8")
    assert "made [results.json](results.json) in 121 min on 2 cores, with what was cached; " in page
