"""Small workflows, pure and impure, with what the static check must say about each."""

from __future__ import annotations

from typing import NamedTuple

TEMPLATE = """\
from __future__ import annotations
from dataclasses import dataclass, field, replace
from mainspring import Complete, Decisions, Event, Received, Send, Workflow
{top}

Late = globals().get("Late", object)

@dataclass(frozen=True)
class Go:
    id: str
    tags: list[str] = field(default_factory=list)

@dataclass(frozen=True)
class Idle(Late):
    items: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    total: int = 0

@dataclass(frozen=True)
class Done:
    text: str = ""

class Flow(Workflow[Go, Idle, Done]):
    initial_state = Idle()

    def route(self, message: Go) -> str | None:
        return message.id

    def decide(self, message: Go, state: Idle) -> Decisions[Go, Done] | None:
        {body}

    def evolve(self, state: Idle, event: Event[Go, Done]) -> Idle | None:
        {evolve}
{more}
"""


class Snippet(NamedTuple):
    """Pieces of a module, and what is expected: (rule, what) pairs in the order of the source."""

    body: str = "return []"
    top: str = ""
    evolve: str = "return None"
    more: str = ""
    expected: tuple[tuple[str, str], ...] = ()

    def source(self) -> str:
        def indented(text: str) -> str:
            return text.replace("\n", "\n        ")

        return TEMPLATE.format(top=self.top, body=indented(self.body), evolve=indented(self.evolve), more=self.more)


def impure(
    rule: str, what: str, body: str = "return []", *, top: str = "", evolve: str = "return None", more: str = ""
) -> Snippet:
    return Snippet(body, top, evolve, more, ((rule, what),))


