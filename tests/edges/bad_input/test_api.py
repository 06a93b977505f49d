"""What callers give to the app, async and blocking: refused by a typed error, and nothing is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any, Final

import pytest

from mainspring.app.internals import internals_of
from mainspring.engine.inputs.senders import checked_actor
from mainspring.errors import (
    EncodeError,
    InvalidIdError,
    MainspringError,
    NoSuchNameError,
    NoSuchTaskError,
    OperationError,
    SettingError,
    TaskRefusedError,
    UnknownTypeError,
    WiringError,
)
from tests.edges.bad_input.conftest import Office
from tests.edges.bad_input.inputs import (
    ATTRIBUTES,
    IDS,
    LIMITS,
    NO_STRINGS,
    PLACES,
    SOUND_TIMES,
    STRANGE_BUT_SOUND,
    TEXTS,
    TIMEOUTS,
    TIMES,
    Case,
    named,
)
from tests.edges.bad_input.misbehaving import Desk, Go, Note, Work, Yes

NOW: Final = timedelta(0)


@pytest.fixture(autouse=True)
def nothing_is_kept(office: Office) -> Generator[None]:
    """Whatever a test is refused, the store is as it was, and the neighbour goes on."""
    before = office.kept()
    yield
    assert office.kept() == before
    office.neighbour_goes_on()


# What is refused at the door is refused whatever the store is: one store will do. What reaches it is tried on all.
at_the_door = pytest.mark.parametrize("office", ["sqlite"], indirect=True)


def refused(office: Office, case: Case, call: Callable[[], Any]) -> None:
    """Fail unless a call is refused with the case's error, which says what to do in a few plain words."""
    with pytest.raises(case.error) as caught:  # noqa: PT012  some are refused before they are awaited
        result = call()
        if hasattr(result, "__await__"):
            office.run(result)
    text = str(caught.value)
    assert type(caught.value) is case.error
    assert case.says in text
    assert len(text) < 1_500
    assert text.encode()  # it can be printed anywhere
    assert text.endswith((".", ")", "}"))


TAKES_MESSAGE_ID: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "send": lambda app, given: app.send(Note("bad"), id=given),
    "publish": lambda app, given: app.publish(Note("bad"), id=given),
    "request": lambda app, given: app.request(Note("bad"), id=given, timeout=NOW),
    "send_many": lambda app, given: app.send_many([Note("neighbour"), Note("bad")], ids=["fine", given]),
    "correlation": lambda app, given: app.send(Note("bad"), correlation_id=given),
    "correlation of what is published": lambda app, given: app.publish(Note("bad"), correlation_id=given),
    "reply": lambda app, given: app.reply(given),
}
TAKES_INSTANCE_ID: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "state": lambda app, given: app.instance(Desk, given).state(),
    "stream": lambda app, given: app.instance(Desk, given).stream(),
    "row": lambda app, given: app.instance(Desk, given).row(),
    "cancel": lambda app, given: app.instance(Desk, given).cancel(),
    "result": lambda app, given: app.instance(Desk, given).result(NOW),
}
TAKES_ACTOR: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "send": lambda app, who: app.send(Note("bad"), actor=who),
    "publish": lambda app, who: app.publish(Note("bad"), actor=who),
    "request": lambda app, who: app.request(Note("bad"), actor=who, timeout=NOW),
    "suspend": lambda app, who: app.instance(Desk, "neighbour").suspend(actor=who),
    "cancel": lambda app, who: app.instance(Desk, "neighbour").cancel(actor=who),
    "reset": lambda app, who: app.instance(Desk, "neighbour").reset(5, actor=who),
    "retry": lambda app, who: app.retry_dead_letter(1, actor=who),
}


@at_the_door
@pytest.mark.parametrize("way", ["async", "blocking"])
@pytest.mark.parametrize("case", [*IDS, *NO_STRINGS], ids=named)
@pytest.mark.parametrize("call", TAKES_MESSAGE_ID)
def test_a_message_id_that_is_none_is_refused(office: Office, call: str, case: Case, way: str) -> None:
    app = office.app if way == "async" else office.blocking
    refused(office, case, lambda: TAKES_MESSAGE_ID[call](app, case.given))


