"""Stories of the traffic fine, for `python -m examples`."""

from __future__ import annotations

from examples.stories import Story
from examples.traffic_fine.workflow import (
    IdentificationCodeGenerated,
    ParkingViolation,
    PoliceReportPublished,
    SpeedingViolation,
    SystemNumberGenerated,
    SystemNumberOverdue,
    TrafficFine,
)
from mainspring import Kind

STORIES = [
    Story(
        "A car drove too fast, and its owner is fined",
        TrafficFine(),
        (
            (PoliceReportPublished("r-7", "1-ABC-234", SpeedingViolation(limit_kmh=50, measured_kmh=68)), Kind.EVENT),
            (SystemNumberGenerated("r-7", "TF-318204"), Kind.RESULT),
            (IdentificationCodeGenerated("r-7", "K7WQ2M"), Kind.RESULT),
        ),
    ),
    Story(
        "A car was parked badly, which is not this office's business",
        TrafficFine(),
        ((PoliceReportPublished("r-8", "1-XYZ-789", ParkingViolation("Mill Lane")), Kind.EVENT),),
    ),
    Story(
        "The system number takes more than a day; the fine is late, not lost",
        TrafficFine(),
        (
            (PoliceReportPublished("r-9", "1-KLM-456", SpeedingViolation(limit_kmh=30, measured_kmh=51)), Kind.EVENT),
            SystemNumberOverdue("r-9"),
            (SystemNumberGenerated("r-9", "TF-090417"), Kind.RESULT),
            (IdentificationCodeGenerated("r-9", "B3HX9P"), Kind.RESULT),
        ),
    ),
]
