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


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imported_modules(path: Path) -> set[str]:
    """Every module that a file imports, whole names; relative imports are not used at all."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            found |= (
                {f"{node.module}.{name.name}" for name in node.names}
                if node.module == "zeroplan"
                else {str(node.module)}
            )
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found - {"zeroplan.__version__"}


def divisors(path: Path) -> set[str]:
    """The names that a file divides by."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
            right = node.right
            found.add(right.id if isinstance(right, ast.Name) else getattr(right, "attr", ""))
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    inner = {name.split(".")[1] for name in imported_modules(path) if name.startswith("zeroplan.")}
    assert inner <= ALLOWED[layer(path)]


@pytest.mark.parametrize("path", [p for p in MODULES if layer(p) in ("core", "units", "errors")], ids=str)
def test_core_needs_the_standard_library_only(path: Path) -> None:
    outside = {name.split(".")[0] for name in imported_modules(path)}
    assert outside <= {
        "__future__",
        "zeroplan",
        "collections",
        "dataclasses",
        "difflib",
        "functools",
        "heapq",
        "itertools",
        "math",
        "typing",
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_sharding_divides_by_the_number_of_gpus(path: Path) -> None:
    assert ("gpus" in divisors(path)) == (path.name == "sharding.py")


@pytest.mark.parametrize("path", [p for p in MODULES if layer(p) == "core"], ids=lambda p: p.name)
def test_core_touches_nothing_outside(path: Path) -> None:
    called = {
        node.func.id for node in ast.walk(tree(path)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"print", "open", "input", "eval", "exec"}


@pytest.mark.parametrize("path", [p for p in MODULES if layer(p) == "render"], ids=lambda p: p.name)
def test_render_computes_no_bytes(path: Path) -> None:
    """No product of two figures of a plan in render."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = {getattr(side, "attr", "") for side in (node.left, node.right)}
            assert not sides & {"params", "gpus", "bytes", "grad_accum"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_public_names_are_documented(path: Path) -> None:
    for node in tree(path).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), node.name
