"""Stories of the group checkout, for `python -m examples`."""

from __future__ import annotations

from examples.group_checkout.workflow import (
    GroupCheckout,
    GroupCheckoutOverdue,
    GuestCheckedOut,
    GuestCheckoutFailed,
    InitiateGroupCheckout,
)
from examples.stories import Story
from mainspring import Kind

STORIES = [
    Story(
        "A group of two checks out",
        GroupCheckout(),
        (
            InitiateGroupCheckout("g-1", ("stay-1", "stay-2")),
            (GuestCheckedOut("g-1", "stay-2"), Kind.RESULT),
            (GuestCheckedOut("g-1", "stay-1"), Kind.RESULT),
        ),
    ),
    Story(
        "A group checks out; one guest has not paid",
        GroupCheckout(),
        (
            InitiateGroupCheckout("g-2", ("stay-1", "stay-2", "stay-3")),
            (GuestCheckedOut("g-2", "stay-1"), Kind.RESULT),
            (GuestCheckoutFailed("g-2", "stay-3", "42.00 is not paid"), Kind.RESULT),
            (GuestCheckedOut("g-2", "stay-2"), Kind.RESULT),
        ),
    ),
    Story(
        "One stay does not answer, and the coach is waiting",
        GroupCheckout(),
        (
            InitiateGroupCheckout("g-3", ("stay-1", "stay-2")),
            (GuestCheckedOut("g-3", "stay-1"), Kind.RESULT),
            GroupCheckoutOverdue("g-3"),
        ),
    ),
]
