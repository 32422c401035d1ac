"""What is in the account, by types of resources of CloudFormation."""

from aws import STACK, expect, pages

# How to list the resources of a type: service, operation, and what lists them in the response and names each.
LISTS = {
    "AWS::ApiGatewayV2::Api": ("apigatewayv2", "get_apis", "Items", "ApiId"),
    "AWS::CloudFormation::Stack": ("cloudformation", "describe_stacks", "Stacks", "StackName"),
    "AWS::CloudWatch::Alarm": ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    "AWS::CloudWatch::Dashboard": ("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
    "AWS::DynamoDB::Table": ("dynamodb", "list_tables", "TableNames", None),
    "AWS::Events::Rule": ("events", "list_rules", "Rules", "Name"),
    "AWS::IAM::ManagedPolicy": ("iam", "list_policies", "Policies", "Arn"),
    "AWS::IAM::Role": ("iam", "list_roles", "Roles", "RoleName"),
    "AWS::KMS::Key": ("kms", "list_keys", "Keys", "KeyId"),
    "AWS::Lambda::EventSourceMapping": ("lambda", "list_event_source_mappings", "EventSourceMappings", "UUID"),
    "AWS::Lambda::Function": ("lambda", "list_functions", "Functions", "FunctionName"),
    "AWS::Logs::LogGroup": ("logs", "describe_log_groups", "logGroups", "logGroupName"),
    "AWS::Pipes::Pipe": ("pipes", "list_pipes", "Pipes", "Name"),
    "AWS::S3::Bucket": ("s3", "list_buckets", "Buckets", "Name"),
    "AWS::SNS::Subscription": ("sns", "list_subscriptions", "Subscriptions", "SubscriptionArn"),
    "AWS::SNS::Topic": ("sns", "list_topics", "Topics", "TopicArn"),
    "AWS::SQS::Queue": ("sqs", "list_queues", "QueueUrls", None),
}
# These are parts of others, and end with them.
PARTS = {
    "AWS::ApiGatewayV2::Stage",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::Permission",
    "AWS::Logs::MetricFilter",
    "AWS::S3::BucketPolicy",
    "AWS::SQS::QueuePolicy",
}


def contents():
    """Returns the names of what is in the account, by type."""
    found = {}
    for kind, (service, operation, key, name) in LISTS.items():
        arguments = {"Scope": "Local"} if operation == "list_policies" else {}
        items = pages(service, operation, key, **arguments)
        found[kind] = {item[name] if name else item for item in items}
    return found


def added(before, after):
    """Returns what was added, without types of which nothing was."""
    difference = {kind: after[kind] - before[kind] for kind in after}
    return {kind: names for kind, names in difference.items() if names}


def check_lists(before):
    """Checks that the lists show everything that the stack has: else they couldn't show what it leaves."""
    after = added(before, contents())
    for resource in pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=STACK):
        kind, name = resource["ResourceType"], resource["PhysicalResourceId"]
        if kind not in PARTS:
            expect(kind in LISTS, f"{kind} is not among the types that are checked after the stack's deletion")
            expect(name in after.get(kind, ()), f"{name} of the stack is not listed as {kind}: {after.get(kind)}")
    return sum(len(names) for names in after.values())
