"""Coverage-guided fuzzing of every reader of foreign files, by hand: `python -m tests.formats.fuzz READER [-runs=N]`.

Needs atheris (not among the extras: it has wheels for few Pythons). READER is a format of `zeroplan check`, `any`, or
`oom`. Ends with a traceback and a crash file where something else than InputError is raised, or nothing ends in 10 s.
"""

import contextlib
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["zeroplan", "yaml", "hjson"]):
    from zeroplan.errors import InputError
    from zeroplan.formats.configs import KINDS, read_config
    from zeroplan.formats.oom import read_message

    for kind in (*(f"zeroplan.formats.{kind}" for kind in KINDS), "yaml", "hjson"):
        import_module(kind)

FOLDER = Path(tempfile.mkdtemp())


def reader(name: str) -> Callable[[bytes], None]:
    """What reads one input."""

    def read(data: bytes) -> None:
        if name == "oom":
            read_message(data.decode("utf-8", errors="replace"))
            return
        file = FOLDER / "config"
        file.write_bytes(data)
        found = read_config(str(file), 4096, name if name in KINDS else None)
        assert all(each.said.isprintable() and each.place.key.isprintable() for each in found.findings)

    def quietly(data: bytes) -> None:
        with contextlib.suppress(InputError):
            read(data)

    return quietly


if __name__ == "__main__":
    atheris.Setup([sys.argv[0], "-timeout=10", *sys.argv[2:]], reader(sys.argv[1]))
    atheris.Fuzz()
