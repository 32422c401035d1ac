"""Checks what AWS accepts in template.yaml, and what fails in silence then: roles that allow too much, settings of routes that don't
exist, events that are lost. The emulated account deploys the rest, and cfn-lint checks it.
"""

from created import created, of_type
from findings import check, end
from samtranslator.yaml_helper import yaml_parse

# The actions that Lambda and pipes read a stream with. They have no leading keys.
STREAM_ACTIONS = {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"}


def check_roles(resources):
    policies = {name: [policy] for name, policy in of_type(resources, "AWS::IAM::ManagedPolicy").items()}
    for name, role in of_type(resources, "AWS::IAM::Role").items():
        for arn in role.get("ManagedPolicyArns", []):
            # Not those of AWS, which allow more.
            check(isinstance(arn, dict) and arn.get("Ref") in policies, f"{name} has the policy {arn}")
        policies[name] = role.get("Policies", [])
    for name, documents in policies.items():
        statements = [statement for policy in documents for statement in policy["PolicyDocument"]["Statement"]]
        # A statement may depend on a parameter.
        for statement in (statement["Fn::If"][1] if "Fn::If" in statement else statement for statement in statements):
            actions, resource = statement["Action"], statement["Resource"]
            actions = actions if isinstance(actions, list) else [actions]
            check(not any("*" in action for action in actions), f"{name}: {actions}")
            check(resource != "*" or statement["Sid"] == "Traces", f"{name}: {statement['Sid']} allows every resource")
            table = any(action.startswith("dynamodb:") and action not in STREAM_ACTIONS for action in actions)
            check(not table or "dynamodb:LeadingKeys" in str(statement.get("Condition")), f"{name}: no condition on leading keys")


def check_routes(resources):
    """AWS refuses settings of routes that don't exist."""
    paths = of_type(resources, "AWS::ApiGatewayV2::Api")["Api"]["Body"]["paths"]
    names = {"x-amazon-apigateway-any-method": "ANY"}
    known = {f"{names.get(method, method.upper())} {path}" for path, item in paths.items() for method in item}
    for route in of_type(resources, "AWS::ApiGatewayV2::Stage")["ApiApiGatewayDefaultStage"]["RouteSettings"]:
        check(route in known, f"RouteSettings: there is no route {route}")


def check_events(resources):
    queues, mappings = of_type(resources, "AWS::SQS::Queue"), of_type(resources, "AWS::Lambda::EventSourceMapping")
    timeout = of_type(resources, "AWS::Lambda::Function")["DeliverFunction"]["Timeout"]
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
    total = sum(PARAMETERS[name]["Default"] for name in ("DeliveryConcurrency", "RetryConcurrency"))
    check(PARAMETERS["DeliverReservedConcurrency"]["Default"] >= total, "fewer instances than its event sources take")
    pipe = of_type(resources, "AWS::Pipes::Pipe")["EventBusPipe"]
    check(pipe["Source"] == stream["EventSourceArn"], "the pipe has another stream")
    # Both see the same events.
    check(pipe["SourceParameters"]["FilterCriteria"] == stream["FilterCriteria"], "the pipe has another filter")


with open("template.yaml", encoding="utf-8") as file:
    PARAMETERS = yaml_parse(file.read())["Parameters"]
RESOURCES = created(EventBusArn="arn:aws:events:eu-central-1:123456789012:event-bus/inventory", Tracing="true")
for part in (check_roles, check_routes, check_events):
    part(RESOURCES)
end("template.yaml", f"template: {len(RESOURCES)} resources")
