"""The words by which instances are looked for over HTTP: in a query, or in a body."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from fastapi import Depends, Query
from pydantic import Field

from mainspring.app.given import LARGEST
from mainspring.app.search import Search, read_condition
from mainspring.port.records import Status
from mainspring.web.models import Asked

CONDITIONS: Final = 10

Attribute = Annotated[
    list[str] | None,
    Query(
        max_length=CONDITIONS,
        description="A comparison of an attribute, by = < <= > or >=. A text that looks like a number is quoted.",
        examples=[["customer=c-7", "amount>=1000", "zip='0815'"]],
    ),
]
Since = Annotated[datetime | None, Query(description="Since this time, with its zone.")]
Until = Annotated[datetime | None, Query(description="Before this time, with its zone.")]


async def _searched(
    *,
    workflow: str | None = None,
    workflow_version: Annotated[
        int | None, Query(ge=1, le=LARGEST, description="The version of the workflow under which it runs.")
    ] = None,
    status: Status | None = None,
    state: Annotated[str | None, Query(description="The name of the state's type.")] = None,
    prefix: Annotated[str | None, Query(description="How the id begins.")] = None,
    error: Annotated[str | None, Query(description="A part of the error, as it is shown.")] = None,
    attribute: Attribute = None,
    since: Annotated[datetime | None, Query(description="Moved since.")] = None,
    until: Annotated[datetime | None, Query(description="Last moved before.")] = None,
    began_since: datetime | None = None,
    began_until: datetime | None = None,
) -> Search:
    return Search(
        workflow=workflow,
        workflow_version=workflow_version,
        status=status,
        state=state,
        id_prefix=prefix,
        attributes=[read_condition(text) for text in attribute or ()],
        error=error,
        created_from=began_since,
        created_to=began_until,
        updated_from=since,
        updated_to=until,
    )


Searched = Annotated[Search, Depends(_searched)]
"""What the query of a request looks for."""


class Words(Asked):
    """Which instances are meant; every word narrows."""

    workflow: str | None = Field(default=None, examples=["OrderFulfilment"])
    workflow_version: int | None = Field(default=None, ge=1, le=LARGEST)
    status: Status | None = Field(default=None, examples=["suspended"])
    state: str | None = None
    prefix: str | None = None
    error: str | None = None
    attribute: list[str] = Field(default=[], max_length=CONDITIONS)
    since: datetime | None = None
    until: datetime | None = None
    began_since: datetime | None = None
    began_until: datetime | None = None

    def search(self) -> Search:
        """Return them as the app takes them."""
        return Search(
            workflow=self.workflow,
            workflow_version=self.workflow_version,
            status=self.status,
            state=self.state,
            id_prefix=self.prefix,
            attributes=[read_condition(text) for text in self.attribute],
            error=self.error,
            created_from=self.began_since,
            created_to=self.began_until,
            updated_from=self.since,
            updated_to=self.until,
        )
