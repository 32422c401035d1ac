"""Proves that IAM is in effect: what a role lacks must not work. Only then does it mean something that no log has a denial."""

import json
import time
from contextlib import contextmanager

from aws import account_log, client, denials, expect, logs, resources, wait
from functions import deliveries, webhook


def statement(document, sid):
    (found,) = (statement for statement in document["Statement"] if statement["Sid"] == sid)
    return found


@contextmanager
def in_role(role, policy, sid, change):
    """Changes a statement of a policy in a role, for a time."""
    iam, name = client("iam"), resources("AWS::IAM::Role")[role]
    before = iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
    after = json.loads(json.dumps(before))
    change(statement(after, sid))
    expect(after != before, f"{role}: {sid} isn't changed")
    iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=json.dumps(after))
    yield
    iam.put_role_policy(RoleName=name, PolicyName=policy, PolicyDocument=json.dumps(before))


@contextmanager
def in_policy(policy, sid, change):
    """Changes a statement of a managed policy, for a time."""
    iam, arn = client("iam"), resources("AWS::IAM::ManagedPolicy")[policy]
    first = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    before = iam.get_policy_version(PolicyArn=arn, VersionId=first)["PolicyVersion"]["Document"]
    after = json.loads(json.dumps(before))
    change(statement(after, sid))
    second = iam.create_policy_version(PolicyArn=arn, PolicyDocument=json.dumps(after), SetAsDefault=True)["PolicyVersion"]
    yield
    iam.create_policy_version(PolicyArn=arn, PolicyDocument=json.dumps(before), SetAsDefault=True)
    for version in (first, second["VersionId"]):
        iam.delete_policy_version(PolicyArn=arn, VersionId=version)


def other_partition(tenant):
    def change(statement):
        statement["Condition"] = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"T#{tenant}"]}}

    return change


def other_context(statement):
    (keys,) = statement["Condition"].values()
    (key,) = keys
    keys[key] = "something else"


def other_action(statement):
    statement["Action"] = "sqs:GetQueueUrl"


def denied(service):
    """Whether both the account and a function said that a request to a service was denied."""
    return all(any("AccessDenied" in line and service in line for line in lines) for lines in (account_log(), logs()))


def expect_none_missing():
    found = denials()
    expect(not found, "a role lacks a permission:\n" + "\n".join(line[:600] for line in found[:5]))


def controls(api, other):
    """Takes permissions away and gives them back. `other` is the ID of another tenant."""
    with in_policy("RecordsPolicy", "Table", other_partition(other)):
        api.get("/me", want=500)
    api.get("/me")
    expect(denied("dynamodb:"), "no log says that the table was out of reach")

    with in_role("WebhooksRole", "webhooks", "Secrets", other_context):
        api.post("/webhooks", {"url": "https://hooks.example.com/no", "events": ["user.*"]}, want=500)
    hook = webhook(api)
    expect(denied("kms:"), "no log says that the key was out of reach")

    with in_role("FanoutRole", "fanout", "Queue", other_action):
        api.post("/assets", {"name": "Held back"})
        wait(30, "a denial of sqs:SendMessage in a log", lambda: denied("sqs:"))
        time.sleep(2)
        expect(not deliveries(api, hook), "a delivery without sqs:SendMessage")
    # Lambda would try the same event again; MiniStack takes it for done.
    api.post("/assets", {"name": "Announced"})
    wait(30, "a delivery, with the permission again", lambda: deliveries(api, hook))
