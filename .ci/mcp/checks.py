"""Checks of `assetctl mcp` with PyPI's client. Arguments: the program, and the ready file of a server with demo data.

apps/assetctl/tests/cli/mcp.rs tests plans and refusals, src/mcp/answer.rs untrusted texts, src/mcp/transport.rs single
messages.
"""

import asyncio
import contextlib
import json
import os
import socket
import statistics
import sys
import time
import traceback
import urllib.request

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp_types import ElicitResult

PROGRAM = sys.argv[1]
with open(sys.argv[2], encoding="utf-8") as file:
    READY = json.load(file)
TOOLS = ["find_assets", "show_asset", "who_has", "find_people", "statistics", "what_can_be_done", "changes_since"]
TOOLS += ["plan_change", "plan_handover", "plan_offboarding", "apply"]


def send(method, path, body=None):
    """Sends an API request that doesn't come from the assistant."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {READY['api_key']}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(READY["base_url"] + path, data, headers, method=method)) as response:
        return json.load(response)["data"]


def new_asset(**fields):
    return send("POST", "/assets", fields)["asset_tag"]


class Caller:
    def __init__(self, client):
        self.client = client

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name, *, refused=False, **arguments):
        """Returns the human-readable line and the structured content."""
        result = await self.client.call_tool(name, arguments)
        [content] = result.content
        assert bool(result.is_error) == refused, content.text
        data = result.structured_content
        size = len((content.text + json.dumps(data, ensure_ascii=False, separators=(",", ":"))).encode())
        assert size <= 8192 and (data is None or "\n" not in content.text), f"{size} bytes: {content.text}"
        return content.text, data


@contextlib.asynccontextmanager
async def client(*options, key=READY["api_key"], base_url=READY["base_url"], **settings):
    environment = {**os.environ, "ASSETCTL_BASE_URL": base_url, "ASSETCTL_API_KEY": key}
    server = StdioServerParameters(command=PROGRAM, args=["mcp", *options], env=environment)
    async with Client(stdio_client(server), **settings) as connected:
        yield Caller(connected)


async def tools_are_described():
    async with client("--allow-writes") as caller:
        listed = (await caller.client.list_tools()).tools
        assert [tool.name for tool in listed] == TOOLS
        for tool in listed:
            hints = tool.annotations
            assert tool.title and tool.description and tool.output_schema["type"] == "object", tool
            assert hints.read_only_hint == (tool.name != "apply") and hints.open_world_hint is False, tool
        assert listed[-1].annotations.destructive_hint and listed[-1].annotations.idempotent_hint
        size = len(json.dumps([tool.model_dump(by_alias=True, exclude_none=True) for tool in listed], separators=(",", ":")))
        assert size <= 12_000, size
        print(f"  list of tools: {size} bytes, about {size // 4} tokens")
    for scopes, expected in [
        (["assets:read", "assets:write"], [*TOOLS[:3], "statistics", "plan_change", "apply"]),
        (["users:read"], ["find_people"]),
    ]:
        key = send("POST", "/keys", {"name": "assistant", "scopes": scopes})["api_key"]
        async with client("--allow-writes", key=key) as caller:
            assert await caller.tools() == expected, scopes
            kinds = [template.name for template in (await caller.client.list_resource_templates()).resource_templates]
            assert kinds == (["label"] if "assets:read" in scopes else []), kinds


async def questions_are_answered():
    async with client() as caller:
        line, found = await caller.call("find_assets", words="macbook", status="in_use")
        assert found["total"] == len(found["assets"]) and f"{found['total']} assets found: \"AST-" in line, line
        tag, owner = found["assets"][0]["asset_tag"], found["assets"][0]["assigned_to"]
        line, has = await caller.call("who_has", asset=tag)
        assert has["person"] == owner and f'(in_use, "{owner}")' in line, line
        line, mine = await caller.call("who_has", person=owner)
        assert tag in [asset["asset_tag"] for asset in mine["assets"]], mine
        line, shown = await caller.call("show_asset", asset=tag)
        assert shown["asset"]["asset_tag"] == tag and shown["changes"][-1]["event"] == "asset.created", shown
        _, people = await caller.call("find_people", words=owner.split(" ")[0])
        assert people["total"] >= 1
        line, stats = await caller.call("statistics")
        assert line.startswith(f"{stats['assets']['total']} assets, "), line
        _, can = await caller.call("what_can_be_done", asset=tag)
        can = {process["slug"]: process for process in can["processes"]}
        assert can["device-return"]["can_start"] and can["restock"]["code"] == "WRONG_ASSET_STATUS", can
        tags, more = [], {}
        while more is not None:
            _, part = await caller.call("find_assets", **more)
            tags += [asset["asset_tag"] for asset in part["assets"]]
            more = {"skip": int(part["rest"].split("skip=")[1])} if "rest" in part else None
        assert len(tags) == len(set(tags)) == part["total"], tags
        assert "unknown wrds; known: words" in (await caller.call("find_assets", wrds="x", refused=True))[0]
        assert "no asset has the tag" in (await caller.call("show_asset", asset="nothing", refused=True))[0]
        label = (await caller.client.read_resource(f"asset://{tag}/label")).contents[0]
        assert label.mime_type == "image/svg+xml" and label.text.startswith("<svg"), label
        prompt = (await caller.client.get_prompt("who_has_what", {"who_or_what": "Ada"})).messages[0].content.text
        assert 'Limit the answer to "Ada".' in prompt, prompt


async def changes_are_told_once():
    tag = new_asset(name="Beamer")
    # The feed shows a change after ten seconds.
    await asyncio.sleep(11)
    async with client() as caller:
        seen, more = [], {"since": "2020-01-01"}
        while more is not None:
            line, part = await caller.call("changes_since", **more)
            seen += part["changes"]
            more = {"after": part["rest"].split("after=")[1]} if "rest" in part else None
        assert len(seen) == len({json.dumps(change) for change in seen}) > 60, (line, len(seen))
        assert tag in [change["tag"] for change in seen[-3:]], seen[-3:]
        assert not [change for change in seen if change["event"].startswith(("key.", "link.", "webhook."))], seen
        assert (await caller.call("changes_since", after=part["next_after"]))[1]["changes"] == []
        line, part = await caller.call("changes_since", since="2020-01-01", asset=tag)
        assert f'1 change: asset.created "{tag}" "Beamer" by "first key" at ' in line, line


async def the_person_is_asked():
    tag, asked = new_asset(name="Monitor"), []

    def person(answer):
        async def answered(_context, question):
            asked.append(question.message)
            return ElicitResult(action=answer, content={"apply": True} if answer == "accept" else None)

        return answered

    for mode in ["legacy", "auto"]:
        for answer in ["decline", "accept"]:
            async with client("--allow-writes", mode=mode, elicitation_callback=person(answer)) as caller:
                _, plan = await caller.call("plan_change", assets=[tag], set={"notes": f"{mode} {answer}"})
                line, _ = await caller.call("apply", token=plan["token"], refused=answer == "decline")
                assert answer == "accept" or "the person declined. Nothing was written" in line, line
        assert send("GET", f"/assets/by-tag/{tag}")["notes"] == f"{mode} accept"
    assert len(asked) == 4 and asked[0].startswith("Apply this? ") and "legacy decline" in asked[0], asked


async def plans_end_with_their_time_and_session():
    tag = new_asset(name="Laptop")
    async with client("--allow-writes", "--plan-lifetime", "1") as caller:
        _, plan = await caller.call("plan_change", assets=[tag], set={"notes": "late"})
        await asyncio.sleep(1.1)
        assert "expired" in (await caller.call("apply", token=plan["token"], refused=True))[0]
    async with client("--allow-writes") as caller:
        assert "no plan of this session" in (await caller.call("apply", token=plan["token"], refused=True))[0]


async def a_service_that_is_away():
    async with client(base_url="http://127.0.0.1:9/v1") as caller:
        assert "can't reach" in (await caller.call("statistics", refused=True))[0]
    # The server accepts the connection and never responds, so the client cancels the call.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with client(base_url=f"http://127.0.0.1:{silent.getsockname()[1]}/v1", mode="legacy") as caller:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(caller.call("statistics"), 0.5)
                raise AssertionError("a service that never answers has answered")
            await asyncio.wait_for(caller.client.send_ping(), 2)


async def versions_are_negotiated():
    async with client(mode="legacy") as legacy, client(mode="auto") as auto:
        versions = legacy.client.protocol_version, auto.client.protocol_version
        assert versions == ("2025-11-25", "2026-07-28"), versions
        assert await legacy.tools() == await auto.tools()


async def hundred_calls_at_once():
    async with client() as caller:
        begin = time.monotonic()
        answers = await asyncio.gather(*(caller.call("find_assets", words="macbook", skip=n % 3) for n in range(100)))
        assert len({json.dumps(data) for _, data in answers}) == 3
        print(f"  100 calls at once: {time.monotonic() - begin:.2f} s")
        times = []
        for _ in range(30):
            begin = time.monotonic()
            await caller.call("find_assets", words="macbook")
            times.append(time.monotonic() - begin)
        print(f"  find_assets: {statistics.median(times) * 1000:.1f} ms")


async def main():
    for check in [
        tools_are_described,
        questions_are_answered,
        changes_are_told_once,
        the_person_is_asked,
        plans_end_with_their_time_and_session,
        a_service_that_is_away,
        versions_are_negotiated,
        hundred_calls_at_once,
    ]:
        begin = time.monotonic()
        try:
            await check()
        except BaseException as error:
            # The client wraps exceptions raised while it is open.
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            traceback.print_exception(error)
            sys.exit(f"{check.__name__} fails")
        print(f"{check.__name__.replace('_', ' ')}: ok ({time.monotonic() - begin:.1f} s)")


asyncio.run(main())
