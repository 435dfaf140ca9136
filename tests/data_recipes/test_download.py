"""Downloads from a server of our own: mirrors that work, are dead, lie or stop in the middle."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mmgen.core.errors import ArtifactError, DataError
from mmgen.core.surroundings import cache_folder
from mmgen.data_recipes._published import download, is_complete

CONTENT = {"a.gz": bytes(range(256)) * 1000, "b.gz": b"small"}
FILES = {name: (hashlib.sha256(data).hexdigest(), len(data)) for name, data in CONTENT.items()}
MANUAL = "get it by hand"


@pytest.fixture
def server():
    """Serves CONTENT under /good/, other bytes under /wrong/, half of each file under /half/; counts requests."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            _, kind, name = self.path.split("/")
            data = CONTENT[name]
            if kind == "missing":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write({"good": data, "wrong": data[::-1], "half": data[: len(data) // 2]}[kind])

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.asked = asked
        running.address = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_good_mirror_fills_the_folder(server, tmp_path):
    folder = tmp_path / "deep" / "cache"
    work = download(folder, FILES, [f"{server.address}/good/"], MANUAL)
    seen = [progress.done for progress in work]
    assert work.result == folder
    assert seen == sorted(seen)
    assert seen[-1] == len(work) == 256_005
    assert len(seen) > 4  # a large file is reported piece by piece
    assert is_complete(folder, FILES)
    assert sorted(path.name for path in folder.iterdir()) == sorted(CONTENT)


@pytest.mark.parametrize("bad", ["wrong", "half", "missing", "dead"])
def test_the_next_mirror_is_tried(server, tmp_path, bad):
    address = "http://127.0.0.1:9/" if bad == "dead" else f"{server.address}/{bad}/"
    download(tmp_path, FILES, [address, f"{server.address}/good/"], MANUAL).run()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == CONTENT


def test_where_no_mirror_has_it_each_is_named_and_nothing_is_left(server, tmp_path):
    mirrors = ["http://127.0.0.1:9/", *(f"{server.address}/{kind}/" for kind in ("wrong", "half", "missing"))]
    with pytest.raises(DataError) as caught:
        download(tmp_path, FILES, mirrors, MANUAL).run()
    message = str(caught.value)
    assert all(mirror + "a.gz" in message for mirror in mirrors)
    assert "SHA-256" in message
    assert "404" in message
    assert message.endswith(MANUAL)
    assert "\n" not in message
    assert list(tmp_path.iterdir()) == []


def test_only_what_is_missing_or_damaged_is_fetched(server, tmp_path):
    (tmp_path / "a.gz").write_bytes(CONTENT["a.gz"])
    (tmp_path / "b.gz").write_bytes(b"smell")
    assert is_complete(tmp_path, {"b.gz": ("", 5)}), "of which no checksum is known"
    assert not is_complete(tmp_path, FILES)
    work = download(tmp_path, FILES, [f"{server.address}/good/"], MANUAL)
    assert work.total == 5
    work.run()
    assert server.asked == ["/good/b.gz"]
    assert is_complete(tmp_path, FILES)


def test_a_folder_that_cannot_be_made_or_written_is_named(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot make the cache folder"):
        download(tmp_path / "file" / "cache", FILES, [f"{server.address}/good/"], MANUAL).run()
    (tmp_path / "cache" / "a.gz").mkdir(parents=True)
    with pytest.raises(ArtifactError, match="cannot write"):
        download(tmp_path / "cache", FILES, [f"{server.address}/good/"], MANUAL).run()


def test_the_cache_lies_in_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = cache_folder("mnist")
    assert folder.name == "mnist"
    assert "mmgen" in str(folder)
