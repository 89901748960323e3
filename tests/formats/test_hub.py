"""--model org/name, asked of a local server that answers as the Hub does: config.json, headers, tokens, offline."""

import json
import struct
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.command import Ran, run
from zeroplan.formats.hub import is_hub_name

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
PARAMS = 2 * 1000 * 64 + 64 + 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128 + 2 * 64)
TENSORS = {"embed.weight": [1000, 64], "layers.0.w": [64, 64], "layers.1.w": [64, 64]}


def header() -> bytes:
    """A safetensors file without its data."""
    at, found = 0, {}
    for name, (rows, columns) in TENSORS.items():
        size = rows * columns * 2
        found[name] = {"dtype": "BF16", "shape": [rows, columns], "data_offsets": [at, at + size]}
        at += size
    return _file(found)


def _file(header: object) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


FILES = {
    "/me/known": {"config.json": json.dumps(LLAMA).encode()},
    "/me/gated": {"config.json": json.dumps(LLAMA).encode()},
    "/me/new": {"config.json": b'{"model_type": "brand-new"}', "model.safetensors": header()},
    "/me/bare": {"model.safetensors": header()},
    "/me/empty": {"README.md": b"nothing"},
    "/me/broken": {"config.json": b"{"},
    "/me/warned": {"config.json": json.dumps(LLAMA).encode()},
    "/me/odd": {"model.safetensors": _file({"a": {"dtype": "BF16", "shape": 4, "data_offsets": 5}})},
    "/me/list": {"model.safetensors": _file([])},
    "/me/huge": {"config.json": b"{}"},
}


