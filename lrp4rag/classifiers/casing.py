"""Responses in capitals, read as if they were not: they say the same, and nothing compares their words
else."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lrp4rag.claims.words import stop_words
from lrp4rag.util.sentences import sentences_in

_WORD = re.compile(r"[^\W\d_]+")
ACRONYM = 4
"""Letters of a word in capitals that no text has, and that is left as it is."""
FEWEST = 2
"""Words of a sentence, behind its first, by which it is known."""
MOST = 0.6
"""The share of them that is not as texts write them."""


def in_plain_case(text: str, known: Iterable[str]) -> str:
    """The text, as long as it is, with each sentence in the case of the `known` texts that has most words in
    capitals, or with capitals, which these, or English, write in small letters."""
    forms = dict[str, str]()
    for one in known:
        for word in _WORD.findall(one):
            if word.islower() or word.lower() not in forms:
                forms[word.lower()] = word
    parts, after = [], 0
    for start, end in sentences_in(text):
        parts += [text[after:start], _recased(text[start:end], forms)]
        after = end
    plain = "".join([*parts, text[after:]])
    # Sentences are told apart by capitals too.
    return plain if sentences_in(plain) == sentences_in(text) else text


def _recased(sentence: str, forms: dict[str, str]) -> str:
    words, shouted = list(_WORD.finditer(sentence)), sentence.isupper()
    some = [word[0] for word in (words if shouted else words[1:])]
    known = [(word, forms.get(word.lower(), word.lower())) for word in some if _is_known(word, forms)]
    raised = [word for word, form in known if word != form and not word.islower()]
    if len(known) < (1 if shouted else FEWEST) or len(raised) < MOST * len(known):
        return sentence

    def lowered(match: re.Match[str]) -> str:
        plain = match[0].lower()
        if plain not in forms and match[0].isupper() and len(plain) <= ACRONYM and not _is_stop(plain):
            return match[0]
        found = forms.get(plain, plain)
        if match.start() == words[0].start():
            found = found[:1].upper() + found[1:]
        return found if len(found) == len(match[0]) else match[0]

    return _WORD.sub(lowered, sentence)


def _is_known(word: str, forms: dict[str, str]) -> bool:
    return word.lower() in forms or _is_stop(word)


def _is_stop(word: str) -> bool:
    return word.lower() in stop_words() and len(word) > 1
