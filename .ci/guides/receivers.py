"""Sends deliveries to webhook receivers: repeated, out of order, modified, and signed with different secrets.

Called by .ci/guides/generated-clients with the command of each receiver, beside docs/openapi.json, which has a real delivery. In
the guide's tour, the service delivers to one of them.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from base64 import b64encode
from datetime import datetime, timezone
from pathlib import Path
from socket import create_connection, create_server

from standardwebhooks import Webhook

SECRET, OTHER = ("whsec_" + b64encode(os.urandom(32)).decode() for _ in range(2))
with open("openapi.json", encoding="utf-8") as file:
    content = json.load(file)["webhooks"]["event"]["post"]["requestBody"]["content"]["application/json"]
EVENT = content["examples"]["asset.*"]["value"]


def deliver(port, identity, version, *secrets, changed=False):
    """Sends a version of the event, signed with these secrets, and returns the status."""
    body = json.dumps(EVENT | {"data": EVENT["data"] | {"version": version}})
    now = datetime.now(timezone.utc)
    headers = {"webhook-id": identity, "webhook-timestamp": str(int(now.timestamp()))}
    headers["webhook-signature"] = " ".join(Webhook(secret).sign(identity, now, body) for secret in secrets)
    request = urllib.request.Request(f"http://127.0.0.1:{port}/hook", (body + " " * changed).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def check(command):
    with create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output")
        with output.open("w") as file:
            environment = os.environ | {"WEBHOOK_SECRET": SECRET}
            process = subprocess.Popen([*command, str(port)], cwd=folder, env=environment, stdout=file, stderr=file)

        def expect(*lines):
            for _ in range(600):
                if output.read_text().splitlines() == list(lines):
                    return
                time.sleep(0.1)
            raise AssertionError(f"{command} should print {lines}, but printed:\n{output.read_text()}")

        try:
            for _ in range(600):
                try:
                    create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    time.sleep(0.1)
            tag, printed = EVENT["data"]["entity_tag"], []
            for case, status, line in [
                # The event of version 2 arrives before the event of version 1.
                (("2", 2, SECRET), 204, f"asset.updated {tag} version 2"),
                (("1", 1, SECRET), 204, "out of date: version 1"),
                (("2", 2, SECRET), 204, "again: asset.updated"),
                (("3", 3, OTHER), 401, "answered 401"),
                # After a rotation, a delivery has both signatures during the grace period.
                (("3", 3, OTHER, SECRET), 204, f"asset.updated {tag} version 3"),
                (("4", 4, SECRET, OTHER), 204, f"asset.updated {tag} version 4"),
            ]:
                assert deliver(port, *case) == status, f"{command}: {case}"
                printed.append(line)
                expect(*printed)
            assert deliver(port, "5", 5, SECRET, changed=True) == 401, f"{command} accepts a changed body"
        finally:
            process.kill()
            process.wait()


for argument in sys.argv[1:]:
    check(argument.split())
