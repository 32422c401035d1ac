"""Calls tools of `assetctl mcp` as an assistant does, and prints their human-readable lines.

Each input line has the name of a tool and its arguments as JSON. TOKEN stands for the token of the latest plan.
"""

import asyncio
import json
import os
import sys

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client


async def main(options: list[str]) -> None:
    server = StdioServerParameters(command="assetctl", args=["mcp", *options], env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        token = ""
        for line in sys.stdin:
            tool, _, arguments = line.strip().partition(" ")
            result = await client.call_tool(tool, json.loads(arguments.replace("TOKEN", token) or "{}"))
            print(f"{tool}: {result.content[0].text}")
            token = (result.structured_content or {}).get("token", token)


asyncio.run(main(sys.argv[1:]))
