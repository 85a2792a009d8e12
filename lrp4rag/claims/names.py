"""Names of people, places and products, and identifiers, by how they are written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from lrp4rag.claims.numerals import number_of_ordinal, number_of_roman
from lrp4rag.claims.polarity import OPPOSITES
from lrp4rag.claims.quantities import UNIT
from lrp4rag.claims.surroundings import NOTHING, Surroundings
from lrp4rag.claims.units import CURRENCIES, UNITS
from lrp4rag.claims.value import Value
from lrp4rag.claims.words import STOP_WORDS, word_set
from lrp4rag.util.sentences import sentences_in

_IN_WORD = r"[\w\u0300-\u036f]"
_WORD = (
    rf"(?:[A-Z](?:{_IN_WORD}|['\u2019&\u2010\u2011-])*{_IN_WORD}|[dDlL]['\u2019][A-Z]{_IN_WORD}+"
    rf"|[a-z]{{1,20}}[A-Z]{_IN_WORD}*|(?:[A-Z]\.){{2,}})"
)
_TITLE = "(?:Dr|Mr|Mrs|Ms|Prof|Capt|Gen|Col|Rev|St|Mt|Lt|Sgt)"
_PARTICLES = (
    "(?: (?:of|de|del|della|des|da|das|dos|do|di|du|la|las|le|los|el|al|bin|ibn|van|von|der|den|ter|ten|zu"
    "|zur|y|e|&|for)){0,3}"
)
_BYNAMES = (
    "(?:Great|Bold|Wise|Elder|Younger|Conqueror|Terrible|[A-Z][a-z-]+(?:st|nd|rd|th|First|Second|Third))"
)
_MORE = rf"(?:{_WORD}|[A-Z]\b\.?)"
_NUMBER = rf"\d{{1,4}}[A-Za-z]?\b(?![.,]\d| ?(?:{UNIT})| ?[$\u00a3]| times\b|[\u2013-]\d)"
_NAME = re.compile(
    rf"\b{_WORD}(?:{_PARTICLES}(?:(?: of| for) the)?(?: {_TITLE}\.)? {_MORE}(?!\w)| the {_BYNAMES}\b"
    rf"| (?:No\.?|Nr\.?|Number|#) ?\d{{1,4}}\b| {_NUMBER}){{0,9}}"
)
_IDENTIFIER = re.compile(r"\b(?=\w*[A-Z])(?=\w*\d)[A-Za-z0-9][\w-]*\b")
_MEASURED = re.compile(r"\d+(?P<unit>[^\W\d]+\d?)")
_SUFFIXES = word_set("K M B ST ND RD TH AM PM")
_ACRONYMS = {"US", "UN", "WHO", "IT"}
_TITLES = word_set(
    """
    mr mrs ms miss dr doctor prof professor sir dame lord lady capt captain col colonel gen general lt
    lieutenant sgt sergeant rev reverend hon saint president senator chancellor queen king prince princess
    pope judge justice prime minister governor mayor the st of de del della da das dos do di du la le van von
    der den y e & no nr number
    """
)
_NO_NAMES = STOP_WORDS | word_set(
    """
