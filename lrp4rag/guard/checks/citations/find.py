"""Find the citations of a response, the parts of passages that they cite, and authorities that no passage
has: studies and their authors, judgments by date, documents by number, web addresses, and quoted words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from lrp4rag.claims import agree, find_values
from lrp4rag.claims.dates import MONTHS
from lrp4rag.claims.words import content_words, word_set
from lrp4rag.guard.checks.citations.citation import Citation, Format, Part
from lrp4rag.guard.checks.citations.context import marked
from lrp4rag.guard.checks.citations.labels import Label, find_labels
from lrp4rag.guard.checks.citations.library import Library
from lrp4rag.guard.checks.citations.marks import find_marks, find_passages, find_superscripts
from lrp4rag.guard.checks.citations.named import find_footnotes, find_ids, find_links, find_titles, named_by
from lrp4rag.util.text import blanked, one_line

_NAME = r"[A-Z][\w'\u2019-]{1,40}"
_YEAR = r"(?:19|20)\d\d[a-z]?"
_AUTHORS = re.compile(
    rf"(?P<name>{_NAME})(?:,? (?:and|&) {_NAME})?,? et al\b\.?(?:[^()\n]{{0,80}}?\b{_YEAR})?"
    rf"|(?<=\()(?P<first>{_NAME})(?: (?:and|&) {_NAME})?, {_YEAR}(?=[);,])"
)
_RESEARCH = r"stud(?:y|ies)|research|surveys?|experiments?|analys[ei]s|investigations?"
_BY = re.compile(
    rf"\b(?i:{_RESEARCH}) (?:(?:conducted|published|done|made) )?(?:by|from) (?:the )?(?P<name>{_NAME})"
)
_PEOPLE = "experts?|scientists|researchers|doctors|lawyers|economists"
_UNNAMED = re.compile(
    rf"\b(?P<who>{_RESEARCH}|{_PEOPLE})(?: (?:has|have|also|clearly|generally|all)){{0,2}} "
    r"(?:shows?|shown|suggests?|found|finds?|agrees?|agreed|indicates?|confirms?|confirmed|proves?|proven|"
    r"demonstrates?|demonstrated|recommends?)\b",
    re.IGNORECASE,
)
_TITLE = r"(?:(?:Dr|Prof|Professor|Judge|Minister|President)\.? )?"
_LONG_NAME = rf"{_TITLE}{_NAME}(?: (?:(?:of|for|and|on|the) ){{0,2}}{_NAME}){{0,6}}"
_ANNOUNCED = re.compile(
    r"\b(?i:according to|(?:stated|confirmed|recommended|required|reported|published|advised|certified)"
    rf" by) (?:the |our |an? )?(?P<cited>{_LONG_NAME})"
)
_SPEAKING = re.compile(
    rf"(?<![\w-])(?!(?:The|Our|An?) )"
    rf"(?P<cited>[A-Z]{{2,8}}|{_TITLE}{_NAME}(?: (?:(?:of|for|and|on|the) ){{0,2}}{_NAME}){{1,6}})"
    r" (?:(?:also|expressly|strongly) )?"
    r"(?:recommends?|advises?|warns?|mandates?|stipulates?|confirms?|confirmed) "
)
_RESEARCHED = re.compile(rf"\b(?:{_RESEARCH}|{_PEOPLE})\b", re.IGNORECASE)
_DATED = re.compile(
    r"\b(?:judge?ment|ruling|decision|order|notice|memo|memorandum|circular|letter|press release|bulletin|"
    r"statement|resolution|decree|opinion|announcement) (?:of|from|dated) (?:the )?"
    rf"(?P<date>[^.;:()\n]{{0,3}}\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?(?:{'|'.join(MONTHS)})(?:,? {_YEAR})?"
    rf"|(?:{'|'.join(MONTHS)}) \d{{1,2}}(?:st|nd|rd|th)?(?:,? {_YEAR})?|\d{{4}}-\d\d-\d\d)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"\b(?i:certificate|patent|docket|case|file|memo|memorandum|bulletin|circular|directive|regulation|report|"
    r"notice|guideline|approval|licen[cs]e)(?: (?i:no\.?|number|ref\.?))?:? "
    r"(?P<code>[A-Z]{1,6}[ -]?\d[\d./ -]{2,20}\d|\d{1,4}[/-]\d{2,4}(?:[/-]\d{1,4})?|\d{5,12})(?!\w)"
)
_ADDRESS = re.compile(r"(?P<cited>(?:https?://|www\.)[^\s<>\"'()\[\]]{2,300}[^\s<>\"'()\[\].,;:!?])")
_SPEECH = re.compile(
    r"(?:\b(?:said|says|states?|stated|wrote|writes|reads|declared|declares|explains?|according to)"
    r"\b[^\"\u201c\u201d\n]{0,60}|:[ ])[\"\u201c](?P<cited>[^\"\u201c\u201d\n]{20,500})[\"\u201d]",
    re.IGNORECASE,
)
_NO_NAMES = content_words(
    "the this that passage document section article source it they we you dr prof professor"
)
WORDS = 5
"""The fewest words of a quotation: fewer are a term."""


def find_authorities(text: str, library: Library) -> Iterator[Citation]:
    """Yield the authorities that no passage has, and that so are fabricated."""
    for form, pattern, is_known in _FORMS:
        for match in pattern.finditer(text):
            library.tick()
            if not is_known(match, library):
                start, end = match.span("cited") if "cited" in pattern.groupindex else match.span()
                missing = "such sentence" if form == "quotation" else one_line(text[start:end], 60)
                yield Citation(start, end, form, missing=missing, inline=True)


def _has_name(match: re.Match[str], library: Library) -> bool:
    name = match["name"] or match["first"]
    return name.casefold() in MONTHS or library.mentions(name)


def _has_somebody(match: re.Match[str], library: Library) -> bool:
    """Say whether passages or question have half of the words of a name, in any of their forms."""
    words = content_words(match["cited"]) - _NO_NAMES
    if words and not match["cited"].isupper():
        return 2 * sum(map(library.has_word, words)) >= len(words)
    return library.has_name(match["cited"])


def _has_date(match: re.Match[str], library: Library) -> bool:
    dates = [value for value in find_values(match["date"]) if value.kind == "date"]
    # A year alone agrees with each of its days.
    days = [date for date in library.dates if date.key[2] is not None]
    return not dates or any(agree(date, day) for date in dates for day in days)


def _has_words(match: re.Match[str], library: Library) -> bool:
    return len(match["cited"].split()) < WORDS or library.quotes(match["cited"])


_FORMS: tuple[tuple[Format, re.Pattern[str], Callable[[re.Match[str], Library], bool]], ...] = (
    ("study", _AUTHORS, _has_name),
    ("study", _BY, lambda match, library: library.mentions(match["name"])),
    ("authority", _ANNOUNCED, _has_somebody),
    ("authority", _SPEAKING, _has_somebody),
    ("study", _UNNAMED, lambda _, library: library.finds(_RESEARCHED)),
    ("dated", _DATED, _has_date),
    ("numbered", _NUMBERED, lambda match, library: library.mentions(match["code"])),
    ("address", _ADDRESS, lambda match, library: library.mentions(match["cited"].rstrip("/"))),
    ("quotation", _SPEECH, _has_words),
)
"""The forms of authorities, how each is written, and whether the passages have it."""

_FENCED_CODE = re.compile(r"```.*?```|```", re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]{1,500}`|!\[[^\[\]\n]{0,300}\]\([^()\n]{0,1000}\)")
_DEFINITION = re.compile(r"^[ \t]{0,3}\[(?P<label>\^?[\w-]{1,30})\]:[ \t]{0,9}(?P<says>[^\n]{0,2000})$", re.M)
_LISTED = re.compile(
    r"^[ \t#*]{0,8}(?:Sources|References|Bibliography|Citations)[ \t*:]{0,4}\n"
    r"(?:[ \t*-]{0,4}\[\d{1,6}\][^\n]*\n?)+",
    re.M | re.I,
)
_ENTRY = re.compile(r"^[ \t*-]{0,4}\[(?P<label>\d{1,6})\][ \t:.-]{0,4}(?P<says>[^\n]{0,2000})$", re.M)
_BETWEEN = re.compile(
    r"[\"\u201d*_)]{0,3}[,:;]? ?(?:(?:of|in|from|under) )?(?:(?:the|our|its) )?[\"\u201c*_(\[]{0,3}"
)
_LAW = re.compile(
    r"(?:,? of (?:the )?| )"
    r"(?P<name>[A-Z]{3,12}\b|(?<=the )[A-Z]\w{1,30}(?: (?:of |on |and |the |for ){0,2}[A-Z]\w{1,30}){0,7})"
)
_LAW_BEFORE = re.compile(r"(?<!\w)(?P<name>[A-Z]{3,12}) \Z")
_NEAR = 16


def find_citations(text: str, library: Library) -> list[Citation]:
    """Return the citations in the order of the text, none within another. Code, pictures and the definitions
    of footnotes have none."""
    definitions = {match["label"]: match["says"] for match in _DEFINITION.finditer(text)}
    plain = blanked(text, _FENCED_CODE, _INLINE_CODE, _DEFINITION)
    for match in _LISTED.finditer(plain):
        definitions |= {entry["label"]: entry["says"] for entry in _ENTRY.finditer(match[0])}
    plain = blanked(plain, _LISTED)
    footnotes = {label.removeprefix("^"): says for label, says in definitions.items()}
    documents = _apart(
        [
            *find_links(plain, library),
            *find_footnotes(plain, library, footnotes),
            *find_ids(plain, library),
            *find_titles(plain, library),
            *find_passages(plain, library),
        ]
    )
    labelled = list(_labelled(plain, documents, library))
    marks = [_as_listed(plain, mark, definitions, library) for mark in find_marks(plain, library)]
    superscripts = find_superscripts(plain, library)
    authorities = find_authorities(plain, library)
    citations = _apart([*labelled, *documents, *marks, *superscripts, *authorities])
    return sorted(citations, key=lambda citation: citation.start)


def _as_listed(text: str, mark: Citation, definitions: dict[str, str], library: Library) -> Citation:
    """Return a mark with the entry of the answer's own list of sources for its number, if it has one."""
    entry = named_by(definitions.get(text[mark.start + 1 : mark.end - 1], ""), library)
    return mark if entry is None else replace(mark, parts=entry[0], missing=entry[1])


