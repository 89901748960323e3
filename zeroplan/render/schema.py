"""The JSON schemas of the answers, made from the contract; the only part of render that needs pydantic."""

from typing import Any

from pydantic import TypeAdapter

from zeroplan.render import contract, contract_others


def json_schema(command: str) -> dict[str, Any]:
    """The JSON schema of a command's `--format json` output."""
    for module in (contract, contract_others):
        for shape in vars(module).values():
            if isinstance(shape, type) and shape.__module__ == module.__name__:
                shape.__pydantic_config__ = {"use_attribute_docstrings": True}  # type: ignore[attr-defined]
    schema = TypeAdapter(contract_others.ANSWERS[command]).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"zeroplan.{command}/1",
        **schema,
    }
