"""The JSON schemas of the answers, made from contract.py; the only part of render that needs pydantic."""

from typing import Any

from pydantic import TypeAdapter

from zeroplan.render import contract


def json_schema(command: str) -> dict[str, Any]:
    """The JSON schema of a command's `--format json` output."""
    for shape in vars(contract).values():
        if isinstance(shape, type) and shape.__module__ == contract.__name__:
            shape.__pydantic_config__ = {"use_attribute_docstrings": True}  # type: ignore[attr-defined]
    schema = TypeAdapter(contract.ANSWERS[command]).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"zeroplan.{command}/1",
        **schema,
    }