class Hub(BaseHTTPRequestHandler):
    """The few answers that the package needs."""

    seen: list[tuple[str, str]]

    def do_HEAD(self) -> None:
        self._answer(False)

    def do_GET(self) -> None:
        self._answer(True)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self, body: bool) -> None:
        token = self.headers.get("authorization", "")
        self.seen.append((self.path, token))
        repo, _, rest = self.path.removeprefix("/api/models").partition("/resolve/")
        revision, _, name = rest.partition("/")
        if repo == "/me/gated" and token != "Bearer secret":
            self._end(403, {"X-Error-Code": "GatedRepo"})
        elif repo not in FILES:
            self._end(404, {"X-Error-Code": "RepoNotFound"})
        elif revision not in ("main", "v2", COMMIT):
            self._end(404, {"X-Error-Code": "RevisionNotFound"})
        elif name not in FILES[repo]:
            self._end(404, {"X-Error-Code": "EntryNotFound"})
        else:
            self._file(FILES[repo][name], body, 10**10 if repo == "/me/huge" else None)

    def _file(self, content: bytes, body: bool, size: int | None) -> None:
        asked = self.headers.get("Range")
        part = content
        if asked:
            start, _, end = asked.removeprefix("bytes=").partition("-")
            part = content[int(start) : int(end) + 1 if end else None]
        length = size or len(part)
        more = {"X-HF-Warning": "x; \x1b[31mred"} if "warned" in self.path else {}
        headers = {**more, "ETag": '"abc"', "X-Repo-Commit": COMMIT, "Content-Length": str(length)}
        if asked:
            headers["Content-Range"] = f"bytes {start}-{int(start) + len(part) - 1}/{len(content)}"
        self._end(206 if asked else 200, headers, part if body else b"")

    def _end(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a mirror that runs here."""
    Hub.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}",
        "HF_HOME": str(tmp_path / "hf"),
        "HF_TOKEN": "",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    server.shutdown()
    server.server_close()


def fit(model: str, environment: dict[str, str]) -> Ran:
    return run("fit", "--model", model, "--gpus", "8", "--gpu", "h100", "--format", "json", **environment)


def test_a_model_is_counted_from_its_config(hub: dict[str, str]) -> None:
    ran = fit("me/known", hub)
    assert (ran.status, ran.stderr) == (0, "")
    request = json.loads(ran.stdout)["request"]
    assert (request["params"], request["model"]) == (PARAMS, "me/known")
    assert not [path for path, _ in Hub.seen if "safetensors" in path]


def test_a_command_asks_once(hub: dict[str, str], tmp_path: Path) -> None:
    fit("me/known", hub)
    once = len(Hub.seen)
    Hub.seen.clear()
    files = [tmp_path / name for name in ("a.json", "b.json")]
    for file in files:
        file.write_text('{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 1}', "utf-8")
    run(
        "check",
        *map(str, files),
        "--model",
        "me/known",
        "--gpus",
        "8",
        "--gpu",
        "h100",
        **{**hub, "HF_HOME": str(tmp_path)},
    )
    assert 0 < len(Hub.seen) <= once


def test_what_was_fetched_is_there_offline(hub: dict[str, str]) -> None:
    fit("me/known", hub)
    offline = {**hub, "HF_HUB_OFFLINE": "1"}
    assert json.loads(fit("me/known", offline).stdout)["request"]["params"] == PARAMS
    other = fit("me/new", offline)
    assert other.status == 2
    assert "not in the cache" in other.stderr


def test_a_revision_and_an_address(hub: dict[str, str]) -> None:
    assert fit("me/known@v2", hub).status == 0
    assert any("/resolve/v2/" in path for path, _ in Hub.seen)
    assert fit("https://huggingface.co/me/known", hub).status == 0
    missing = fit("me/known@v3", hub)
    assert (missing.status, "no such revision" in missing.stderr) == (2, True)


def test_a_token_opens_what_is_gated(hub: dict[str, str]) -> None:
    shut = fit("me/gated", hub)
    assert (shut.status, shut.stdout) == (2, "")
    assert "is gated on the Hub. Ask for access on its page, and set HF_TOKEN." in shut.stderr
    assert fit("me/gated", {**hub, "HF_TOKEN": "secret"}).status == 0


def test_a_revision_can_have_slashes(hub: dict[str, str]) -> None:
    fit("me/known@refs/pr/1", hub)
    assert any("/resolve/refs%2Fpr%2F1/" in path for path, _ in Hub.seen)


def test_a_path_that_is_not_there_is_not_asked_for(hub: dict[str, str], tmp_path: Path) -> None:
    """Its first part is a folder here: the name of what is in it is nobody's business."""
    (tmp_path / "models").mkdir()
    ran = run("fit", "--model", "models/llama", "--gpus", "8", cwd=str(tmp_path), **hub)
    assert (ran.status, Hub.seen) == (2, [])


def test_a_preset_of_a_near_name_is_named(hub: dict[str, str]) -> None:
    assert "Did you mean llama-3.1-8b" in fit("meta-llama/llama-3.1-8bb", hub).stderr


@pytest.mark.parametrize("name", ["me/odd", "me/list"])
def test_headers_that_are_none_are_refused(hub: dict[str, str], name: str) -> None:
    ran = fit(name, hub)
    assert (ran.status, ran.stdout, "Traceback" in ran.stderr) == (2, "", False)


def test_warnings_of_a_server_do_not_reach_the_terminal(hub: dict[str, str]) -> None:
    ran = fit("me/warned", hub)
    assert (ran.status, ran.stderr) == (0, "")


@pytest.mark.parametrize("name", ["me/new", "me/bare"])
def test_what_no_config_counts_is_counted_from_the_headers(hub: dict[str, str], name: str) -> None:
    ran = fit(name, hub)
    assert ran.status == 0, ran.stderr
    assert json.loads(ran.stdout)["request"]["params"] == 1000 * 64 + 2 * 64 * 64


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("me/none", "nor on the Hub. Check the spelling"),
        ("me/empty", "has no config.json and no safetensors files"),
        ("me/broken", "is not JSON"),
        ("me/huge", "is larger than 64 MiB"),
    ],
)
def test_what_is_not_there_is_said(hub: dict[str, str], name: str, said: str) -> None:
    ran = fit(name, hub)
    assert (ran.status, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_hub_that_is_not_reached(hub: dict[str, str]) -> None:
    ran = fit("me/known", {**hub, "HF_ENDPOINT": "http://127.0.0.1:9"})
    assert ran.status == 2
    assert "the Hub does not answer" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_preset_is_not_asked_for(hub: dict[str, str]) -> None:
    assert fit("meta-llama/Llama-3.1-8B", hub).status == 0
    assert Hub.seen == []


def test_without_the_package_the_way_to_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "huggingface_hub.py").write_text("raise ImportError", "utf-8")
    path = f"{tmp_path}:{':'.join(filter(None, sys.path))}"
    ran = run("fit", "--model", "me/known", "--gpus", "8", PYTHONPATH=path)
    assert ran.status == 2
    assert "pip install huggingface_hub" in ran.stderr


@pytest.mark.parametrize(
    "text", ["gpt2", "a/b/c", "../b", "a/..", "a/b@", "a/\x1b", "a b/c", "/etc/passwd", "a/" + "b" * 200]
)
def test_what_is_no_name(text: str) -> None:
    assert not is_hub_name(text)
