"""The prompt that asks the same without its passages, or with those of another prompt."""

from __future__ import annotations

from lrp4rag.reader.encoding import Encoded


def without_passages(encoded: Encoded) -> tuple[int, ...]:
    pairs = zip(encoded.prompt_ids, encoded.segments, strict=True)
    return tuple(token for token, segment in pairs if segment < 2)


def with_passages_of(encoded: Encoded, other: Encoded) -> tuple[int, ...]:
    """Passage k of the other prompt in place of passage k; what one has more of is left out or added last."""
    ids: list[int] = []
    last = max(encoded.segments)
    placed: set[int] = set()
    for token, segment in zip(encoded.prompt_ids, encoded.segments, strict=True):
        if segment < 2:
            ids.append(token)
        elif segment not in placed:
            placed.add(segment)
            # The last passage's place takes the other's remaining ones.
            ids += [
                id
                for id, theirs in zip(other.prompt_ids, other.segments, strict=True)
                if theirs == segment or (segment == last and theirs > last)
            ]
    return tuple(ids)
