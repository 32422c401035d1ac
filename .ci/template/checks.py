"""Checks mistakes in template.yaml that AWS accepts silently, the cost of an idle stack, and the deployer's policy.

The emulated account and cfn-lint test the rest, and tests/api/deployment.rs compares roles with the functions' calls.
"""

import json
from fnmatch import fnmatchcase

from created import created, of_type
from samtranslator.yaml_helper import yaml_parse

# Parameter values for every kind of template.
EVERYTHING = {
    "AlarmEmail": "ops@example.com",
    "MonthlyBudget": 20,
    "Dashboard": "true",
    "EventBusArn": "arn:aws:events:REGION:ACCOUNT:event-bus/inventory",
    "DomainName": "example.com",
    "HostedZoneId": "HOSTED-ZONE",
    "Tracing": "true",
}
RESOURCES = created(**EVERYTHING)
WITH_ALARMS = created(AlarmEmail="ops@example.com")
SMALLEST = created(Webhooks="false")


def roles():
    """Checks that no role has wildcards. tests/api/deployment.rs compares the roles of functions with their calls."""
    policies = [policy for role in of_type(RESOURCES, "IAM::Role").values() for policy in role.get("Policies", [])]
    for policy in [*policies, *of_type(RESOURCES, "IAM::ManagedPolicy").values()]:
        for statement in policy["PolicyDocument"]["Statement"]:
            # A statement can depend on a parameter.
            statement = statement["Fn::If"][1] if "Fn::If" in statement else statement
            assert "*" not in "".join(statement["Action"]), f"allows {statement['Action']}"
            assert statement["Resource"] != "*" or statement["Sid"] == "Traces", f"{statement['Sid']} allows every resource"


def routes():
    """Checks that route settings refer to existing routes, because AWS rejects others."""
    paths = of_type(RESOURCES, "ApiGatewayV2::Api")["Api"]["Body"]["paths"]
    known = {f"{method} {path}".replace("x-amazon-apigateway-any-method", "any") for path, item in paths.items() for method in item}
    for route in of_type(RESOURCES, "ApiGatewayV2::Stage")["ApiApiGatewayDefaultStage"]["RouteSettings"]:
        method, path = route.split(" ")
        assert f"{method.lower()} {path}" in known, f"RouteSettings: there is no route {route}"


def events():
    queues, mappings = of_type(RESOURCES, "SQS::Queue"), of_type(RESOURCES, "Lambda::EventSourceMapping")
    timeout = of_type(RESOURCES, "Lambda::Function")["DeliverFunction"]["Timeout"]
    for name in ("DeliveryQueue", "RetryQueue"):
        assert queues[name]["VisibilityTimeout"] >= 6 * timeout, f"{name}: messages come back while they are handled"
        dead_letters = queues[name]["RedrivePolicy"]["deadLetterTargetArn"]
        assert dead_letters == {"Fn::GetAtt": ["DeliveryDeadLetters", "Arn"]}, f"{name}: dead letters"
    for name, properties in mappings.items():
        assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"], f"{name}: one failure repeats the batch"
    stream = mappings["FanoutFunctionStream"]
    failures = {"Fn::GetAtt": ["StreamFailures", "Arn"]}
    assert stream["StartingPosition"] == "TRIM_HORIZON", "events could be missed"
    assert stream["BisectBatchOnFunctionError"] is True, "one event keeps its whole batch from being sent"
    assert stream["DestinationConfig"]["OnFailure"]["Destination"] == failures, "events are lost without a trace"
    # The stream keeps records for 24 hours, of which enough must remain to investigate a failure.
    assert stream["MaximumRecordAgeInSeconds"] <= 12 * 3600, "failures are reported too late"
    with open("template.yaml", encoding="utf-8") as file:
        defaults = {name: parameter.get("Default") for name, parameter in yaml_parse(file.read())["Parameters"].items()}
    total = defaults["DeliveryConcurrency"] + defaults["RetryConcurrency"]
    assert defaults["DeliverReservedConcurrency"] >= total, "fewer instances than its event sources take"
    pipe = of_type(RESOURCES, "Pipes::Pipe")["EventBusPipe"]
    assert pipe["Source"] == stream["EventSourceArn"], "the pipe has a different stream"
    # Both consumers see the same events.
    assert pipe["SourceParameters"]["FilterCriteria"] == stream["FilterCriteria"], "the pipe has a different filter"


