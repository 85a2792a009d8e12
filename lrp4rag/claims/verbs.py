"""Finite verbs of a sentence, by lists of words and endings: no tagger is loaded."""

from __future__ import annotations

from lrp4rag.claims.words import word_set

_BEFORE_PLAIN = word_set("i you we they and or but then also never always please not , ;")
_DETERMINERS = word_set(
    """
    a an the its their his her your our my this that these those all every each any no up only both
    """
)
_AFTER_PARTICIPLE = _DETERMINERS | word_set("by in at for from to with on before after within last next")
CONJUNCTIONS = frozenset({"and", "or", "but", "yet", "nor"})
ADVERBS = word_set(
    """
    also then not never only always therefore usually generally typically thus still even often
    """
)

FINITE = word_set(
    """
    is are was were be has have had do does did can could may might must shall should will would cannot
    won't isn't aren't wasn't weren't hasn't haven't hadn't don't doesn't didn't can't couldn't mustn't
    shouldn't it's that's there's they're you're we're you'll it'll
    """
) | word_set(
    """
    accepts adds allows allowed applies applied appears became becomes began begins belongs brings brought
    builds built buys came charges closes comes connects consists contains costs covers created creates
    depends describes designed died includes included increased informs joined keeps kept knew knows lasts
    lasted led lies lived lives loses lost made makes meets met needs offers offered opens opened operates
    owns owed owes paid pays played plays prevents protects proved provides provided published reaches
    receives received remains rejects renews requires required resigned retired ranges rose rises runs ran
    said says sells sold serves settled shows spans stands started starts states stops takes took teaches
    tells told won went gave gets got goes grew held holds hosts wrote writes uses weighs weighed works
    worked
    """
)
PLAIN = word_set(
    """
    add apply ask attach avoid bake bring buy call cancel change check choose click close collect come
    complete contact cook cover enter fill find follow get give go have hold include inform insert install
    join keep leave let live lock make meet mix obey open order pay place plug pour press provide put
    qualify receive register remain remove replace reply report request require reset return rinse run
    save see select send serve show sign start stay stir store submit take tell turn unplug use visit wait
    wash work write
    """
)


def finite_verbs(words: list[str]) -> list[bool]:
    """Return which of the words (and signs) of a sentence, in small letters, are finite verbs, as far as
    lists and endings tell. A plain form counts after a subject pronoun, a conjunction or a comma, and at the
    beginning."""
    return [_is_finite(words, k) for k in range(len(words))]


def _is_finite(words: list[str], k: int) -> bool:
    word = words[k]
    if word in FINITE:
        return True
    before = _before(words, k)
    after = words[k + 1] if k + 1 < len(words) else ""
    if word in PLAIN and (not before or before in _BEFORE_PLAIN):
        return True
    if len(word) < 4 or not (after[:1].isdigit() or after in _AFTER_PARTICIPLE):
        return False
    ahead = after[:1].isdigit() or after in _DETERMINERS
    if word.endswith("ed"):
        return ahead or before in CONJUNCTIONS or before == ","
    return ahead and word.endswith("s") and not word.endswith(("ss", "us", "is"))


def _before(words: list[str], k: int) -> str:
    """Return the word before, without an adverb between; "" at the beginning."""
    for word in reversed(words[max(k - 3, 0) : k]):  # no more than two adverbs: texts may be made of them
        if word not in ADVERBS:
            return word
    return ""
