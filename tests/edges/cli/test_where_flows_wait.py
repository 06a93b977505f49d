"""The lines at which flows wait, on the command line."""

import asyncio
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from mainspring.cli.loading import load_app
from tests.edges.cli.conftest import Run
from tests.support.waiting import until

TEXT = re.compile(r"until \S+ \S+ \(UTC\)")


@pytest.fixture
def orders(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line beside a flow: o-1 waits for its card's charge."""
    shutil.copy(Path(__file__).parent.parent / "flow_shop.py", folder / "flowing.py")
    monkeypatch.setenv("MAINSPRING_APP", "flowing:app")
    run("send", "PlaceOrder", order("o-1"), "--id", "m-1")
    return run


def order(order_id: str) -> str:
    return json.dumps({"order_id": order_id, "card": "4111"})


def work_until_confirmation() -> None:
    async def main() -> None:
        app = load_app("flowing:app")
        async with app:
            await until(charged)

    async def charged() -> bool:
        return (await load_app("flowing:app").instance_at("fulfil/o-1").row()).position == 5

    asyncio.run(main())


def test_show_tells_the_line_its_source_and_the_variables(orders: Run) -> None:
    ran = orders("show", "o-1")

    assert ran.code == 0
    assert (
        "\nfulfil waits at flowing.py:43 in fulfil for the step charge\n"
        "    charged = await charge(order.order_id, order.card)\n"
        "      order = PlaceOrder(order_id='o-1', card='4111')\n"
    ) in ran.out


def test_show_at_a_position_tells_where_it_waited_there_and_json_has_all_of_it(orders: Run) -> None:
    work_until_confirmation()
    ran = orders("show", "o-1", "--at", "5")
    assert (
        "\nfulfil waits at flowing.py:53 in confirmed for a message Confirmed, until …\n"
        "    await receive(Confirmed)\n"
        "      receipt = 'charge of 4111'\n"
        "      shown = 'CHARGE OF 4111'\n"
        "  called at flowing.py:44 in fulfil\n"
        "    await confirmed(charged)\n"
        "      order = PlaceOrder(order_id='o-1', card='4111')\n"
        "      charged = 'charge of 4111'\n"
    ) in TEXT.sub("until …", ran.out)
    found = orders("show", "o-1", "--at", "3", "--json").document["waits_at"]

    assert [frame["function"] for frame in found["waiting"][0]["frames"]] == ["fulfil"]
    assert found["functions"][0]["text"].startswith('@app.flow(id="order_id")\nasync def fulfil')


def test_show_of_a_flow_whose_code_was_changed_says_why_it_cannot_tell(orders: Run, folder: Path) -> None:
    file = folder / "flowing.py"
    file.write_text(file.read_text().replace("await charge(order.order_id, order.card)", "str(await ship('o-1', 1))"))
    del sys.modules["flowing"]
    ran = orders("show", "o-1")

    assert ran.code == 0
    assert "At which line it waits cannot be told:" in ran.out


def test_lists_and_searches_tell_no_variables(orders: Run) -> None:
    assert "4111" not in orders("ls").out + orders("ls", "--json").out + orders("stuck", "--json").out


def test_stuck_groups_flows_by_the_line_at_which_they_wait(orders: Run) -> None:
    orders("send", "PlaceOrder", order("o-2"), "--id", "m-2")
    for id in ("o-1", "o-2"):
        orders("suspend", id, "--reason", "to see")
    ran = orders("stuck")
    line = orders("stuck", "--json").document["lines"][0]

    assert ran.code == 1
    assert (
        "2 flows wait at flowing.py:43 in fulfil: charged = await charge(order.order_id, order.card)"
        in ran.out.splitlines()
    )
    assert (line["line"], sorted(line["instances"])) == ("flowing.py:43 in fulfil", ["fulfil/o-1", "fulfil/o-2"])