@at_the_door
@pytest.mark.parametrize("case", [*IDS, *NO_STRINGS], ids=named)
@pytest.mark.parametrize("call", TAKES_INSTANCE_ID)
def test_an_instance_id_that_is_none_is_refused(office: Office, call: str, case: Case) -> None:
    refused(office, case, lambda: TAKES_INSTANCE_ID[call](office.app, case.given))


@at_the_door
@pytest.mark.parametrize("case", IDS, ids=named)
def test_a_message_whose_route_gives_no_id_is_refused(office: Office, case: Case) -> None:
    refused(office, case, lambda: office.app.send(Go(case.given)))


@at_the_door
@pytest.mark.parametrize("case", [*IDS, *NO_STRINGS], ids=named)
@pytest.mark.parametrize("call", TAKES_ACTOR)
def test_an_actor_who_cannot_be_recorded_is_refused(office: Office, call: str, case: Case) -> None:
    refused(office, case, lambda: TAKES_ACTOR[call](office.app, case.given))


@at_the_door
@pytest.mark.parametrize("case", [*IDS, *NO_STRINGS], ids=named)
@pytest.mark.parametrize("call", ["get", "forms", "list after"])
def test_a_task_id_that_is_none_names_no_task(office: Office, call: str, case: Case) -> None:
    tasks = office.app.tasks
    calls = {"get": tasks.get, "forms": tasks.forms, "list after": lambda given: tasks.list(after=given)}
    refused(office, case._replace(error=NoSuchTaskError), lambda: calls[call](case.given))


@pytest.mark.parametrize(
    "id", ["Desk/neighbour/99", "Desk/neighbour/9999999999999999999", "Desk/neighbour/-1", "Desk/neighbour/٣", "///"]
)
def test_a_forged_place_among_tasks_is_told(office: Office, id: str) -> None:
    refused(office, Case("forged", id, NoSuchTaskError, "There is no task"), lambda: office.app.tasks.list(after=id))


PAGERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "instances": lambda app, after: app.instances(after=after),
    "dead letters": lambda app, after: app.dead_letters(after=after),
    "events": lambda app, after: app.instance(Desk, "neighbour").stream(after),
}
LIMITED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "instances": lambda app, limit: app.instances(limit=limit),
    "dead letters": lambda app, limit: app.dead_letters(limit=limit),
    "tasks": lambda app, limit: app.tasks.list(limit=limit),
    "timers": lambda app, limit: app.timers(limit=limit),
    "documents": lambda app, limit: app.projections("moves").list(limit=limit),
}


@at_the_door
@pytest.mark.parametrize("case", PLACES, ids=named)
@pytest.mark.parametrize("pager", PAGERS)
def test_a_forged_place_in_a_list_is_refused(office: Office, pager: str, case: Case) -> None:
    refused(office, case, lambda: PAGERS[pager](office.app, case.given))


@pytest.mark.parametrize("pager", PAGERS)
def test_behind_the_last_place_there_is_nothing(office: Office, pager: str) -> None:
    assert office.run(PAGERS[pager](office.app, 2**63 - 1)) == []


@at_the_door
@pytest.mark.parametrize("case", LIMITS, ids=named)
@pytest.mark.parametrize("pager", LIMITED)
def test_a_limit_that_makes_no_sense_is_refused(office: Office, pager: str, case: Case) -> None:
    refused(office, case, lambda: LIMITED[pager](office.app, case.given))


@at_the_door
@pytest.mark.parametrize("id", [-1, 0, 2**63, 2**100, "1", 1.5, None, True])
@pytest.mark.parametrize("call", ["retry", "discard"])
def test_a_dead_letter_that_is_none_does_not_exist(office: Office, call: str, id: Any) -> None:
    act = office.app.retry_dead_letter if call == "retry" else office.app.discard_dead_letter
    refused(office, Case("forged", id, NoSuchNameError, "does not exist"), lambda: act(id))


