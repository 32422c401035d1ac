"""Compares docs/policies with AWS's service authorization reference (policy_sentry's copy), with IAM's limits, and with the
actions that CloudFormation needs for the template's resources (cfn-lint's copy of the resource schemas).
"""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

from cfnlint.data import AdditionalSpecs
from cfnlint.helpers import load_resource
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER
from created import EVERYTHING, created
from policy_sentry.shared.iam_data import get_service_prefix_data

# "IAM and AWS STS quotas": characters of a managed policy, without white space.
LIMIT = 6144
# Actions in CloudFormation's lists that are only for properties that the template doesn't set, and for data.
UNUSED = """
apigateway:*Getobject billing:* ec2:* elasticfilesystem:* firehose:* kinesis:* s3files:* s3tables:* route53:ListHostedZones
dynamodb:*Item dynamodb:Query dynamodb:Scan dynamodb:DeleteTable dynamodb:*Import* dynamodb:*Replica dynamodb:*ableKinesis*
dynamodb:UpdateKinesis* dynamodb:UpdateContributorInsights dynamodb:PutResourcePolicy dynamodb:DeleteResourcePolicy
iam:*Group* iam:*UserPolicy iam:*PermissionsBoundary kms:*Grant kms:*crypt kms:GenerateDataKey kms:ListAliases kms:*ableKey
lambda:AssociateRuntimeAlias lambda:DeleteFunctionCode* lambda:GetCode* lambda:GetLayerVersion lambda:PassCapacityProvider
lambda:PublishVersion lambda:PutFunctionCode* lambda:PutFunctionScaling* lambda:PutRuntime* logs:*KmsKey logs:*LogStream*
logs:DeleteDataProtection* logs:DeleteIndexPolicy logs:DeleteResourcePolicy logs:Put*Protection* logs:PutBearer*
logs:PutIndexPolicy logs:PutLogEvents s3:*MetadataTable* s3:*Metadata*TableConfiguration s3:DeleteBucket[!P]* s3:DeleteObject
s3:GetObject* s3:getObject s3:PutAccelerate* s3:PutAnalytics* s3:PutIntelligent* s3:PutInventory* s3:PutMetrics* s3:PutObject*
s3:PutReplication* s3:REST.* sns:PutDataProtectionPolicy
""".split()
# CloudFormation's names begin with the stack's name, except those of keys, event source mappings, pipes and dashboards. SAM has
# its own stack and bucket.
NAMES = (
    r"[:/](asset-lifecycle|aws-sam-cli-managed-default)-\*(/\*)?|aws-sam-cli-managed-default/\*|(key|pipe|dashboard|change)/\*"
    r"|event-source-mapping:\*|::/(apis|domainnames|tags)(/\*)?|hostedzone/HOSTED-ZONE|(transform/Serverless|AWSServiceRole).*"
)
# Nobody who only deploys or operates can read or write the tenants' data, or delete the table.
DATA = """
dynamodb:GetItem dynamodb:BatchGetItem dynamodb:Query dynamodb:Scan dynamodb:PutItem dynamodb:DeleteItem dynamodb:DeleteTable
kms:Decrypt kms:Encrypt
""".split()


# cfn-lint's copy of the reference is newer and has all of API Gateway, but lacks the condition keys of actions.
LINTED = load_resource(AdditionalSpecs, "Policies.json")


def policy(name):
    return json.loads(Path(f"docs/policies/{name}.json").read_text(encoding="utf-8"))["Statement"]


def references(action):
    """Returns the ARN formats of the action's resource types by each of two copies of the reference, and its condition keys."""
    prefix, name = action.split(":")
    service, copy = get_service_prefix_data(prefix), LINTED[prefix]
    types = service["privileges"][name]["resource_types"]
    kinds = [service["resources"][kind] for kind in types if kind]
    keys = {key for it in [*types.values(), *kinds] for key in it["condition_keys"]}
    linted = copy["Actions"].get(name.lower(), {}).get("Resources", [])
    formats = [arn.replace(".*", "${AnyPath}") for kind in linted for arn in copy["Resources"][kind.lower()]["ARNFormats"]]
    return [it["arn"] for it in kinds], formats, keys


