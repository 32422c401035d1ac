"""Replays metrics against the alarms of template.yaml: each alarm is silent in quiet periods, and rings and clears once for a
lasting fault.

Also checks that each alarm watches one existing metric, notifies the topic, and links to a section of the runbook, and that
the dashboard shows existing metrics.
"""

import json
import re
import statistics

from created import created, of_type

HOUR, DAY = 60, 24 * 60

# The metrics that AWS publishes for each set of dimensions, if the template uses them ("Metrics and dimensions" in the guides
# of API Gateway, Lambda, SQS and DynamoDB), and the template's own metric filters.
METRICS = {
    "AWS/ApiGateway ApiId": "Count 4xx 5xx Latency",
    "AWS/Lambda FunctionName": "Errors Throttles Duration ConcurrentExecutions IteratorAge RecursiveInvocationsDropped",
    "AWS/SQS QueueName": "ApproximateAgeOfOldestMessage ApproximateNumberOfMessagesDelayed ApproximateNumberOfMessagesNotVisible "
    "ApproximateNumberOfMessagesVisible NumberOfMessagesDeleted NumberOfMessagesReceived NumberOfMessagesSent",
    "AWS/DynamoDB TableName": "ReadThrottleEvents WriteThrottleEvents TransactionConflict ConditionalCheckFailedRequests "
    "ConsumedReadCapacityUnits ConsumedWriteCapacityUnits",
    "AWS/DynamoDB GlobalSecondaryIndexName TableName": "ReadThrottleEvents WriteThrottleEvents ConsumedReadCapacityUnits "
    "ConsumedWriteCapacityUnits",
    "AWS/DynamoDB Operation TableName": "SystemErrors SuccessfulRequestLatency",
    "${AWS::StackName}": "UnreadableRecords FailedInvocations",
}

