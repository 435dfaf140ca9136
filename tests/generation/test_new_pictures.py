"""Pictures are new at each call, the same for the same seed, and one of them is the first of several."""

import re
import threading
import urllib.request
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch

import mmgen
from tests.generation.toy import loaded

PAGE = Path(__file__).parents[2] / "docs" / "questions.md"


def test_pictures_are_new_at_each_call_and_their_seed_is_told() -> None:
    model = loaded()
    one, other = model.sample("colour=red", 5), model.sample("colour=red", 5)
    assert not torch.equal(one, other)
    assert torch.equal(other, model.sample("colour=red", 5, seed=model.seed))


@pytest.mark.parametrize("words", ["colour=red", "colour=red size=big", ""])
def test_one_picture_is_the_first_of_several(words: str) -> None:
    for seed in range(8):
        model = loaded(completes=True)
        torch.testing.assert_close(model.sample(words, 1, seed=seed)[0], model.sample(words, 4, seed=seed)[0])


def test_the_service_of_the_page_sends_another_picture_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    section = PAGE.read_text(encoding="utf-8").split("## How do I serve it over HTTP")[1]
    (code,) = re.findall(r"^```python\n(.*?)^```", section.split("\n## ")[0], re.S | re.M)
    servers: list[Any] = []
    monkeypatch.setattr(mmgen, "load", lambda _: loaded(), raising=False)
    monkeypatch.setattr(HTTPServer, "serve_forever", lambda server: servers.append(server))
    monkeypatch.setattr("http.server.BaseHTTPRequestHandler.log_message", lambda *_: None)
    exec(code.replace("8000", "0"), {})
    (server,) = servers
    answers = []
    for _ in range(2):
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with urllib.request.urlopen(f"http://localhost:{server.server_port}/colour=red") as answer:
            answers.append(answer.read())
            assert answer.headers["Content-Type"] == "image/png"
        thread.join()
    server.server_close()
    assert answers[0] != answers[1]
