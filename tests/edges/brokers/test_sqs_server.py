"""What the tests' SQS has to do as Amazon's does, or tests fail by chance."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

models: Any = pytest.importorskip("moto.sqs.models", reason="there is no moto in this environment")

from tests.edges.brokers import sqs_server  # noqa: E402  it needs moto

# From one look at the clock to the next, of which a message that is received takes several.
STEP_MILLIS = 0.05
HIDDEN_SECONDS = 1


def test_what_was_given_out_together_comes_again_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "unix_time_millis", sqs_server.clock.millis)
    for steps in range(60):
        times: Iterator[float] = count(sqs_server.Clock().millis(), STEP_MILLIS)
        monkeypatch.setattr(sqs_server.clock, "running", lambda: next(times))  # noqa: B023  it is called in this turn
        backend = models.SQSBackend("eu-west-1", "123456789012")
        queue = backend.create_queue("orders.fifo", {}, FifoQueue="true")
        for body in "123":
            backend.send_message(queue.name, body, deduplication_id=body, group_id="k")
        assert len(sqs_server.receive(backend, queue.name, 10, 0, HIDDEN_SECONDS)) == 3
        # So shortly before they are seen again, a consumer begins to look for them.
        times = count(queue._messages[0].visible_at - steps * STEP_MILLIS, STEP_MILLIS)  # noqa: SLF001  as in the server
        came: list[Any] = []
        while not came:
            came = sqs_server.receive(backend, queue.name, 10, 0, HIDDEN_SECONDS)
        assert [message.body for message in came] == ["1", "2", "3"]
