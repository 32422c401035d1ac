"""Requests to the deployed API."""

import json
import urllib.error
import urllib.request

from aws import expect


class Response:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)

    @property
    def data(self):
        return self.json()["data"]


class Api:
    # Of all requests.
    paths = set()

    def __init__(self, base, key=None):
        self.base, self.key = base, key

    def call(self, method, path, body=None, want=200, kind="application/json", headers=()):
        """Sends bytes as they are, and everything else as JSON. Fails if the status isn't `want`."""
        self.paths.add(path)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, dict(headers), method=method)
        if data is not None:
            request.add_header("Content-Type", kind)
        if self.key:
            request.add_header("Authorization", f"Bearer {self.key}")
        try:
            with urllib.request.urlopen(request, timeout=35) as answer:
                response = Response(answer)
        except urllib.error.HTTPError as answer:
            response = Response(answer)
        expect(response.status == want, f"{method} {path}: {response.status} instead of {want}: {response.body[:400]!r}")
        return response

    def get(self, path, **options):
        return self.call("GET", path, **options)

    def post(self, path, body, want=201, **options):
        return self.call("POST", path, body, want, **options)
