"""inseq with `input_x_gradient` of the logit: a forward and a backward pass per response token.

inseq takes texts, so the example's tokens must survive decoding and encoding; that is checked.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from benchmarks.harness import Example
from benchmarks.peers.worker import Peer, serve


class Inseq(Peer):
    packages = ("inseq",)
    agrees_with = "paper"

    def __init__(self, model: Any, example: Example, task: dict[str, Any]) -> None:
        super().__init__(model, example, task)
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(task["model"], trust_remote_code=False)
        ids = [*example.prompt_ids, *example.response_ids]
        self._prompt, self._text = tokenizer.decode(ids[: self.n]), tokenizer.decode(ids)
        if tokenizer(self._text)["input_ids"] != ids:
            raise ValueError("inseq takes texts, and this example's text encodes to other tokens")
        self._model = load().load_model(model, "input_x_gradient", tokenizer=tokenizer)

    def units(self, first: int, count: int) -> Tensor:
        start = self.n + first
        output = self._model.attribute(
            self._prompt,
            self._text,
            attr_pos_start=start,
            attr_pos_end=start + count,
            attributed_fn="logit",
            show_progress=False,
        )
        # (tokens, rows, d): inseq leaves the sum over the embedding's entries to its aggregators.
        values: Tensor = output.sequence_attributions[0].target_attributions
        return values[: self.n].sum(-1).T


def load() -> Any:
    import inseq  # type: ignore[import-not-found]

    return inseq


if __name__ == "__main__":
    serve(Inseq)
