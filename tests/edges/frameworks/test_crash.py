"""Real processes, killed: the shop's rows and the orders that were carried out are the same, whatever happened."""

from pathlib import Path

from tests.edges.frameworks.killing import killed_posters, killed_server
from tests.support.running import run


def test_programs_and_workers_are_killed_and_every_row_has_its_order(database: str) -> None:
    async def main() -> None:
        await killed_posters(database, wanted=20)

    run(main)


def test_a_server_that_is_stopped_and_killed_under_load_loses_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        await killed_server(tmp_path, wanted=20, reload=False)

    run(main)
