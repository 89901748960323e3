"""Findings for people, for GitHub's annotations, and for code scanning (SARIF 2.1.0)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from zeroplan import __version__
from zeroplan.core.findings import ERROR, NOTE, SEVERITIES, WARNING, Finding, taken
from zeroplan.core.question import Question
from zeroplan.core.verdict import FITS, CardAnswer
from zeroplan.errors import InputError, one_line
from zeroplan.render.blocks import BAD, DIM, GOOD, STRONG, WARN, Block, Paragraph
from zeroplan.render.machine import header, json_text, request_json
from zeroplan.units import counted

if TYPE_CHECKING:  # types only
    from zeroplan.render import contract_others as shapes

STYLES = {ERROR: BAD, WARNING: WARN, NOTE: DIM}
SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
OPTIONS = {"compiled": "compile"}
"""Options that have another name than what they say."""
HOME = "https://pypi.org/project/zeroplan/"


class Checked(NamedTuple):
    """One file: what it was understood as, and what was found."""

    path: str
    kind: str
    options: Mapping[str, Any]
    findings: list[Finding]
    question: Question | None
    answers: tuple[CardAnswer, ...]
    """One stage for each card; empty where whether it fits is not judged."""
    node: str | None = None
    """The node that was named."""


def blocks(checked: list[Checked]) -> Iterator[Block]:
    """A paragraph and a table for each file."""
    for each in checked:
        counts = [counted(number, name) for name in SEVERITIES if (number := _number(each, name))]
        yield Paragraph(f"{one_line(each.path)}: {', '.join(counts) or 'clean'}.", STRONG)
        yield Paragraph(f"Read as {each.kind}: {_understood(each)}.", tight=True)
        for answer in each.answers:
            if answer.stages[0].verdict == FITS:
                yield Paragraph("", pieces=(("fits", GOOD), (f" {taken(answer)}.", "")))
        for found in each.findings:
            yield from _finding(found, each.path)
    if code := next((found.code for each in checked for found in each.findings), None):
        yield Paragraph(f"More of a code: zeroplan explain {code}.", DIM)


def _number(each: Checked, severity: str) -> int:
    return sum(finding.severity == severity for finding in each.findings)


def _understood(each: Checked) -> str:
    said = []
    for name, value in each.options.items():
        texts = value if isinstance(value, tuple) else (str(value),)
        said += [f"--{OPTIONS.get(name, name.replace('_', '-'))} {text}" for text in texts if text]
    return " ".join(said)


def _finding(found: Finding, path: str) -> Iterator[Block]:
    """Its severity, code and place, and under it what and how to mend it."""
    place = [found.place.file] if found.place.file != one_line(path) else []
    place += [f"line {found.place.line}"] if found.place.line else []
    head = ", ".join([found.code, *place, *([found.place.key] if found.place.key else [])])
    yield Paragraph("", pieces=((f"{found.severity} ", STYLES[found.severity]), (head, "")))
    yield Paragraph(" ".join(part for part in (found.said, found.mend) if part), tight=True, indent=2)


def json_answer(checked: list[Checked]) -> str:
    """The findings as JSON, in the shape of contract_others.py."""
    answer: dict[str, Any] = {**header("check"), "results": [checked_json(each) for each in checked]}
    return json_text(answer)


def checked_json(each: Checked) -> shapes.CheckedJson:
    return {
        "file": each.path,
        "kind": each.kind,
        "understood": {key: list(value) if isinstance(value, tuple) else value for key, value in each.options.items()},
        "request": request_json(each.question, each.node) if each.question else None,
        "verdicts": [
            {
                "gpu": answer.card.gpu.name,
                "verdict": answer.stages[0].verdict,
                "spare_bytes": answer.stages[0].spare_bytes,
                "budget_bytes": answer.budget_bytes,
            }
            for answer in each.answers
        ],
        "findings": [
            {
                "code": found.code,
                "severity": found.severity,
                "file": found.place.file,
                "key": found.place.key or None,
                "line": found.place.line,
                "said": found.said,
                "mend": found.mend,
            }
            for found in each.findings
        ],
    }


def github(checked: list[Checked]) -> str:
    """Workflow commands: an annotation a finding."""
    lines = []
    for each in checked:
        for found in each.findings:
            level = {ERROR: "error", WARNING: "warning", NOTE: "notice"}[found.severity]
            at = f",line={found.place.line}" if found.place.line else ""
            key = f"{found.place.key}: " if found.place.key else ""
            text = _escaped(f"{key}{found.said} {found.mend}".strip())
            lines.append(f"::{level} file={_escaped(found.place.file, ',:')}{at},title={found.code}::{text}\n")
    return "".join(lines)


def github_fault(file: str, error: InputError) -> str:
    """The annotation of a file that cannot be read."""
    lines = (
        f"::error file={_escaped(one_line(file), ',:')},title=unreadable::{_escaped(str(each))}\n"
        for each in error.faults
    )
    return "".join(lines)


def _escaped(text: str, more: str = "") -> str:
    """As GitHub's workflow commands ask for: percent signs, line breaks, and separators of properties."""
    for char in ("%", "\r", "\n", *more):
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def sarif(checked: list[Checked]) -> str:
    """One run of SARIF 2.1.0."""
    findings = [found for each in checked for found in each.findings]
    rules = [{"id": code, "helpUri": HOME} for code in sorted({found.code for found in findings})]
    run = {
        "tool": {"driver": {"name": "zeroplan", "version": __version__, "informationUri": HOME, "rules": rules}},
        "results": [_sarif_result(found) for found in findings],
    }
    return json_text({"$schema": SARIF, "version": "2.1.0", "runs": [run]})


def _sarif_result(found: Finding) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": quote(found.place.file.replace("\\", "/"))}}
    if found.place.line:
        location["region"] = {"startLine": found.place.line}
    key = f"{found.place.key}: " if found.place.key else ""
    return {
        "ruleId": found.code,
        "level": found.severity,
        "message": {"text": f"{key}{found.said} {found.mend}".strip()},
        "locations": [{"physicalLocation": location}],
    }
