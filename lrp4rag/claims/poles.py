"""Phrases for one of two poles, "free of charge" and "costs", "must" and "need not", with their denials."""

from __future__ import annotations

import re
from dataclasses import dataclass

_POLES: dict[str, tuple[str, str]] = {
    "permission": (
        r"(?:may|can|could)(?! ?n[o'\u2019]t)|allowed|permitted|possible|accepted|accepts?|welcome|suits?"
        "|suitable|able to|eligible|entitled|fine|okay|ok|open to|works?|free to|all right|goes|let you"
        "|lets you|allows?",
        "forbidden|prohibited|banned|barred|impossible|unable|refused|rejected|ineligible|off limits"
        "|out of bounds|no use|taboo|cannot|excluded|too late|(?:must|may|shall|should|do|does) not|(?:must"
        r"|may|shall|should|do|does|ca)n['\u2019]t|never",
    ),
    "duty": (
        r"must(?! not|n['\u2019]t)|ha(?:s|ve) to|required|requires?|needs? to|necessary|needed|compulsory"
        "|mandatory|obligatory|obliged|shall|needs?|wants?|demands?|insists?|a must|essential|duty|duties",
        r"optional|voluntary|need not|needn['\u2019]t|no need|unnecessary|not necessary|up to you|no duty"
        "|superfluous|without (?:having|needing) to|of (?:your|their) own free will|can do without"
        "|dispense with|spared",
    ),
    "charge": (
        r"costs?|charged?|charges|fees?|pays?|payable|billed|owe[sd]?|paid|price|priced|due",
        "free|free of charge|no (?:charge|cost|fee|extra charge)|gratis|nothing|waived|complimentary"
        "|without charge|not (?:a )?(?:cent|penny)|no extra cost|without (?:extra |a )?(?:cost|fee)"
        "|not billed|included",
    ),
    "order": (
        r"before|beforehand|first|in advance|prior|earlier|ahead|sooner|until|by|previously|at the latest",
        r"after|afterwards|later|then|once|subsequently|following|since|only after|at the earliest",
    ),
    "time": (
        r"earl(?:y|ier|iest)|soon|sooner|soonest|fast(?:er|est)?|quick(?:er|est|ly)?|at once|immediately"
        r"|straight away|right away",
        r"late|later|latest|slow(?:er|est|ly)?|delayed?|postponed?|put off",
    ),
    "bound": (
        "at most|no more than|up to|maximum|not (?:more|longer|later|older) than|less than|under|below"
        "|fewer than|or less|or below|or under|no longer than|within|at the most|or fewer|or earlier"
        "|or younger|tops|cap(?:ped)?|no later than|limited to|shorter than|top|until",
        r"at least|no less than|no fewer than|minimum|more than|over|above|or more|or above|or over|or longer"
        r"|or older|at the least|exceeds?|exceeding|longer than|older than|from|beyond|or later|upwards"
        r"|and up",
    ),
    "amount": (
        "more|higher|larger|bigger|longer|greater|increase[sd]?|rise[sn]?|rose|up|grew|grows?|grown|dearer"
        "|heavier|raised|stronger|warmer|hotter|older|most|better|best|many|much|above|larger part"
        "|tall(?:er)?|raises?",
        "less|lower|smaller|shorter|decrease[sd]?|fall(?:s|en)?|fell|down|shrank|shrinks?|cheaper|lighter"
        "|reduced|cut|weaker|cooler|colder|younger|fewer|least|worse|worst|few|little|below|drop(?:s|ped)?"
        "|halved",
    ),
    "extent": (
        "all|every|everyone|everybody|any|anyone|anybody|always|each|whole|both|entire(?:ly)?|fully"
        "|complete(?:ly)?|in full|everything|anything|any(?:where|time)|everywhere|whatever|whoever|whenever"
        "|throughout",
        r"none|nobody|no one|neither|never|nothing|nowhere|not (?:one|any|a single)|no",
    ),
    "part": (
        "all|every|everyone|everybody|any|anyone|always|each|whole|both|entire(?:ly)?|fully|in full"
        "|everything|in (?:every|any) case|without exception",
        "some|part(?:ly|ially)?|sometimes|only|half|most(?:ly)?|usually|normally|certain|few|several|often"
        "|generally|not all|not every|in (?:some|certain) cases",
    ),
    "inclusion": (
        "includ(?:ed|es?|ing)|also|too|as well|with|along with|comes with|even|plus|additionally|covered"
        "|covers?|contains?|counts?|both",
        "excluded|excludes?|excluding|except|without|apart from|other than|save for|but not|not included|no"
        "|minus|leaves? out|left out|omitted|omits?|lacks?|lacking|missing|free of|spar(?:ed|ing)",
    ),
    "alone": (
        r"only|alone|solely|exclusively|merely|just|nothing but|no one but|nobody but|none but",
        r"also|too|as well|and others|not only|including|both|either|or another|even|besides",
    ),
    "success": (
        "approved?|accepted|adopted|passed|agreed|carried|won|wins?|succeed(?:s|ed)?|success(?:ful)?|granted"
        "|backed|support(?:s|ed)|in favou?r|confirmed|upheld|allowed|work(?:s|ed)|yes|took up|takes up|saved"
        "|said yes",
        "rejected|refused|refuses|turned down|denied|declined|failed|fails?|lost|loses|lose|against|opposed"
        "|objected|dismissed|withdrawn|unsuccessful|voted down|no|struck down|broke down|gave up|said no"
        "|in vain",
    ),
    "open": (
        r"opens?|opened|opening|starts?|started|starting|begins?|began|beginning|on|switched on"
        r"|in operation|running",
        "clos(?:ed?|es|ing)|shut|ends?|ended|ending|stops?|stopped|off|switched off|out of order|over"
        "|finish(?:ed|es)?|expires?|lapse[sd]?",
    ),
    "keep": (
        "keeps?|kept|remains?|stays?|continues?|still|unchanged|same|retain(?:s|ed)?|returned|given back"
        "|refunded|paid back|repaid|saved|gets? back",
        "lose[s]?|lost|gone|changed?|different|removed|deleted|withdrawn|dropped|abolished|kept back"
        "|forfeit(?:ed|s)?|no longer|lapse[sd]?|non-refundable",
    ),
    "known": (
        r"known|said|named|given|stated|clear|certain|proven|proved|true|established|confirmed|sure|told"
        r"|informed",
        r"unknown|unclear|uncertain|unproven|unsaid|unnamed|disputed|false|doubtful|not known|open"
        r"|undecided|wrong",
    ),
    "safe": (
        r"safe|harmless|healthy|well|undamaged|intact|unharmed|untouched|good|easy|simple|simply|fine"
        r"|recommended",
        r"unsafe|dangerous|danger|risk(?:s|y)?|harmful|damaged|broken|hurt|torn|harm|bad|hard|difficult"
        r"|poor|discouraged",
    ),
    "place": (
        r"inside|indoors|in|within|upper|top|left|north(?:ern)?|east(?:ern)?|near(?:by)?|front|above"
        r"|upstairs|here",
        "outside|outdoors|out|beyond|lower|bottom|right|south(?:ern)?|west(?:ern)?|far|rear|back|below"
        "|downstairs|elsewhere",
    ),
    "give": (
        r"buys?|bought|lends?|lent|gives?|gave|given|sends?|sent|sells?|sold|teaches|taught|push(?:es"
        r"|ed)?|imports?",
        r"sells?|sold|borrow(?:s|ed)?|receives?|received|gets?|got|takes?|took|pull(?:s|ed)?|exports?"
        r"|buys?|bought",
    ),
    "old": (
        r"new|modern|recent(?:ly)?|fresh|young|current(?:ly)?|latest|newer|now|today|no longer",
        r"old|former(?:ly)?|ancient|dated|previous(?:ly)?|used to|older|then|once|earlier|in the past|still",
    ),
}  # fmt: skip
_PATTERNS = {
    name: tuple(re.compile(rf"(?<![^\W_])(?:{pole})(?![^\W_])", re.IGNORECASE) for pole in both)
    for name, both in _POLES.items()
}
DIMENSIONS = tuple(_POLES)
_NEVER_DENIED = frozenset(
    ("place", "open", "give", "old", "bound", "extent", "part", "alone", "order", "time")
)
"""Dimensions that a denial before does not turn round, or too seldom."""
_BEFORE = 24
_DENIED = re.compile(
    r"(?:\b(?:not|never|no longer|nor|no|without|hardly|cannot|neither)|n['\u2019]t)(?:\s+\w+){0,2}\s*\Z",
    re.IGNORECASE,
)
_DENIED_BEHIND = re.compile(r"\s*(?:not\b|n['\u2019]t\b)", re.IGNORECASE)
DENIAL = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|un\w{4,20}|hardly|except|excluding"
    r"|unless|lacks?|only|fail\w{0,4}|forbidden|prohibited|banned|excluded|refused|rejected|impossible|lost"
    r"|closed|free|instead|against)\b|n['\u2019]t\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Pole:
    """Characters `start` to `end` of a text name the first (1) or the second (-1) pole of a `dimension`."""

    start: int
    end: int
    dimension: str
    sign: int


def poles(text: str, start: int = 0, end: int | None = None) -> tuple[Pole, ...]:
    """Return the poles that the characters `start` to `end` of a text name, turned round where denied."""
    end = len(text) if end is None else end
    result = []
    for name, patterns in _PATTERNS.items():
        for sign, pattern in zip((1, -1), patterns, strict=True):
            for match in pattern.finditer(text, start, end):
                denied = name not in _NEVER_DENIED and (
                    _DENIED.search(text[max(match.start() - _BEFORE, start) : match.start()])
                    or _DENIED_BEHIND.match(text, match.end())
                )
                result.append(Pole(*match.span(), name, -sign if denied else sign))
    return tuple(result)
