"""Which time a question asks for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from lrp4rag.guard.checks.gate.history import asked_for

NOW = datetime(2024, 7, 1, 12, tzinfo=UTC)
ANOTHER_TIME = [
    ("As of 2022, how many vacation days did employees get?", "2022-01-01"),
    ("What was the travel allowance in 2021?", "2021-01-01"),
    ("in 2021", "2021-01-01"),
    ("What was the policy in March 2020?", "2020-03-01"),
    ("what was the policy in march 2020?", "2020-03-01"),
    ("How many sick days were allowed before the change?", None),
    ("What did the previous version of the policy say?", None),
    ("What was the mileage rate on 15 May 2023?", "2023-05-15"),
    ("What was the mileage rate on 15.05.2023?", "2023-05-15"),
    ("Which discount applied during 2022?", "2022-01-01"),
    ("remote work policy 2021", "2021-01-01"),
    ("What does the 2021 policy say about overtime?", "2021-01-01"),
    ("What is the leave allowance for 2021?", "2021-01-01"),
    ("How much leave do employees get in 2022?", "2022-01-01"),
    ("Was parental leave paid in 2019?", "2019-01-01"),
    ("Were dogs allowed in the office back in 2018?", "2018-01-01"),
    ("Can you tell me what the notice period was in 2020?", "2020-01-01"),
    ("Could you show me the 2020 expense rules?", "2020-01-01"),
    ("What rule was in force on 2021-06-30?", "2021-06-30"),
    ("What rules were in effect at the end of 2022?", "2022-01-01"),
    ("Which version of the policy was valid in June 2022?", "2022-06-01"),
    ("What was the limit last year?", "2023-01-01"),
    ("What was last year's limit?", "2023-01-01"),
    ("What did the handbook say two years ago?", "2022-01-01"),
    ("What was the fee 6 months ago?", "2024-01-01"),
    ("What did the old policy say about leave?", None),
    ("What was the original wording of section 4?", None),
    ("How was overtime paid under the former travel policy?", None),
    ("How has the policy changed since 2022?", "2022-01-01"),
    ("What changed between 2020 and 2022?", "2020-01-01"),
    ("Compare the 2022 and 2023 rates", "2022-01-01"),
    ("How many days did we use to get?", None),
    ("What used to be the limit?", None),
    ("How many days were there prior to January 2024?", "2023-12-31"),
    ("What was the limit before 2024?", "2023-12-31"),
    ("Until 2023, what was the limit?", "2023-01-01"),
    ("What did the policy previously say?", None),
    ("How much did we get before?", None),
    ("What is the version history of this policy?", None),
    ("What was the price before the last update?", None),
    ("What will the limit be in 2026?", "2026-01-01"),
    ("Which rules apply as of January 2025?", "2025-01-01"),
    ("As at 31 December 2022, what was the headcount limit?", "2022-12-31"),
    ("What did the policy say as of 2022-05?", "2022-05-01"),
    ("In the 2019 edition, what was the deadline?", "2019-01-01"),
    ("policy valid 2022", "2022-01-01"),
    ("How did it work in 2021 and how does it work now?", "2021-01-01"),
    ("Historically, what was the allowance?", None),
    ("Under the superseded policy, who approved trips?", None),
    ("How much was the per diem for trips made in November 2022?", "2022-11-01"),
    ("tell me the rate as of Q2 2022", "2022-01-01"),
    ("What were the rules in the 2010s?", "2010-01-01"),
    ("What was the VPN rule before version 3?", None),
    ("Did employees get more leave under the earlier version?", None),
    ("What were the reimbursement rates on January 1st, 2023?", "2023-01-01"),
    ("Which dress code was in place in 2017?", "2017-01-01"),
    ("How long was the probation period according to the 2020 handbook?", "2020-01-01"),
    ("What did we pay for overtime in Dec 2022?", "2022-12-01"),
    ("Who had to approve travel in 2021?", "2021-01-01"),
    ("I need the parental leave rules that applied in autumn 2021", "2021-01-01"),
    ("Please give me the pension contribution rate as of 1 April 2022.", "2022-04-01"),
    ("What was the data retention period before the new regulation?", None),
    ("pension contribution 2020", "2020-01-01"),
    ("Show me the earlier version of the security policy", None),
    ("How many remote days did staff get during 2020 and 2021?", "2020-01-01"),
    ("Was smoking permitted before 2010?", "2009-12-31"),
    ("What was the password length requirement five years ago?", "2019-01-01"),
    ("What was allowed last month?", "2024-06-01"),
    ("Which security standard was applicable on 2020-01-01T00:00?", "2020-01-01"),
    ("When I started in 2018, what was the notice period?", "2018-01-01"),
    ("What did section 3 of version 2.8 say in 2022?", "2022-01-01"),
    ("How did the former bonus rules work?", None),
    ("What was the deductible from 2019 to 2021?", "2019-01-01"),
    ("According to the old rules, how much could be claimed?", None),
    ("In 2020 how many days of leave were given?", "2020-01-01"),
    ("What price did we charge until March 2023?", "2023-03-01"),
    ("Under the policy effective 2022, who signs?", "2022-01-01"),
    ("What does the outdated manual say about resets?", None),
    ("What was the maximum in FY 2021?", "2021-01-01"),
    ("holiday entitlement as at 2019-12-31", "2019-12-31"),
    ("What was the rule at the time?", None),
    ("How much was the grant in the years 2018-2020?", "2018-01-01"),
    ("What was our parental leave entitlement at the start of 2021?", "2021-01-01"),
    ("Which meal allowance applied on 3 March 2022?", "2022-03-03"),
    ("how many home office days were we allowed in feb 2023", "2023-02-01"),
    ("What did the code of conduct require in 2020?", "2020-01-01"),
    ("Give me the version of the policy from 2021", "2021-01-01"),
    ("Before the 2023 update, what was the cap on gifts?", "2022-12-31"),
    ("What does the policy look like as of 31.12.2022?", "2022-12-31"),
    ("How did the previous remote work guideline define core hours?", None),
    ("Did the 2019 rules allow pets?", "2019-01-01"),
    ("What was the interest rate on 1/31/2023?", "2023-01-31"),
    ("What were the vacation rules last year?", "2023-01-01"),
    ("Which approvals were necessary prior to 1 January 2024?", "2023-12-31"),
    ("How much did a parking permit cost in 2016?", "2016-01-01"),
    ("What was the retention period when the old policy was in force?", None),
    ("Back in 2015, who could approve purchases?", "2015-01-01"),
    ("For 2022, what was the bonus percentage?", "2022-01-01"),
    ("What were the opening hours during May 2020?", "2020-05-01"),
    ("Sick pay rules valid in 2018", "2018-01-01"),
    ("What did it say originally?", None),
    ("What is the difference between the 2021 and 2024 handbook?", "2021-01-01"),
]
"""Questions, and the first day that they ask for; None where they name none."""
NOW_IS_MEANT = [
    "How many vacation days do I get?",
    "What is the current policy?",
    "I was hired in 2019. How many vacation days do I get?",
    "I joined in March 2020, how many days of leave do I get now?",
    "How much notice do employees hired before 2015 have to give?",
    "How many days do employees who were hired in 2019 get?",
    "Can I still claim expenses from last year?",
    "Can I claim receipts from 2023?",
    "May I carry over days from 2023?",
    "What does the Employment Rights Act 1996 say about notice?",
    "What does ISO 27001:2022 require?",
    "Does GDPR (Regulation 2016/679) apply?",
    "By when must I submit the 2024 form?",
    "What is the policy for 2024?",
    "What must be submitted by 31 December 2023?",
    "Which form is used to request leave?",
    "How old must I be?",
    "What was the limit again?",
    "Who was the author of this policy?",
    "What is the policy on previous employment?",
    "Do I need approval before the change is deployed?",
    "Do I have to inform HR before I travel?",
    "What is the latest version?",
    "Was the policy updated?",
    "Is the 2024 policy in force?",
    "I have been here since 2019; how much notice do I have to give?",
    "My contract was signed in 2021. Which notice period applies?",
    "Does the policy apply to laptops bought in 2022?",
    "How many calories are in 2000 g?",
    "What happens after 2030 days?",
    "Does room 2021 have a projector?",
    "Who do I call at extension 2019?",
    "Can I book a trip before the new travel system starts?",
    "How do I issue a refund?",
    "My laptop was purchased on 3 May 2021. Can I get a new one?",
    "How old is the policy?",
    "How long is the warranty on a machine built in 2018?",
    "What is today's limit?",
    "What did I do wrong?",
    "Is the fee for orders of 2000 EUR refunded?",
    "How much is the fine for filing taxes late for my 2022 return?",
    "Are cars registered before 2010 allowed?",
    "Which past experience is required?",
    "Do the rules for version 2024 apply?",
    "How long do I keep invoices from 2019?",
    "What do I have to do if my passport was issued in 2015?",
    "Our server was installed in 2020, is it still supported?",
    "What is the warranty for devices sold in 2021?",
    "Do I get a refund for a course I took in 2022?",
    "How is leave calculated if I worked part-time in 2023?",
    "Am I eligible if I was born in 1990?",
    "Is 2022 tax relief available?",
    "How do I prepare the annual report 2023 for submission?",
    "What is the deadline for goals set in January 2024?",
    "Can I get a copy of my 2021 payslip?",
    "Who do I contact about an incident that happened on 3 May 2024?",
    "Does the Windows Server 2019 license cover VMs?",
    "How do I upgrade from Office 2016?",
    "What is the earliest I can take leave?",
    "How should previous employers be listed?",
    "Should I archive old documents?",
    "Can I return an item after 30 days?",
    "What needs to happen before I can start?",
    "What changes before the new year?",
    "Is the office open on 24 December?",
    "What do I do with expired badges?",
    "How do I cite the Smith 2015 paper?",
    "What is the maximum order of 1500 units?",
    "Do contracts signed before 2020 follow the new rules?",
    "How do I delete an older release?",
    "What is the original price guarantee?",
    "Was my request approved?",
    "How much leave is left from the previous year?",
    "How many hours per week do I work?",
    "I started on 1 February 2022. When do I get my first bonus?",
    "What is the procedure for claims that occurred in 2023?",
    "Can employees who joined before 2018 keep the car?",
    "Does the Working Time Act of 1994 cover interns?",
    "What do I do with a phone from 2017?",
    "When is the next release?",
    "Where can I find the minutes of the meeting on 14 May 2024?",
    "What is the fee for late filing?",
    "Are invoices older than 2020 deleted?",
    "Is there a limit of 1600 characters?",
    "How do I install Visual Studio 2022?",
    "What is the notice period after 2 years?",
    "Which rules apply to me if I moved here in 2021?",
    "Should previous addresses be given?",
    "Do I have to repay a grant received in 2020?",
    "How do I reset an expired password?",
    "What was that about lunch?",
    "Why was my claim from last month rejected?",
    "Who is responsible for data collected since 2019?",
    "What is model X-2020 made of?",
    "How do I get to building 1900?",
]


@pytest.mark.parametrize(("question", "first"), ANOTHER_TIME)
def test_a_question_asks_for_another_time(question: str, first: str | None) -> None:
    asked = asked_for(question, NOW, UTC)
    assert asked is not None
    start = asked.period.start
    assert (start and start.date().isoformat()) == first
    assert asked.words


@pytest.mark.parametrize("question", NOW_IS_MEANT)
def test_a_question_asks_for_the_present(question: str) -> None:
    assert asked_for(question, NOW, UTC) is None


def test_a_year_lasts_to_its_end() -> None:
    asked = asked_for("What was the limit in 2022?", NOW, UTC)
    assert asked is not None
    assert asked.period.end == datetime(2023, 1, 1, tzinfo=UTC)


def test_a_question_about_then_and_now_asks_for_both() -> None:
    asked = asked_for("What was the limit in 2022, and what is it now?", NOW, UTC)
    assert asked is not None
    assert asked.period.start == datetime(2022, 1, 1, tzinfo=UTC)
    assert asked.period.end == NOW


def test_days_are_those_of_the_time_zone() -> None:
    zone = timezone(timedelta(hours=9))
    asked = asked_for("What was the limit on 2022-03-05?", NOW, zone)
    assert asked is not None
    assert asked.period.start == datetime(2022, 3, 4, 15, tzinfo=UTC)
    late = NOW.replace(hour=23)  # 2 July there
    asked = asked_for("What was the limit yesterday?", late, zone)
    assert asked is not None
    assert asked.period.start == datetime(2024, 7, 1, tzinfo=zone)


@pytest.mark.parametrize(
    "question",
    [
        *("999 years ago", "999 months ago", "999 weeks ago", "as of 0000", "as of 9999-12-31"),
        *("in 2023-02-30", "before 1001", "in the 9990s", "before 0001-01-01"),
    ],
)
@pytest.mark.parametrize("now", [NOW, datetime(9999, 12, 30, tzinfo=UTC)])
def test_times_at_the_ends_of_the_calendar_raise_nothing(question: str, now: datetime) -> None:
    asked_for(question, now, UTC)
