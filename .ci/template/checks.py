"""Checks what AWS accepts in template.yaml, and what fails in silence then: alarms on metrics that nobody publishes, roles that
allow too much, events that are lost. The emulated account deploys the rest, and cfn-lint checks it.
"""

import json
import re
import sys
from fnmatch import fnmatchcase

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

# The metrics that AWS publishes for each set of dimensions, as far as they are used here ("Metrics and dimensions" in the
# guides of API Gateway, Lambda, SQS and DynamoDB). For a metric that doesn't exist, AWS raises neither an alarm nor an error.
METRICS = {
    ("AWS/ApiGateway", ("ApiId",)): {"Count", "4xx", "5xx", "Latency"},
    ("AWS/Lambda", ("FunctionName",)): {"Errors", "Throttles", "Duration", "ConcurrentExecutions", "IteratorAge", "RecursiveInvocationsDropped"},
    ("AWS/SQS", ("QueueName",)): {
        "ApproximateAgeOfOldestMessage",
        "ApproximateNumberOfMessagesDelayed",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesVisible",
        "NumberOfMessagesDeleted",
        "NumberOfMessagesReceived",
        "NumberOfMessagesSent",
    },
    ("AWS/DynamoDB", ("TableName",)): {
        "ReadThrottleEvents",
        "WriteThrottleEvents",
        "TransactionConflict",
        "ConditionalCheckFailedRequests",
        "ConsumedReadCapacityUnits",
        "ConsumedWriteCapacityUnits",
    },
    ("AWS/DynamoDB", ("GlobalSecondaryIndexName", "TableName")): {
        "ReadThrottleEvents",
        "WriteThrottleEvents",
        "ConsumedReadCapacityUnits",
        "ConsumedWriteCapacityUnits",
    },
    ("AWS/DynamoDB", ("Operation", "TableName")): {"SystemErrors", "SuccessfulRequestLatency"},
    # Our own, which metric filters of the template count.
    ("${AWS::StackName}", ()): {"UncountedRequests", "UnreadableRecords", "OversizedLists", "UnusedSnapshots"},
}

# For each type of resource, the action that creates it, and an address as CloudFormation generates it.
CREATIONS = {
    "AWS::ApiGatewayV2::Api": ("apigateway:POST", "arn:aws:apigateway:REGION::/apis"),
    "AWS::ApiGatewayV2::ApiMapping": ("apigateway:POST", "arn:aws:apigateway:REGION::/domainnames/example.com/apimappings"),
    "AWS::ApiGatewayV2::DomainName": ("apigateway:POST", "arn:aws:apigateway:REGION::/domainnames"),
    "AWS::ApiGatewayV2::Stage": ("apigateway:POST", "arn:aws:apigateway:REGION::/apis/a1/stages"),
    "AWS::CloudWatch::Alarm": ("cloudwatch:PutMetricAlarm", "arn:aws:cloudwatch:REGION:ACCOUNT:alarm:STACK-CrashAlarm-1"),
    "AWS::CloudWatch::Dashboard": ("cloudwatch:PutDashboard", "arn:aws:cloudwatch::ACCOUNT:dashboard/Dashboard-1"),
    "AWS::DynamoDB::Table": ("dynamodb:CreateTable", "arn:aws:dynamodb:REGION:ACCOUNT:table/STACK-Table-1"),
    "AWS::Events::Rule": ("events:PutRule", "arn:aws:events:REGION:ACCOUNT:rule/STACK-Rule-1"),
    "AWS::IAM::ManagedPolicy": ("iam:CreatePolicy", "arn:aws:iam::ACCOUNT:policy/STACK-Policy-1"),
    "AWS::IAM::Role": ("iam:CreateRole", "arn:aws:iam::ACCOUNT:role/STACK-Role-1"),
    "AWS::KMS::Key": ("kms:CreateKey", "*"),
    "AWS::Lambda::EventInvokeConfig": (
        "lambda:PutFunctionEventInvokeConfig",
        "arn:aws:lambda:REGION:ACCOUNT:function:STACK-Function-1",
    ),
    "AWS::Lambda::EventSourceMapping": (
        "lambda:CreateEventSourceMapping",
        "arn:aws:lambda:REGION:ACCOUNT:event-source-mapping:1",
    ),
    "AWS::Lambda::Function": ("lambda:CreateFunction", "arn:aws:lambda:REGION:ACCOUNT:function:STACK-Function-1"),
    "AWS::Lambda::Permission": ("lambda:AddPermission", "arn:aws:lambda:REGION:ACCOUNT:function:STACK-Function-1"),
    "AWS::Logs::LogGroup": ("logs:CreateLogGroup", "arn:aws:logs:REGION:ACCOUNT:log-group:STACK-Logs-1"),
    "AWS::Logs::MetricFilter": ("logs:PutMetricFilter", "arn:aws:logs:REGION:ACCOUNT:log-group:STACK-Logs-1"),
    "AWS::Pipes::Pipe": ("pipes:CreatePipe", "arn:aws:pipes:REGION:ACCOUNT:pipe/Pipe-1"),
    "AWS::Route53::RecordSet": ("route53:ChangeResourceRecordSets", "arn:aws:route53:::hostedzone/HOSTED-ZONE"),
    "AWS::S3::Bucket": ("s3:CreateBucket", "arn:aws:s3:::STACK-snapshotbucket-1"),
    "AWS::S3::BucketPolicy": ("s3:PutBucketPolicy", "arn:aws:s3:::STACK-snapshotbucket-1"),
    "AWS::SNS::Subscription": ("sns:Subscribe", "arn:aws:sns:REGION:ACCOUNT:STACK-Topic-1"),
    "AWS::SNS::Topic": ("sns:CreateTopic", "arn:aws:sns:REGION:ACCOUNT:STACK-Topic-1"),
    "AWS::SQS::Queue": ("sqs:CreateQueue", "arn:aws:sqs:REGION:ACCOUNT:STACK-Queue-1"),
    "AWS::SQS::QueuePolicy": ("sqs:SetQueueAttributes", "arn:aws:sqs:REGION:ACCOUNT:STACK-Queue-1"),
}

