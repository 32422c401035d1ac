"""The emulated account: clients of its services, the stack in it, and its logs."""

import functools
import subprocess
import time
from pathlib import Path

import boto3

STACK = "asset-lifecycle-dev"
FUNCTION = "AWS::Lambda::Function"

client = functools.cache(boto3.client)


class Failed(Exception):
    """A check of the stack failed."""


def expect(holds, error):
    if not holds:
        raise Failed(error)


def wait(seconds, what, condition):
    """Waits until `condition` returns a true value, and returns the value."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        expect(time.monotonic() < deadline, f"not within {seconds} s: {what}")
        time.sleep(0.25)
    return result


def run(*command, **options):
    """Returns the output of a command, or raises an error with the output."""
    try:
        done = subprocess.run(
            command, check=True, timeout=300, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise Failed(f"{error}\n{str(error.stdout)[-4000:]}") from None
    return done.stdout


def pages(service, operation, key, **arguments):
    """Returns all pages of a service's list."""
    if not client(service).can_paginate(operation):
        return getattr(client(service), operation)(**arguments).get(key, [])
    return [item for page in client(service).get_paginator(operation).paginate(**arguments) for item in page.get(key, [])]


def stack():
    return client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]


def outputs():
    return {output["OutputKey"]: output["OutputValue"] for output in stack()["Outputs"]}


def resources(kind=None):
    """Returns the physical IDs of the stack's resources, by their names in the template."""
    found = pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=STACK)
    return {r["LogicalResourceId"]: r["PhysicalResourceId"] for r in found if kind in (None, r["ResourceType"])}


def log_events(group):
    """Returns all events of a log group. MiniStack returns only the first 10,000, without a token for the rest."""
    found, begin = [], 0
    while True:
        page = client("logs").filter_log_events(logGroupName=group, startTime=begin)["events"]
        found += page
        if len(page) < 10_000:
            return found
        expect(page[-1]["timestamp"] > begin, f"{group} has 10,000 lines of one millisecond")
        begin = page[-1]["timestamp"]


def logs():
    """Returns all lines of all log groups, without duplicates: MiniStack repeats lines of functions without an HTTP trigger."""
    groups = [group["logGroupName"] for group in pages("logs", "describe_log_groups", "logGroups")]
    return list(dict.fromkeys(event["message"] for group in groups for event in log_events(group)))


def account_log():
    """Returns the lines of the account's own log, where .ci/aws/account/network keeps it."""
    return Path.home().joinpath("account.log").read_text(encoding="utf-8", errors="replace").splitlines()


def denials():
    """Returns the log lines of functions and of the account about denied requests, except those that checks provoke."""
    lines = [line for line in logs() + account_log() if "AccessDenied" in line or "not authorized" in line]
    return [line for line in lines if not line.endswith(("user/operator", "user/restorer"))]


def explain():
    """Returns possible explanations of a failure: events of the stack, and log lines of functions."""
    found = []
    if any(found["StackName"] == STACK for found in pages("cloudformation", "describe_stacks", "Stacks")):
        for event in pages("cloudformation", "describe_stack_events", "StackEvents", StackName=STACK):
            if "FAILED" in event["ResourceStatus"]:
                found.append(f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason')}")
    lines = [line[:600] for line in logs() if any(sign in line for sign in ('"WARN"', '"ERROR"', "errorMessage", "denied"))]
    return found[:20] + lines[-20:] + [line for line in account_log() if "ERROR" in line or "Traceback" in line][-5:]