@at_the_door
@pytest.mark.parametrize("case", TEXTS, ids=named)
@pytest.mark.parametrize(
    "where",
    ["workflow", "state", "id_prefix", "error", "role", "person", "pick", "key", "prefix", "after", "reason", "purge"],
)
def test_a_text_that_no_store_could_keep_is_refused(office: Office, where: str, case: Case) -> None:
    app, text = office.app, case.given
    calls: dict[str, Callable[[], Any]] = {
        "role": lambda: app.tasks.list(role=[text]),
        "person": lambda: app.tasks.list(person=text),
        "pick": lambda: app.tasks.pick(text, actor="ann"),
        "key": lambda: app.projections("moves").get(text),
        "prefix": lambda: app.projections("moves").list(prefix=text),
        "after": lambda: app.projections("moves").list(after=text),
        "reason": lambda: app.instance(Desk, "neighbour").suspend(text),
        "purge": lambda: app.purge(older_than=timedelta(days=1), workflow=text),
    }
    refused(office, case, calls.get(where, lambda: app.instances(**{where: text})))


@pytest.mark.parametrize("wildcard", ["%", "_", "*", "neighbou_", "%' OR '1'='1", "'; DROP TABLE events; --", "\\"])
@pytest.mark.parametrize("where", ["id_prefix", "error", "workflow", "state"])
def test_wildcards_and_sql_in_a_search_are_letters_like_others(office: Office, where: Any, wildcard: Any) -> None:
    assert office.run(office.app.instances(**{where: wildcard})) == []
    assert office.run(office.app.projections("moves").list(prefix=wildcard)) == []


@at_the_door
@pytest.mark.parametrize("case", TIMES, ids=named)
@pytest.mark.parametrize("bound", ["created_from", "created_to", "updated_from", "updated_to"])
def test_a_time_that_is_no_moment_is_refused(office: Office, bound: Any, case: Case) -> None:
    refused(office, case, lambda: office.app.instances(**{bound: case.given}))


@pytest.mark.parametrize("time", SOUND_TIMES, ids=str)
def test_times_before_1970_and_in_the_year_9999_are_searched_for(office: Office, time: Any) -> None:
    after, before = office.app.instances(created_from=time), office.app.instances(created_to=time)
    assert len(office.run(after)) + len(office.run(before)) == 1


@at_the_door
@pytest.mark.parametrize("case", TIMEOUTS, ids=named)
@pytest.mark.parametrize("call", ["result", "request", "caught_up"])
def test_a_timeout_that_is_no_time_span_is_refused(office: Office, call: str, case: Case) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "result": lambda: office.app.instance(Desk, "neighbour").result(case.given),
        "request": lambda: office.app.request(Note("bad"), timeout=case.given),
        "caught_up": lambda: office.app.projections("moves").caught_up(case.given),
    }
    refused(office, case, calls[call])


@at_the_door
@pytest.mark.parametrize("case", ATTRIBUTES, ids=named)
def test_an_attribute_that_cannot_be_searched_for_is_refused(office: Office, case: Case) -> None:
    refused(office, case, lambda: office.app.instances(attributes=case.given))


