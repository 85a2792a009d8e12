"""What the reader answers to an example's prompt when it is asked several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lrp4rag.example import Example

if TYPE_CHECKING:
    from lrp4rag.experiments.systems.kit import Kit

COUNT, MAX_NEW_TOKENS, TEMPERATURE = 5, 192, 1.0


@dataclass(frozen=True, slots=True)
class Samples:
    """The answers that are not empty: `COUNT` of them, or fewer."""

    texts: tuple[str, ...]


def samples_of(examples: Sequence[Example], kit: Kit) -> list[Samples]:
    """Of each example's prompt, whose responses share them. Raises `InputError` for a prompt that leaves no
    room in the reader's window."""
    prompts = [replace(example, response=None, labels=None) for example in examples]
    return kit.measured("samples", settings_of(kit), prompts, Samples, lambda group: _drawn(group, kit))


def settings_of(kit: Kit) -> dict[str, Any]:
    """What samples depend on beside the prompt."""
    identity = kit.reader.identity
    return {
        "reader": [identity.digest, identity.dtype],
        "samples": [COUNT, MAX_NEW_TOKENS, TEMPERATURE],
        "seed": kit.seed,
    }


def _drawn(prompts: list[Example], kit: Kit) -> list[Samples]:
    from lrp4rag.reader.prompted import Prompted

    made = []
    for example in prompts:
        texts = Prompted(kit.reader, kit.reader.encode_message(example.prompt)).sample(
            [[]] * COUNT,
            max_new_tokens=MAX_NEW_TOKENS,
            temperature=TEMPERATURE,
            seed=kit.seed,
        )
        made.append(Samples(tuple(text for text in texts if text)))
    return made
