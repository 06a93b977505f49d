"""Other ways to write a workflow. Each compiles to the members of Workflow; nothing outside knows that they exist."""

from mainspring.core.decisions import Become
from mainspring.core.events import Became, Occurrence
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_tasks import Tasks
from mainspring.styles.state_returning import StateReturningWorkflow

__all__ = ["Became", "Become", "History", "HistoryWorkflow", "Occurrence", "StateReturningWorkflow", "Tasks"]
