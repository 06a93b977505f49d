"""What calls claim, by hand: a slate's history each, and whether its workflow can have been seen so."""

from itertools import count
from typing import Any

from tests.proof.histories.calls import Call
from tests.proof.histories.judge import Judged, judge
from tests.proof.histories.slates import MODELS, Chalk, Copy, Drop, Marks, Nay, Tallied, Tally, Vote, Wipe, Wiped, Yea

TO = "Slate/s"
NUMBERS = count(1)


def call(verb: Any, began: float, ended: float | None, outcome: str = "unknown", **more: Any) -> Call:
    return Call(f"call-{next(NUMBERS)}", TO, verb, began, ended, outcome, **more)


def sent(message: Any, began: float, ended: float | None, outcome: str = "unknown", id: str | None = None) -> Call:
    return call("send", began, ended, outcome, id=id or message.mark, message=message)


def asked(mark: str, began: float, ended: float | None, reply: Tallied | None) -> Call:
    outcome = "unknown" if reply is None else "replied"
    return call("request", began, ended, outcome, id=mark, message=Tally("s", mark), value=reply)


def answered(person: str, message: Any, began: float, ended: float | None, told: tuple[str, str, Any] | None) -> Call:
    more: dict[str, Any] = {"id": person, "message": message, "task": message.mark}
    if told is None:
        return call("answer", began, ended, **more)
    status, by, given = told
    outcome = "later" if status == "duplicate" else "first"
    return call("answer", began, ended, outcome, **more, value={"status": status, "by": by, "message": given})


def seen(began: float, *marks: str, at_rest: bool = False) -> Call:
    return call("last look" if at_rest else "state", began, began + 1, "seen", value=Marks(marks))


def nothing_seen(began: float) -> Call:
    return call("state", began, began + 1, "nothing")


def chalk(mark: str) -> Chalk:
    return Chalk("s", mark)


def drop(mark: str) -> Drop:
    return Drop("s", mark)


def judged(*calls: Call) -> Judged:
    return judge(calls, MODELS)


def holds(*calls: Call) -> bool:
    found = judged(*calls)
    assert not found.undecided
    return not found.violations


# ---- what was sent


def test_what_was_stepped_is_seen_by_whoever_reads_next() -> None:
    assert holds(sent(chalk("a"), 0, 1, "stepped"), seen(2, "Chalk a"))
    assert not holds(sent(chalk("a"), 0, 1, "stepped"), seen(2))
    assert not holds(sent(chalk("a"), 0, 1, "stepped"), nothing_seen(2))


def test_an_acknowledged_write_that_is_lost_is_found() -> None:
    assert not holds(sent(chalk("a"), 0, 1, "stepped"), sent(chalk("b"), 2, 3, "stepped"), seen(4, "Chalk b"))
    assert not holds(sent(drop("a"), 0, 1, "accepted"), sent(chalk("b"), 2, 3, "stepped"), seen(4, "Chalk b"))
    assert holds(sent(drop("a"), 0, 1, "accepted"), nothing_seen(2))
    assert not holds(sent(drop("a"), 0, 1, "accepted"), call("last look", 9, 10, "nothing"))


def test_a_doubled_write_is_found() -> None:
    assert not holds(sent(chalk("a"), 0, 1, "stepped"), seen(2, "Chalk a", "Chalk a"))
    assert not holds(sent(chalk("a"), 0, 1), seen(2, "Chalk a", "Chalk a"))
    assert not holds(sent(chalk("a"), 0, 1, "stepped"), sent(chalk("a"), 2, 3, "stepped"))


def test_a_stale_read_is_found() -> None:
    writes = sent(chalk("a"), 0, 1, "stepped"), sent(chalk("b"), 2, 20, "stepped")
    assert holds(*writes, seen(5, "Chalk a", "Chalk b"), seen(7, "Chalk a", "Chalk b"))
    assert not holds(*writes, seen(5, "Chalk a", "Chalk b"), seen(7, "Chalk a"))


def test_a_read_of_what_was_never_sent_is_found() -> None:
    assert not holds(sent(chalk("a"), 0, 1, "stepped"), seen(2, "Chalk a", "Chalk x"))


def test_what_was_accepted_is_not_overtaken_by_what_is_sent_later() -> None:
    accepted = sent(drop("a"), 0, 1, "accepted")
    assert holds(accepted, sent(chalk("b"), 0.5, 3, "stepped"), seen(4, "Chalk b", "Drop a"))
    assert not holds(accepted, sent(chalk("b"), 2, 3, "stepped"), seen(4, "Chalk b", "Drop a"))


