"""Reading files that nobody vouches for: bounded, regular, and JSON."""

import json
import os
import stat

from zeroplan.errors import InputError, one_line, printable

LARGEST_JSON = 64 * 2**20


def read_json(path: str, limit: int = LARGEST_JSON) -> object:
    """The value of a JSON file; raises InputError where it is none, or larger than `limit` bytes."""
    raw = read_bytes(path, limit)
    return parse_json(raw, path)


def read_bytes(path: str, limit: int, start: int = 0, count: int = -1) -> bytes:
    """Bytes of a regular file of at most `limit` bytes, or `count` of them from `start` on."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise InputError(one_line(path), "is not a regular file.")
        if found.st_size > limit:
            raise InputError(one_line(path), f"is larger than {limit // 2**20} MiB.")
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(count if count >= 0 else limit)
    except OSError as error:
        raise InputError(one_line(path), f"cannot be read: {error.strerror}.") from error
    except ValueError as error:  # a null byte in the path
        if isinstance(error, InputError):
            raise
        raise InputError(printable(path), "is not a path.") from error


def parse_json(raw: bytes, path: str) -> object:
    """The value of JSON text; raises InputError naming `path`."""
    try:
        value: object = json.loads(raw)
    except RecursionError as error:
        raise InputError(one_line(path), "is nested too deeply.") from error
    except ValueError as error:  # no JSON, no UTF-8, or an integer of thousands of digits
        why = "a number of thousands of digits" if "digits" in str(error) else printable(error, 100)
        raise InputError(one_line(path), f"is not JSON: {why}.") from error
    return value
