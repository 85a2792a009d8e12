"""Sentences that rest on a passage about something else than what was asked."""

import pytest

from lrp4rag.claims.borrowed import Borrowed, Subjects
from lrp4rag.claims.index import Index

FIXED = (
    "Hearth Fixed 24. Leaving before the end costs an exit fee of £60. Paper bills cost £2.50 per quarter."
)
FLEX = "Hearth Flex. It has no minimum term, so you can leave at any time. Paper bills are free each quarter."
BOTH = "Hearth: paying. Customers of both tariffs may pay by card in the branch on Mill Street."
OFFICE = (
    "Handbook, section 7: parental leave, office staff. Office employees have 16 weeks on full pay. "
    "Leave must begin within six months of the birth or adoption."
)
DRIVERS = (
    "Handbook, section 8: parental leave, driving staff. Driving employees have 12 weeks at 80% of pay. "
    "Leave must begin within nine months of the birth or adoption."
)

CORSAIR_2 = (
    "Lake-watcher sends first data\n"
    "TILBRECHT, 14 May - The research satellite Corsair-2, launched on 2 April on a Marlin "
    "rocket, has sent its first measurements. Its radar altimeter measures the height of lakes "
    "and rivers to within 4 cm, along strips 90 km wide, and it passes over each spot every 11 "
    "days. The satellite is meant to work for five years."
)
CORSAIR_1 = (
    "Looking back: Corsair-1\n"
    "The forerunner, Corsair-1, was launched in 2016 on a Heron rocket and measured the thickness "
    "of sea ice by laser, to within 9 cm. Its strips were only 15 km wide, and it came back to "
    "the same spot every 27 days. For the first year, its data were open to partner institutes "
    "only. It was to have worked for four years but lasted seven, until one of its gyroscopes "
    "failed. It burnt up over the southern ocean last autumn."
)
OPEN = (
    "Brackwater Congress: Open section\n"
    "Seven rounds, Swiss system, 90 minutes for the game plus 30 seconds a move. Anyone arriving "
    "more than 30 minutes after the start loses by default. Each player may take one half-point "
    "bye, in any of rounds 1 to 5, if the arbiter, Lena Hurst, is asked before the end of the "
    "previous round. A bye in round 6 or 7 scores nothing. Draws may not be offered before move "
    "25. Phones are switched off and handed in at the desk; they may not be kept at the board."
)
TIMETABLE = (
    "Brackwater Congress: timetable and prizes\n"
    "- Friday: round 1 at 18:30\n"
    "- Saturday: round 2 at 10:00, round 3 at 15:00\n"
    "- Sunday: round 4 at 10:00, round 5 at 15:00\n"
    "- Monday: round 6 at 09:30, round 7 at 14:00 (Open only)\n"
    "The Minor is played on Friday, Saturday and Sunday only. Prize-giving for the Minor is on "
    "Sunday at 18:30 and for the Open on Monday at 18:45. First prize is £600 in the Open and "
    "£200 in the Minor; ties are shared."
)

YEAR_7 = "Year 7. Applications close on 31 October. Places are few."


def borrowed(question: str, passages: list[str], answer: str) -> Borrowed | None:
    (result,) = Subjects(question, Index(passages)).borrowed(answer, [(0, len(answer))])
    return result


