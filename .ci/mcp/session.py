"""Sessions with `assetctl mcp`: by PyPI's client, and line by line."""

import asyncio
import json
import os
import urllib.request
from contextlib import asynccontextmanager

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client


class Service:
    """The HTTP API, as somebody else uses it meanwhile."""

    def __init__(self, program, ready):
        self.program = program
        self.base_url, self.key = ready["base_url"], ready["api_key"]

    def send(self, method, path, body=None, key=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {key or self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.base_url + path, data, headers, method=method)
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def asset(self, **fields):
        return self.send("POST", "/assets", fields)["data"]

    def key_with(self, *scopes):
        return self.send("POST", "/keys", {"name": "assistant", "scopes": list(scopes)})["data"]["api_key"]

    def environment(self, key=None, base_url=None):
        return {**os.environ, "ASSETCTL_BASE_URL": base_url or self.base_url, "ASSETCTL_API_KEY": key or self.key}

    @asynccontextmanager
    async def client(self, *options, key=None, base_url=None, **settings):
        environment = self.environment(key, base_url)
        server = StdioServerParameters(command=self.program, args=["mcp", *options], env=environment)
        async with Client(stdio_client(server), **settings) as client:
            yield Caller(client)

    @asynccontextmanager
    async def lines(self, *options, **settings):
        pipe = asyncio.subprocess.PIPE
        environment = self.environment(**settings)
        process = await asyncio.create_subprocess_exec(
            self.program, "mcp", *options, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, limit=2**20
        )
        lines = Lines(process)
        yield lines
        process.stdin.close()
        rest = (await process.stdout.read()).decode()
        lines.exit_code = await asyncio.wait_for(process.wait(), 10)
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines()), rest


class Caller:
    def __init__(self, client):
        self.client = client

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name, **arguments):
        """The line for people and the structured content of a success."""
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content[0].text
        return self.parts(result)

    async def refused(self, name, **arguments):
        result = await self.client.call_tool(name, arguments)
        assert result.is_error, result
        return self.parts(result)

    @staticmethod
    def parts(result):
        [content] = result.content
        size = len(content.text.encode())
        if result.structured_content is not None:
            size += len(json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":")).encode())
        assert size <= 8192, f"{size} bytes: {content.text}"
        assert result.structured_content is None or "\n" not in content.text, content.text
        return content.text, result.structured_content


class Lines:
    """Every line that the program prints must be a message."""

    def __init__(self, process):
        self.process = process
        self.exit_code = None

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def receive(self, identity, seconds=20):
        while True:
            line = await asyncio.wait_for(self.process.stdout.readline(), seconds)
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0", line
            if message.get("id") == identity:
                return message

    async def initialize(self, version, **capabilities):
        client = {"name": "check", "version": "1"}
        self.send(id=0, method="initialize", params={"protocolVersion": version, "capabilities": capabilities, "clientInfo": client})
        result = (await self.receive(0))["result"]
        self.send(method="notifications/initialized")
        return result
