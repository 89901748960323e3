"""Short names for stages and cards, and lists of names."""

from collections.abc import Iterable

from zeroplan.core.question import Question
from zeroplan.core.verdict import CardAnswer


def stage_label(stage: int) -> str:
    """ZeRO-2."""
    return f"ZeRO-{stage}"


def stage_name(question: Question, stage: int) -> str:
    """ZeRO-2 P_os+g, in the words of the framework."""
    found = question.framework.stage(stage, question.recipe.name)
    return f"{stage_label(stage)} {found.title}" if found else stage_label(stage)


def listed(names: Iterable[str], last: str = "and") -> str:
    """a, b and c."""
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def short_title(answer: CardAnswer) -> str:
    """A card's title without maker and socket: V100 32GB."""
    words = answer.card.gpu.title.split()
    return " ".join(word for word in words if word not in ("Instinct", "GeForce") and not word.startswith("SXM"))


def at_stages(question: Question) -> str:
    """The stages asked for, where they are not all that there are."""
    if all(stage in question.stages for stage in question.framework.stage_numbers):
        return ""
    return f" at {listed((stage_label(stage) for stage in question.stages if question.offers(stage)), 'or')}"
