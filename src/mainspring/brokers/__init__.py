"""Brokers: messages from and to other services.

```
 broker ──► source ──► intake: durable ──► acknowledged          (never the other way round)
 outbox ──► handler or subscriber ──► sink ──► broker confirms ──► settled
```

`port.py` is the contract of an adapter, `wire.py` the form in which messages travel, `routing.py` the table of which
type goes where, `source.py` the way in, `sink.py` the way out, `closing.py` what an adapter may fail at. Each adapter
needs its extra only when it is imported.
"""

from mainspring.app.services import Source, SourceFigures
from mainspring.brokers.brokers import Brokers
from mainspring.brokers.port import Broker, Delivery, Outgoing, Subscription

__all__ = ["Broker", "Brokers", "Delivery", "Outgoing", "Source", "SourceFigures", "Subscription"]
