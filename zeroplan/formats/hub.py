"""Models on the Hugging Face Hub, by the optional package huggingface_hub: config.json, else safetensors headers.

The package takes token, mirror, offline mode and cache from its own environment variables: HF_TOKEN, HF_ENDPOINT,
HF_HUB_OFFLINE, HF_HOME.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

from zeroplan.core.model import Model
from zeroplan.errors import InputError, one_line, printable
from zeroplan.formats.files import LARGEST_JSON, read_json
from zeroplan.formats.huggingface import read_config

NAME = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}(@[\w./-]{1,100})?", re.ASCII)
"""org/name, or org/name@revision."""
CONFIG = "config.json"
INSTALL = "To read it from the Hub: pip install huggingface_hub (zeroplan[hub])."


def is_hub_name(text: str) -> bool:
    """Whether a text can name a model on the Hub."""
    return NAME.fullmatch(text) is not None and ".." not in text


@cache
def read_hub(text: str, where: str = "--model") -> Model:
    """The model that org/name names, asked for once a process.

    Raises InputError where it is not there, not open, or cannot be counted.
    """
    try:
        import huggingface_hub  # noqa: F401
    except ImportError as error:
        raise InputError(where, f"{printable(text)} is neither a file nor a preset.", INSTALL) from error
    name, _, revision = text.partition("@")
    config = _asked(lambda: _config(name, revision or None), text, where)
    source = f"{one_line(text)} on the Hub"
    if config is None:
        return replace(_of_headers(name, revision, {}, source, where), name=text)
    try:
        return replace(read_config(config, source, text, f"{source}, {CONFIG}"), name=text)
    except InputError as error:
        try:
            return replace(_of_headers(name, revision, config, source, where), name=text)
        except InputError:
            raise error from None


def _config(name: str, revision: str | None) -> dict[str, Any] | None:
    """The content of config.json, through the package's cache; None where the model has none."""
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import RemoteEntryNotFoundError
    from huggingface_hub.utils import disable_progress_bars, logging

    disable_progress_bars()
    logging.set_verbosity_error()  # warnings hold text of the server's
    try:
        if not constants.HF_HUB_OFFLINE:
            size = get_hf_file_metadata(hf_hub_url(name, CONFIG, revision=revision)).size
            if size is not None and size > LARGEST_JSON:
                raise InputError(name, f"{CONFIG} is larger than {LARGEST_JSON // 2**20} MiB.")
        config = read_json(hf_hub_download(name, CONFIG, revision=revision))
    except RemoteEntryNotFoundError:
        return None
    return config if isinstance(config, dict) else {}


def _of_headers(name: str, revision: str, config: dict[str, Any], source: str, where: str) -> Model:
    from zeroplan.formats.checkpoints import model_of_headers

    return model_of_headers(_asked(lambda: _headers(name, revision or None), name, where), config, source, name)


def _headers(name: str, revision: str | None) -> dict[str, Any]:
    """Name, type and shape of every tensor, of the first bytes of each file."""
    from huggingface_hub import get_safetensors_metadata

    files = get_safetensors_metadata(name, revision=revision).files_metadata.values()
    return {
        tensor: {"dtype": info.dtype, "shape": list(info.shape), "data_offsets": list(info.data_offsets)}
        for file in files
        for tensor, info in file.tensors.items()
    }


def _asked(ask: Any, text: str, where: str) -> Any:
    """What the Hub answers; raises InputError for what it refuses, or where it cannot be reached."""
    from huggingface_hub import errors

    said = printable(text)
    try:
        return ask()
    except InputError:
        raise
    except errors.GatedRepoError as error:
        hint = "Ask for access on its page, and set HF_TOKEN."
        raise InputError(where, f"{said} is gated on the Hub.", hint) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(where, f"{said}: the Hub has no such revision.") from error
    except errors.RepositoryNotFoundError as error:
        hint = "Check the spelling; a private one needs HF_TOKEN."
        raise InputError(where, f"{said} is neither a file, nor a preset, nor on the Hub.", hint) from error
    except (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError) as error:
        hint = "Unset HF_HUB_OFFLINE, check the network, or give a config.json."
        raise InputError(where, f"{said} is not in the cache, and the Hub is not reached.", hint) from error
    except (errors.NotASafetensorsRepoError, errors.SafetensorsParsingError) as error:
        raise InputError(where, f"{said} has no {CONFIG} and no safetensors files that can be read.") from error
    except Exception as error:  # of another package, by way of the network: whatever it is becomes a sentence
        first = printable(str(error).strip().split("\n")[0], 100)
        raise InputError(
            where, f"{said} is neither a file nor a preset, and the Hub does not answer: {first}."
        ) from error