def _labelled(text: str, documents: list[Citation], library: Library) -> Iterator[Citation]:
    """Yield the citations of parts of documents; a document that is named beside a part must have it."""
    named = [document for document in documents if document.format in ("title", "id", "passage")]
    ends = {document.end: document for document in named}
    starts = {document.start: document for document in named}
    for label in find_labels(text):
        library.tick()
        if _is_part_of_name(text, label, library):
            continue
        start, end = label.start, label.end
        document: Citation | None
        before = next((ends[k] for k in range(start, max(start - _NEAR, 0), -1) if k in ends), None)
        after = next((starts[k] for k in range(end, end + _NEAR) if k in starts), None)
        if after is not None and _BETWEEN.fullmatch(text, end, after.start):
            end, document = after.end, after
        elif before is not None and _BETWEEN.fullmatch(text, before.end, start):
            start, document = before.start, before
        else:
            start, end, document = _with_law(text, label, library)
        parts: tuple[Part, ...]
        if document is not None and document.missing:
            parts, missing = (), document.missing
        else:
            parts, is_lost = library.parts(label, None if document is None else document.passages)
            missing = text[start:end] if is_lost else ""
        form: Format = "standard" if label.standard else "article" if label.family == "article" else "section"
        yield marked(text, start, end, form, parts, missing)


