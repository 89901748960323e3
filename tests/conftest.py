"""What tests share: the presets, and questions about them."""

from collections.abc import Callable
from typing import Any

import pytest

from zeroplan.core.model import Model
from zeroplan.core.question import Card, Question
from zeroplan.formats.presets import Presets
from zeroplan.units import Share


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-goldens", action="store_true", help="write the golden files anew; review the diff")


@pytest.fixture(scope="session")
def presets() -> Presets:
    return Presets()


AskQuestion = Callable[..., Question]


@pytest.fixture(scope="session")
def question(presets: Presets) -> AskQuestion:
    """A question with defaults: 7.5e9 parameters on 64 GPUs under the paper's algorithm."""

    def ask(**changes: Any) -> Question:
        framework = presets.framework(changes.pop("framework", "zero"))
        recipe = presets.recipe(changes.pop("recipe", None) or framework.default_recipe)
        gpus = changes.pop("cards", ())
        cards = tuple(gpu if isinstance(gpu, Card) else presets.card(presets.gpu(gpu)) for gpu in gpus)
        model = changes.pop("model", None) or Model(params=changes.pop("params", 7_500_000_000))
        defaults = {"model": model, "gpus": 64, "headroom": Share(1, 10)}
        return Question(recipe=recipe, framework=framework, cards=cards, **{**defaults, **changes})

    return ask