def paid(resources):
    """Returns dollars per month, from docs/costs.md. Lambda polls a queue 657,000 times a month, even if it is empty."""
    sources = [mapping["EventSourceArn"] for mapping in of_type(resources, "Lambda::EventSourceMapping").values()]
    queues = [source for source in sources if source.get("Fn::GetAtt", [""])[0] in of_type(resources, "SQS::Queue")]
    rows = {
        "KMS key": 1.00 * len(of_type(resources, "KMS::Key")),
        "alarms": 0.10 * len(of_type(resources, "CloudWatch::Alarm")),
        "polling the delivery queue and the retry queue": 0.26 * len(queues),
        "snapshot schedule": 0.05 * len(of_type(resources, "Events::Rule")),
    }
    assert not of_type(resources, "CloudWatch::Dashboard"), "a dashboard costs 3 dollars"
    return rows | {"total": sum(rows.values())}


def idle():
    with open("docs/costs.md", encoding="utf-8") as file:
        section = file.read().split("## An idle month\n")[1].split("\n## ")[0]
    lines = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    stated = {name: [float(value) for value in values] for name, *values in lines[2:]}
    columns = [paid(it) for it in (WITH_ALARMS, created(AlarmEmail="ops@example.com", Webhooks="false"), SMALLEST)]
    expected = {name: [round(column[name], 2) for column in columns] for name in columns[0]}
    assert stated == expected, f"docs/costs.md has {stated} instead of {expected}"
    assert expected["total"][0] <= 2.20 and expected["total"][1] <= 1.60, f"an idle month costs {expected['total']}"

    counted = [name for name, resource in SMALLEST.items() if resource["Type"] != "AWS::Lambda::Permission"]
    assert len(counted) <= 45, f"the smallest stack has {len(counted)} resources"
    functions = set(of_type(WITH_ALARMS, "Lambda::Function")) - set(of_type(SMALLEST, "Lambda::Function"))
    assert functions == {"FanoutFunction", "DeliverFunction"}, f"without webhooks, there is no {functions}"
    assert not of_type(SMALLEST, "SQS::Queue"), "queues without webhooks"
    modes = {str(function["TracingConfig"]["Mode"]) for function in of_type(WITH_ALARMS, "Lambda::Function").values()}
    assert modes == {str({"Fn::If": ["IsTraced", "Active", "PassThrough"]})}, f"functions are traced: {modes}"


