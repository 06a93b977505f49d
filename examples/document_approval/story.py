from examples.document_approval.workflow import (
    ApproveDocument,
    DocumentApproval,
    DocumentArchived,
    RejectDocument,
    ReviewTimedOut,
    ReviseDocument,
    SubmitDocument,
)
from examples.stories import Story
from mainspring import Kind

STORIES = [
    Story(
        "A price list that its maker may not approve, and that needs a second draft",
        DocumentApproval(),
        (
            (SubmitDocument("d-1", "prices.pdf"), "ann"),
            (ApproveDocument("d-1", round=1), "ann"),
            (RejectDocument("d-1", round=1, reason="the prices are last year's"), "bob"),
            (ReviseDocument("d-1", "prices-2.pdf"), "ann"),
            (ApproveDocument("d-1", round=2), "bob"),
            (DocumentArchived("d-1", "archive-d-1"), Kind.RESULT),
        ),
    ),
    Story(
        "A document that nobody checks",
        DocumentApproval(),
        (
            (SubmitDocument("d-2", "menu.pdf"), "ann"),
            ReviewTimedOut("d-2"),
        ),
    ),
]