# Who deploys neither reads nor writes the data of tenants.
DATA = ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:PutItem", "dynamodb:DeleteTable", "sqs:ReceiveMessage"]
DATA += ["kms:Decrypt", "kms:Encrypt", "lambda:InvokeFunction", "logs:FilterLogEvents"]

# The actions that Lambda and pipes read a stream with. They have no leading keys.
STREAM_ACTIONS = {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"}

ERRORS = []


def check(holds, error):
    if not holds:
        ERRORS.append(error)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def transformed():
    """Returns the template that CloudFormation gets, with every parameter at its default."""
    template = yaml_parse(read("template.yaml"))
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            # `sam package` puts the address of the upload here.
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    parameters = {name: declared.get("Default", "") for name, declared in template["Parameters"].items()}
    # The template has no managed policies of AWS, so none has to be looked up.
    return Translator({}, Parser(), boto_session=boto3.Session(region_name="eu-central-1")).translate(template, parameters)


def of_type(template, kind):
    return {name: r["Properties"] for name, r in template["Resources"].items() if r["Type"] == kind}


def check_roles(template):
    policies = {name: [policy] for name, policy in of_type(template, "AWS::IAM::ManagedPolicy").items()}
    for name, role in of_type(template, "AWS::IAM::Role").items():
        for arn in role.get("ManagedPolicyArns", []):
            # Not those of AWS, which allow more.
            check(isinstance(arn, dict) and arn.get("Ref") in policies, f"{name} has the policy {arn}")
        policies[name] = role.get("Policies", [])
    for name, documents in policies.items():
        for statement in (statement for policy in documents for statement in policy["PolicyDocument"]["Statement"]):
            actions, resource = statement["Action"], statement["Resource"]
            actions = actions if isinstance(actions, list) else [actions]
            check(not any("*" in action for action in actions), f"{name}: {actions}")
            check(resource != "*" or statement["Sid"] == "Traces", f"{name}: {statement['Sid']} allows every resource")
            table = any(action.startswith("dynamodb:") and action not in STREAM_ACTIONS for action in actions)
            check(not table or "dynamodb:LeadingKeys" in str(statement.get("Condition")), f"{name}: no condition on leading keys")


def check_metric(where, namespace, name, dimensions):
    known = METRICS.get((namespace, tuple(sorted(dimensions))), set())
    check(name in known, f"{where}: there is no metric {namespace} {name} by {', '.join(dimensions)}")


def check_alarms(template):
    alarms = of_type(template, "AWS::CloudWatch::Alarm")
    headings = [line.strip("# \n").lower().replace(" ", "-") for line in read("docs/runbook.md").splitlines() if line.startswith("#")]
    total = 0
    for where, alarm in alarms.items():
        metrics = [query["MetricStat"]["Metric"] for query in alarm.get("Metrics", []) if "MetricStat" in query] or [alarm]
        # "Quotas" in the guide of CloudWatch.
        check(len(metrics) <= 10, f"{where} sums up {len(metrics)} metrics; CloudWatch allows 10")
        total += len(metrics)
        for metric in metrics:
            # The namespace of the metrics that log lines are counted in is the name of the stack.
            namespace = metric["Namespace"]
            namespace = "${AWS::StackName}" if namespace == {"Ref": "AWS::StackName"} else namespace
            check_metric(where, namespace, metric["MetricName"], [dimension["Name"] for dimension in metric.get("Dimensions", [])])
        check(alarm["AlarmActions"] == [{"Ref": "AlarmTopic"}], f"{where} notifies nobody")
        description, _, anchor = alarm["AlarmDescription"]["Fn::Sub"].rpartition(" - ${RunbookUrl}#")
        # The impact, the urgency and a command, at most as long as CloudWatch permits with room for names and addresses.
        form = r"[A-Z][^:]*: .*\. Look (now|within the hour|today)\. First: aws [a-z]+ [a-z-]+ .*"
        check(re.fullmatch(form, description) and len(description) <= 600, f"{where}: {description!r} has another form")
        check(anchor in headings, f"{where}: docs/runbook.md has no section {anchor}")
    for metric in ("Errors", "Throttles"):
        watched = set(re.findall(r"'Ref': '(\w+Function)'", str([alarm for alarm in alarms.values() if metric in str(alarm)])))
        functions = set(of_type(template, "AWS::Lambda::Function"))
        check(watched == functions, f"no alarm watches {metric} of {sorted(functions - watched)}")
    check(f"alarm metric ({total} here)" in read("docs/costs.md"), f"docs/costs.md: the alarms watch {total} metrics")
    counted = {t["MetricName"] for f in of_type(template, "AWS::Logs::MetricFilter").values() for t in f["MetricTransformations"]}
    check(counted == METRICS[("${AWS::StackName}", ())], f"metric filters count {sorted(counted)}")
    for widget in json.loads(template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"][0])["widgets"]:
        for namespace, name, *rest in widget["properties"].get("metrics", []):
            check_metric(widget["properties"]["title"], namespace, name, [part for part in rest if isinstance(part, str)][::2])


def check_routes(template):
    """AWS refuses settings of routes that don't exist."""
    paths = of_type(template, "AWS::ApiGatewayV2::Api")["Api"]["Body"]["paths"]
    names = {"x-amazon-apigateway-any-method": "ANY"}
    known = {f"{names.get(method, method.upper())} {path}" for path, item in paths.items() for method in item}
    for route in of_type(template, "AWS::ApiGatewayV2::Stage")["ApiApiGatewayDefaultStage"]["RouteSettings"]:
        check(route in known, f"RouteSettings: there is no route {route}")


def check_events(template):
    queues, mappings = of_type(template, "AWS::SQS::Queue"), of_type(template, "AWS::Lambda::EventSourceMapping")
    timeout = of_type(template, "AWS::Lambda::Function")["DeliverFunction"]["Timeout"]
    for name in ("DeliveryQueue", "RetryQueue"):
        check(queues[name]["VisibilityTimeout"] >= 6 * timeout, f"{name}: messages come back while they are handled")
        dead_letters = queues[name]["RedrivePolicy"]["deadLetterTargetArn"]
        check(dead_letters == {"Fn::GetAtt": ["DeliveryDeadLetters", "Arn"]}, f"{name}: dead letters")
    for name, properties in mappings.items():
        check(properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"], f"{name}: one failure repeats the whole batch")
    stream = mappings["FanoutFunctionStream"]
    failures = {"Fn::GetAtt": ["StreamFailures", "Arn"]}
    check(stream["StartingPosition"] == "TRIM_HORIZON", "events could be missed")
    check(stream["BisectBatchOnFunctionError"] is True, "one event keeps its whole batch from being sent")
    check(stream["DestinationConfig"]["OnFailure"]["Destination"] == failures, "events are lost without a trace")
    # The stream keeps its records for 24 hours: some must be left to look at what failed.
    check(stream["MaximumRecordAgeInSeconds"] <= 12 * 3600, "failures are reported too late")
    parameters = template["Parameters"]
    total = sum(parameters[name]["Default"] for name in ("DeliveryConcurrency", "RetryConcurrency"))
    check(parameters["DeliverReservedConcurrency"]["Default"] >= total, "fewer instances than its event sources take")
    pipe = of_type(template, "AWS::Pipes::Pipe")["EventBusPipe"]
    check(pipe["Source"] == stream["EventSourceArn"], "the pipe has another stream")
    # Both see the same events.
    check(pipe["SourceParameters"]["FilterCriteria"] == stream["FilterCriteria"], "the pipe has another filter")


def check_deploy_policy(template):
    statements = json.loads(read("docs/policies/deploy.json"))["Statement"]

    def permits(action, resource):
        return any(
            any(fnmatchcase(action, pattern) for pattern in statement["Action"])
            and any(fnmatchcase(resource, pattern) for pattern in statement["Resource"])
            for statement in statements
        )

    for kind in sorted({resource["Type"] for resource in template["Resources"].values()}):
        check(kind in CREATIONS, f"docs/policies/deploy.json: which action creates {kind}?")
        action, resource = CREATIONS.get(kind, ("", ""))
        resource = resource.replace("STACK", "asset-lifecycle-dev")
        check(permits(action, resource), f"docs/policies/deploy.json does not permit {action} on {resource}")
    for action in DATA:
        granted = any(fnmatchcase(action, pattern) for statement in statements for pattern in statement["Action"])
        check(not granted, f"docs/policies/deploy.json permits {action}")
    everywhere = {action for statement in statements if "*" in statement["Resource"] for action in statement["Action"]}
    everywhere -= {"kms:CreateKey", "kms:TagResource"}
    check(all("Log" in a or "ResourcePolic" in a for a in everywhere), f"docs/policies/deploy.json: {everywhere} on everything")


TEMPLATE = transformed()
for part in (check_roles, check_alarms, check_routes, check_events, check_deploy_policy):
    part(TEMPLATE)
for error in ERRORS:
    print(f"template.yaml: {error}", file=sys.stderr)
print(f"template: {len(TEMPLATE['Resources'])} resources, {len(ERRORS)} errors")
sys.exit(1 if ERRORS else 0)
