"""The paper's algorithm (LRP4RAG, arXiv 2408.15533, section 3): a forward and a backward pass for every
response token, on a prefix that grows by one token each time.

Eqs. 1-4 as written telescope to Gradient x Input, which is what a plain model gives. Tuned where that
changes nothing: sdpa attention, the last position's logits only, gradients of the embeddings only.
"""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.peers.worker import Peer, serve


class PaperLoop(Peer):
    agrees_with = "paper"

    def units(self, first: int, count: int) -> Tensor:
        return torch.stack([self._row(j) for j in range(first, first + count)])

    def _row(self, j: int) -> Tensor:
        prefix = torch.tensor([[*self.example.prompt_ids, *self.example.response_ids[:j]]])
        embeddings = self.model.get_input_embeddings()(prefix).detach().requires_grad_()
        logits = self.model(inputs_embeds=embeddings, use_cache=False, logits_to_keep=1).logits[0, -1]
        (gradient,) = torch.autograd.grad(logits[self.example.response_ids[j]], embeddings)
        row: Tensor = (gradient * embeddings.detach())[0, : self.n].sum(-1)
        return row


if __name__ == "__main__":
    serve(PaperLoop)
