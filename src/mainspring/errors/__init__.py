"""Every error mainspring raises, each with the facts in fields and a message that says what to do.

MainspringError
├── DefinitionError             a workflow class is written in a way that cannot work
├── InvalidDecisionError        a decision was built or returned wrongly
│   └── UnaskedRefusalError     decide refused a message that answers no task
├── AttributeValueError         an attribute that cannot be indexed or searched for
├── StepError                   a step could not be taken; nothing was recorded
│   ├── LeftError               decide, evolve or attributes was left by what ends a process
│   ├── UnknownTransitionError  decide has no case for this message in this state
│   ├── UndeclaredInputError    the message's type is not among the workflow's inputs
│   ├── CannotBeginError        the message may not begin an instance
│   ├── UndeclaredOutputError   decide returned a message type that is not declared
│   ├── DecisionAfterEndError   a decision stands behind Complete, Fail or Compensate
│   ├── TooManyOutputsError     one step decided more than the limit
│   ├── InvalidStateError       evolve returned something that is not a declared state
│   └── InstanceEndedError      the instance completed or failed before this message came
├── RouteError                  route raised, and the message went nowhere
├── InvalidIdError              an id that cannot be stored or shown safely
├── WiringError                 the parts of an app do not fit together
├── DuplicateIdError            a message id was used before, for another message
├── NoSuchInstanceError         there is no instance with this identity
│   └── InstancePurgedError     the instance ended, and its stream was purged
├── InstanceFailedError         the instance whose result is awaited failed or was cancelled
├── InstanceSuspendedError      the instance whose result or reply is awaited is suspended
├── NoReplyError                the instance that was asked has ended, and does not reply
├── UnexpectedReplyError        a request was answered by another type than its caller asked for
├── PositionConflictError       an instance is not where the sender of a message has seen it
├── WaitTimeoutError            what was awaited did not come in time
├── OperationError              an operation that makes no sense in the instance's status
│   └── NoSuchNameError         there is nothing by this name to operate on
├── NoSuchTaskError             there is no task with this id
├── TaskRefusedError            a person may not do this to a task, or not any more
├── NotFromOutsideError         a message from outside that its workflow takes from inside only
├── FlowError                   a flow's code does what a flow cannot do
│   └── DriftError              a flow's code asks for something else than what is recorded
├── CodecError                  data and types do not fit together
│   ├── RegistrationError       a type that could not be stored and read back
│   ├── UnknownTypeError        a type name, or a version of it, that is not registered
│   │   └── NewerTypeError      … in a record that other code wrote, which is left to those who know it
│   ├── EncodeError             a value that would not come back as it was
│   ├── DecodeError             bytes that are not what their type says
│   ├── BodyTooLargeError       a body over its limit
│   └── ErasedError             a body whose key was destroyed
├── ImpureCallError             decide or evolve touched clock, randomness or the outside
├── SettingError                a setting that makes no sense
├── BrokerError                 a broker could not do what it was asked
├── CallError                   another service could not be called, or did not answer as agreed
├── RetryLaterError             raised by a handler: trying again makes sense after a while
├── DoNotRetryError             raised by a handler: trying again is useless
│   └── BreakerOpenError        a command was not carried out: the breaker of its handler is open and fails fast
├── SimulationError             a simulation cannot go on as it was asked to
├── LendingError                a transaction that was lent cannot be used or committed
│   └── StatementError          a statement of its own failed in it
├── SlowStepError               a step did not end, and was ended
├── StepBudgetError             an instance was to take more steps within an hour than its budget has
├── WorkersLostError            worker after worker was lost while it held this
├── PostingError                a message cannot be posted through this connection
└── StoreError                  the database could not do what it was asked; nothing was changed
    ├── StoreClosedError        the store is not open
    ├── StoreBusyError          another process holds the database's lock for too long
    ├── StoreUnreachableError   the database's server does not answer
    ├── UnknownOutcomeError     the answer to a commit was lost, and the database cannot be asked
    ├── StoreFullError          the disk, or a limit set on the database, is full
    ├── StoreReadOnlyError      the database may not be written
    ├── StoreMovedError         the file was deleted, moved or replaced while it was open
    ├── NewerSchemaError        a newer release has changed the database
    ├── DamagedStoreError       the file is not a database, or its structure is broken
    ├── DamagedRecordError      a stored record is not what was written
    └── FaultyUnitError         units of a commit that cannot be stored; the others are committed
"""

