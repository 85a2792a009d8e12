"""How long commands took, from the records of their pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.commands import main, minutes, time_of
from lrp4rag.util.errors import InputError

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_times_of_the_records() -> None:
    known = json.loads((ROOT / "docs/results/speed/commands.json").read_text())
    page = (
        (ROOT / "docs/results.md").read_text().split("## How long the commands take\n")[1].split("\n## ")[0]
    )
    shown = {
        line.split("](results/")[1].split("/")[0]: line for line in page.splitlines() if "](results/" in line
    }
    del shown["speed"]
    assert list(shown) == list(known)
    for name, line in shown.items():
        assert time_of(ROOT / "docs/results" / name) == known[name]
        assert f" | {minutes(known[name]['seconds'])} |" in line, name


def test_seconds_of_sections_add_up_and_a_record_without_them_is_not_timed(tmp_path: Path) -> None:
    for name, file, more in (
        ("sections", "manifest.json", {"seconds": {"a": 50.0, "b": 70.5}}),
        ("timed", "results.json", {"took": {"seconds": 5.0, "cores": 2}, "sources": 12}),
        ("older", "results.json", {"sources": {"learn": 3}}),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(json.dumps({"command": f"make {name}"} | more))
    folders = [str(tmp_path / name) for name in ("sections", "timed", "older")]
    out = tmp_path / "out.json"
    result = CliRunner().invoke(main, [*folders, "--out", str(out)])
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    assert [one["seconds"] for one in found.values()] == [120.5, 5.0, None]
    assert [one["sources"] for one in found.values()] == [None, 12, None]
    assert [line.split(" | ")[-1] for line in result.output.splitlines()[2:]] == [
        "2 min |",
        "5 s |",
        "not timed |",
    ]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({}, "command"),
        ({"command": "a", "took": {"seconds": "5"}}, "seconds"),
        ({"command": "a", "took": 5}, "seconds"),
    ],
)
def test_what_no_command_wrote_is_refused(record: dict, field: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps(record))
    with pytest.raises(InputError) as refused:
        time_of(tmp_path)
    assert refused.value.field == field
