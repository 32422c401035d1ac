"""Sends deliveries to receivers of webhooks, through a proxy that repeats, delays and changes them.

Called by .ci/guides/receivers with the dev server's ready file, and the name and the command of each receiver.
"""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from threading import Thread
from typing import Any

import httpx

# How long anything may take. A second attempt follows after five seconds, and a third after five minutes.
PATIENCE = 60.0


def wait_for(what: str, is_there: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not is_there():
        if time.monotonic() - began > PATIENCE:
            raise AssertionError(f"not within {PATIENCE} s: {what}")
        time.sleep(0.05)


def free_port() -> int:
    with socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


class Proxy:
    """Passes deliveries on to the receiver, and does something else with the next one if it is told so."""

    def __init__(self, receiver_port: int) -> None:
        self.mischief = ""
        self.seen: list[dict[str, str]] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                proxy.seen.append(headers)
                mischief, proxy.mischief = proxy.mischief, ""
                if mischief == "change":
                    body = body.replace(b'"version":', b'"version": ')
                status = 503 if mischief == "refuse" else proxy.forward(receiver_port, body, headers)
                if mischief == "repeat":
                    proxy.forward(receiver_port, body, headers)
                self.send_response(status)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}/hook"
        Thread(target=server.serve_forever, daemon=True).start()

    @staticmethod
    def forward(port: int, body: bytes, headers: dict[str, str]) -> int:
        headers = {name: value for name, value in headers.items() if name.startswith("webhook-")}
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("POST", "/hook", body, headers)
            return connection.getresponse().status
        except OSError:
            return 502
        finally:
            connection.close()


class Receiver:
    """A receiver's program, which can be started anew with another secret."""

    def __init__(self, command: str, port: int, secret: str, folder: str) -> None:
        self.command = [*command.split(), str(port)]
        self.port = port
        self.folder = folder
        self.output = Path(folder) / "output"
        self.process: subprocess.Popen[bytes] | None = None
        self.start(secret)

    def start(self, secret: str) -> None:
        self.stop()
        with self.output.open("ab") as output:
            environment = {**os.environ, "WEBHOOK_SECRET": secret}
            self.process = subprocess.Popen(self.command, cwd=self.folder, env=environment, stdout=output, stderr=output)
        wait_for(f"{self.command} listens", self.is_listening)

    def is_listening(self) -> bool:
        with socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def count(self, line: str) -> int:
        return self.output.read_text().splitlines().count(line)

    def expect(self, line: str, count: int = 1) -> None:
        try:
            wait_for(f"{line!r}, {count} times", lambda: self.count(line) == count)
        except AssertionError as error:
            raise AssertionError(f"{error}; the receiver printed:\n{self.output.read_text()}") from None


def take(base: str, key: str, name: str, command: str) -> None:
    api = httpx.Client(base_url=base, headers={"Authorization": f"Bearer {key}"}, timeout=30)

    def send(method: str, path: str, body: object = None) -> Any:
        response = api.request(method, path, json=body)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json()["data"]

    port = free_port()
    proxy = Proxy(port)
    webhook = send("POST", "/webhooks", {"url": proxy.url, "events": ["asset.*"], "description": name})
    path, secret = f"/webhooks/{webhook['id']}", webhook["secret"]
    with tempfile.TemporaryDirectory() as folder:
        receiver = Receiver(command, port, secret, folder)
        try:
            deliveries(send, proxy, receiver, path, secret)
        finally:
            receiver.stop()
    send("DELETE", path)
    print(f"{name}: ok", flush=True)


def deliveries(send: Callable[..., Any], proxy: Proxy, receiver: Receiver, path: str, secret: str) -> None:
    asset = send("POST", "/assets", {"name": "Laptop"})
    tag, version = asset["asset_tag"], 1
    receiver.expect(f"asset.created {tag} version 1")

    def update() -> None:
        nonlocal version
        version += 1
        send("PATCH", f"/assets/{asset['id']}", {"notes": f"Version {version}"})

    def expect_update(count: int = 1) -> None:
        receiver.expect(f"asset.updated {tag} version {version}", count)

    def refused_then_taken(what: str, next_secret: str) -> None:
        """The delivery is refused; its next attempt, by a receiver with this secret, isn't."""
        refusals = receiver.count("answered 401")
        update()
        receiver.expect("answered 401", refusals + 1)
        assert receiver.count(f"asset.updated {tag} version {version}") == 0, what
        receiver.start(next_secret)
        expect_update()
        wait_for("the delivery's record", lambda: newest_delivery()["status"] == "delivered")
        statuses = [attempt["status"] for attempt in newest_delivery()["attempts"]]
        assert statuses == [401, 204], f"{what}: {statuses}"

    def newest_delivery() -> Any:
        return send("GET", f"{path}/deliveries?limit=1")[0]

    proxy.mischief = "repeat"
    update()
    expect_update()
    receiver.expect("again: asset.updated")

    # The next version overtakes this one, whose second attempt comes five seconds later.
    proxy.mischief = "refuse"
    update()
    wait_for("a delivery to refuse", lambda: proxy.mischief == "")
    update()
    expect_update()
    receiver.expect(f"out of date: version {version - 1}")

    proxy.mischief = "change"
    refused_then_taken("a changed body", secret)
    receiver.start("whsec_" + b64encode(secrets.token_bytes(32)).decode())
    refused_then_taken("another secret", secret)

    rotated = send("POST", f"{path}/rotate", {"grace_seconds": 3600})["secret"]
    assert rotated != secret
    for known in [secret, rotated]:
        receiver.start(known)
        update()
        expect_update()
        assert len(proxy.seen[-1]["webhook-signature"].split()) == 2
    last = send("POST", f"{path}/rotate", {"grace_seconds": 0})["secret"]
    refused_then_taken("a secret without grace", last)
    assert len(proxy.seen[-1]["webhook-signature"].split()) == 1


def main() -> None:
    ready = json.loads(Path(sys.argv[1]).read_text())
    receivers = [receiver.split(": ", 1) for receiver in sys.argv[2:]]
    # One after the other, because each gets the other's events, too.
    for name, command in receivers:
        take(ready["base_url"], ready["api_key"], name, command)


main()
