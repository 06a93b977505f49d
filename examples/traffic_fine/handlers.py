"""What the fines office does when it is asked. Each answer follows from the command alone, so asking twice is safe."""

from __future__ import annotations

from hashlib import sha256

from examples.traffic_fine.workflow import (
    GenerateIdentificationCode,
    GenerateSystemNumber,
    IdentificationCodeGenerated,
    IssueTrafficFine,
    SystemNumberGenerated,
)

# No 0, O, 1 or I: the code is typed from a printed letter.
CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 6

# The print room. A fine has one letter, however often it is issued.
LETTERS: dict[str, str] = {}


async def generate_system_number(command: GenerateSystemNumber) -> SystemNumberGenerated:
    number = int.from_bytes(_digest(command.report_id)[:4]) % 1_000_000
    return SystemNumberGenerated(command.report_id, f"TF-{number:06}")


async def generate_identification_code(command: GenerateIdentificationCode) -> IdentificationCodeGenerated:
    digest = _digest(f"{command.report_id} {command.system_number}")
    code = "".join(CODE_LETTERS[byte % len(CODE_LETTERS)] for byte in digest[:CODE_LENGTH])
    return IdentificationCodeGenerated(command.report_id, code)


async def issue_traffic_fine(command: IssueTrafficFine) -> None:
    LETTERS[command.system_number] = (
        f"To the owner of {command.licence_plate}: your traffic fine has the number {command.system_number}. "
        f"View it with report {command.report_id} and code {command.code}."
    )


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()
