"""Runs a command beside moto, which emulates S3 and SQS and enforces signatures and the template's permissions.

    with_moto.py snapshots|queue COMMAND [ARGUMENT…]
"""

import json
import logging
import os
import subprocess
import sys

import boto3
import yaml
from moto import settings
from moto.server import ThreadedMotoServer

# Only names passed to the template's intrinsic functions matter here.
yaml.SafeLoader.add_multi_constructor("!", lambda loader, suffix, node: node.value if isinstance(node, yaml.ScalarNode) else suffix)
with open("template.yaml", encoding="utf-8") as file:
    RESOURCES = yaml.safe_load(file)["Resources"]
ENVIRONMENT = {"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1"}


def as_list(value):
    return value if isinstance(value, list) else [value]


def grant(user, statements, prefix=""):
    """Creates a user with these permissions, and passes the user's key to the command."""
    iam = boto3.client("iam")
    iam.create_user(UserName=user)
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow"} | statement for statement in statements]}
    iam.put_user_policy(UserName=user, PolicyName=user, PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName=user)["AccessKey"]
    ENVIRONMENT[f"{prefix}AWS_ACCESS_KEY_ID"] = key["AccessKeyId"]
    ENVIRONMENT[f"{prefix}AWS_SECRET_ACCESS_KEY"] = key["SecretAccessKey"]


def snapshots(endpoint):
    """Collects the template's permissions in one user."""
    objects = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
    arn = "arn:aws:s3:::snapshots"
    statements = [{"Action": objects, "Resource": f"{arn}/list-index/*"}, {"Action": "s3:ListBucket", "Resource": arn}]
    boto3.client("s3").create_bucket(Bucket="snapshots")
    grant("functions", statements)
    ENVIRONMENT["SNAPSHOTS_TEST_URL"] = f"{endpoint}/snapshots"


def queue(endpoint):
    names = {"DeliveryQueue": "deliveries", "RetryQueue": "retries"}
    for resource, name in names.items():
        properties = RESOURCES[resource]["Properties"]
        attributes = {name: str(properties[name]) for name in ("VisibilityTimeout", "MessageRetentionPeriod")}
        url = boto3.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        ENVIRONMENT[f"{resource.removesuffix('Queue').upper()}_QUEUE_URL"] = url
    for role, prefix in (("Fanout", "FANOUT_"), ("Deliver", "")):
        statements = RESOURCES[f"{role}Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
        (statement,) = (it for it in statements if it["Sid"] == "Queue")
        actions = as_list(statement["Action"])
        # In AWS, sqs:SendMessage also covers batches ("Amazon SQS batch actions"); moto has a separate action for them.
        actions += [f"{action}Batch" for action in actions if action == "sqs:SendMessage"]
        queues = [names[place.removesuffix(".Arn")] for place in as_list(statement["Resource"])]
        grant(role, [{"Action": actions, "Resource": [f"arn:aws:sqs:us-east-1:123456789012:{name}" for name in queues]}], prefix)
    ENVIRONMENT["AWS_ENDPOINT_URL_SQS"] = endpoint


def main():
    what, *command = sys.argv[1:]
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    own = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "setup", "AWS_SECRET_ACCESS_KEY": "setup"}
    os.environ |= ENVIRONMENT | own
    {"snapshots": snapshots, "queue": queue}[what](endpoint)
    # From here on, permissions are enforced.
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    others = {name: value for name, value in os.environ.items() if name not in own}
    sys.exit(subprocess.run(command, env=others | ENVIRONMENT, check=False).returncode)


main()