IMPURE: dict[str, Snippet] = {
    # the clock
    "time.time": impure("clock", "calls time.time", "return [Send(Done(str(time.time())))]", top="import time"),
    "a clock function imported under another name": impure(
        "clock", "calls time.monotonic", "return [] if tick() else None", top="from time import monotonic as tick"
    ),
    "datetime under another name": impure(
        "clock", "calls datetime.now", "return [Send(Done(str(dt.now())))]", top="from datetime import datetime as dt"
    ),
    "datetime through its module": impure(
        "clock", "calls datetime.utcnow", "x = d.datetime.utcnow()\nreturn []", top="import datetime as d"
    ),
    "today": impure(
        "clock", "calls date.today", "return [Send(Done(str(date.today())))]", top="from datetime import date"
    ),
    "a clock that is only named": impure(
        "clock",
        "uses time.time",
        "return sorted(state.items, key=lambda i: (clock := time)) and []",
        top="from time import time",
    ),
    "a clock imported inside the function": impure(
        "clock", "calls time.time", "import time\nreturn [Send(Done(str(time.time())))]"
    ),
    "a clock in evolve": impure(
        "clock",
        "calls datetime.now",
        evolve="return replace(state, total=datetime.now().year)",
        top="from datetime import datetime",
    ),
    "sleeping": impure("clock", "calls time.sleep", "time.sleep(1)\nreturn []", top="import time"),
    # randomness
    "random.choice": impure(
        "random", "calls random.choice", "return [Send(Done(random.choice(state.items)))]", top="import random"
    ),
    "a function of random under another name": impure(
        "random",
        "calls random.randint",
        "return [] if die(1, 6) > 3 else None",
        top="from random import randint as die",
    ),
    "a generator of the module": impure(
        "random",
        "calls random.random",
        "return [] if RNG.random() > 0.5 else None",
        top="import random\nRNG = random.Random(7)",
    ),
    "a generator without a seed": impure(
        "random", "calls random.Random", "r = random.Random()\nreturn []", top="import random"
    ),
    "uuid4": impure("random", "calls uuid.uuid4", "return [Send(Done(str(uuid4())))]", top="from uuid import uuid4"),
    "secrets": impure(
        "random", "calls secrets.token_hex", "return [Send(Done(secrets.token_hex()))]", top="import secrets"
    ),
    "os.urandom": impure("random", "calls os.urandom", "return [Send(Done(str(os.urandom(4))))]", top="import os"),
    "hash": impure("random", "calls hash", "return [Send(Done(str(hash(message.id))))]"),
    # the outside
    "print": impure("io", "calls print", "print(message)\nreturn []"),
    "open": impure("io", "calls io.open", "return [Send(Done(open('rates').read()))]"),
    "a path that is read": impure(
        "io", "calls Path.read_text", "return [Send(Done(Path('rates').read_text()))]", top="from pathlib import Path"
    ),
    "the environment": impure("io", "uses os.environ", "return [Send(Done(os.environ['RATE']))]", top="import os"),
    "getenv": impure("io", "calls os.getenv", "return [Send(Done(os.getenv('RATE', '')))]", top="import os"),
    "a logger": impure(
        "io",
        "calls RootLogger.info",
        "log.info('deciding')\nreturn []",
        top="import logging\nlog = logging.getLogger()",
    ),
    "a subprocess": impure("io", "calls subprocess.run", "subprocess.run(['ls'])\nreturn []", top="import subprocess"),
    "a socket": impure("io", "calls socket.socket", "socket.socket()\nreturn []", top="import socket"),
    "an HTTP library that is not installed": impure(
        "io", "calls aiohttp.request", "import aiohttp\nreturn [Send(Done(aiohttp.request('GET', 'http://rates')))]"
    ),
    "a database": impure("io", "calls sqlite3.connect", "db = sqlite3.connect('x')\nreturn []", top="import sqlite3"),
    # globals and the workflow itself
    "a global statement": impure(
        "global", "declares `global seen`", "global seen\nseen = message\nreturn []", top="seen = None"
    ),
    "a dictionary of the module": impure(
        "global", "changes CACHE[message.id]", "CACHE[message.id] = 1\nreturn []", top="CACHE = {}"
    ),
    "a list of the module under a local name": impure(
        "global", "calls seen.append", "seen = SEEN\nseen.append(message)\nreturn []", top="SEEN = []"
    ),
    "a counter of the module": impure(
        "global",
        "takes the next of IDS",
        "return [Send(Done(str(next(IDS))))]",
        top="import itertools\nIDS = itertools.count()",
    ),
    "an attribute of the workflow": impure("global", "changes self.last", "self.last = message\nreturn []"),
    "an attribute of the workflow's class": impure(
        "global", "changes type(self).last", "type(self).last = message\nreturn []"
    ),
    "a class attribute": impure(
        "global", "changes Rates.euro", "Rates.euro = 2\nreturn []", top="class Rates:\n    euro = 1"
    ),
    # changed arguments
    "an attribute of the state": impure("mutation", "changes state.total", evolve="state.total = 1\nreturn state"),
    "a list of the state": impure(
        "mutation", "calls state.items.append", evolve="state.items.append('x')\nreturn state"
    ),
    "a list of the state under a local name": impure(
        "mutation", "calls items.append", evolve="items = state.items\nitems.append('x')\nreturn state"
    ),
    "a dictionary of the state": impure(
        "mutation", "changes state.counts['x']", evolve="state.counts['x'] += 1\nreturn state"
    ),
    "a list of the state in one branch": impure(
        "mutation",
        "calls items.append",
        evolve="if state.total:\n    items = state.items\nelse:\n    items = []\nitems.append('x')\nreturn state",
    ),
    "a list of the state in one case": impure(
        "mutation",
        "calls items.append",
        evolve="items = []\nmatch state:\n    case Idle(total=0):\n        items = state.items\n"
        "items.append('x')\n"
        "return state",
    ),
    "a deletion": impure("mutation", "changes state.counts['x']", evolve="del state.counts['x']\nreturn state"),
    "a pop": impure("mutation", "calls message.tags.pop", "return [Send(Done(message.tags.pop()))]"),
    "a name bound by case": impure(
        "mutation",
        "calls items.extend",
        evolve="match state, event:\n"
        "    case Idle(items), Received(Go(_, tags)):\n"
        "        items.extend(tags)\n"
        "return state",
    ),
    "a name bound by case in a single subject": impure(
        "mutation", "calls tags.sort", "match message:\n    case Go(tags=tags):\n        tags.sort()\nreturn []"
    ),
    "object.__setattr__": impure(
        "mutation", "calls object.__setattr__ on state", evolve="object.__setattr__(state, 'total', 1)\nreturn state"
    ),
    "a list added to in place": impure(
        "mutation", "changes items in place", evolve="items = state.items\nitems += ['x']\nreturn state"
    ),
    "a value in a loop": impure(
        "mutation", "calls part.append", "for _, part in enumerate(message.tags):\n    part.append('x')\nreturn []"
    ),
    "a value that a dictionary of the state gave": impure(
        "mutation", "calls found.append", evolve="found = state.counts.get('x')\nfound.append(1)\nreturn state"
    ),
    "a property of the state": impure(
        "clock",
        "calls datetime.now",
        "return [] if state.late else None",
        top="from datetime import datetime\n"
        "class Late:\n"
        "    @property\n"
        "    def late(self): return datetime.now().hour > 17",
    ),
    "a method of the state": impure(
        "mutation",
        "calls self.items.append",
        evolve="state.put('x')\nreturn state",
        top="class Late:\n    def put(self, item): self.items.append(item)",
    ),
    "a clock in an attribute of the workflow": impure(
        "clock",
        "calls datetime.now",
        "return [] if self.clock.hour() else None",
        top="from datetime import datetime\nclass Clock:\n    def hour(self): return datetime.now().hour",
        more="    clock = Clock()",
    ),
    "a method that changes an object of the module": impure(
        "mutation",
        "calls self.prices.append",
        "return [Send(Done(str(PRICES.add(message.id).prices)))]",
        top="class PriceList:\n"
        "    def __init__(self):\n        self.prices = []\n"
        "    def add(self, price):\n        self.prices.append(price)\n        return self\n"
        "PRICES = PriceList()",
    ),
    "heappush": impure(
        "mutation",
        "calls heapq.heappush on state.items",
        evolve="heapq.heappush(state.items, 'x')\nreturn state",
        top="import heapq",
    ),
    # behind a helper
    "a clock in a helper": impure(
        "clock",
        "calls time.time",
        "return stamp()",
        top="import time\ndef stamp():\n    return [Send(Done(str(time.time())))]",
    ),
    "a clock two helpers away": impure(
        "clock",
        "calls time.time",
        "return a()",
        top="import time\ndef a(): return b()\ndef b(): return time.time() and []",
    ),
    "a helper that changes its argument": impure(
        "mutation",
        "calls into.append",
        evolve="add(state.items, 'x')\nreturn state",
        top="def add(into, x):\n    into.append(x)",
    ),
    "a method of the workflow": impure(
        "random",
        "calls random.random",
        "return self.lucky()",
        more="    def lucky(self):\n        import random\n        return [] if random.random() else None",
    ),
    "a helper that is a lambda": impure(
        "clock", "calls time.time", "return now() and []", top="import time\nnow = lambda: time.time()"
    ),
    "a default that is a clock": impure(
        "clock",
        "leaves Stamped.at to datetime.now",
        "return [Send(Done(str(Stamped())))]",
        top="from datetime import datetime\n"
        "@dataclass\n"
        "class Stamped:\n"
        "    at: datetime = field(default_factory=datetime.now)",
    ),
}

