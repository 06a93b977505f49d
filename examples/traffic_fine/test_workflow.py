from __future__ import annotations

import asyncio

from examples.traffic_fine import handlers
from examples.traffic_fine.workflow import (
    PATIENCE,
    AwaitingIdentificationCode,
    AwaitingSystemNumber,
    FineIssued,
    GenerateIdentificationCode,
    GenerateSystemNumber,
    IdentificationCodeGenerated,
    IdentificationCodeOverdue,
    IssueTrafficFine,
    NoFineDue,
    ParkingViolation,
    PoliceReportPublished,
    SpeedingViolation,
    SystemNumberGenerated,
    SystemNumberOverdue,
    TrafficFine,
    TrafficFineDelayed,
)
from mainspring import CancelSchedule, Complete, Publish, Schedule, Send
from mainspring.errors import CannotBeginError, InstanceEndedError, UnknownTransitionError
from mainspring.testing import given

SPEEDING = PoliceReportPublished("r-1", "1-ABC-234", SpeedingViolation(limit_kmh=50, measured_kmh=68))
PARKING = PoliceReportPublished("r-1", "1-ABC-234", ParkingViolation("Mill Lane"))
NUMBER = SystemNumberGenerated("r-1", "TF-000001")
CODE = IdentificationCodeGenerated("r-1", "K7WQ2M")


def test_a_parking_violation_completes_at_once() -> None:
    given(TrafficFine()).when(PARKING).then(Complete()).then_state(NoFineDue())


def test_a_speeding_violation_asks_for_a_system_number() -> None:
    (
        given(TrafficFine())
        .when(SPEEDING)
        .then(Send(GenerateSystemNumber("r-1")), Schedule(SystemNumberOverdue("r-1"), after=PATIENCE))
        .then_state(AwaitingSystemNumber("1-ABC-234"))
    )


def test_a_system_number_leads_to_an_identification_code() -> None:
    (
        given(TrafficFine(), SPEEDING)
        .when(NUMBER)
        .then(
            CancelSchedule(SystemNumberOverdue),
            Send(GenerateIdentificationCode("r-1", "TF-000001")),
            Schedule(IdentificationCodeOverdue("r-1"), after=PATIENCE),
        )
        .then_state(AwaitingIdentificationCode("1-ABC-234", "TF-000001"))
    )


def test_an_identification_code_issues_the_fine() -> None:
    (
        given(TrafficFine(), SPEEDING, NUMBER)
        .when(CODE)
        .then(Send(IssueTrafficFine("r-1", "1-ABC-234", "TF-000001", "K7WQ2M")), Complete())
        .then_state(FineIssued("TF-000001"))
    )


def test_an_overdue_system_number_is_reported_and_still_awaited() -> None:
    (
        given(TrafficFine(), SPEEDING)
        .when(SystemNumberOverdue("r-1"))
        .then(Publish(TrafficFineDelayed("r-1", missing="system number")))
        .then_state(AwaitingSystemNumber("1-ABC-234"))
    )


def test_an_overdue_identification_code_is_reported_and_still_awaited() -> None:
    (
        given(TrafficFine(), SPEEDING, NUMBER)
        .when(IdentificationCodeOverdue("r-1"))
        .then(Publish(TrafficFineDelayed("r-1", missing="identification code")))
        .then_state(AwaitingIdentificationCode("1-ABC-234", "TF-000001"))
    )


def test_a_fine_that_was_late_is_issued_all_the_same() -> None:
    (
        given(TrafficFine(), SPEEDING, SystemNumberOverdue("r-1"), NUMBER, IdentificationCodeOverdue("r-1"))
        .when(CODE)
        .then(Send(IssueTrafficFine("r-1", "1-ABC-234", "TF-000001", "K7WQ2M")), Complete())
    )


def test_a_timer_that_comes_after_the_system_number_is_ignored() -> None:
    (
        given(TrafficFine(), SPEEDING, NUMBER)
        .when(SystemNumberOverdue("r-1"))
        .then()
        .then_state(AwaitingIdentificationCode("1-ABC-234", "TF-000001"))
    )


def test_an_identification_code_cannot_come_before_the_system_number() -> None:
    given(TrafficFine(), SPEEDING).when(CODE).then_raises(UnknownTransitionError, match="AwaitingSystemNumber")


def test_a_report_is_taken_once() -> None:
    given(TrafficFine(), SPEEDING).when(SPEEDING).then_raises(UnknownTransitionError, match="PoliceReportPublished")


def test_only_a_report_begins_a_fine() -> None:
    given(TrafficFine()).when(NUMBER).then_raises(CannotBeginError, match="PoliceReportPublished")


def test_nothing_is_decided_after_the_fine_was_issued() -> None:
    given(TrafficFine(), SPEEDING, NUMBER, CODE).when(CODE).then_raises(InstanceEndedError)


def test_the_fine_is_found_by_its_report() -> None:
    assert TrafficFine().route(SPEEDING) == "r-1"


def test_what_the_handlers_answer_takes_a_report_to_its_letter() -> None:
    number = asyncio.run(handlers.generate_system_number(GenerateSystemNumber("r-1")))
    code = asyncio.run(handlers.generate_identification_code(GenerateIdentificationCode("r-1", number.system_number)))
    fine = IssueTrafficFine("r-1", "1-ABC-234", number.system_number, code.code)
    given(TrafficFine(), SPEEDING, number).when(code).then(Send(fine), Complete())

    asyncio.run(handlers.issue_traffic_fine(fine))
    assert "1-ABC-234" in handlers.LETTERS[number.system_number]


def test_a_handler_asked_twice_gives_the_same_answer() -> None:
    first, second = (asyncio.run(handlers.generate_system_number(GenerateSystemNumber("r-1"))) for _ in range(2))
    assert first == second