i a an ok okay yes no based note however additionally passage passages according overall therefore finally
unable step steps monday tuesday wednesday thursday friday saturday sunday january february march april may
june july august september october november december bc bce ad ce
"""
)
"""Words that are no names by themselves."""
_SIGNS = str.maketrans({"\u2019": "'", "\u2010": "-", "\u2011": "-"})
_ALSO = """
united states: usa, us, america, united states america
united kingdom: uk, gb, britain, great britain
netherlands: holland
czechia: czech republic
south korea: republic korea, rok
north korea: dprk
ivory coast: cote d'ivoire, cote ivoire, cote divoire
eswatini: swaziland
myanmar: burma
united arab emirates: uae
democratic republic congo: drc, dr congo, congo kinshasa
turkey: turkiye, republic turkey
china: prc, people's republic china
russia: russian federation
european union: eu
united nations: un
cape verde: cabo verde
east timor: timor-leste
vatican: vatican city, holy see
new york: nyc, new york city
"""
_KNOWN_AS = {
    name.strip(): tuple(usual.split())
    for usual, names in (line.split(":") for line in _ALSO.strip().splitlines())
    for name in names.split(",")
}
"""Other names of countries and the like, by the words of the usual one."""


def find_names(text: str, context: Surroundings = NOTHING) -> Iterator[Value]:
    """Find spans of capitalised words, and identifiers.

    The first word of a sentence is left out where it is a common word: one of English's most frequent, or one
    that `text` or `context` has in small letters. A single one counts only if it is written so inside a
    sentence too, or has capitals or digits inside.
    """
    around = Surroundings(text, context)
    stripped = text.strip(" .\n")
    begins = {start for start, _ in sentences_in(text)}
    for match in _NAME.finditer(text):
        opens = match.start() in begins or _opens(text, match.start())
        labelled = not re.match(r"[ -][a-z]", text[match.end() : match.end() + 2])
        words = _without_common_words(match[0], around, opens and match[0] != stripped, labelled)
        start = match.end() - len(words)
        words = re.sub(rf"(?:['\u2019]s?| {_TITLE})\Z", "", words)
        is_word = words[:1].isalnum() and not words.isdigit()
        if is_word and not (_TITLES.issuperset(words.lower().split()) or _is_of_amounts(words)):
            yield Value("name", start, start + len(words), words, key=name_key(words))
    for match in _IDENTIFIER.finditer(text):
        if not _is_measured(match[0]):
            yield Value("name", *match.span(), match[0], key=name_key(match[0]))


def _is_of_amounts(words: str) -> bool:
    """Say whether a name is a unit, or has the code of a currency: "EUR 20" is an amount."""
    return words in UNITS or not CURRENCIES.isdisjoint(words.split())


def name_key(words: str) -> tuple[str, ...]:
    """Return the words that identify a name, in small letters."""
    plain = [_plain(word) for word in words.split()]
    key = tuple(word for word in plain if word and word not in _TITLES) or tuple(plain)
    return _KNOWN_AS.get(" ".join(key), key)


def _plain(word: str) -> str:
    """Return a word of a name without accents, case and punctuation; ordinals and Roman numerals as
    digits."""
    letters = unicodedata.normalize("NFKD", word.translate(_SIGNS).strip(",#"))
    letters = "".join(sign for sign in letters if not unicodedata.combining(sign))
    if (number := number_of_roman(letters)) is not None:
        return str(number)
    small = re.sub(r"'s?\Z|\A[dl]'", "", letters.lower().replace(".", ""))
    number = number_of_ordinal(small)
    return small if number is None else str(number)


def _without_common_words(words: str, around: Surroundings, opens: bool, labelled: bool) -> str:
    """Return the rest of a capitalised span from its first word that is part of a name; `opens` says whether
    the span opens a sentence. A number is part of the name if it is `labelled`: no word follows that it
    counts."""
    while words:
        first = words.split(" ", 1)[0]
        alone = not any(sign.isupper() or (labelled and sign.isdigit()) for sign in words[len(first) :])
        if not _is_common(first, around, opens) and (not alone or not opens or _is_certain(first, around)):
            return words
        words, opens = re.sub(r"\A(?: \d+(?= ))? *", "", words[len(first) :]), False
    return words


def _is_common(word: str, around: Surroundings, opens: bool) -> bool:
    plain = re.split(r"['\u2019]", word.lower())[0]
    if word in _ACRONYMS or (
        number_of_ordinal(plain) and word[0].isupper() and not opens
    ):  # "First World War"
        return False
    common_here = plain in OPPOSITES or plain in around.small
    return word.islower() or plain in _NO_NAMES or (opens and common_here)


def _is_certain(word: str, around: Surroundings) -> bool:
    plain = re.sub(r"['\u2019]s\Z", "", word)
    return plain in around.inside or bool(re.search(r"\d|\w\.?[A-Z]", word))


def _opens(text: str, start: int) -> bool:
    """Say whether a sentence, a line or a quotation begins at a character."""
    before = text[max(start - 40, 0) : start].rstrip(" \"\u201c'(*-")
    return not before or before.endswith((":", ".", "\n", "!", "?", "\u2022"))


def _is_measured(word: str) -> bool:
    """Say whether a word is a number with its unit: "10MB"."""
    match = _MEASURED.fullmatch(word)
    return match is not None and (match["unit"] in UNITS or match["unit"].upper() in _SUFFIXES)