def expanded(pattern):
    prefix, name = pattern.split(":")
    return [f"{prefix}:{it}" for it in get_service_prefix_data(prefix)["privileges"] if fnmatchcase(it, name)]


def fits(arn, form):
    """Returns whether a pattern of a policy can stand for ARNs of this format."""
    form = re.sub(r"\\\$\\\{\w*(Path|ObjectName|LogGroupName)\\\}", ".+", re.escape(form))
    return re.fullmatch(re.sub(r"\\\$\\\{\w+\\\}", "[^:/]+", form), arn) is not None


def check_statement(where, statement, cloudformations):
    # The reference doesn't have the transforms of CloudFormation.
    resources = [it for it in statement["Resource"] if ":transform/" not in it]
    unused = set(resources) - {"*"}
    for pattern in statement["Action"]:
        actions = expanded(pattern)
        assert actions or pattern in cloudformations, f"{where}: there is no action {pattern}"
        for action in actions:
            *formats, keys = references(action)
            fitting = {arn for arn in resources for form in formats[0] + formats[1] if fits(arn, form)}
            conditions = {key for condition in statement.get("Condition", {}).values() for key in condition}
            if resources == ["*"]:
                assert conditions or not all(formats), f"{where}: {action} can be limited to {formats[0]}"
            else:
                assert all(formats), f"{where}: {action} has no resource types, so it needs *"
                assert fitting, f"{where}: {action} has none of {resources}, but {formats[0]}"
            general = {re.sub(r"(?<=Tag/).*|(?<=EncryptionContext:).*", "${}", key) for key in conditions}
            known = {re.sub(r"\$\{\w+\}", "${}", key) for key in keys}
            assert general <= known, f"{where}: {action} doesn't support {conditions}"
            unused -= fitting
    assert not unused, f"{where}: no action has the resource {unused}"


def permits(statements, action):
    return any(fnmatchcase(action, pattern) for it in statements for pattern in it["Action"])


def main():
    names = sorted(file.stem for file in Path("docs/policies").glob("*.json"))
    deploy = [statement for name in names if name.startswith("deploy") for statement in policy(name)]
    kinds = sorted({resource["Type"] for resource in created(**EVERYTHING).values()})
    schemas = [PROVIDER_SCHEMA_MANAGER.get_resource_schema("eu-central-1", kind).schema for kind in kinds]
    needed = {}
    for kind, schema in zip(kinds, schemas, strict=True):
        handlers = [schema["handlers"].get(name, {}) for name in ("create", "read", "update", "delete")]
        needed |= {action: kind for handler in handlers for action in handler.get("permissions", [])}
    for name in names:
        text = "".join(Path(f"docs/policies/{name}.json").read_text(encoding="utf-8").split())
        assert len(text) <= LIMIT, f"{name}.json has {len(text)} characters"
        for statement in policy(name):
            check_statement(f"{name}.json, {statement['Sid']}", statement, needed)
    for action, kind in needed.items():
        unused = any(fnmatchcase(action, pattern) for pattern in UNUSED)
        assert unused or permits(deploy, action), f"{kind} needs {action}, which the policies for deployment lack"
    for arn in {arn for statement in deploy for arn in statement["Resource"]} - {"*"}:
        assert re.search(f"({NAMES})$", arn), f"CloudFormation doesn't generate names like {arn}"
    for action in DATA:
        assert not permits(deploy + policy("operate"), action), f"who deploys or operates can call {action}"
    # Snapshots contain names.
    reading = [it for it in deploy if permits([it], "s3:GetObject") and any("/asset-lifecycle" in arn for arn in it["Resource"])]
    assert not reading, f"who deploys can read {reading}"
    print(f"policies: {len(names)}, whose actions, resources and condition keys the reference has")


main()
