"""What a configuration is read as, in the tests of its reader."""

from pathlib import Path

from zeroplan.formats.configs import read_config
from zeroplan.formats.reading import Reading


def written(folder: Path, text: str, name: str = "config.yaml", kind: str | None = None) -> Reading:
    """The reading of a text in a file."""
    file = folder / name
    file.write_text(text, "utf-8")
    return read_config(str(file), hidden=4096, kind=kind)


def told(reading: Reading) -> set[tuple[str, str, str]]:
    """Code, severity and key of each finding."""
    return {(found.code, found.severity, found.place.key) for found in reading.findings}
