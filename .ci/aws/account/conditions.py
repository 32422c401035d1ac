"""Condition keys that MiniStack lacks. Without them, every request would match a condition on dynamodb:LeadingKeys, and none
a condition on kms:EncryptionContext.
"""

import json
import re

# DynamoDB Streams actions don't support the condition key dynamodb:LeadingKeys.
STREAM = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")


def requested(request):
    """Yields the parts of a request with a key, an item or a key condition."""
    yield request
    for item in request.get("TransactItems", []):
        yield from item.values()
    for table in request.get("RequestItems", {}).values():
        if isinstance(table, dict):
            yield from ({"Key": key} for key in table["Keys"])
        else:
            yield from (part for write in table for part in write.values())


def leading_keys(request):
    """Returns the partition keys in a request. Here, the partition key of every table and index is PK."""
    found = set()
    for part in requested(request):
        key = part.get("Key") or part.get("Item")
        if key:
            found.add(key["PK"]["S"])
        names, values = part.get("ExpressionAttributeNames") or {}, part.get("ExpressionAttributeValues") or {}
        for name, value in re.findall(r"([#\w]+)\s*=\s*(:\w+)", part.get("KeyConditionExpression") or ""):
            if names.get(name, name) == "PK":
                found.add(values[value]["S"])
    return sorted(found)


def with_keys(original):
    def context(service, action, body, parameters):
        keys = original(service, action, body, parameters)
        if service == "dynamodb" and action not in STREAM:
            named = leading_keys(json.loads(body or b"{}"))
            return keys | {"dynamodb:LeadingKeys": named} if named else keys
        if service == "kms":
            given = json.loads(body or b"{}").get("EncryptionContext") or {}
            return keys | {f"kms:EncryptionContext:{name}": value for name, value in given.items()}
        return keys

    return context