MISSPELT: Final[dict[str, tuple[Callable[[Any], Any], type[MainspringError], str]]] = {
    "a word in a search": (lambda app: app.instances(stauts="failed"), SettingError, "stauts"),
    "a word in an operation on many": (
        lambda app: app.bulk("terminate", workflow="Desk", satus="failed"),
        SettingError,
        "satus",
    ),
    "a status": (lambda app: app.instances(status="ended"), SettingError, "Use one of running"),
    "an action": (lambda app: app.bulk("explode", workflow="Desk"), SettingError, "Use one of suspend"),
    "a pace that is a text": (
        lambda app: app.bulk("skip", workflow="Desk", per_second="9"),
        SettingError,
        "per_second",
    ),
    "a pace that is NaN": (
        lambda app: app.bulk("skip", workflow="Desk", per_second=float("nan")),
        SettingError,
        "per_second",
    ),
    "a version to go back to": (lambda app: app.instance(Desk, "neighbour").reset(-1), OperationError, "position -1"),
    "a version to migrate to": (lambda app: app.instance(Desk, "neighbour").migrate(99), OperationError, "99"),
    "how many to pick": (lambda app: app.tasks.pick("boss", 10**9, actor="ann"), OperationError, "Use 1 to 1,000"),
    "a reason of 10 MB": (lambda app: app.instance(Desk, "neighbour").cancel("x" * 10**7), SettingError, "at most"),
    "a schedule": (lambda app: app.schedules.next("nightly"), NoSuchNameError, "is not declared"),
    "a projection": (lambda app: app.projections("nope").list(), NoSuchNameError, "is not declared here"),
    "an age": (lambda app: app.purge(older_than=timedelta(-1)), SettingError, "older_than"),
    "a position before all": (lambda app: app.send(Note("a"), expected_position=-1), SettingError, "expected_position"),
    "a position of 5,000 digits": (
        lambda app: app.send(Note("a"), expected_position=10**5_000),
        SettingError,
        "expected_position",
    ),
    "whether it must exist": (lambda app: app.send(Note("a"), must_exist="no"), SettingError, "must_exist"),
    "ids for some messages": (lambda app: app.send_many([Note("a")], ids=["a", "b"]), OperationError, "2 ids"),
}


@at_the_door
@pytest.mark.parametrize("what", MISSPELT)
def test_what_is_misspelt_is_told_and_widens_nothing(office: Office, what: str) -> None:
    call, error, says = MISSPELT[what]
    refused(office, Case(what, None, error, says), lambda: call(office.app))


UNSENDABLE: Final[dict[str, tuple[Any, type[MainspringError]]]] = {
    "None": (None, WiringError),
    "a number": (7, WiringError),
    "a text": ("go", WiringError),
    "a class": (Go, WiringError),
    "a list of messages": ([Note("neighbour")], WiringError),
    "a type that nobody takes": (Work("bad"), WiringError),
    "NaN in a field": (Note("neighbour", float("nan")), EncodeError),
    "an infinity in a field": (Note("neighbour", float("-inf")), EncodeError),
    "an integer of 5,000 digits": (Note("neighbour", 10**5_000), EncodeError),
    "NUL in a field": (Note("neighbour", "a\0"), EncodeError),
    "a lone surrogate in a field": (Note("neighbour", "\ud800"), EncodeError),
    "an object in a field": (Note("neighbour", object()), EncodeError),
    "keys that are numbers": (Note("neighbour", {1: 2}), EncodeError),
    "a text field that holds a number": (Yes("neighbour", why=7), EncodeError),  # pyright: ignore[reportArgumentType]  that is the point
}


@at_the_door
@pytest.mark.parametrize("way", ["send", "send_many", "request", "blocking"])
@pytest.mark.parametrize("what", UNSENDABLE)
def test_what_is_no_message_is_not_sent(office: Office, what: str, way: str) -> None:
    message, error = UNSENDABLE[what]
    calls: dict[str, Callable[[], Any]] = {
        "send": lambda: office.app.send(message),
        "send_many": lambda: office.app.send_many([Note("neighbour"), message]),
        "request": lambda: office.app.request(message, timeout=NOW),
        "blocking": lambda: office.blocking.send(message),
    }
    refused(office, Case(what, message, error, ""), calls[way])


def nested(levels: int) -> Any:
    """Return a list in a list in a list …"""
    deep: Any = []
    for _ in range(levels):
        deep = [deep]
    return deep


@at_the_door
def test_nesting_100_000_levels_deep_is_not_sent(office: Office) -> None:
    deep = nested(100_000)
    refused(office, Case("deep", deep, EncodeError, "64 levels"), lambda: office.app.send(Note("neighbour", deep)))


FIELDS: Final[dict[str, Any]] = {
    "NaN": {"id": "neighbour", "why": float("nan")},
    "a lone surrogate": {"id": "neighbour", "why": "\ud800"},
    "an object": {"id": "neighbour", "why": object()},
    "nesting without end": {"id": "neighbour", "why": nested(100_000)},
}


