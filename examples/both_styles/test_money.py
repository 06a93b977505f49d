"""The same is expected of both styles, with the app run on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from examples.both_styles import money_transfer, money_transfer_flow, subscription, subscription_flow
from examples.both_styles.bank import Bank
from mainspring import Complete, Send
from mainspring.errors import DoNotRetryError, InstanceFailedError
from mainspring.flows import StepFailed
from mainspring.testing import World, given, simulate

ACCOUNTS = {"ann": 50_000, "bob": 5_000, "shop": 0}

transfers = pytest.mark.parametrize("style", [money_transfer, money_transfer_flow], ids=["decide", "flow"])
subscriptions = pytest.mark.parametrize("style", [subscription, subscription_flow], ids=["decide", "flow"])


def run(story: Coroutine[Any, Any, Any]) -> Any:
    async def main() -> Any:
        async with asyncio.timeout(30):
            return await story

    return asyncio.run(main())


# ---- a transfer


async def transferred(style: Any, source: str, target: str, cents: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(style, "bank", Bank())
    async with simulate(style.app) as world:
        receipt = await world.send(style.Transfer("t-1", source, target, cents))
        return await receipt.result()


@transfers
def test_money_goes_from_one_account_to_the_other(style: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(transferred(style, "ann", "shop", 700, monkeypatch))

    assert str(result).count("booked-t-1-") == 2
    assert style.bank.balances == ACCOUNTS | {"ann": 49_300, "shop": 700}


@transfers
def test_money_that_cannot_be_deposited_goes_back(style: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InstanceFailedError, match="there is no account carl"):
        run(transferred(style, "ann", "carl", 700, monkeypatch))

    assert style.bank.balances == ACCOUNTS


@transfers
def test_what_an_account_does_not_hold_is_not_taken_and_not_given_back(
    style: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InstanceFailedError, match="bob has no 700000 cents"):
        run(transferred(style, "bob", "shop", 700_000, monkeypatch))

    assert style.bank.balances == ACCOUNTS


def test_a_deposit_that_fails_is_undone_in_both() -> None:
    order = money_transfer.Transfer("t-1", "ann", "shop", 700)
    given(money_transfer.MoneyTransfer(), order).when(money_transfer.Withdrawn("t-1", "w")).then(
        Send(money_transfer.Deposit("shop", 700, "t-1"))
    )
    flow = money_transfer_flow
    begun = flow.Transfer("t-1", "ann", "shop", 700)
    failed = given(flow.transfer, begun, flow.withdraw.returned("w")).when(flow.deposit.failed("no answer"))
    failed.then(StepFailed("deposit", "no answer")).then_undone(flow.refund("ann", 700, "t-1"))


def test_a_transfer_that_is_through_has_both_bookings() -> None:
    flow = money_transfer_flow
    taken = given(flow.transfer, flow.Transfer("t-1", "ann", "shop", 700), flow.withdraw.returned("w"))

    done = taken.when(flow.deposit.returned("d"))

    done.then(Complete("w, d"))


# ---- a subscription


def told(style: Any, world: World) -> list[str]:
    """Return what the subscriber was written."""
    command = getattr(style, "Write", None) or style.write.command
    return [call.message.text for call in world.calls(command)]


def charge_of(style: Any) -> Any:
    return getattr(style, "Charge", None) or style.charge.command


def why(result: Any) -> str:
    return result.why if isinstance(result, subscription.Over) else result


@subscriptions
def test_a_subscriber_pays_every_month_until_somebody_cancels(style: Any) -> None:
    async def story() -> None:
        async with simulate(style.app) as world:
            receipt = await world.send(style.Subscribe("ann", 990))
            await world.advance(days=75)
            await world.send(style.Cancel("ann"))
            assert why(await receipt.result()) == "cancelled"
            assert [call.message.month for call in world.calls(charge_of(style))] == [1, 2, 3]
            thanks = ["Thank you for staying"] * 2
            assert told(style, world) == ["Welcome", *thanks, "Sorry to see you go"]
            assert world.timers() == []

    run(story())


@subscriptions
def test_a_declined_card_has_a_week_and_is_tried_again(style: Any) -> None:
    async def story() -> None:
        async with simulate(style.app) as world:
            world.stub(charge_of(style), DoNotRetryError("declined"))
            receipt = await world.send(style.Subscribe("bob", 990))
            await world.advance(days=6)
            assert told(style, world) == ["Your card was declined"]
            await world.advance(days=1)
            assert why(await receipt.result()) == "not paid"
            assert told(style, world)[1:] == ["Your subscription has ended"]

    run(story())


@subscriptions
def test_who_cancels_before_the_charge_is_through_is_charged_once(style: Any) -> None:
    async def story() -> None:
        async with simulate(style.app) as world:
            await world.put(style.Subscribe("ann", 990))
            await world.put(style.Cancel("ann"))
            await world.advance(days=1)
            assert len(world.calls(charge_of(style))) == 1
            assert told(style, world) == ["Welcome", "Sorry to see you go"]

    run(story())
