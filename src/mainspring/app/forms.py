"""Forms: the fields of the messages that answer a task, as JSON Schema says them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import json

from mainspring.core.messages import type_of
from mainspring.views import Form, FormField


def forms_of(answers: Sequence[type[Any]], data: Mapping[str, Any], reject: str | None) -> list[Form]:
    """Return a form for each type, with the values of `data` in the fields of the same names.

    >>> from mainspring.testing.samples import Leave
    >>> form = forms_of([Leave], {"leave_id": "l-1"}, None)[0]
    >>> [(field.name, field.schema["type"], field.value) for field in form.fields]
    [('leave_id', 'string', 'l-1'), ('granted', 'boolean', None)]
    """
    return [_form(cls, data, reject) for cls in answers]


def filled(form: Form, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a form says when a person has filled it in: what was known, and what was given.

    >>> filled(Form("A", 1, False, (FormField("a", {}, True, 1), FormField("b", {}, True)), {}), {"b": 2})
    {'a': 1, 'b': 2}
    """
    return {field.name: field.value for field in form.fields if field.value is not None} | dict(fields)


def _form(cls: type[Any], data: Mapping[str, Any], reject: str | None) -> Form:
    schema, definitions = _schema(cls)
    required = schema.get("required", ())
    known = type_of(cls)
    return Form(
        answer=known.name,
        message_version=known.version,
        rejects=reject in (known.name, *known.aliases),
        fields=tuple(
            FormField(name, field, name in required, data.get(name))
            for name, field in schema.get("properties", {}).items()
        ),
        definitions=definitions,
    )


def _schema(cls: type[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    if hasattr(cls, "model_json_schema"):
        schema: dict[str, Any] = cls.model_json_schema()
        return schema, schema.get("$defs", {})
    (found,), definitions = json.schema_components([cls], ref_template="#/$defs/{name}")
    own = found.get("$ref", "").rpartition("/")[2]
    return definitions.pop(own, found), definitions
