"""Requests to the deployed API."""

import urllib3
from aws import expect


class Api:
    def __init__(self, base, key=None):
        self.base = base
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    def call(self, method, path, body=None, want=200, kind="application/json", headers=None):
        """Sends bytes unchanged, and everything else as JSON. Fails if the status isn't `want`."""
        content = {"body": body} if body is None or isinstance(body, bytes) else {"json": body}
        sent = self.headers | {"Content-Type": kind} | (headers or {})
        response = urllib3.request(method, self.base + path, headers=sent, timeout=35, retries=False, **content)
        expect(response.status == want, f"{method} {path}: {response.status} instead of {want}: {response.data[:400]!r}")
        return response

    def get(self, path, **options):
        return self.call("GET", path, **options)

    def post(self, path, body, want=201, **options):
        return self.call("POST", path, body, want, **options)

    def data(self, path):
        return self.get(path).json()["data"]

    def total(self, path):
        return self.get(path).json()["meta"]["total"]

    def create(self, path, body):
        return self.post(path, body).json()["data"]
