"""Checks that IAM is enforced: denied actions must fail. Otherwise, logs without denials would prove nothing."""

import json
import time
from contextlib import contextmanager

from aws import account_log, client, denials, expect, logs, resources, wait
from functions import deliveries, webhook


@contextmanager
def denying(role, action, **condition):
    """Temporarily denies an action to a role."""
    statement = {"Effect": "Deny", "Action": action, "Resource": "*"} | ({"Condition": condition} if condition else {})
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    names = {"RoleName": resources("AWS::IAM::Role")[role], "PolicyName": "denied"}
    client("iam").put_role_policy(**names, PolicyDocument=document)
    yield
    client("iam").delete_role_policy(**names)


def denied(service):
    """Returns whether both the account's and a function's log report a denied request to a service."""
    return all(any("AccessDenied" in line and service in line for line in lines) for lines in (account_log(), logs()))


def expect_none_missing():
    found = denials()
    expect(not found, "a role lacks a permission:\n" + "\n".join(line[:600] for line in found[:5]))


def controls(api, other):
    """Temporarily denies permissions. `other` is the ID of another tenant. The condition keys come from .ci/aws/account."""
    theirs = {"dynamodb:LeadingKeys": [f"T#{other}"]}
    with denying("AccountRole", "dynamodb:*", **{"ForAnyValue:StringLike": theirs}):
        api.get("/me")
    with denying("AccountRole", "dynamodb:*", **{"ForAnyValue:StringNotLike": theirs}):
        api.get("/me", want=500)
    api.get("/me")
    expect(denied("dynamodb:"), "no log says that the table was out of reach")

    message = {"url": "https://hooks.example.com/no", "events": ["user.*"]}
    purpose = {"kms:EncryptionContext:purpose": "asset-lifecycle webhook secret"}
    with denying("WebhooksRole", "kms:*", StringEquals=purpose):
        api.post("/webhooks", message, want=500)
    with denying("WebhooksRole", "kms:*", StringNotEquals=purpose):
        hook = webhook(api)
    expect(denied("kms:"), "no log says that the key was out of reach")

    with denying("FanoutRole", "sqs:SendMessage"):
        api.post("/assets", {"name": "Held back"})
        wait(30, "a denial of sqs:SendMessage in a log", lambda: denied("sqs:"))
        time.sleep(2)
        expect(not deliveries(api, hook), "a delivery without sqs:SendMessage")
    # MiniStack doesn't retry the failed event as Lambda would, so send another one.
    api.post("/assets", {"name": "Announced"})
    wait(30, "a delivery, with the permission again", lambda: deliveries(api, hook))