PURE: dict[str, Snippet] = {
    "a local list that is appended to": Snippet(
        "out = []\nfor item in state.items:\n    out.append(Send(Done(item)))\nreturn out"
    ),
    "a copy that is changed": Snippet(
        evolve="counts = dict(state.counts)\ncounts['x'] = 1\nreturn replace(state, counts=counts)"
    ),
    "a copy by method that is changed": Snippet(
        evolve="items = state.items.copy()\nitems.append('x')\nreturn replace(state, items=items)"
    ),
    "a new list of old items": Snippet(evolve="return replace(state, items=[*state.items, 'x'])"),
    "a number that is counted up": Snippet(
        evolve="total = state.total\ntotal += 1\nreturn replace(state, total=total)"
    ),
    "a parameter's name that is used again": Snippet("message = [message.id]\nmessage.append('x')\nreturn []"),
    "a date from the message": Snippet(
        "return [Send(Done(str(datetime.fromisoformat(message.id))))]", top="from datetime import datetime"
    ),
    "a generator seeded from the message": Snippet(
        "return [Send(Done(random.Random(message.id).choice('ab')))]", top="import random"
    ),
    "a name-based uuid": Snippet(
        "return [Send(Done(str(uuid.uuid5(uuid.NAMESPACE_URL, message.id))))]", top="import uuid"
    ),
    "a path that is only joined": Snippet("return [Send(Done(os.path.join('a', message.id)))]", top="import os"),
    "a local name that hides a module": Snippet("time = message\nreturn [Send(Done(time.id))]", top="import time"),
    "a parameter of a lambda that hides a module": Snippet(
        "return sorted(state.items, key=lambda time: time.upper()) and []", top="import time"
    ),
    "a helper that fills the caller's own list": Snippet(
        "out = []\nfill(out, state)\nreturn out",
        top="def fill(out, state):\n    out.append(Send(Done(str(state.total))))",
    ),
    "a method that returns a new value": Snippet(
        evolve="return replace(state, total=Purse(state.total).add(1).coins)",
        top="@dataclass(frozen=True)\nclass Purse:\n    coins: int\n    def add(self, n): return Purse(self.coins + n)",
    ),
    "a method of the state that returns a new value": Snippet(
        "wallet = message.tags\nwallet = wallet.add(1)\nreturn []",
    ),
    "a constructor that sets its own fields": Snippet(
        "return [Send(Done(Label(message.id).text))]",
        top="class Label:\n    def __init__(self, text):\n        self.text = text.upper()",
    ),
    "a method that changes an object made here": Snippet(
        "return [Send(Done(str(PriceList().add(message.id).prices)))]",
        top="class PriceList:\n"
        "    def __init__(self):\n        self.prices = []\n"
        "    def add(self, price):\n        self.prices.append(price)\n        return self",
    ),
    "a default that is a clock, but not used": Snippet(
        "return [Send(Done(str(Stamped(message.id)) + str(Stamped(at=message.id))))]",
        top="from datetime import datetime\n"
        "@dataclass\n"
        "class Stamped:\n"
        "    at: str = field(default_factory=lambda: str(datetime.now()))",
    ),
    "a constant of the module that is read": Snippet(
        "return [Send(Done(RATES.get(message.id, '')))]", top="RATES = {'a': 'b'}"
    ),
    "a variable of an inner function": Snippet(
        "count = 0\ndef bump():\n    nonlocal count\n    count += 1\nbump()\nreturn []",
    ),
    "a closed-over dictionary built here": Snippet(
        "seen = {}\n[seen.setdefault(item, 1) for item in state.items]\nreturn []"
    ),
    "a module's own function called update": Snippet(
        "rates.update(message)\nreturn []", top="import types\nrates = types.SimpleNamespace(update=len)"
    ),
    "strings and their methods": Snippet("return [Send(Done(message.id.replace('a', 'b').strip()))]"),
    "a matched pattern that is copied": Snippet(
        evolve="match state:\n"
        "    case Idle(items):\n"
        "        items = [*items]\n"
        "        items.append('x')\n"
        "        return replace(state, items=items)"
    ),
    "a copy in one branch and a new list in the other": Snippet(
        evolve="if state.total:\n    items = list(state.items)\nelse:\n    items = []\n"
        "items.append('x')\n"
        "return replace(state, items=items)"
    ),
}