# For each resource type, the action that creates it, and an ARN as CloudFormation generates it.
CREATIONS = """
ApiGatewayV2::Api           apigateway:POST                      arn:aws:apigateway:REGION::/apis
ApiGatewayV2::ApiMapping    apigateway:POST                      arn:aws:apigateway:REGION::/domainnames/example.com/apimappings
ApiGatewayV2::DomainName    apigateway:POST                      arn:aws:apigateway:REGION::/domainnames
ApiGatewayV2::Stage         apigateway:POST                      arn:aws:apigateway:REGION::/apis/a1/stages
Budgets::Budget             budgets:ModifyBudget                 arn:aws:budgets::ACCOUNT:budget/STACK-Budget-1
CloudWatch::Alarm           cloudwatch:PutMetricAlarm            arn:aws:cloudwatch:REGION:ACCOUNT:alarm:STACK-CrashAlarm-1
CloudWatch::Dashboard       cloudwatch:PutDashboard              arn:aws:cloudwatch::ACCOUNT:dashboard/Dashboard-1
DynamoDB::Table             dynamodb:CreateTable                 arn:aws:dynamodb:REGION:ACCOUNT:table/STACK-Table-1
Events::Rule                events:PutRule                       arn:aws:events:REGION:ACCOUNT:rule/STACK-Rule-1
IAM::ManagedPolicy          iam:CreatePolicy                     arn:aws:iam::ACCOUNT:policy/STACK-Policy-1
IAM::Role                   iam:CreateRole                       arn:aws:iam::ACCOUNT:role/STACK-Role-1
KMS::Key                    kms:CreateKey                        *
Lambda::EventInvokeConfig   lambda:PutFunctionEventInvokeConfig  arn:aws:lambda:REGION:ACCOUNT:function:STACK-Function-1
Lambda::EventSourceMapping  lambda:CreateEventSourceMapping      arn:aws:lambda:REGION:ACCOUNT:event-source-mapping:1
Lambda::Function            lambda:CreateFunction                arn:aws:lambda:REGION:ACCOUNT:function:STACK-Function-1
Lambda::Permission          lambda:AddPermission                 arn:aws:lambda:REGION:ACCOUNT:function:STACK-Function-1
Logs::LogGroup              logs:CreateLogGroup                  arn:aws:logs:REGION:ACCOUNT:log-group:STACK-Logs-1
Logs::MetricFilter          logs:PutMetricFilter                 arn:aws:logs:REGION:ACCOUNT:log-group:STACK-Logs-1
Pipes::Pipe                 pipes:CreatePipe                     arn:aws:pipes:REGION:ACCOUNT:pipe/Pipe-1
Route53::RecordSet          route53:ChangeResourceRecordSets     arn:aws:route53:::hostedzone/HOSTED-ZONE
S3::Bucket                  s3:CreateBucket                      arn:aws:s3:::STACK-snapshotbucket-1
S3::BucketPolicy            s3:PutBucketPolicy                   arn:aws:s3:::STACK-snapshotbucket-1
SNS::Subscription           sns:Subscribe                        arn:aws:sns:REGION:ACCOUNT:STACK-Topic-1
SNS::Topic                  sns:CreateTopic                      arn:aws:sns:REGION:ACCOUNT:STACK-Topic-1
SQS::Queue                  sqs:CreateQueue                      arn:aws:sqs:REGION:ACCOUNT:STACK-Queue-1
SQS::QueuePolicy            sqs:SetQueueAttributes               arn:aws:sqs:REGION:ACCOUNT:STACK-Queue-1
"""
# Further actions of CloudFormation and the SAM CLI: for a custom domain ("Using service-linked roles for API Gateway"), and for
# `sam delete`, which deletes uploads.
SERVICE = "ops.apigateway.amazonaws.com"
LINKED = f"arn:aws:iam::ACCOUNT:role/aws-service-role/{SERVICE}/AWSServiceRoleForAPIGateway"
UPLOAD = "arn:aws:s3:::aws-sam-cli-managed-default-samclisourcebucket-1/STACK/1"
# The deployer can neither read nor write tenant data.
DATA = ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:PutItem", "dynamodb:DeleteTable", "sqs:ReceiveMessage"]
DATA += ["kms:Decrypt", "kms:Encrypt", "lambda:InvokeFunction", "logs:FilterLogEvents"]


def deploy_policy():
    """Compares docs/policies/deploy.json with the template's resources."""
    with open("docs/policies/deploy.json", encoding="utf-8") as file:
        statements = json.load(file)["Statement"]

    def permits(action, resource):
        def fits(statement, key, value):
            return any(fnmatchcase(value, pattern) for pattern in statement[key])

        resource = resource.replace("STACK", "asset-lifecycle-dev")
        return any(fits(it, "Action", action) and fits(it, "Resource", resource) for it in statements)

    creations = {f"AWS::{kind}": creation for kind, *creation in map(str.split, CREATIONS.strip().splitlines())}
    kinds = {resource["Type"] for resource in RESOURCES.values()}
    assert set(creations) == kinds, f"only one of template and CREATIONS has {set(creations) ^ kinds}"
    for action, resource in [*creations.values(), ("iam:CreateServiceLinkedRole", LINKED), ("s3:DeleteObject", UPLOAD)]:
        assert permits(action, resource), f"deploy.json does not permit {action} on {resource}"
    conditions = [it.get("Condition") for it in statements if "iam:CreateServiceLinkedRole" in it["Action"]]
    assert conditions == [{"StringEquals": {"iam:AWSServiceName": SERVICE}}], "deploy.json permits roles of other services"
    # The deployer can't read snapshots either: they contain names.
    assert not permits("s3:DeleteObject", "arn:aws:s3:::STACK-snapshotbucket-1/x"), "deploy.json permits deleting snapshots"
    for action in DATA:
        granted = any(fnmatchcase(action, pattern) for it in statements for pattern in it["Action"])
        assert not granted, f"deploy.json permits {action}"
    everywhere = {action for it in statements if "*" in it["Resource"] for action in it["Action"]}
    everywhere -= {"kms:CreateKey", "kms:TagResource"}
    assert all("Log" in action or "ResourcePolic" in action for action in everywhere), f"permits {everywhere} on everything"


for part in (roles, routes, events, idle, deploy_policy):
    part()
print(f"template: {len(RESOURCES)} resources, of which the smallest stack has {len(SMALLEST)}")
