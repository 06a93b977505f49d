"""Stories in both styles, for `python -m examples`: the streams are to be read side by side."""

from __future__ import annotations

from examples.both_styles import agent, agent_flow, money_transfer, money_transfer_flow, subscription, subscription_flow
from examples.both_styles import widget_store as store
from examples.both_styles import widget_store_flow as store_flow
from examples.stories import Story
from mainspring import Kind, SendFailed
from mainspring.flows import TimerDue

STORIES = [
    Story(
        "Money goes from Ann to the shop; decide and evolve",
        money_transfer.MoneyTransfer(),
        (
            money_transfer.Transfer("t-1", "ann", "shop", 700),
            (money_transfer.Withdrawn("t-1", "w-1"), Kind.RESULT),
            (money_transfer.Deposited("t-1", "d-1"), Kind.RESULT),
        ),
    ),
    Story(
        "Money goes from Ann to the shop; a flow",
        money_transfer_flow.transfer,
        (
            money_transfer_flow.Transfer("t-1", "ann", "shop", 700),
            (money_transfer_flow.withdraw.returned("w-1"), Kind.RESULT),
            (money_transfer_flow.deposit.returned("d-1"), Kind.RESULT),
        ),
    ),
    Story(
        "A card is declined twice; decide and evolve",
        subscription.Subscription(),
        (
            subscription.Subscribe("bob", 990),
            (SendFailed("Charge", "Subscription/bob/3", "declined", 1), Kind.RESULT),
            subscription.GraceOver("bob"),
            (SendFailed("Charge", "Subscription/bob/8", "declined", 1), Kind.RESULT),
        ),
    ),
    Story(
        "A card is declined twice; a flow",
        subscription_flow.subscription,
        (
            subscription_flow.Subscribe("bob", 990),
            (subscription_flow.charge.failed("declined"), Kind.RESULT),
            (subscription_flow.write.returned(None), Kind.RESULT),
            TimerDue("604800s"),
            (subscription_flow.charge.failed("declined"), Kind.RESULT),
            (subscription_flow.write.returned(None), Kind.RESULT),
        ),
    ),
    Story(
        "A widget is paid for and dispatched; decide and evolve",
        store.Checkout(),
        (
            store.Buy("o-1"),
            (store.Reserved("o-1", True), Kind.RESULT),
            store.PaymentTold("o-1", True),
            store.Due("o-1"),
        ),
    ),
    Story(
        "A widget is paid for and dispatched; a flow",
        store_flow.checkout,
        (
            store_flow.Buy("o-1"),
            (store_flow.Reserved("o-1", True), Kind.RESULT),
            store_flow.PaymentTold("o-1", True),
            TimerDue("10s"),
        ),
    ),
    Story(
        "An agent asks before it sends money; decide and evolve",
        agent.Agent(),
        (
            agent.Task("a-1", "pay the baker"),
            (agent.Turn("a-1", "send_money", "7 to the baker"), Kind.RESULT),
            (agent.Allow("a-1"), "ann"),
            (agent.Used("a-1", "sent"), Kind.RESULT),
            (agent.Turn("a-1", "", "paid"), Kind.RESULT),
        ),
    ),
    Story(
        "An agent asks before it sends money; a flow",
        agent_flow.agent,
        (
            agent_flow.Task("a-1", "pay the baker"),
            (agent_flow.think.returned(agent_flow.Turn("send_money", "7 to the baker")), Kind.RESULT),
            (agent_flow.Allow("a-1"), "ann"),
            (agent_flow.use.returned("sent"), Kind.RESULT),
            (agent_flow.think.returned(agent_flow.Turn("", "paid")), Kind.RESULT),
        ),
    ),
]
