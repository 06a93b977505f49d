"""Whatever is asked over HTTP, the answer is one that the OpenAPI document describes, and no error of the server."""

from tests.edges.web.fuzzing import fuzz, modes, operations, serving

EXAMPLES = 1


def test_no_request_gets_an_answer_that_the_document_does_not_describe() -> None:
    """With the same requests each time; `python -m tests.edges.web.fuzzing` has many more."""
    with serving() as made:
        found = operations(made.document)
        assert len(found) > 50
        for operation in found:
            for mode in modes(operation):
                fuzz(made, operation, EXAMPLES, mode)
