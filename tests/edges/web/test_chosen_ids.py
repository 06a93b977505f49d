"""Whoever may send over HTTP can choose any id, and takes no other message's place with it."""

import asyncio
from pathlib import Path

from mainspring import Mainspring
from tests.edges.web.support import bearer, served, tokens
from tests.engine.test_chosen_ids import Account, Move, Transfer, bank


def test_a_worker_of_another_team_chooses_the_id_of_a_command_that_is_about_to_be_sent(tmp_path: Path) -> None:
    async def main() -> None:
        app = bank(Mainspring(f"sqlite:///{tmp_path / 'bank.db'}"))
        async with served(app, access=tokens()) as client:
            chosen = await client.post(
                "/api/messages/Mark?id=Transfer/t9/3", json={"account": "a"}, headers=bearer("worker")
            )
            assert (chosen.status_code, chosen.json()["message_id"]) == (200, "Transfer/t9/3")
            await (await app.send(Move("t9", "a"))).result()
            stream = await client.get("/api/streams/Account/a", headers=bearer("viewer"))
            assert stream.text.count('"Transfer/t9/3"') >= 2
            assert "\u00a0" not in stream.text
            assert (await app.instance(Transfer, "t9").row()).status == "completed"
            assert len(await app.instance(Account, "a").stream()) > 2
            marked = await client.post(
                "/api/messages/Mark?id=%C2%A0Transfer/t9/3", json={"account": "a"}, headers=bearer("worker")
            )
            assert marked.status_code == 422

    asyncio.run(main())
