"""Short policies and manuals with faithful responses, written for these tests."""

from __future__ import annotations

from lrp4rag.example import Example

LEAVE = Example(
    "How long is parental leave at Brennholt, and when must it be requested?",
    (
        "Parental leave at Brennholt lasts 16 weeks. Partners get 4 weeks of paid leave. Staff must ask Ms "
        "Aldana for the leave before the end of March. The leave can be split into two parts if the team "
        "lead agrees in writing. Requests are answered within 14 days.",
        "Sick leave at Brennholt is paid for 9 weeks. A certificate is needed from day three on, and goes "
        "to Mr Tobler in the office in Varnsdorf.",
    ),
    "Parental leave lasts 16 weeks, and partners get 4 weeks of paid leave. Staff must ask Ms Aldana "
    "for the leave before the end of March. The leave can be split into two parts, if the team lead "
    "agrees in writing. Requests are usually answered within 14 days.",
    labels=(),
    id="leave",
    source="leave",
)
MOWER = Example(
    "Which lawns suit the Korvel?",
    (
        "The Korvel cuts lawns of up to 600 square metres. A charge of the Korvel takes 75 minutes. The "
        "blades of the Korvel last 8 weeks. It is washed with a soft brush, and the app from Lidrum shows "
        "the battery.",
    ),
    "The Korvel cuts lawns of up to 600 square metres. A charge takes 75 minutes. The blades last 8 "
    "weeks. It is washed with a soft brush every month.",
    labels=(),
    id="mower",
    source="mower",
)
FERRY = Example(
    "When does the ferry to Sandholm sail?",
    (
        "The ferry from the port to Sandholm sails daily at 9:30 am. Between 2 May 2021 and 30 September it"
        " also sails at noon. Bikes cost $4 per day on board, and dogs are not allowed. The crossing takes "
        "about an hour.",
        "The bus to Rigby leaves the harbour on Mondays. Tickets are sold by Oskar Lindqvist.",
    ),
    "The ferry to Sandholm sails daily at 9:30 am. Bikes cost $4 per day, and dogs are not allowed on "
    "board. They carry three dozen passengers on every crossing to the island. The season begins on 2 "
    "May 2021.",
    labels=(),
    id="ferry",
    source="ferry",
)
ALL = (LEAVE, MOWER, FERRY)


def of(response: str, *passages: str, question: str = "What is the rule?") -> Example:
    """A faithful example; where no passage is given, its passage says what the response says."""
    return Example(question, passages or (response,), response, labels=(), id="one", source="one")
