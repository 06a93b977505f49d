"""An adapter whose client is not installed says which extra brings it."""

import importlib
import sys

import pytest

from mainspring.errors import WiringError

ADAPTERS = {"nats": "nats", "redis": "redis", "rabbitmq": "aio_pika", "kafka": "aiokafka", "sqs": "botocore"}


@pytest.mark.parametrize(("extra", "client"), ADAPTERS.items())
def test_a_missing_client_is_told_with_the_extra_that_brings_it(
    extra: str, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name == client or name.startswith((f"{client}.", f"mainspring.brokers.{extra}")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, client, None)
    with pytest.raises(WiringError, match=rf"Install mainspring\[{extra}\]"):
        importlib.import_module(f"mainspring.brokers.{extra}")