@pytest.mark.parametrize(
    ("question", "passages", "answer", "words", "subject"),
    [
        (
            "I'm on Hearth Fixed 24. What does leaving early cost?",
            [FIXED, FLEX],
            "Hearth Fixed 24 has no minimum term, so you can leave at any time.",
            "no minimum term",
            "Hearth Flex",
        ),
        (  # of the words both have all, of the values one
            "I work in the office. How much parental leave do I get?",
            [DRIVERS, OFFICE],
            "It has to begin within nine months of the birth or adoption.",
            "nine months",
            "Handbook, section 8: parental leave, driving staff",
        ),
        (  # what else titles say, the question and the other sentence say too
            "What happens when I exceed the rate limit of the Parcelio API v2?",
            [
                "Parcelio API v2 - Rate limits. Above the limit the answer is status 429, with a header.",
                "Parcelio API v1 (deprecated). Above the limit the answer is status 503, without a header.",
            ],
            "Then the answer is status 503, without a header.",
            "status 503",
            "Parcelio API v1 (deprecated)",
        ),
        (
            "How many eggs does the ridge newt lay?",
            [
                "The ridge newt (Tritalus montanus) lives in springs. Females lay 30 to 50 eggs each May.",
                "The marsh newt (Tritalus palustris) lives in ponds. Females lay 200 to 300 eggs each March.",
            ],
            "A female lays 200 to 300 eggs each March.",
            "200 to 300 eggs",
            "marsh newt",
        ),
        (  # nothing is said alike of the two, but they are called alike; what both name tells nothing apart
            "How do I reset 2FA in Tallow Desk?",
            [
                "Tallow Desk - resetting 2FA. Only owners can do it, and every user is signed out at once.",
                "Tallow Chat - rules on 2FA. Open sessions stay open after a change of the password.",
            ],
            "Sessions that are open stay open.",
            "Open sessions stay open",
            "Tallow Chat - rules on 2FA",
        ),
        (  # an item of a list
            "What does the Hobby plan of Brimworks include?",
            [
                "Hobby plan. It includes two projects and e-mail support. It costs 8 crowns monthly.",
                "Studio plan. It includes ten projects and a staffed phone line. It costs 30 crowns monthly.",
            ],
            "You get two projects and a staffed phone line, and pay 8 crowns a month.",
            "a staffed phone line",
            "Studio plan",
        ),
        (  # what is asked about has a number of one digit
            "When do applications for Year 7 close?",
            [
                "Year 9. Applications close on 4 March. Places are few, and a test is set in May.",
                "Year 7. Applications close on 31 October. Places are few, and no test is set.",
            ],
            "Applications close on 4 March, and a test is set in May.",
            "4 March",
            "Year 9",
        ),
    ],
)
def test_says_whose_words_they_are(
    question: str, passages: list[str], answer: str, words: str, subject: str
) -> None:
    result = borrowed(question, passages, answer)
    assert result is not None
    assert words in passages[result.passage][result.passage_start : result.passage_end]
    assert result.subject == subject


