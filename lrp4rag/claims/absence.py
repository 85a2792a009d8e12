"""Sentences that say that the passages lack something, and whether they have it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from lrp4rag.claims.grounds import Counterpart, Grounds
from lrp4rag.claims.lexicon import relation
from lrp4rag.claims.places import Place
from lrp4rag.claims.signed import Word, signed_clauses
from lrp4rag.claims.words import word_set

_SAY = (
    "(?:say|said|says|mention(?:ed|s)?|state[sd]?|specif(?:y|ied|ies)|give[sn]?|gave|list(?:ed|s)?|name[sd]?"
    "|tell|told|tells|explain(?:ed|s)?|reveal(?:ed|s)?|indicate[sd]?|describe[sd]?|contain(?:s|ed)?"
    "|provide[sd]?|include[sd]?|cover(?:ed|s)?|discuss(?:ed|es)?|address(?:ed|es)?|answer(?:ed|s)?|set out"
    "|record(?:ed|s)?|found|find|quote[sd]?|report(?:ed|s)?|note[sd]?|spell(?:ed|s)? out|compare[sd]?"
    "|disclose[sd]?|known|recorded|clear|evident|defined?|settled|shown?|stand|be seen|learn|touch(?:ed"
    "|es)? on|go(?:es)? into|express(?:ed)?|noted|shown|detail(?:ed|s)?|made clear|identif(?:y|ied)"
    "|documented|announced|examined|studied|asked|investigated|decided|available|seen|determined?|included"
    "|specific|printed|written|fixed|supplied|published)"
)
_SOURCE = (
    "(?:passages?|texts?|documents?|sources?|e-?mails?|mails?|messages?|minutes|article|statement|record"
    "|report|page|notice|rules?|form|leaflet|letters?|transcript|interview|table|list|contract|manual"
    "|excerpts?|context|posts?|conversation|chat|memo|log|review[s]?|act|terms|policy|recipe|guide|material"
    "|documents?|information|neither|nothing|none|they|entry|section|law|regulations?|thread|notes?|data"
    "|ticket|story|paper|study|abstract|invoice|brochure|plan|summary|programme|website)"
)
_NOT = r"(?:\b(?:not|never|cannot|nowhere|no longer)|n['\u2019]t)"
_ABSENCE = re.compile(
    rf"\b{_SOURCE}\b[^.;:!?\n]{{0,30}}?(?:do|does|did|is|are|was|were|has|have|can"
    rf"|could)?{_NOT}(?: \w+){{0,2}}? {_SAY}\b"
    rf"|(?:is|are|was|were|be|been|it['\u2019]s|remains?)\s*{_NOT}(?: \w+){{0,2}}? {_SAY}\b"
    rf"|\b(?:isn|aren|wasn|weren|hasn|haven|don|doesn|didn)['\u2019]t(?: \w+){{0,2}}? {_SAY}\b"
    rf"|\bnot (?:\w+ )?{_SAY}\b"
    rf"|\b(?:nothing|no word|no mention|no details?|no information|no indication|no answer"
    rf"|no hint)\b(?=[^.;]{{0,80}}\b(?:on|about|of|as to|regarding|said|whether|how|when|who|which|why"
    rf"|what)\b)"
    rf"|(?:\bnot|n['\u2019]t|\bnowhere|\babsent|\bmissing)(?: to be found)? (?:in|from|among"
    rf"|part of) (?:the|this|these|that|those|any|either) (?:\w+ )?{_SOURCE}\b"
    rf"|\b(?:{_SOURCE}|support|agent|author|speaker|interviewer|he|she|they) (?:has|have|had|gives?|gave"
    rf"|sets?|names?|named|offers?|offered|makes?|made|shows?|holds?|held|puts?|says?) (?:no|nothing)\b"
    rf"|\bno (?:\w+[ -]){{0,3}}?(?:is |are |was |were |has been |have been )?{_SAY}\b"
    rf"|\b{_SOURCE} (?:give|name|mention|state|list|contain|compare|provide|offer|say|gives|names"
    rf"|mentions|states|lists|contains|says|offers|provides|compares|leaves?|lacks?) (?:no|nothing|none"
    rf"|open)\b"
    r"|\b(?:left open|leaves? open|leave it open|missing from the|unclear|unknown|unstated|unspecified"
    r"|no longer known)\b"
    r"|\b(?:I|we) (?:can(?:not|['\u2019]t)|could(?: not|n['\u2019]t)|do(?: not|n['\u2019]t)) (?:find|tell"
    r"|say|see|know|answer)\b"
    r"|\bneither (?:\w+ )?(?:passage|text|source|document|message|report|page)?s? ?(?:say|mention|state"
    r"|give|tell|describe|explain|name|list)s?\b",
    re.IGNORECASE,
)
_ASKING = {
    "when": (
        r"when|date|day|deadline|year|month|hours?|what time|period|by which|until",
        r"\d{1,2}(?:st|nd|rd|th)? (?:january|february|march|april|may|june|july|august|september|october"
        "|november|december)|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june"
        r"|july|august|september|october|november|december|\d{4}|\d{1,2}[:.]\d\d|\d{1,2} ?[ap]\.?m|noon"
        "|midnight|o'clock|morning|evening|night",
    ),
    "long": (
        r"how (?:long|soon|fast|quickly|often|old)|duration|length|time",
        r"minutes?|hours?|days?|weeks?|months?|years?|seconds?|min|h",
    ),
    "much": (
        "how (?:much|many|high|big|large|far|warm|cold|hot|heavy|deep|wide|tall|loud)|costs?|price|fee"
        "|amount|number|sum|temperature|rate|weight|size|age|figures?|limit|percentage|charge",
        r"\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|half|free|nothing|dozen",
    ),
    "who": (
        r"who|whom|whose|name[sd]?|by whom|person|persons|which (?:company|firm|person)",
        r"(?<=[a-z,;:(] )(?-i:[A-Z])[a-z]+|Mr|Mrs|Ms|Dr|by (?:the|a)",
    ),
    "where": (
        r"where|address|place|room|location",
        r"in|at|on|near|behind|outside|room|street|road|floor",
    ),
    "why": (
        r"why|reasons?|cause[sd]?",
        r"because|since|as|due to|so that|therefore|owing|for|reason|to avoid|caused|after",
    ),
    "how": (
        r"how(?! (?:long|soon|fast|much|many|high|big|far|often|old))|procedure|way",
        r"by|with|using|press|send|must|form|via|online|write|call|first|then",
    ),
    "whether": (r"whether|if", r"\w+"),
}
_QUESTIONS = {
    name: tuple(re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for words in both)
    for name, both in _ASKING.items()
}
"""Words that ask for something, and words that may give it."""
_SENTENCES = 3
IDLE = word_set(
    """
