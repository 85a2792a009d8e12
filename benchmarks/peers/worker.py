"""One round of a peer, in a process of its own: a task as JSON is its argument, the round its last line.

    python -m benchmarks.peers.worker TASK

Runs in every environment, so it needs torch and transformers (4.56 or newer) and nothing else.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from typing import Any

import torch

from benchmarks.harness import Example, forget_peak, peak_resident, seconds
from benchmarks.peers.methods import PEERS


def load_model(folder: str) -> Any:
    """The plain Hugging Face model in float32 with sdpa attention, nothing requiring gradients."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    _old_rope(config)
    options: dict[str, Any] = {"dtype": torch.float32, "attn_implementation": "sdpa"}
    model: Any = AutoModelForCausalLM.from_pretrained(
        folder, config=config, trust_remote_code=False, **options
    )
    assert model.dtype == torch.float32
    return model.eval().requires_grad_(False)


def _old_rope(config: Any) -> None:
    """Transformers 4 reads `rope_theta`, and of `rope_parameters` (written by 5) takes no notice."""
    parameters = getattr(config, "rope_parameters", None)
    if not parameters or int(importlib.metadata.version("transformers").partition(".")[0]) >= 5:
        return
    config.rope_theta = parameters["rope_theta"]
    scaling = {key: value for key, value in parameters.items() if key != "rope_theta"}
    config.rope_scaling = None if scaling.get("rope_type", "default") == "default" else scaling


def measure(
    peer: str, model: str, prompt: int, response: int, rows: list[int], composite: str
) -> dict[str, Any]:
    """Seconds, peak bytes and values of a plain forward, of what the peer gets whole, and of some rows of R*.

    Rows after `prompt` share its graph or replay; the first row of a peer without makes its own.
    """
    PEERS[peer].prepare()
    loaded = load_model(model)
    example = Example.random(prompt, response, loaded.config.vocab_size)
    method = PEERS[peer](loaded, example, composite)
    method.row(0)  # the first call of a library sets things up
    calls = {"forward": method.forward} | {name: getattr(method, name) for name in method.whole}
    calls |= {f"row {j}": lambda j=j: method.row(j) for j in rows}
    taken, peaks, values = dict[str, float](), dict[str, int](), dict[str, Any]()
    for name, call in calls.items():
        forget_peak()
        taken[name] = seconds(lambda: values.update({name: call()}))  # noqa: B023 (called at once)
        peaks[name] = peak_resident()  # before the values are copied
        values[name] = values[name].detach().double().tolist()
    packages = (*method.packages, "torch", "transformers")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return {"seconds": taken, "peak_bytes": peaks, "values": values, "versions": versions}


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
