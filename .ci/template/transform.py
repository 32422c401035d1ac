"""Transforms template.yaml as AWS does and checks the result for errors that linters don't find.

tests/api/deployment/template.rs and policies.rs compare routes and permissions with the code.
"""

import json
import re
import sys
from collections import Counter

import boto3
from aws_metrics import METRICS
from deploy_policy import check_deploy_policy
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

ERRORS = []

# The functions that don't serve requests, and how long each may take.
BACKGROUND = {"SnapshotsFunction": 590, "FanoutFunction": 60, "DeliverFunction": 30}

# A table that was restored from a backup.
RESTORED = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${RestoredTable}"

# The actions that Lambda and pipes read a stream with. They have no leading keys.
STREAM_ACTIONS = {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"}

# A function's policy is limited to 20 KB. A permission takes about 440 bytes of it, with names as CloudFormation generates them.
MAX_POLICY_BYTES, PERMISSION_BYTES = 20480, 440


def check(holds, error):
    if not holds:
        ERRORS.append(error)


def transformed():
    """Returns the template that CloudFormation gets, with every parameter at its default."""
    with open("template.yaml", encoding="utf-8") as file:
        template = yaml_parse(file.read())
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            # `sam package` puts the address of the upload here.
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    used = set(references([template[part] for part in ("Globals", "Resources", "Conditions", "Outputs", "Rules")]))
    for name in template["Parameters"]:
        check(name in used, f"the parameter {name} is not used")
    parameters = {name: declared.get("Default", "") for name, declared in template["Parameters"].items()}
    session = boto3.Session(region_name="eu-central-1")
    # The template has no managed policies, so none has to be looked up.
    translator = Translator({}, Parser(), boto_session=session)
    return translator.translate(template, parameters)


def references(value):
    """Yields every name that an intrinsic function refers to."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "Ref":
                yield inner
            elif key == "Fn::GetAtt":
                yield inner[0] if isinstance(inner, list) else inner.split(".")[0]
            elif key == "Fn::Sub":
                text, known = (inner[0], inner[1]) if isinstance(inner, list) else (inner, {})
                names = (name.split(".")[0] for name in re.findall(r"\$\{([^!}]+)\}", text))
                yield from (name for name in names if name not in known)
                yield from references(known)
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def of_type(template, kind):
    return {name: r["Properties"] for name, r in template["Resources"].items() if r["Type"] == kind}


def check_references(template):
    known = set(template["Resources"]) | set(template["Parameters"])
    for name in sorted(set(references([template["Resources"], template["Outputs"]]))):
        check(name in known or name.startswith("AWS::"), f"{name} is referred to but not declared")


def check_functions(template):
    functions = of_type(template, "AWS::Lambda::Function")
    groups = of_type(template, "AWS::Logs::LogGroup")
    roles = of_type(template, "AWS::IAM::Role")
    check(len(functions) == 11, f"{len(functions)} functions")
    # One for each function, and that of the pipe.
    check(len(roles) == len(functions) + 1, "SAM generates a role: " + ", ".join(roles))
    for name, properties in functions.items():
        own = name.removesuffix("Function")
        check(properties["Runtime"] == "provided.al2023", f"{name} runs on {properties['Runtime']}")
        check(properties["Handler"] == "bootstrap", f"{name}: {properties['Handler']}")
        check(properties["Architectures"] == [{"Ref": "Architecture"}], f"{name}: architecture")
        check(properties["Role"] == {"Fn::GetAtt": [f"{own}Role", "Arn"]}, f"{name} has the role of another function")
        if name in BACKGROUND:
            check(properties["Timeout"] == BACKGROUND[name], f"{name}: timeout")
        else:
            check(1 <= properties["Timeout"] < 30, f"{name} can take longer than the gateway waits")
        # 1,769 MB are one core, and functions have one thread.
        check(128 <= properties["MemorySize"] <= 1769, f"{name}: memory")
        # Each part of a replay sends the next one.
        check(properties.get("RecursiveLoop") == ("Allow" if name == "DeliverFunction" else None), f"{name}: recursive loops")
        check(properties["TracingConfig"] == {"Mode": "Active"}, f"{name} is not traced")
        check(properties["LoggingConfig"] == {"LogFormat": "JSON", "LogGroup": {"Ref": "FunctionLogs"}}, f"{name}: logs")
        variables = properties["Environment"]["Variables"]
        check("TABLE_NAME" in variables, f"{name} has no TABLE_NAME")
        check("AWS_LAMBDA_HTTP_IGNORE_STAGE_IN_PATH" in variables, f"{name} would see the stage in paths")
        check("ReservedConcurrentExecutions" in properties, f"{name}: reserved concurrency")
    for name, properties in groups.items():
        check(properties["RetentionInDays"] == {"Ref": "LogRetentionDays"}, f"{name} does not expire its logs")
    check(set(groups) == {"FunctionLogs", "ApiLogs"}, f"log groups {sorted(groups)}")


def check_roles(template):
    shared = of_type(template, "AWS::IAM::ManagedPolicy")
    used = set()
    for name, properties in of_type(template, "AWS::IAM::Role").items():
        for arn in properties.get("ManagedPolicyArns", []):
            # Not those of AWS, which allow more.
            check(arn.get("Ref") in shared if isinstance(arn, dict) else False, f"{name} has the policy {arn}")
            used.add(str(arn))
        check_policies(name, properties.get("Policies", []))
    for name, properties in shared.items():
        check(str({"Ref": name}) in used, f"{name} is not used")
        check_policies(name, [properties])


def check_policies(name, policies):
    for policy in policies:
        for statement in policy["PolicyDocument"]["Statement"]:
            actions, resource = statement["Action"], statement["Resource"]
            actions = actions if isinstance(actions, list) else [actions]
            check(not any("*" in action for action in actions), f"{name}: {actions}")
            check(resource != "*" or statement["Sid"] == "Traces", f"{name}: {statement['Sid']} allows every resource")
            table = any(action.startswith("dynamodb:") and action not in STREAM_ACTIONS for action in actions)
            check(not table or "dynamodb:LeadingKeys" in str(statement.get("Condition")), f"{name}: no condition on leading keys")


def check_api(template):
    api = of_type(template, "AWS::ApiGatewayV2::Api")["Api"]
    body = api["Body"]
    cors = body["x-amazon-apigateway-cors"]
    lists = ("allowOrigins", "allowHeaders", "allowMethods", "exposeHeaders")
    check(all(isinstance(cors.get(name), list) for name in lists), f"CORS requires lists: {cors}")
    routes = Counter()
    for path, item in body["paths"].items():
        for method, operation in item.items():
            uri = str(operation["x-amazon-apigateway-integration"]["uri"])
            function = re.search(r"\$\{(\w+Function)\.Arn\}", uri)
            check(function is not None, f"{method} {path} leads to {uri}")
            version = operation["x-amazon-apigateway-integration"]["payloadFormatVersion"]
            check(version == "2.0", f"{method} {path}: payload {version}")
            routes[function[1] if function else "?"] += 1
            check("security" not in operation, f"{method} {path}: the functions check the keys, not the gateway")
    default = body["paths"].get("$default", {}).get("x-amazon-apigateway-any-method", {})
    check(default.get("isDefaultRoute") is True, "$default is missing")
    permissions = Counter()
    for properties in of_type(template, "AWS::Lambda::Permission").values():
        if properties["Principal"] == "apigateway.amazonaws.com":
            permissions[properties["FunctionName"]["Ref"]] += 1
        check("SourceArn" in properties, "any API may invoke a function")
    check(routes == permissions, f"routes {routes}, permissions {permissions}")
    check(max(permissions.values()) * PERMISSION_BYTES < MAX_POLICY_BYTES, "the policy of a function would exceed 20 KB")
    stage = of_type(template, "AWS::ApiGatewayV2::Stage")["ApiApiGatewayDefaultStage"]
    check(stage["StageName"] == "$default" and stage["AutoDeploy"] is True, "the stage is in the path")
    settings = {"ThrottlingRateLimit", "ThrottlingBurstLimit", "DetailedMetricsEnabled"}
    check(set(stage["DefaultRouteSettings"]) == settings, f"route settings {stage['DefaultRouteSettings']}")
    names = {"x-amazon-apigateway-any-method": "ANY"}
    known = {f"{names.get(method, method.upper())} {path}" for path, item in body["paths"].items() for method in item}
    for route, limits in stage["RouteSettings"].items():
        # AWS refuses settings of routes that don't exist.
        check(route in known, f"RouteSettings: there is no route {route}")
        check(set(limits) == {"ThrottlingRateLimit", "ThrottlingBurstLimit"}, f"{route}: {limits}")
    check(stage["ApiId"] == {"Ref": "Api"}, "the stage could be made before its routes")
    check(set(stage["AccessLogSettings"]) == {"DestinationArn", "Format"}, "access logs")
    return sum(routes.values())


def check_metric(where, namespace, name, dimensions):
    known = METRICS.get((namespace, tuple(sorted(dimensions))), set())
    check(name in known, f"{where}: there is no metric {namespace} {name} by {', '.join(dimensions)}")


def check_alarms(template):
    alarms = of_type(template, "AWS::CloudWatch::Alarm")
    seen = set()
    for where, alarm in alarms.items():
        metrics = [query["MetricStat"]["Metric"] for query in alarm.get("Metrics", []) if "MetricStat" in query]
        # "Quotas" in the guide of CloudWatch.
        check(len(metrics) <= 10, f"{where} sums up {len(metrics)} metrics; CloudWatch allows 10")
        for metric in metrics or [alarm]:
            dimensions = [dimension["Name"] for dimension in metric.get("Dimensions", [])]
            # The namespace of the metrics that log lines are counted in is the name of the stack.
            namespace = metric["Namespace"]
            namespace = "${AWS::StackName}" if namespace == {"Ref": "AWS::StackName"} else namespace
            check_metric(where, namespace, metric["MetricName"], dimensions)
            seen.add(metric["MetricName"])
    wanted = {"5xx", "Latency", "Throttles", "Errors", "ReadThrottleEvents", "WriteThrottleEvents", "SystemErrors", "UnreadableRecords", "OversizedLists"}
    wanted |= {"IteratorAge", "ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesNotVisible"}
    wanted |= {"ApproximateNumberOfMessagesVisible", "RecursiveInvocationsDropped"}
    check(seen == wanted, f"alarms watch {sorted(seen)}")
    for metric in ("Errors", "Throttles"):
        watched = set(re.findall(r"'Ref': '(\w+Function)'", str([a for a in alarms.values() if metric in str(a)])))
        functions = set(of_type(template, "AWS::Lambda::Function"))
        check(watched == functions, f"no alarm watches {metric} of {sorted(functions - watched)}")
    total = sum(len([q for q in alarm.get("Metrics", [{"MetricStat": 1}]) if "MetricStat" in q]) for alarm in alarms.values())
    with open("docs/costs.md", encoding="utf-8") as file:
        check(f"alarm metric ({total} here)" in file.read(), f"docs/costs.md: the alarms watch {total} metrics")


def check_metric_filters(template):
    counted = {t["MetricName"] for f in of_type(template, "AWS::Logs::MetricFilter").values() for t in f["MetricTransformations"]}
    check(counted == METRICS[("${AWS::StackName}", ())], f"metric filters count {sorted(counted)}")


def check_dashboard(template):
    body = template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"][0]
    try:
        dashboard = json.loads(body)
    except ValueError as error:
        check(False, f"the dashboard is not JSON: {error}")
        return
    for widget in dashboard["widgets"]:
        for namespace, name, *rest in widget["properties"].get("metrics", []):
            names = [part for part in rest if isinstance(part, str)]
            check_metric(widget["properties"]["title"], namespace, name, names[::2])


def check_bucket(template):
    bucket = template["Resources"]["SnapshotBucket"]
    properties = bucket["Properties"]
    check(bucket["DeletionPolicy"] == "RetainExceptOnCreate", "a bucket that is not empty can't be deleted")
    check(all(properties["PublicAccessBlockConfiguration"].values()), "the bucket could be made public")
    check(properties["LifecycleConfiguration"]["Rules"][0]["ExpirationInDays"] == 7, "snapshots don't expire")
    check("VersioningConfiguration" not in properties, "replaced snapshots would not expire")
    check("BucketEncryption" in properties, "the bucket is not encrypted")
    schedules = [rule["ScheduleExpression"] for rule in of_type(template, "AWS::Events::Rule").values()]
    check(schedules == ["rate(10 minutes)"], f"schedules {schedules}")


def check_queues(template):
    queues = of_type(template, "AWS::SQS::Queue")
    check(set(queues) == {"DeliveryQueue", "RetryQueue", "DeliveryDeadLetters", "StreamFailures"}, f"queues {sorted(queues)}")
    for name, properties in queues.items():
        check(properties["SqsManagedSseEnabled"] is True, f"{name} is not encrypted")
        # The longest that SQS offers. A dead letter's time counts from when it was sent, not from when it was moved.
        check(properties["MessageRetentionPeriod"] == 14 * 24 * 3600, f"{name}: retention")
        policy = of_type(template, "AWS::SQS::QueuePolicy")["QueuePolicy"]
        check({"Ref": name} in policy["Queues"], f"{name} has no policy")
        check({"Fn::GetAtt": [name, "Arn"]} in policy["PolicyDocument"]["Statement"][0]["Resource"], f"{name}: TLS")
    timeout = of_type(template, "AWS::Lambda::Function")["DeliverFunction"]["Timeout"]
    for name in ("DeliveryQueue", "RetryQueue"):
        check(queues[name]["VisibilityTimeout"] >= 6 * timeout, f"{name}: messages come back while they are handled")
        redrive = queues[name]["RedrivePolicy"]
        check(redrive["deadLetterTargetArn"] == {"Fn::GetAtt": ["DeliveryDeadLetters", "Arn"]}, f"{name}: dead letters")
        check(redrive["maxReceiveCount"] == 30, f"{name}: receives")


def check_event_sources(template):
    mappings = of_type(template, "AWS::Lambda::EventSourceMapping")
    check(set(mappings) == {"FanoutFunctionStream", "DeliverFunctionQueue", "DeliverFunctionRetries"}, f"event sources {sorted(mappings)}")
    for name, properties in mappings.items():
        check(properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"], f"{name}: one failure repeats the whole batch")
    stream = mappings["FanoutFunctionStream"]
    source = {"Fn::If": ["IsRestored", {"Fn::Sub": f"{RESTORED}/stream/${{RestoredTableStream}}"}, {"Fn::GetAtt": ["Table", "StreamArn"]}]}
    check(stream["EventSourceArn"] == source, f"stream {stream['EventSourceArn']}")
    check(stream["StartingPosition"] == "TRIM_HORIZON", "events could be missed")
    check(stream["BisectBatchOnFunctionError"] is True, "one event keeps its whole batch from being sent")
    check((stream["MaximumRetryAttempts"], stream["MaximumRecordAgeInSeconds"]) == (-1, 6 * 3600), "how long an event is repeated")
    # The stream keeps its records for 24 hours: some must be left to look at what failed.
    check(60 <= stream["MaximumRecordAgeInSeconds"] <= 12 * 3600, "failures are reported too late")
    failures = {"Fn::GetAtt": ["StreamFailures", "Arn"]}
    check(stream["DestinationConfig"]["OnFailure"]["Destination"] == failures, "events are lost without a trace")
    queues = {"Queue": ("DeliveryQueue", "DeliveryConcurrency"), "Retries": ("RetryQueue", "RetryConcurrency")}
    total = 0
    for name, (source_of_mapping, concurrency) in queues.items():
        queue = mappings[f"DeliverFunction{name}"]
        check(queue["EventSourceArn"] == {"Fn::GetAtt": [source_of_mapping, "Arn"]}, f"{name}: queue")
        check(queue["BatchSize"] == 10, f"{name}: batches")
        # Each has its own, so that retries never take the instances of first attempts.
        check(queue["ScalingConfig"]["MaximumConcurrency"] == {"Ref": concurrency}, f"{name}: concurrency")
        total += template["Parameters"][concurrency]["Default"]
    check(template["Parameters"]["DeliverReservedConcurrency"]["Default"] >= total, "fewer instances than its event sources take")
    pipe = of_type(template, "AWS::Pipes::Pipe")["EventBusPipe"]
    check(template["Resources"]["EventBusPipe"]["Condition"] == "HasEventBus", "a pipe without a bus")
    check(pipe["Source"] == source, "the pipe has another stream")
    check(pipe["RoleArn"] == {"Fn::GetAtt": ["EventBusRole", "Arn"]}, "the pipe has another role")
    parameters = pipe["SourceParameters"]
    check(parameters["DynamoDBStreamParameters"]["DeadLetterConfig"] == {"Arn": failures}, "the pipe's failures")
    # Both see the same events.
    check(parameters["FilterCriteria"] == stream["FilterCriteria"], "the pipe has another filter")
    (pattern,) = (json.loads(entry["Pattern"]) for entry in stream["FilterCriteria"]["Filters"])
    wanted = {"eventName": ["INSERT"], "dynamodb": {"Keys": {"SK": {"S": [{"prefix": "EVENT#"}]}}}}
    check(pattern == wanted, f"filter {pattern}")


def check_rest(template):
    table = template["Resources"]["Table"]
    check(table["Properties"]["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}, "the table's stream")
    check(table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain", "the table is deleted with the stack")
    for name, properties in of_type(template, "AWS::CloudWatch::Alarm").items():
        check(properties["AlarmActions"] == [{"Ref": "AlarmTopic"}], f"{name} notifies nobody")
        with open("docs/runbook.md", encoding="utf-8") as file:
            headings = [line.strip("# \n").lower().replace(" ", "-") for line in file if line.startswith("#")]
        description, _, anchor = properties["AlarmDescription"]["Fn::Sub"].rpartition(" - ${RunbookUrl}#")
        # The impact, the urgency and a command, at most as long as CloudWatch permits with room for names and addresses.
        form = r"[A-Z][^:]*: .*\. Look (now|within the hour|today)\. First: aws [a-z]+ [a-z-]+ .*"
        check(re.fullmatch(form, description) and len(description) <= 600, f"{name}: {description!r} has another form")
        check(anchor in headings, f"{name}: docs/runbook.md has no section {anchor}")
    check(len(of_type(template, "AWS::CloudWatch::Alarm")) >= 13, "alarms are missing")
    check(len(template["Resources"]) <= 160, "more resources than one stack needs; CloudFormation's limit is 500")


def main():
    template = transformed()
    check_references(template)
    check_functions(template)
    check_roles(template)
    routes = check_api(template)
    check_alarms(template)
    check_metric_filters(template)
    check_dashboard(template)
    check_bucket(template)
    check_queues(template)
    check_event_sources(template)
    check_rest(template)
    check_deploy_policy(template, check)
    for error in ERRORS:
        print(f"template.yaml, transformed: {error}", file=sys.stderr)
    print(f"transform: {len(template['Resources'])} resources, {routes} routes, {len(ERRORS)} errors")
    return 1 if ERRORS else 0


sys.exit(main())
