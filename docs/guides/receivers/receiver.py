"""Receives webhooks: verifies each delivery, stores it, responds, and then processes it."""

import json
import logging
import os
import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from asset_lifecycle.models import WebhookEvent
from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
# Every statement commits separately.
inbox = sqlite3.connect("inbox.db", isolation_level=None, check_same_thread=False)
inbox.execute("CREATE TABLE IF NOT EXISTS deliveries (id TEXT PRIMARY KEY, entity_id TEXT, version INTEGER, body TEXT, done INTEGER)")
arrived, turn = Event(), Lock()


def run(statement: str, values: tuple[object, ...] = ()) -> tuple[list[Any], int]:
    """Returns the rows, and the number of changed ones. Takes a lock, because all threads share the connection and its count."""
    with turn:
        result = inbox.execute(statement, values)
        return result.fetchall(), result.rowcount


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            delivery = WebhookEvent.from_dict(webhook.verify(body, dict(self.headers.items())))
        except (WebhookVerificationError, ValueError):
            self.answer(401)
            return
        event = delivery.data
        # All attempts have the same ID, so a known ID means a duplicate.
        row = (self.headers["webhook-id"], str(event.entity_id), event.version, body.decode())
        _, stored = run("INSERT OR IGNORE INTO deliveries VALUES (?, ?, ?, ?, FALSE)", row)
        self.answer(204)
        if stored == 0:
            logging.info("again: %s", delivery.type_)
        arrived.set()

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()
        if status != 204:
            logging.info("answered %s", status)

    def log_message(self, format: str, *args: object) -> None:
        """Disables the server's log of requests."""


def react() -> None:
    while True:
        arrived.clear()
        waiting, _ = run("SELECT id, entity_id, version, body FROM deliveries WHERE NOT done ORDER BY id")
        for webhook_id, entity_id, version, body in waiting:
            # Deliveries can overtake each other, so ignore a version older than the newest one.
            newer, _ = run("SELECT 1 FROM deliveries WHERE entity_id = ? AND version > ?", (entity_id, version))
            if newer:
                logging.info("out of date: version %s", version)
            else:
                delivery = WebhookEvent.from_dict(json.loads(body))
                logging.info("%s %s version %s", delivery.type_, delivery.data.entity_tag, version)
            run("UPDATE deliveries SET done = TRUE WHERE id = ?", (webhook_id,))
        arrived.wait()


# Unlike print, logging writes whole lines, even from several threads.
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
Thread(target=react, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
