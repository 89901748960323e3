"""zeroplan: plan ZeRO training before a GPU-hour is spent.

The public names are resolved when first used, so that importing the package costs nothing.
"""

__version__ = "0.1.0"

_HOMES = {
    "Cluster": "core.hardware",
    "Framework": "core.framework",
    "Gpu": "core.hardware",
    "InputError": "errors",
    "Model": "core.model",
    "Node": "core.hardware",
    "Plan": "core.plan",
    "Presets": "formats.presets",
    "Recipe": "core.recipe",
    "Strategy": "core.plan",
    "ZeroplanError": "errors",
    "estimate": "core.estimate",
}
__all__ = ["__version__", *_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'zeroplan' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"zeroplan.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
