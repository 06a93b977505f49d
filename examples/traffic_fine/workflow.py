"""From a police report to a traffic fine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from mainspring import CancelSchedule, Complete, Decisions, Event, Publish, Received, Schedule, Send, Workflow

PATIENCE = timedelta(days=1)


@dataclass(frozen=True)
class SpeedingViolation:
    limit_kmh: int
    measured_kmh: int


@dataclass(frozen=True)
class ParkingViolation:
    street: str


Offence = SpeedingViolation | ParkingViolation


@dataclass(frozen=True)
class PoliceReportPublished:
    report_id: str
    licence_plate: str
    offence: Offence


@dataclass(frozen=True)
class SystemNumberGenerated:
    report_id: str
    system_number: str


@dataclass(frozen=True)
class SystemNumberOverdue:
    report_id: str


@dataclass(frozen=True)
class IdentificationCodeGenerated:
    report_id: str
    code: str


@dataclass(frozen=True)
class IdentificationCodeOverdue:
    report_id: str


Input = (
    PoliceReportPublished
    | SystemNumberGenerated
    | SystemNumberOverdue
    | IdentificationCodeGenerated
    | IdentificationCodeOverdue
)


@dataclass(frozen=True)
class GenerateSystemNumber:
    report_id: str


@dataclass(frozen=True)
class GenerateIdentificationCode:
    report_id: str
    system_number: str


@dataclass(frozen=True)
class IssueTrafficFine:
    report_id: str
    licence_plate: str
    system_number: str
    code: str


@dataclass(frozen=True)
class TrafficFineDelayed:
    report_id: str
    missing: str


Output = GenerateSystemNumber | GenerateIdentificationCode | IssueTrafficFine | TrafficFineDelayed


@dataclass(frozen=True)
class AwaitingReport:
    pass


@dataclass(frozen=True)
class AwaitingSystemNumber:
    licence_plate: str


@dataclass(frozen=True)
class AwaitingIdentificationCode:
    licence_plate: str
    system_number: str


@dataclass(frozen=True)
class FineIssued:
    system_number: str


@dataclass(frozen=True)
class NoFineDue:
    pass


State = AwaitingReport | AwaitingSystemNumber | AwaitingIdentificationCode | FineIssued | NoFineDue


class TrafficFine(Workflow[Input, State, Output]):
    """One police report, from its publication to a fine in the post, or to none."""

    begins = PoliceReportPublished
    again = "refuse"
    initial_state = AwaitingReport()

    def route(self, message: Input) -> str | None:
        return message.report_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case AwaitingReport(), Received(PoliceReportPublished(_, licence_plate, SpeedingViolation())):
                return AwaitingSystemNumber(licence_plate)
            case AwaitingReport(), Received(PoliceReportPublished(offence=ParkingViolation())):
                return NoFineDue()
            case AwaitingSystemNumber(licence_plate), Received(SystemNumberGenerated(_, system_number)):
                return AwaitingIdentificationCode(licence_plate, system_number)
            case AwaitingIdentificationCode(_, system_number), Received(IdentificationCodeGenerated()):
                return FineIssued(system_number)

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case PoliceReportPublished(report_id, _, SpeedingViolation()), AwaitingReport():
                return [
                    Send(GenerateSystemNumber(report_id)),
                    Schedule(SystemNumberOverdue(report_id), after=PATIENCE),
                ]
            case PoliceReportPublished(offence=ParkingViolation()), AwaitingReport():
                return [Complete()]
            case SystemNumberGenerated(report_id, system_number), AwaitingSystemNumber():
                return [
                    CancelSchedule(SystemNumberOverdue),
                    Send(GenerateIdentificationCode(report_id, system_number)),
                    Schedule(IdentificationCodeOverdue(report_id), after=PATIENCE),
                ]
            case IdentificationCodeGenerated(report_id, code), AwaitingIdentificationCode(licence_plate, system_number):
                return [Send(IssueTrafficFine(report_id, licence_plate, system_number, code)), Complete()]
            case SystemNumberOverdue(report_id), AwaitingSystemNumber():
                return [Publish(TrafficFineDelayed(report_id, missing="system number"))]
            case IdentificationCodeOverdue(report_id), AwaitingIdentificationCode():
                return [Publish(TrafficFineDelayed(report_id, missing="identification code"))]
