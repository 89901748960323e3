"""The house rules of the design that a machine can check."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "zeroplan"
ALLOWED = {
    "errors": set(),
    "units": {"errors"},
    "core": {"core", "units", "errors"},
    "formats": {"formats", "core", "units", "errors"},
    "render": {"render", "core", "units", "errors"},
    "cli": {"cli", "formats", "render", "core", "units", "errors"},
    "__main__": {"cli"},
    "__init__": set(),
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    inner = {name.split(".")[1] for name in imported_modules(path) if name.startswith("zeroplan.")}
    assert inner <= ALLOWED[layer(path)]


@pytest.mark.parametrize("path", [p for p in MODULES if layer(p) in ("core", "units", "errors")], ids=str)
def test_core_needs_the_standard_library_only(path: Path) -> None:
    outside = {name.split(".")[0] for name in imported_modules(path)}
    assert outside <= {"zeroplan", "collections", "dataclasses", "difflib", "re", "typing"}


@pytest.mark.parametrize("path", [p for p in MODULES if layer(p) == "render"], ids=lambda p: p.name)
def test_render_computes_no_bytes(path: Path) -> None:
    """No division by a number of GPUs outside sharding.py, and no multiplication by one in render."""
    text = path.read_text("utf-8")
    assert "// question.gpus" not in text
    assert "/ question.gpus" not in text
    assert "* question.params" not in text


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_public_names_are_documented(path: Path) -> None:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), node.name
