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
        "A price list that needs a second draft",
        DocumentApproval(),
        (
            (SubmitDocument("d-1", "prices.pdf"), "ann"),
            (RejectDocument("d-1", "the prices are last year's"), "bob"),
            (ReviseDocument("d-1", "prices-2.pdf"), "ann"),
            (ApproveDocument("d-1"), "bob"),
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
