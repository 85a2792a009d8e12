"""How much of a claim no passage has anything of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lrp4rag.claims.grounds import Grounds
from lrp4rag.claims.signed import Clause, Word

_OF_CLAUSES = ("best", "missing", "here", "here share", "three")


def compare_novelty(
    grounds: Grounds, text: str, clauses: Sequence[Clause]
) -> tuple[dict[str, float], list[Word]]:
    """Compare a sentence of a `text` with all that the passages have: features by name, and the words that
    neither a passage nor the question has, nor one of the same sense."""
    every = [word for clause in clauses for word in clause.content]
    if not every or not grounds.placed:
        return {"new words": float(len(every))}, every
    asked = {word.base for word in grounds.asked}
    unknown = [word for word in every if not grounds.related(word.base)]
    unasked = [word for word in unknown if word.base not in asked]
    here = _words_at_best(grounds, every)
    aligned = grounds.aligned(every)
    features = {
        "words": float(len(every)),
        "new words": float(len(unknown)),
        "new unasked": float(len(unasked)),
        "new share": len(unasked) / len(every),
        "whole best": float(aligned.scores.max()),
        "whole known": float(aligned.known.max()),
        "whole missing": aligned.missing,
        "whole here": float(here),
        "whole here share": here / len(every),
        "capital new": float(sum(text[word.start].isupper() for word in unasked)),
    }
    rows = []
    for clause in clauses:
        if len(clause.content) > 1:
            aligned, here = grounds.aligned(clause.content), _words_at_best(grounds, clause.content)
            three = float(np.sort(aligned.scores)[-3:].mean())
            share = here / len(clause.content)
            rows.append((float(aligned.scores.max()), aligned.missing, here, share, three))
    if rows:
        for name, column in zip(_OF_CLAUSES, np.array(rows).T, strict=True):
            features[f"clause {name} min"] = float(column.min())
            features[f"clause {name} max"] = float(column.max())
    return features, unasked


def _words_at_best(grounds: Grounds, words: Sequence[Word]) -> int:
    """Return how many of the words the sentence of the passages has that has most of them."""
    best = grounds.placed[grounds.aligned(words).order[0]].sentence
    return len(grounds.matches(words, grounds.words_of(best)))
