"""Pages of results are made of their records and of nothing else."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from experiments.pages import PAGE, RESULTS, VIEWS, Results, Took, render
from lrp4rag.util.errors import InputError

DOCS = Path(__file__).parents[2] / "experiments" / "results"


FOLDERS = [path.parent for path in sorted(DOCS.glob(f"*/{RESULTS}"))]


def copied(name: str, tmp_path: Path, **changed: Any) -> Path:
    """The record of a page, without the fields that are changed to None."""
    record = json.loads((DOCS / name / RESULTS).read_text(encoding="utf-8")) | changed
    folder = tmp_path / name
    folder.mkdir()
    (folder / RESULTS).write_text(json.dumps({key: one for key, one in record.items() if one is not None}))
    return folder


def test_every_command_has_a_page() -> None:
    assert {Results.of(folder).name for folder in FOLDERS} == set(VIEWS)


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


def test_the_command_writes_several_and_says_so(run, tmp_path: Path) -> None:
    folders = [copied(name, tmp_path) for name in ("ragulator", "worth")]
    printed = " ".join(run("page", *folders).stdout.split())
    for folder in folders:
        assert (folder / PAGE).read_bytes() == (DOCS / folder.name / PAGE).read_bytes()
        assert f"{folder.name}/{PAGE}" in printed.replace(" ", "")


def test_a_folder_without_a_record_is_refused(run, tmp_path: Path) -> None:
    result = run("page", tmp_path, code=2)
    assert f"there is no {RESULTS} here" in " ".join(result.stderr.split())
    assert not (tmp_path / PAGE).exists()


@pytest.mark.parametrize(
    ("changed", "field", "words"),
    [
        (
            {"kind": "python -m experiments magic"},
            "kind",
            "no page is known of 'magic'",
        ),
        ({"kind": None}, "kind", "missing"),
        ({"kind": 3}, "kind", "not what"),
        ({"lines": None}, "lines", "missing"),
        ({"lines": {}}, "lines", "not what python -m experiments worth writes"),
        ({"lines": [{"level": "tokens"}]}, "lines", "not what python -m experiments worth writes"),
        ({"seeds": "three"}, "seeds", "not what python -m experiments worth writes"),
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


def test_a_page_says_how_long_its_command_took(tmp_path: Path) -> None:
    assert 0 < Took.until_now().seconds < 1e6
    assert Took.until_now().cores >= 1
    assert (Took(29, 1).words, Took(7260.0, 2).words) == ("29 s on 1 core", "121 min on 2 cores")
    folder = copied("worth", tmp_path, took={"seconds": 7260.0, "cores": 2})
    page = render(folder)[0].read_text(encoding="utf-8")
    assert "made [results.json](results.json) in 121 min on 2 cores, with what was cached; " in page