# For each alarm: values by minute in a quiet period, in a fault that clears by itself, and in a lasting fault. A minute without
# data has no value. The number after the values is the number of times that the alarm rings.
SCENARIOS = {
    "ServerErrorAlarm": {
        "an error an hour": ({minute: 1 for minute in range(0, DAY, HOUR)}, 0),
        "two minutes of errors": ({0: 40, 1: 40}, 0),
        "every request of a small company, two a minute": ({minute: 2 for minute in range(3 * HOUR)}, 1),
        "every third request, for a day": ({minute: 1 if minute % 3 else 0 for minute in range(DAY)}, 1),
        "all requests of a large one": ({minute: 900 for minute in range(20)}, 1),
    },
    # The share of errors, in minutes with requests.
    "OutageAlarm": {
        "the only request of a night": ({0: 1}, 0),
        "two minutes": ({0: 1, 1: 1}, 0),
        "every third request, for a day": ({minute: 0.34 for minute in range(DAY)}, 0),
        "a failed request every three minutes": ({minute: 1 for minute in range(0, DAY, 3)}, 0),
        "every request of a small company, two a minute": ({minute: 1 for minute in range(20)}, 1),
        "half of the requests": ({minute: 0.5 for minute in range(20)}, 1),
    },
    "CrashAlarm": {
        "a crash every other hour": ({minute: 1 for minute in range(0, DAY, 2 * HOUR)}, 0),
        "ten minutes of crashes": ({minute: 5 for minute in range(10)}, 0),
        "snapshots, every ten minutes": ({minute: 1 for minute in range(0, DAY, 10)}, 1),
        "snapshots, sooner or later": ({minute + 3 * (minute // 10 % 3): 1 for minute in range(0, DAY, 10)}, 1),
        "one request in two minutes": ({minute: 1 for minute in range(0, 3 * HOUR, 2)}, 1),
    },
    "UnreadableRecordAlarm": {
        "nothing": ({}, 0),
        "one event": ({0: 1}, 1),
        "a record in lists, at work for three days": (
            {day * DAY + minute: 4 for day in range(3) for minute in range(0, 9 * HOUR, 25)},
            1,
        ),
    },
    "StreamDelayAlarm": {
        "two seconds": ({minute: 2_000 for minute in range(0, DAY, 7)}, 0),
        "an import that takes a while": ({minute: 700_000 for minute in range(6)}, 0),
        "a queue that refuses everything": ({minute: minute * 60_000 for minute in range(0, 5 * HOUR, 4)}, 1),
        # Lambda retries the function with growing pauses.
        "a batch that fails": ({minute: minute * 60_000 for minute in range(11, 5 * HOUR, 9)}, 1),
    },
    "DeadLetterAlarm": {
        "an empty queue": ({minute: 0 for minute in range(0, DAY, 5)}, 0),
        "a message that somebody finds after a weekend": ({minute: 1 for minute in range(3 * DAY)}, 1),
        # A message that someone has received is invisible for half a minute or longer.
        "a message that somebody looks at": ({minute: 0 if minute % 40 in range(15) else 1 for minute in range(DAY)}, 1),
    },
}
SCENARIOS["StreamFailureAlarm"] = SCENARIOS["DeadLetterAlarm"]


def rings(alarm, values):
    """Returns the state changes of an alarm for values by minute ("Evaluating an alarm", CloudWatch user guide)."""
    periods = {}
    for minute, value in values.items():
        periods.setdefault(minute * 60 // alarm["Period"], []).append(value)
    combine = {"Sum": sum, "Maximum": max, "Average": statistics.mean}[alarm["Statistic"]]
    length = alarm["EvaluationPeriods"]
    states, state = [], "OK"
    for last in range(max(periods, default=0) + length + 1):
        window = [combine(periods[period]) for period in range(last - length + 1, last + 1) if period in periods]
        breaching = sum(value > alarm["Threshold"] for value in window)
        now = "ALARM" if breaching >= alarm.get("DatapointsToAlarm", length) else "OK"
        if now != state:
            states.append(now)
        state = now
    return states


def replay(name, alarm):
    # `rings` assumes this comparison and this treatment of missing data.
    assumed = (alarm["ComparisonOperator"], alarm["TreatMissingData"]) == ("GreaterThanThreshold", "notBreaching")
    assert assumed, f"{name}: a different comparison, or a different treatment of missing data"
    # "PutMetricAlarm" in the API reference: an alarm looks back a day, or a week with periods of an hour.
    seconds = alarm["Period"] * alarm["EvaluationPeriods"]
    assert seconds <= (7 * 86_400 if alarm["Period"] >= 3600 else 86_400), f"{name} looks back too far"
    scenarios = SCENARIOS.get(name, {})
    assert {times for _, times in scenarios.values()} == {0, 1}, f"{name}: no quiet time, or no fault"
    for scenario, (values, times) in scenarios.items():
        # A fault can begin at any time within a period.
        for begin in range(alarm["Period"] // 60):
            states = rings(alarm, {begin + minute: value for minute, value in values.items()})
            assert states == ["ALARM", "OK"] * times, f"{name}, {scenario}, from minute {begin}: {len(states)} mails"


def check_metric(where, namespace, metric, dimensions):
    # For an unknown metric, AWS reports neither an alarm nor an error.
    known = METRICS.get(" ".join([namespace, *sorted(dimensions)]), "").split()
    assert metric in known, f"{where}: there is no metric {namespace} {metric} by {', '.join(dimensions)}"


def check_one(name, alarm, runbook):
    assert "Metrics" not in alarm, f"{name} watches several metrics, each of which costs as much as an alarm"
    # Metric filters count log lines in a namespace named after the stack.
    namespace = "${AWS::StackName}" if alarm["Namespace"] == {"Ref": "AWS::StackName"} else alarm["Namespace"]
    check_metric(name, namespace, alarm["MetricName"], [dimension["Name"] for dimension in alarm.get("Dimensions", [])])
    topic = [{"Ref": "AlarmTopic"}]
    assert alarm["AlarmActions"] == alarm["OKActions"] == topic, f"{name} notifies nobody"
    # The description has the impact, the urgency and a command. CloudWatch limits its length, so it needs room for names and
    # addresses.
    description, _, anchor = alarm["AlarmDescription"]["Fn::Sub"].rpartition(" - ${RunbookUrl}#")
    form = r"[A-Z][^:]*: .*\. Look (now|within the hour|today)\. First: aws [a-z]+ [a-z-]+ .*"
    assert re.fullmatch(form, description) and len(description) <= 600, f"{name}: {description!r} has a different form"
    assert anchor in runbook, f"{name}: docs/runbook.md has no section {anchor}"


def check_dashboard(dashboard):
    body, texts = dashboard["DashboardBody"]["Fn::Sub"]
    condition, with_webhooks, without = texts["WebhookWidgets"]["Fn::If"]
    assert condition == "HasWebhooks" and without == "", "the dashboard without webhooks shows them"
    always = json.loads(body.replace("${WebhookWidgets}", ""))["widgets"]
    # A widget for a missing resource would fail.
    assert "Fanout" not in str(always) and "Queue" not in str(always), "the dashboard without webhooks shows them"
    widgets = json.loads(body.replace("${WebhookWidgets}", with_webhooks["Fn::Sub"]))["widgets"]
    assert len(widgets) > len(always), "the dashboard shows no webhooks"
    for widget in widgets:
        for namespace, metric, *rest in widget["properties"].get("metrics", []):
            names = [part for part in rest if isinstance(part, str)]
            check_metric(widget["properties"]["title"], namespace, metric, names[::2])


def main():
    resources = created(AlarmEmail="ops@example.com")
    alarms = of_type(resources, "CloudWatch::Alarm")
    assert set(alarms) == set(SCENARIOS), f"the alarms are {sorted(alarms)}"
    with open("docs/runbook.md", encoding="utf-8") as file:
        runbook = {line.strip("# \n").lower().replace(" ", "-") for line in file if line.startswith("#")}
    for name, alarm in alarms.items():
        replay(name, alarm)
        check_one(name, alarm, runbook)
    outage = alarms["OutageAlarm"]
    assert outage["Period"] * outage["DatapointsToAlarm"] <= 300, "a total outage rings too late"
    counted = {t["MetricName"] for f in of_type(resources, "Logs::MetricFilter").values() for t in f["MetricTransformations"]}
    assert counted == set(METRICS["${AWS::StackName}"].split()), f"metric filters count {sorted(counted)}"
    assert counted <= {alarm["MetricName"] for alarm in alarms.values()}, "a metric of log lines has no alarm"
    check_dashboard(of_type(created(Dashboard="true"), "CloudWatch::Dashboard")["MetricsDashboard"])
    quiet = created()
    for kind in ("CloudWatch::Dashboard", "CloudWatch::Alarm", "Logs::MetricFilter", "SNS::Topic", "Budgets::Budget"):
        assert not of_type(quiet, kind), f"{kind} without AlarmEmail"
    assert not of_type(resources, "Budgets::Budget"), "a budget without MonthlyBudget"
    budgets = of_type(created(AlarmEmail="ops@example.com", MonthlyBudget=20), "Budgets::Budget")
    assert len(budgets) == 1, f"{len(budgets)} budgets with MonthlyBudget"
    bus = created(AlarmEmail="ops@example.com", Webhooks="false", EventBusArn="arn:aws:events:r:a:event-bus/b")
    assert "StreamFailureAlarm" in bus, "nobody hears of events that a bus misses"
    print(f"alarms: {len(alarms)}, {sum(map(len, SCENARIOS.values()))} scenarios")


main()