def test_a_lost_answer_leaves_open_whether_and_when() -> None:
    lost = sent(chalk("a"), 0, None)
    assert holds(lost, nothing_seen(5))
    assert holds(lost, nothing_seen(5), seen(7, "Chalk a"))
    assert holds(lost, sent(chalk("b"), 5, 6, "stepped"), seen(7, "Chalk b"), seen(9, "Chalk b", "Chalk a"))
    assert not holds(lost, seen(5, "Chalk a"), sent(chalk("b"), 7, 8, "stepped"), seen(9, "Chalk b"))


def test_a_duplicate_says_that_it_was_accepted_before() -> None:
    assert holds(sent(chalk("a"), 0, None), sent(chalk("a"), 2, 3, "duplicate"), seen(4, "Chalk a"))
    at_rest = seen(9, "Chalk b", at_rest=True)
    repeated = sent(chalk("a"), 0, None), sent(chalk("a"), 2, 3, "duplicate")
    assert not holds(*repeated, sent(chalk("b"), 4, 5, "stepped"), at_rest)
    assert holds(sent(chalk("a"), 2, 3, "duplicate"), seen(4, "Chalk a"))
    assert not holds(seen(0, "Chalk a"), sent(chalk("a"), 2, 3, "duplicate"))
    assert not holds(sent(chalk("a"), 2, 3, "duplicate"), sent(chalk("a"), 5, 6, "stepped"))


def test_a_refused_id_says_that_another_message_has_it() -> None:
    another = sent(chalk("x"), 2, 3, "refused", id="a")
    assert holds(sent(chalk("a"), 0, None), another, seen(4, "Chalk a"))
    assert not holds(sent(chalk("a"), 0, None), another, seen(9, "Chalk x"))
    assert not holds(another)


def test_one_id_is_not_taken_for_two_messages() -> None:
    both = sent(chalk("a"), 0, None), sent(chalk("x"), 0, None, id="a")
    assert holds(*both, seen(4, "Chalk x"))
    assert not holds(*both, seen(4, "Chalk x", "Chalk a"))


def test_a_dead_letter_says_that_nobody_takes_it() -> None:
    ended = sent(Wipe("s", "w"), 0, 1, "stepped")
    assert holds(ended, sent(chalk("a"), 2, 3, "dead letter"))
    assert not holds(sent(chalk("b"), 0, 1, "stepped"), sent(chalk("a"), 2, 3, "dead letter"))
    assert not holds(ended, sent(chalk("a"), 2, 3, "stepped"))
    assert holds(sent(drop("a"), 0, 1, "accepted"), sent(Wipe("s", "w"), 0.5, 9, "stepped"), seen(10, "Wipe w"))


def test_a_dead_letter_makes_its_id_known_and_what_is_accepted_once_more_was_one() -> None:
    ended = sent(Wipe("s", "w"), 0, 1, "stepped")
    assert holds(ended, sent(chalk("a"), 2, 3, "dead letter"), sent(chalk("a"), 4, 5, "duplicate"))
    assert holds(ended, sent(chalk("a"), 2, 3, "dead letter"), sent(chalk("x"), 4, 5, "refused", id="a"))
    twice = sent(drop("a"), 2, 3, "accepted"), sent(drop("a"), 4, 5, "accepted")
    assert holds(ended, *twice, seen(6, "Wipe w"))
    assert not holds(*twice, seen(6, "Drop a"))
    late = sent(Wipe("s", "w"), 2.5, 7, "stepped")
    assert holds(*twice, late, seen(8, "Wipe w"))
    assert not holds(*twice, late, seen(8, "Drop a", "Wipe w"))
    another = sent(drop("x"), 4, 5, "accepted", id="a")
    assert holds(ended, sent(drop("a"), 2, 3, "accepted"), another, seen(6, "Wipe w"))
    assert not holds(sent(drop("a"), 2, 3, "accepted"), another, seen(6, "Drop a", "Drop x"))


# ---- answers


