from mainspring.core.story import table, tell
from mainspring.testing import Rehearsal
from tests.unit.core.orders import CardCharged, OrderFulfilment, OrderShipped, PlaceOrder


def rehearsed() -> Rehearsal[object, object, object]:
    rehearsal = Rehearsal[object, object, object](OrderFulfilment())  # pyright: ignore[reportArgumentType]
    for message in (PlaceOrder("o-1", 4200), CardCharged("o-1"), OrderShipped("o-1")):
        rehearsal.take(message)
    return rehearsal


def test_a_stream_is_told_with_inputs_and_outputs_in_one_place() -> None:
    assert table(tell(rehearsed().entries)) == (
        "position  kind     direction  event              message\n"
        "1                             Began\n"
        "2         command  input      InitiatedBy        PlaceOrder(order_id='o-1', amount=4200)\n"
        "3         command  output     Sent               ChargeCard(order_id='o-1', amount=4200)\n"
        "4         timer    output     Scheduled          PaymentTimedOut(order_id='o-1') after 5 min\n"
        "5         command  input      Received           CardCharged(order_id='o-1')\n"
        "6         timer    output     ScheduleCancelled  'PaymentTimedOut'\n"
        "7         command  output     Sent               ShipOrder(order_id='o-1')\n"
        "8         command  input      Received           OrderShipped(order_id='o-1')\n"
        "9                             Completed"
    )


def test_a_narrow_table_cuts_its_lines_visibly() -> None:
    lines = table(tell(rehearsed().entries), width=60).splitlines()

    assert max(map(len, lines)) == 60
    assert lines[2].endswith("PlaceOrder…")
