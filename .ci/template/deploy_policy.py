"""Compares docs/policies/deploy.json, the policy for deployments, with the template's resources."""

import json
from fnmatch import fnmatchcase

from created import created
from findings import check, end

# For each type of resource, the action that creates it, and an address as CloudFormation generates it.
CREATIONS = {
    "AWS::ApiGatewayV2::Api": ("apigateway:POST", "arn:aws:apigateway:REGION::/apis"),
    "AWS::ApiGatewayV2::ApiMapping": ("apigateway:POST", "arn:aws:apigateway:REGION::/domainnames/example.com/apimappings"),
    "AWS::ApiGatewayV2::DomainName": ("apigateway:POST", "arn:aws:apigateway:REGION::/domainnames"),
    "AWS::ApiGatewayV2::Stage": ("apigateway:POST", "arn:aws:apigateway:REGION::/apis/a1/stages"),
    "AWS::Budgets::Budget": ("budgets:ModifyBudget", "arn:aws:budgets::ACCOUNT:budget/STACK-Budget-1"),
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


# What else CloudFormation and the SAM CLI do: "Using service-linked roles for API Gateway" in its guide, for a custom domain, and
# `sam delete`, which removes the uploads.
ELSE = [
    (
        "iam:CreateServiceLinkedRole",
        "arn:aws:iam::ACCOUNT:role/aws-service-role/ops.apigateway.amazonaws.com/AWSServiceRoleForAPIGateway",
    ),
    ("s3:DeleteObject", "arn:aws:s3:::aws-sam-cli-managed-default-samclisourcebucket-1/asset-lifecycle-dev/1"),
]

# Every type that the template can have.
EVERYTHING = {
    "AlarmEmail": "ops@example.com",
    "MonthlyBudget": 20,
    "Dashboard": "true",
    "EventBusArn": "arn:aws:events:REGION:ACCOUNT:event-bus/inventory",
    "DomainName": "example.com",
    "HostedZoneId": "HOSTED-ZONE",
}


def main():
    with open("docs/policies/deploy.json", encoding="utf-8") as file:
        statements = json.load(file)["Statement"]

    def granting(action, resource):
        return [
            statement
            for statement in statements
            if any(fnmatchcase(action, pattern) for pattern in statement["Action"])
            and any(fnmatchcase(resource, pattern) for pattern in statement["Resource"])
        ]

    kinds = sorted({resource["Type"] for resource in created(**EVERYTHING).values()})
    for kind in kinds:
        check(kind in CREATIONS, f"which action creates {kind}?")
    check(set(CREATIONS) <= set(kinds), f"the template has no {set(CREATIONS) - set(kinds)}")
    for action, resource in [CREATIONS[kind] for kind in kinds if kind in CREATIONS] + ELSE:
        resource = resource.replace("STACK", "asset-lifecycle-dev")
        check(granting(action, resource), f"does not permit {action} on {resource}")
    roles = [statement for statement in statements if "iam:CreateServiceLinkedRole" in statement["Action"]]
    service = {"StringEquals": {"iam:AWSServiceName": "ops.apigateway.amazonaws.com"}}
    check([role.get("Condition") for role in roles] == [service], "permits roles of other services")
    # Nor snapshots, which have names.
    check(not granting("s3:DeleteObject", "arn:aws:s3:::asset-lifecycle-dev-snapshotbucket-1/x"), "permits to delete snapshots")
    for action in DATA:
        granted = any(fnmatchcase(action, pattern) for statement in statements for pattern in statement["Action"])
        check(not granted, f"permits {action}")
    everywhere = {action for statement in statements if "*" in statement["Resource"] for action in statement["Action"]}
    everywhere -= {"kms:CreateKey", "kms:TagResource"}
    check(all("Log" in a or "ResourcePolic" in a for a in everywhere), f"permits {everywhere} on everything")
    end("docs/policies/deploy.json", f"deploy policy: {len(kinds)} types of resources")


main()