say said mention state specify give list name tell explain reveal indicate describe contain provide
include cover discuss address answer find record passage text document source email e-mail mail message
minutes article statement page notice information detail nothing word know known clear neither open leave
unfortunately however conversation transcript interview report table excerpt context post
"""
)
"""Words of such a statement that do not tell what is missing."""
_ENDINGS = (" but ", ", and ", ", though ", ", although ", ", so ")


@dataclass(frozen=True, slots=True)
class Absence:
    """Characters `start` to `end` of a text that say that the passages lack what the words in it name."""

    start: int
    end: int
    words: tuple[Word, ...]


def absence_in(text: str, start: int, end: int) -> Absence | None:
    """Find what the characters `start` to `end` of a text first say to be missing."""
    match = _ABSENCE.search(text, start, end)
    if match is None:
        return None
    begin = max(start, *(text.rfind(mark, start, match.start()) + 1 for mark in ";:(\n"))
    last = min((at for mark in ";:\n" if (at := text.find(mark, match.end(), end)) >= 0), default=end)
    for ending in _ENDINGS:
        cut = text.find(ending, match.end(), last)
        if cut > match.end() + 12:
            last = cut
    inside = (word for clause in signed_clauses(text, begin, last) for word in clause.content)
    return Absence(begin, last, tuple(word for word in inside if word.base not in IDLE))


def compare_absence(grounds: Grounds, sentence: Place) -> tuple[dict[str, float], Counterpart | None]:
    """Compare what a sentence says to be missing with the passages. Return features by name, and the sentence
    of the passages that may answer it."""
    absence = absence_in(sentence.source, sentence.start, sentence.end)
    if absence is None:
        return {}, None
    statement = sentence.source[absence.start : absence.end]
    features = {"absence": 1.0, "topic n": float(len(absence.words))}
    if not grounds.clauses or not absence.words:
        return features, None
    aligned = grounds.aligned(absence.words)
    best = aligned.sentences(_SENTENCES)
    matches_by_place = [grounds.matches(absence.words, place.content) for place, _ in best]
    question_words = {word.base for word in grounds.question_words}
    shared = sum(
        any(relation(word.base, asked_word) in ("same", "synonym") for asked_word in question_words)
        for word in absence.words
    )
    ranked = np.sort(aligned.scores)[::-1]
    features |= {
        "topic best": float(ranked[0]),
        "topic known": float(aligned.known_scores.max()),
        "topic missing": aligned.missing,
        "topic lead": float(ranked[0] - ranked[min(3, len(ranked) - 1)]),
        "topic here": max(
            (sum(match.weight for match in matches) for matches in matches_by_place), default=0.0
        ),
        "topic matched": float(max(map(len, matches_by_place), default=0)),
        "topic new": float(sum(not grounds.related(word.base) for word in absence.words)),
        "topic with question": float(grounds.aligned(absence.words, grounds.question_words).scores.max()),
        "topic asked": shared / len(absence.words),
        "topic asked n": float(shared),
        "answered": -1.0,
    }
    answered = None
    for name, (question, answer) in _QUESTIONS.items():
        asks = question.search(statement) is not None
        features[f"asks {name}"] = float(asks)
        for place, score in best:
            if asks and score > features["answered"] and answer.search(place.text):
                features["answered"] = score
                answered = (place.passage, place.start, place.end, score)
    return features, Counterpart(absence.start, absence.end, *answered) if answered else None
