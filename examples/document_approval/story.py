from examples.document_approval.workflow import DocumentApproval, SubmitDocument
from examples.stories import Story

STORIES = [
    # A story has no actors, so all it can tell is what happens to a document that nobody signed.
    Story(
        "A document that nobody signed",
        DocumentApproval(),
        (SubmitDocument("d-1", "prices.pdf"),),
    ),
]
