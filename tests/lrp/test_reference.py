"""Two references know nothing of each other: detached models of transformers, and a Llama from scratch."""

from __future__ import annotations

from tests.lrp.checks import assert_close, composites, llama_of, variants
from tests.lrp.detached import reference_rows
from tests.lrp.reference import reference
from tests.tiny import random_tokens


@composites
@variants
def test_the_references_agree(composite: str, biased: bool) -> None:
    tokens = random_tokens(11, 6)
    logits, relevance = reference_rows(llama_of(biased), tokens, composite)
    expected = reference(llama_of(biased), tokens.prompt_ids, tokens.response_ids, composite)
    assert_close(logits, expected.logits, 1e-10)
    assert_close(relevance, expected.relevance, 1e-10)
