import asyncio
import gc
import socket
from urllib.parse import urlsplit

import pytest

from tests.support.ports import free_port
from tests.support.postgres.proxy import Cable, Pooler, serving
from tests.support.postgres.server import server_url
from tests.support.running import run


def connected(url: str) -> socket.socket:
    """Connect as somebody who is about to leave: whoever listens may hear of it later."""
    place = urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    return socket.create_connection((place.hostname, place.port))


@pytest.mark.parametrize("proxy", [Cable, lambda url: Pooler(url, 1)], ids=["cable", "pooler"])
@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.filterwarnings("error")
def test_a_line_that_comes_as_its_proxy_goes_is_not_left_open(proxy: type[Cable], turns: int, answers: bool) -> None:
    """Its warning would fail whichever test runs when it is found."""
    url = server_url() if answers else f"postgresql://postgres@127.0.0.1:{free_port()}/postgres"

    async def main() -> None:
        async with serving(proxy(url), url) as through:
            client = connected(through)
            for _ in range(turns):
                await asyncio.sleep(0)
        client.close()

    run(main)
    gc.collect()
