"""What crosses the port. Times are microseconds since 1970 (UTC); bodies are the exact JSON bytes that were written.

units (what is committed, and what becomes of it), events (rows of a stream, snapshots), work (what waits: inputs,
outputs, dead letters), claims (what a worker gets of that), instances (their rows), backlog (counts).
"""

from mainspring.port.records.backlog import Stats as Stats
from mainspring.port.records.backlog import Waiting as Waiting
from mainspring.port.records.claims import NO_LEAVES as NO_LEAVES
from mainspring.port.records.claims import Cause as Cause
from mainspring.port.records.claims import Claims as Claims
from mainspring.port.records.claims import Leaves as Leaves
from mainspring.port.records.claims import OutputClaim as OutputClaim
from mainspring.port.records.claims import Relayed as Relayed
from mainspring.port.records.events import Context as Context
from mainspring.port.records.events import EventRow as EventRow
from mainspring.port.records.events import Loaded as Loaded
from mainspring.port.records.events import Outline as Outline
from mainspring.port.records.events import OutlineSpot as OutlineSpot
from mainspring.port.records.events import Snapshot as Snapshot
from mainspring.port.records.instances import ENDED as ENDED
from mainspring.port.records.instances import ENGINES_OWN as ENGINES_OWN
from mainspring.port.records.instances import FAN_OUT as FAN_OUT
from mainspring.port.records.instances import InstanceFilter as InstanceFilter
from mainspring.port.records.instances import InstanceRow as InstanceRow
from mainspring.port.records.instances import Status as Status
from mainspring.port.records.instances import Tally as Tally
from mainspring.port.records.units import CancelAll as CancelAll
from mainspring.port.records.units import Committed as Committed
from mainspring.port.records.units import Conflict as Conflict
from mainspring.port.records.units import ConflictReason as ConflictReason
from mainspring.port.records.units import Duplicate as Duplicate
from mainspring.port.records.units import Outcome as Outcome
from mainspring.port.records.units import Unit as Unit
from mainspring.port.records.work import ARMED as ARMED
from mainspring.port.records.work import EDGE as EDGE
from mainspring.port.records.work import DeadLetter as DeadLetter
from mainspring.port.records.work import InputRow as InputRow
from mainspring.port.records.work import OutputKind as OutputKind
from mainspring.port.records.work import OutputRow as OutputRow
from mainspring.port.records.work import Remembered as Remembered
from mainspring.port.records.work import Retry as Retry
from mainspring.port.refs import OutputKey as OutputKey
from mainspring.port.refs import Ref as Ref