from mainspring.errors.authoring import AttributeValueError as AttributeValueError
from mainspring.errors.authoring import CannotBeginError as CannotBeginError
from mainspring.errors.authoring import DecisionAfterEndError as DecisionAfterEndError
from mainspring.errors.authoring import DefinitionError as DefinitionError
from mainspring.errors.authoring import ImpureCallError as ImpureCallError
from mainspring.errors.authoring import InstanceEndedError as InstanceEndedError
from mainspring.errors.authoring import InvalidDecisionError as InvalidDecisionError
from mainspring.errors.authoring import InvalidIdError as InvalidIdError
from mainspring.errors.authoring import InvalidStateError as InvalidStateError
from mainspring.errors.authoring import LeftError as LeftError
from mainspring.errors.authoring import RouteError as RouteError
from mainspring.errors.authoring import SlowStepError as SlowStepError
from mainspring.errors.authoring import StepBudgetError as StepBudgetError
from mainspring.errors.authoring import StepError as StepError
from mainspring.errors.authoring import TooManyOutputsError as TooManyOutputsError
from mainspring.errors.authoring import UnaskedRefusalError as UnaskedRefusalError
from mainspring.errors.authoring import UndeclaredInputError as UndeclaredInputError
from mainspring.errors.authoring import UndeclaredOutputError as UndeclaredOutputError
from mainspring.errors.authoring import UnknownTransitionError as UnknownTransitionError
from mainspring.errors.base import MainspringError as MainspringError
from mainspring.errors.base import names as names
from mainspring.errors.base import shown as shown
from mainspring.errors.base import told as told
from mainspring.errors.base import visible as visible
from mainspring.errors.encoding import ERASED_TYPE as ERASED_TYPE
from mainspring.errors.encoding import BodyTooLargeError as BodyTooLargeError
from mainspring.errors.encoding import CodecError as CodecError
from mainspring.errors.encoding import DecodeError as DecodeError
from mainspring.errors.encoding import EncodeError as EncodeError
from mainspring.errors.encoding import ErasedError as ErasedError
from mainspring.errors.encoding import NewerTypeError as NewerTypeError
from mainspring.errors.encoding import RegistrationError as RegistrationError
from mainspring.errors.encoding import UnknownTypeError as UnknownTypeError
from mainspring.errors.flows import DriftError as DriftError
from mainspring.errors.flows import FlowError as FlowError
from mainspring.errors.running import BreakerOpenError as BreakerOpenError
from mainspring.errors.running import BrokerError as BrokerError
from mainspring.errors.running import CallError as CallError
from mainspring.errors.running import DoNotRetryError as DoNotRetryError
from mainspring.errors.running import DuplicateIdError as DuplicateIdError
from mainspring.errors.running import InstanceFailedError as InstanceFailedError
from mainspring.errors.running import InstancePurgedError as InstancePurgedError
from mainspring.errors.running import InstanceSuspendedError as InstanceSuspendedError
from mainspring.errors.running import LendingError as LendingError
from mainspring.errors.running import NoReplyError as NoReplyError
from mainspring.errors.running import NoSuchInstanceError as NoSuchInstanceError
from mainspring.errors.running import NoSuchNameError as NoSuchNameError
from mainspring.errors.running import NoSuchTaskError as NoSuchTaskError
from mainspring.errors.running import NotFromOutsideError as NotFromOutsideError
from mainspring.errors.running import OperationError as OperationError
from mainspring.errors.running import PositionConflictError as PositionConflictError
from mainspring.errors.running import PostingError as PostingError
from mainspring.errors.running import RetryLaterError as RetryLaterError
from mainspring.errors.running import SettingError as SettingError
from mainspring.errors.running import SimulationError as SimulationError
from mainspring.errors.running import StatementError as StatementError
from mainspring.errors.running import TaskRefusedError as TaskRefusedError
from mainspring.errors.running import UnexpectedReplyError as UnexpectedReplyError
from mainspring.errors.running import WaitTimeoutError as WaitTimeoutError
from mainspring.errors.running import WiringError as WiringError
from mainspring.errors.running import WorkersLostError as WorkersLostError
from mainspring.errors.storing import DamagedRecordError as DamagedRecordError
from mainspring.errors.storing import DamagedStoreError as DamagedStoreError
from mainspring.errors.storing import FaultyUnitError as FaultyUnitError
from mainspring.errors.storing import NewerSchemaError as NewerSchemaError
from mainspring.errors.storing import StoreBusyError as StoreBusyError
from mainspring.errors.storing import StoreClosedError as StoreClosedError
from mainspring.errors.storing import StoreError as StoreError
from mainspring.errors.storing import StoreFullError as StoreFullError
from mainspring.errors.storing import StoreMovedError as StoreMovedError
from mainspring.errors.storing import StoreReadOnlyError as StoreReadOnlyError
from mainspring.errors.storing import StoreUnreachableError as StoreUnreachableError
from mainspring.errors.storing import UnknownOutcomeError as UnknownOutcomeError
