"""Lists the resources in the account by CloudFormation type."""

from aws import STACK, expect, pages

# How to list the resources of each type: service, operation, list in the response, and name.
LISTS = """
ApiGatewayV2::Api           apigatewayv2    get_apis                    Items                ApiId
CloudFormation::Stack       cloudformation  describe_stacks             Stacks               StackName
CloudWatch::Alarm           cloudwatch      describe_alarms             MetricAlarms         AlarmName
CloudWatch::Dashboard       cloudwatch      list_dashboards             DashboardEntries     DashboardName
DynamoDB::Table             dynamodb        list_tables                 TableNames
Events::Rule                events          list_rules                  Rules                Name
IAM::ManagedPolicy          iam             list_policies               Policies             Arn
IAM::Role                   iam             list_roles                  Roles                RoleName
KMS::Key                    kms             list_keys                   Keys                 KeyId
Lambda::EventSourceMapping  lambda          list_event_source_mappings  EventSourceMappings  UUID
Lambda::Function            lambda          list_functions              Functions            FunctionName
Logs::LogGroup              logs            describe_log_groups         logGroups            logGroupName
Pipes::Pipe                 pipes           list_pipes                  Pipes                Name
S3::Bucket                  s3              list_buckets                Buckets              Name
SNS::Subscription           sns             list_subscriptions          Subscriptions        SubscriptionArn
SNS::Topic                  sns             list_topics                 Topics               TopicArn
SQS::Queue                  sqs             list_queues                 QueueUrls
"""
# Parts of other resources, deleted together with them.
PARTS = {"ApiGatewayV2::Stage", "Lambda::EventInvokeConfig", "Lambda::Permission", "Logs::MetricFilter", "S3::BucketPolicy"}
PARTS |= {"SQS::QueuePolicy"}


def contents():
    """Returns the names of all resources in the account, by type."""
    found = {}
    for kind, service, operation, key, *name in map(str.split, LISTS.strip().splitlines()):
        items = pages(service, operation, key, **({"Scope": "Local"} if operation == "list_policies" else {}))
        found[f"AWS::{kind}"] = {item[name[0]] if name else item for item in items}
    return found


def added(before, after):
    """Returns the added resources, without empty types."""
    return {kind: after[kind] - before[kind] for kind in after if after[kind] - before[kind]}


def check_lists(before):
    """Checks that the lists contain all resources of the stack. Otherwise, they could miss leftovers."""
    after = added(before, contents())
    for resource in pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=STACK):
        kind, name = resource["ResourceType"], resource["PhysicalResourceId"]
        if kind.removeprefix("AWS::") not in PARTS:
            expect(name in after.get(kind, ()), f"{name} of the stack is not listed as {kind}: {after.get(kind)}")
    return sum(len(names) for names in after.values())
