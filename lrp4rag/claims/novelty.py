"""How much of a claim no passage has anything of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lrp4rag.claims.grounds import Alignment, Grounds
from lrp4rag.claims.places import Place
from lrp4rag.claims.signed import Word

_OF_CLAUSES = ("best", "missing", "here", "here share", "three")


def compare_novelty(grounds: Grounds, sentence: Place) -> dict[str, float]:
    """Return features, by name, of the words of a sentence that neither a passage nor the question has, nor
    one of the same sense."""
    every = sentence.content
    if not every or not grounds.clauses:
        return {"new words": float(len(every))}
    asked = {word.base for word in grounds.asked}
    unknown = [word for word in every if not grounds.related(word.base)]
    unasked = [word for word in unknown if word.base not in asked]
    aligned = grounds.aligned(every)
    here = _words_at_best(grounds, aligned, every)
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
        "capital new": float(sum(sentence.source[word.start].isupper() for word in unasked)),
    }
    rows = []
    for words in (clause.content for clause in sentence.clauses if len(clause.content) > 1):
        aligned = grounds.aligned(words)
        here = _words_at_best(grounds, aligned, words)
        three = float(np.sort(aligned.scores)[-3:].mean())
        rows.append((float(aligned.scores.max()), aligned.missing, here, here / len(words), three))
    if rows:
        for name, column in zip(_OF_CLAUSES, np.array(rows).T, strict=True):
            features[f"clause {name} min"] = float(column.min())
            features[f"clause {name} max"] = float(column.max())
    return features


def _words_at_best(grounds: Grounds, aligned: Alignment, words: Sequence[Word]) -> int:
    """Return how many of the words the sentence of the passages has that has most of them."""
    return len(grounds.matches(words, aligned.places[0].content))
