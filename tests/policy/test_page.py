"""The policies of the documentation are policies."""

from __future__ import annotations

import re
from pathlib import Path

from lrp4rag.policy import Measures, Policy, decide, load_policy

PAGE = Path(__file__).parents[2] / "docs" / "policy.md"


def test_its_three_policies_do_what_it_says(tmp_path: Path) -> None:
    found = {}
    for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        policy = load_policy(path)
        found[policy.name] = policy
    assert found["balanced"] == Policy()
    assert set(found) == {"strict", "balanced", "disclose only"}
    middling = Measures(0.1, 0.9, 0.9)
    assert decide(found["strict"], middling).action == "escalate"
    assert decide(found["balanced"], middling).action == "serve"
    worst = Measures(0.99, 0.0, 0.0, found=frozenset({"fabricated"}))
    assert [decide(one, worst).action for one in found.values()] == ["withhold", "withhold", "mark"]
