"""Fine-tuning: a model of transformers learns from tokenised items with labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.systems.encoders.running import autocast, batches, seeded
from lrp4rag.util.progress import track

Item = dict[str, Any]
"""Lists of one text by their names: `input_ids`, `attention_mask` ..., and `labels`: a number, or a
list with a number for each token (IGNORED where there is none)."""

AfterEpoch = Callable[[int, Any, Any], None]
"""Is told how many epochs are done, and the model, in evaluation mode, and its tokenizer."""

IGNORED = -100  # as transformers pads labels
BLOCK = 32  # batches whose items are sorted by length together


@dataclass(frozen=True, slots=True)
class Training:
    """AdamW with a linear warm-up and decay; gradients are clipped at norm 1. `head_rate` is the rate of
    the head, where it has one of its own.

    Drawing the dropout of attention takes longer on a CPU than the rest of a step, so encoders go without.
    """

    epochs: int = 2
    rate: float = 5e-5
    batch: int = 16
    warmup: float = 0.1
    decay: float = 0.01
    seed: int = 0
    attention_dropout: float = 0.0
    head_rate: float | None = None

    def steps(self, items: int) -> int:
        """Of gradient descent: full and last batches of each epoch."""
        return self.epochs * -(-items // self.batch)


def finetune(
    model: Any,
    tokenizer: Any,
    items: Sequence[Item],
    training: Training,
    label: str,
    *,
    tokens: int | None = None,
    after_epoch: AfterEpoch | None = None,
) -> Any:
    """The same model, trained and in evaluation mode; the seed decides what is drawn.

    Only parameters that ask for a gradient learn. With `tokens`, a batch of items that have one label each
    is read in passes of so many tokens, or one item: its gradient is the same in less memory. `after_epoch`
    may read the model, but draw nothing from torch. Raises `ValueError` for no items.
    """
    import torch
    from transformers import (
        DataCollatorForTokenClassification,
        DataCollatorWithPadding,
        get_linear_schedule_with_warmup,
    )

    if not items:
        raise ValueError("there is nothing to learn from")
    of_tokens = isinstance(items[0]["labels"], list)
    collate = (DataCollatorForTokenClassification if of_tokens else DataCollatorWithPadding)(tokenizer)
    generator = np.random.default_rng(training.seed)
    steps, of_epoch = training.steps(len(items)), -(-len(items) // training.batch)
    parameters = [one for one in model.parameters() if one.requires_grad]
    groups = _parameter_groups(model, training)
    optimizer = torch.optim.AdamW(groups, lr=training.rate, weight_decay=training.decay)
    schedule = get_linear_schedule_with_warmup(  # type: ignore[no-untyped-call]
        optimizer, int(training.warmup * steps), steps
    )
    with seeded(training.seed):  # of dropout
        model.train()
        for step, chosen in enumerate(track(_rounds(items, training, generator), steps, label), start=1):
            lengths = [len(items[k]["input_ids"]) for k in chosen]
            for own in [slice(None)] if tokens is None else batches(lengths, tokens):
                some = chosen[own]
                with autocast(str(model.device)):
                    batch: Any = collate([items[k] for k in some])
                    loss = model(**batch.to(model.device)).loss
                (loss * (len(some) / len(chosen))).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
            if after_epoch is not None and step % of_epoch == 0:
                after_epoch(step // of_epoch, model.eval(), tokenizer)
                model.train()
    return model.eval()


def _parameter_groups(model: Any, training: Training) -> list[dict[str, Any]]:
    """What learns, the head apart where it has a rate of its own. The head is all that is not in the base."""
    learning = {name: one for name, one in model.named_parameters() if one.requires_grad}
    if training.head_rate is None:
        return [{"params": list(learning.values())}]
    base = f"{model.base_model_prefix}."
    inside = [one for name, one in learning.items() if name.startswith(base)]
    head = [one for name, one in learning.items() if not name.startswith(base)]
    return [{"params": inside}, {"params": head, "lr": training.head_rate}]


def _rounds(
    items: Sequence[Item], training: Training, generator: np.random.Generator
) -> Iterator[NDArray[np.intp]]:
    """Batches of all epochs, in random order; items of like lengths share a batch."""
    lengths = np.array([len(item["input_ids"]) for item in items])
    for _ in range(training.epochs):
        order = generator.permutation(len(items))
        size = training.batch * BLOCK
        blocks = [order[start : start + size] for start in range(0, len(order), size)]
        within = [block[np.argsort(lengths[block], kind="stable")] for block in blocks]
        made = [
            block[start : start + training.batch]
            for block in within
            for start in range(0, len(block), training.batch)
        ]
        yield from (made[k] for k in generator.permutation(len(made)))
