"""People with the policies in docs/policies, filled in as the documents say."""

import json
import os
from pathlib import Path

from aws import client

POLICIES = Path(__file__).parents[3] / "docs/policies"
PLACE = {"REGION": "us-east-1", "ACCOUNT": "123456789012", "HOSTED-ZONE": "Z1"}
# MiniStack calls log groups /aws/cloudformation/<stack>/<logical ID>; in AWS, they begin with the stack's name.
PLACE["log-group:asset-lifecycle-"] = "log-group:/aws/cloudformation/asset-lifecycle-"


def person(name, *policies, **words):
    """Creates a user with these policies, and returns the environment for their commands."""
    iam = client("iam")
    iam.create_user(UserName=name)
    for policy in policies:
        document = (POLICIES / f"{policy}.json").read_text(encoding="utf-8")
        for word, value in (PLACE | {key.replace("_", "-"): value for key, value in words.items()}).items():
            document = document.replace(word, value)
        # In the user, as these managed policies would be among the leftovers of the stack.
        iam.put_user_policy(UserName=name, PolicyName=policy, PolicyDocument=json.dumps(json.loads(document)))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return os.environ | {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