def _with_law(text: str, label: Label, library: Library) -> tuple[int, int, Citation | None]:
    """Return the span of a label with its law, and the law as a citation; None for no law."""
    start, end = label.start, label.end
    if label.standard is not None:
        return start, end, None
    after = _LAW.match(text, end, end + 200)
    before = _LAW_BEFORE.search(text[max(start - 20, 0) : start])
    if after is not None:
        name, end = after["name"], after.end()
    elif before is not None:
        name, start = before["name"], start - len(before[0])
    else:
        return start, end, None
    numbers = library.named(name)
    return start, end, Citation(start, end, "title", library.whole(numbers), "" if numbers else name)


def _is_part_of_name(text: str, label: Label, library: Library) -> bool:
    """Say whether the passages use a label in a name: "Section 8 housing". A plural may also be a verb, but
    not after "a", "the", "with" and "for"."""

    after = re.match(r" ([a-z]{4,20})\b", text[label.end : label.end + 25])
    if label.standard is not None or after is None or after[1] in _VERBLIKE:
        return False
    before = text[max(label.start - 6, 0) : label.start].lower()
    is_word = not after[1].endswith("s") or before.endswith((" a ", " the ", " with ", " for "))
    return is_word and library.says(text[label.start : label.end] + after[0])


_VERBLIKE = word_set("that which must will shall gave have from with when where")


def _apart(citations: Iterable[Citation]) -> list[Citation]:
    """Return the citations that share no character with an earlier citation."""
    taken: set[int] = set()
    apart = []
    for citation in citations:
        characters = range(citation.start, citation.end)
        if taken.isdisjoint(characters):
            taken.update(characters)
            apart.append(citation)
    return apart
