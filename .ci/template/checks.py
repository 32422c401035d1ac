"""Checks mistakes in template.yaml that AWS accepts silently, and the cost of an idle stack.

The emulated account and cfn-lint test the rest, and tests/api/deployment.rs compares roles with the functions' calls.
"""

import json
import shlex
import sys

import tomlkit
from created import EVERYTHING, created, of_type
from samtranslator.yaml_helper import yaml_parse

RESOURCES = created(**EVERYTHING, Tracing="true")
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


def access_log():
    text, values = of_type(RESOURCES, "ApiGatewayV2::Stage")["ApiApiGatewayDefaultStage"]["AccessLogSettings"]["Format"]["Fn::Sub"]
    condition, *addresses = values["Address"]["Fn::If"]
    lines = [json.loads(text.replace("${Address}", address)) for address in addresses]
    assert condition == "LogsAddresses" and ["address" in line for line in lines] == [True, False], f"the access log has {lines}"
    assert "\n" not in text, "API Gateway rejects a format of several lines"


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
    assert expected["total"][0] <= 2.30 and expected["total"][1] <= 1.60, f"an idle month costs {expected['total']}"

    counted = [name for name, resource in SMALLEST.items() if resource["Type"] != "AWS::Lambda::Permission"]
    assert len(counted) <= 45, f"the smallest stack has {len(counted)} resources"
    functions = set(of_type(WITH_ALARMS, "Lambda::Function")) - set(of_type(SMALLEST, "Lambda::Function"))
    assert functions == {"FanoutFunction", "DeliverFunction"}, f"without webhooks, there is no {functions}"
    assert not of_type(SMALLEST, "SQS::Queue"), "queues without webhooks"
    modes = {str(function["TracingConfig"]["Mode"]) for function in of_type(WITH_ALARMS, "Lambda::Function").values()}
    assert modes == {str({"Fn::If": ["IsTraced", "Active", "PassThrough"]})}, f"functions are traced: {modes}"


def environment(name):
    """Checks the parameters of an environment in samconfig.toml by the template's rules, as `sam deploy` does later."""
    with open("samconfig.toml", encoding="utf-8") as file:
        given = tomlkit.load(file)[name]["deploy"]["parameters"].get("parameter_overrides", "")
    created(**dict(part.split("=", 1) for part in (shlex.split(given) if isinstance(given, str) else given)))


for name in sys.argv[1:]:
    environment(name)
for part in (roles, routes, access_log, events, idle):
    part()
print(f"template: {len(RESOURCES)} resources, of which the smallest stack has {len(SMALLEST)}")