@pytest.mark.parametrize(
    ("question", "passages", "answer"),
    [
        # the passage that was asked about says it
        (
            "What does leaving Hearth Fixed 24 cost?",
            [FIXED, FLEX],
            "An exit fee of £60 applies to Hearth Fixed 24.",
        ),
        # it names the other one itself
        (
            "What does leaving Hearth Fixed 24 cost?",
            [FIXED, FLEX],
            "With Hearth Flex there is no minimum term, so you can leave at any time.",
        ),
        # the other one was asked about too
        (
            "Has Hearth Fixed 24 or Hearth Flex no exit fee?",
            [FIXED, FLEX],
            "It has no minimum term, so you can leave at any time.",
        ),
        # it is said of both
        (
            "How can I pay for Hearth Fixed 24?",
            [FIXED, BOTH],
            "Customers may pay by card in the branch on Mill Street.",
        ),
        # the passages are of one text, or the one tells of the other
        (
            "Who was Ada Lovelace?",
            [
                "Ada Lovelace was a mathematician. In London she met Babbage.",
                "In London she met Babbage. Her notes contain a program.",
            ],
            "Her notes contain a program.",
        ),
        (
            "Where was the director of Blue River born?",
            [
                "Blue River\nBlue River is a 2012 film by the director Tom Hart.",
                "Tom Hart\nTom Hart is a film director who was born in Kent in 1970.",
            ],
            "The director was born in Kent in 1970.",
        ),
        (  # what it says itself to be of another
            "What does leaving Hearth Fixed 24 cost?",
            [FIXED, FLEX],
            "Another tariff has no minimum term, so you can leave at any time.",
        ),
        (  # said of both, by numbers of one digit
            "When do applications for Year 7 close?",
            [YEAR_7, "Year 9. For Year 7 and Year 9 applications close on 4 March. A test is set."],
            "Applications close on 4 March.",
        ),
        (
            "When do applications for Year 7 close?",
            [YEAR_7 + " The test is that of Year 9.", "Year 9. Places are few. The test is set on 4 March."],
            "The test is set on 4 March.",
        ),
        (
            "When do applications for Year 7 close?",
            [YEAR_7, "Year 9. Applications close on 4 March. Places are few."],
            "In year 9 applications close on 4 March.",
        ),
        (  # a page and what is below it, and two of which only the article is the same
            "When does Parental Leave begin?",
            [
                "Parental Leave. It begins with the birth, and lasts for 12 weeks.",
                "Parental Leave FAQ. Send the form to the office two months before the first day.",
            ],
            "Send the form to the office two months before the first day.",
        ),
        (
            "When does the Harbour Museum open?",
            [
                "The Harbour Museum. Doors open at ten.",
                "The Town Library. Bags of any size are kept at the desk below.",
            ],
            "Bags of any size are kept at the desk below.",
        ),
        (  # the question names the other one as what it is not about
            "I've got the free one, not Roamer Gold.",
            [
                "ROAMER (no annual fee) Cash abroad: two withdrawals per calendar month free, up to "
                "€200 in total; "
                "above that 1.75%, at least €1.50. Daily cash limit €350.",
                "ROAMER GOLD (€5.90 a month) Cash abroad: free up to €800 per calendar month, any number of "
                "withdrawals; above that 1%.",
            ],
            "You can draw €350 a day at most.",
        ),
        (  # a title names it by a word of the same beginning
            "I'm adopting in March and have worked here for 10 months. How many weeks paid leave "
            "would I get, at "
            "what pay, and by when must I tell HR?",
            [
                "Orrin Foods handbook, 7.2 Adoption leave. Employees with at least 26 weeks' service "
                "on the day of "
                "placement get 18 weeks at full pay, then 21 weeks at 40% of pay.",
                "Orrin Foods handbook, 7.6 During your leave. You may work up to ten "
                "keeping-in-touch days, by "
                "agreement, paid at your normal daily rate.",
            ],
            "With at least 26 weeks' service on the day of placement you get 18 weeks at full pay, "
            "then 21 weeks "
            "at 40% of pay.",
        ),
        (  # a passage is about all
            "I have a pension in the Final Salary section. Can I move it?",
            [
                "PENSION SCHEME, FINAL SALARY SECTION: TRANSFERS OUT. The quotation is guaranteed for three "
                "months from its date.",
                "Transfer safeguards, all sections. Payment is made within six months of the quotation date. "
                "Once paid, a transfer can't be reversed.",
            ],
            "Once paid, a transfer can't be reversed.",
        ),
        (  # a heading that is no name
            "Can I, as a student of nursing, apply to the Hallam Fund?",
            [
                "HALLAM FUND for students of medicine. Students of nursing, under 30 on 1 October of "
                "the year in "
                "which they apply, may apply by 15 May.",
                "How the Hallam Fund decides. The board meets in the first week of July, and you "
                "hear from us by "
                "20 July. It is renewed for a second year.",
            ],
            "You may expect an answer by 20 July.",
        ),
        (  # the forerunner has the name in its title
            "What exactly does Corsair-2 measure, how often does it come over, and when can anyone use "
            "the data?",
            [CORSAIR_2, CORSAIR_1],
            "Corsair-2 measures the height of lakes and rivers with a radar altimeter to within 4 cm, along "
            "strips 90 km wide, and passes over each spot every 11 days.",
        ),
        (  # a timetable is of no other thing
            "I'm entered for the Open at Brackwater. How late can I be before I lose the game, and can I "
            "take a half-point bye in round 5?",
            [OPEN, TIMETABLE],
            "You may take one half-point bye in any of rounds 1 to 5, so round 5 is possible if you ask the "
            "arbiter, Lena Hurst, before the end of round 4.",
        ),
        ("What does Hearth Fixed 24 cost?", [FIXED], "There is no minimum term."),
        ("What does Hearth Fixed 24 cost?", [FIXED, ""], "There is no minimum term."),
        ("", [FIXED, FLEX], "There is no minimum term, so you can leave at any time."),
        ("What does Hearth Fixed 24 cost?", [FIXED, FLEX], "Yes."),
    ],
)
def test_takes_what_is_asked_about_or_named(question: str, passages: list[str], answer: str) -> None:
    assert borrowed(question, passages, answer) is None


def test_knows_news_by_what_follows_its_place_and_date() -> None:
    first = "Tarnholm, 14 May. Velstrom AG reported a first-quarter profit of €412 million."
    other = "Haverlund, 15 May. Norrblade plc reported a first-quarter profit of €388 million."
    result = borrowed("How did Velstrom do?", [first, other], "It reported a profit of €388 million.")
    assert result is not None
    assert result.passage == 1


def test_later_sentences_know_what_earlier_ones_name() -> None:
    first = "Hearth Flex is the other tariff. "
    answer = first + "There is no minimum term, so you can leave at any time."
    subjects = Subjects("What does leaving Hearth Fixed 24 cost?", Index([FIXED, FLEX]))
    assert [*subjects.borrowed(answer, [(len(first), len(answer))])] == [None]
    alone = answer[len(first) :]
    (result,) = subjects.borrowed(alone, [(0, len(alone))])
    assert result is not None
