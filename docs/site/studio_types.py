"""What the server answers, as types for the studio's page: studio/src/documents.ts, from the API's OpenAPI document."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any, cast

from docs.site.routes import ROOT, document

PAGE = ROOT / "studio/src/documents.ts"
HEAD = "// What the server answers. Written by `python -m docs.site --pages` from the OpenAPI document.\n"
IMPORT = re.compile(r'import type \{([^}]*)\} from "\.{1,2}/documents"')
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def page() -> str:
    """Return the file as it is committed: a type for each record that the page names, and for what is in them."""
    schemas = document()["components"]["schemas"]
    wanted, told = _named(), dict[str, str]()
    while wanted:
        name = wanted.pop()
        told[name] = _exported(name, schemas[name])
        wanted |= {each for each in re.findall(r"\b[A-Z]\w+", told[name]) if each in schemas} - told.keys()
    return "\n".join([HEAD, *(told[name] for name in sorted(told))])


def _named() -> set[str]:
    """Return the types that the page's other sources import."""
    imports = (re.findall(IMPORT, path.read_text()) for path in PAGE.parent.rglob("*.ts*"))
    return {name.strip() for names in chain.from_iterable(imports) for name in names.split(",")}


def _exported(name: str, schema: dict[str, Any]) -> str:
    if "properties" not in schema:
        return f"export type {name} = {_type(schema)};\n"
    required = schema.get("required", ())
    fields = [
        f"  {field}{'' if field in required else '?'}: {_type(of)};\n" for field, of in schema["properties"].items()
    ]
    return f"export interface {name} {{\n{''.join(fields)}}}\n"


def _type(schema: dict[str, Any]) -> str:
    """Return a schema as TypeScript.

    >>> _type({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]})
    'number[] | null'
    """
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " | ".join(f'"{each}"' for each in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return f"[{', '.join(_type(each) for each in schema['prefixItems'])}]"
        case "array":
            item = _type(schema.get("items", {}))
            return f"({item})[]" if " | " in item else f"{item}[]"
        case "object":
            of = schema.get("additionalProperties")
            return f"Record<string, {_type(cast('dict[str, Any]', of)) if isinstance(of, dict) else 'unknown'}>"
        case kind:
            return PLAIN.get(str(kind), "unknown")
