"""The policies of the documentation are policies."""

from __future__ import annotations

import re
from pathlib import Path

from lrp4rag.guard.policy import Measures, Policy, decide, load_policy

PAGE = Path(__file__).parents[3] / "docs" / "policy.md"


def test_its_policies_do_what_it_says(tmp_path: Path) -> None:
    found = {}
    for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        policy = load_policy(path)
        found[policy.name] = policy
    assert found["balanced"] == Policy()
    assert set(found) == {"strict", "balanced", "disclose only", "enterprise"}
    one_of_three = Measures(supported=2, unsupported=1, hallucinated=True, faithfulness=2 / 3)
    actions = {name: decide(policy, one_of_three).action for name, policy in found.items()}
    assert actions == {
        "strict": "withhold",
        "balanced": "mark",
        "disclose only": "mark",
        "enterprise": "mark",
    }
    worst = Measures(unsupported=3, hallucinated=True, faithfulness=0.0, found=frozenset({"fabricated"}))
    assert [decide(one, worst).action for one in found.values()] == [
        "withhold",
        "withhold",
        "mark",
        "withhold",
    ]