@at_the_door
@pytest.mark.parametrize("what", FIELDS)
def test_fields_of_a_form_that_are_no_json_answer_no_task(office: Office, what: str) -> None:
    [task] = office.run(office.app.tasks.list())
    case = Case(what, None, EncodeError, "are no JSON")
    refused(office, case, lambda: office.app.tasks.complete(task.id, "Yes", FIELDS[what], actor="ann", roles=["boss"]))


@at_the_door
@pytest.mark.parametrize("name", ["", "No", "a\0b", "Yes; DROP TABLE tasks"])
def test_an_answer_of_another_type_answers_no_task(office: Office, name: str) -> None:
    [task] = office.run(office.app.tasks.list())
    case = Case(name, None, TaskRefusedError, "but by Yes")
    refused(office, case, lambda: office.app.tasks.complete(task.id, name, {}, actor="ann", roles=["boss"]))


@at_the_door
@pytest.mark.parametrize("case", [*IDS, *NO_STRINGS], ids=named)
def test_a_task_goes_to_nobody_who_cannot_be_named(office: Office, case: Case) -> None:
    [task] = office.run(office.app.tasks.list())
    case = case._replace(error=OperationError, says="needs a person")
    for call in (
        lambda: office.app.tasks.claim(task.id, actor=case.given, roles=["boss"]),
        lambda: office.app.tasks.delegate(task.id, case.given),
        lambda: office.app.tasks.delegate(task.id, "bob", actor=case.given, roles=["boss"]),
        lambda: office.app.tasks.release(task.id, actor=case.given),
        lambda: office.app.tasks.complete(task.id, Yes("neighbour"), actor=case.given, roles=["boss"]),
    ):
        refused(office, case, call)


def test_a_type_or_version_that_nobody_knows_is_told(office: Office) -> None:
    codec = internals_of(office.app).registry.codec
    for name, version in (("Nope", 1), ("Note", 99), ("Note", 0), ("Note", -1)):
        with pytest.raises(UnknownTypeError):
            codec.decode_outside(name, version, b'{"id":"bad"}')


def test_an_identity_that_is_none_is_refused(office: Office) -> None:
    for identity in ("", "Desk", "Desk/", "/neighbour", "Nope/neighbour", "Desk/a\nb", 7, None, "\ud800"):
        with pytest.raises(MainspringError):
            office.app.instance_at(identity)  # pyright: ignore[reportArgumentType]  that is the point


def test_two_different_messages_under_one_id_are_one(office: Office) -> None:
    with pytest.raises(MainspringError, match="another message"):
        office.run(office.app.send(Note("nobody", "other"), id="letter"))


class TestSound:
    """Ids that look dangerous and are not."""

    @pytest.fixture(autouse=True)
    def nothing_is_kept(self) -> None:
        """Here something is kept, and that is right."""

    @pytest.mark.parametrize("id", STRANGE_BUT_SOUND, ids=named)
    def test_an_id_that_looks_dangerous_is_an_id_like_others(self, office: Office, id: str) -> None:
        receipt = office.run(office.app.send(Go(id), id=f"m {id[:900]}", actor=id))
        assert receipt.status == "stepped"
        instance = office.app.instance(Desk, id)
        assert [entry.actor for entry in office.run(instance.stream())][1] == id
        assert [row.id for row in office.run(office.app.instances(id_prefix=id)) if row.id == id] == [id]
        task = office.run(office.app.tasks.get(f"Desk/{id}/5"))
        assert task.instance == id
        office.run(instance.terminate())
        with pytest.raises(InvalidIdError):
            office.run(office.app.send(Go(f"{id}\n")))


@pytest.mark.parametrize("joiner", ["\u3000", "\u200c", "\u200d"])
def test_a_name_that_is_joined_as_its_language_does_is_taken(joiner: str) -> None:
    assert checked_actor(f"山田{joiner}太郎") == f"山田{joiner}太郎"