def test_a_reply_that_disagrees_with_its_step_is_found() -> None:
    before = sent(chalk("a"), 0, 1, "stepped")
    assert holds(before, asked("t", 2, 3, Tallied(1, "Chalk a")))
    assert not holds(before, asked("t", 2, 3, Tallied(0, "")))
    assert not holds(before, asked("t", 2, 3, Tallied(1, "Chalk a")), asked("t", 4, 5, Tallied(2, "Tally t")))


def test_a_result_that_disagrees_with_the_end_is_found() -> None:
    writes = sent(chalk("a"), 0, 1, "stepped"), sent(Wipe("s", "w"), 2, 3, "stepped")
    assert holds(*writes, call("result", 4, 5, "completed", value=Wiped(1)))
    assert not holds(*writes, call("result", 4, 5, "completed", value=Wiped(2)))
    assert not holds(writes[0], call("result", 4, 5, "completed", value=Wiped(1)))


def test_a_handlers_result_comes_once_and_behind_its_command() -> None:
    copy = sent(Copy("s", "c"), 0, 1, "stepped")
    assert holds(copy, seen(2, "Copy c"), seen(4, "Copy c", "Traced c"))
    assert not holds(copy, seen(2, "Copy c", "Traced c", "Traced c"))
    assert not holds(copy, seen(9, "Copy c", at_rest=True))


# ---- tasks


VOTE = sent(Vote("s", "v"), 0, 1, "stepped")
YEA, NAY = Yea("s", "v", "ann"), Nay("s", "v", "bob")


def test_of_two_answers_one_is_taken_and_both_are_told_which() -> None:
    first = answered("ann", YEA, 2, 4, ("stepped", "ann", YEA))
    later = answered("bob", NAY, 2, 4, ("duplicate", "ann", YEA))
    assert holds(VOTE, first, later, seen(5, "Vote v", "Yea v by ann"))
    assert not holds(VOTE, first, later, seen(5, "Vote v", "Yea v by ann", "Nay v by bob"))
    assert not holds(VOTE, first, later, seen(5, "Vote v", "Nay v by bob"))


def test_two_first_answers_to_one_task_are_found() -> None:
    first = answered("ann", YEA, 2, 4, ("stepped", "ann", YEA))
    assert not holds(VOTE, first, answered("bob", NAY, 2, 4, ("stepped", "bob", NAY)))


def test_who_is_told_of_an_answer_that_was_not_the_first_is_found() -> None:
    first = answered("ann", YEA, 2, 4, ("stepped", "ann", YEA))
    assert not holds(VOTE, first, answered("bob", NAY, 2, 4, ("duplicate", "eve", NAY)))
    assert not holds(VOTE, first, answered("bob", NAY, 2, 4, ("duplicate", "ann", NAY)))


def test_an_answer_that_was_lost_counts_if_others_are_told_of_it() -> None:
    lost = answered("ann", YEA, 2, None, None)
    later = answered("bob", NAY, 5, 6, ("duplicate", "ann", YEA))
    assert holds(VOTE, lost, later, seen(9, "Vote v", "Yea v by ann", at_rest=True))
    assert not holds(VOTE, lost, later, seen(9, "Vote v", at_rest=True))
    assert not holds(VOTE, answered("ann", YEA, 7, None, None), later)


def test_a_task_is_not_answered_before_it_is_asked() -> None:
    first = answered("ann", YEA, 0, 1, ("stepped", "ann", YEA))
    assert not holds(sent(chalk("a"), 0, 1, "stepped"), first, sent(Vote("s", "v"), 2, 3, "stepped"))


# ---- figures


def test_it_is_counted_what_was_looked_at() -> None:
    found = judged(sent(chalk("a"), 0, 1, "stepped"), sent(chalk("b"), 0, None), seen(2, "Chalk a"))
    counted = (found.calls, found.operations, found.reads, found.never_told, found.instances, found.decided)
    assert counted == (3, 3, 1, 1, 1, 1)


def test_what_is_undecided_is_counted_and_is_neither_good_nor_bad() -> None:
    writes = [sent(chalk(mark), 0, 1, "stepped") for mark in "abcdefgh"]
    found = judge([*writes, asked("t", 2, 3, Tallied(99, ""))], MODELS, most=100)
    assert (found.decided, found.undecided, found.violations) == (0, [TO], [])


def test_a_refusal_names_what_has_no_place() -> None:
    [(to, text)] = judged(sent(chalk("a"), 0, 1, "stepped"), seen(2, "Chalk x")).violations
    assert to == TO
    assert "no order explains its history" in text
    assert "Chalk x" in text
