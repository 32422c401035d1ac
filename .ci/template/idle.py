"""Compares docs/costs.md with what an idle stack has, and counts the resources of the smallest one."""

from created import created, of_type
from findings import check, end

# Dollars a month. Lambda asks a queue five times in 20 s, also an empty one: 657,000 requests at 0.40 per million.
ALARM, QUEUE, KEY, DASHBOARD = 0.10, 0.26, 1.00, 3.00
# The schedule of snapshots, as docs/costs.md calculates it.
SNAPSHOTS = 0.05
# The most that the smallest stack may have, without permissions of the gateway, of which each route has one.
MOST_RESOURCES = 45


def stated():
    """Returns the table of an idle month: the values of each row, by its name."""
    with open("docs/costs.md", encoding="utf-8") as file:
        section = file.read().split("## An idle month\n")[1].split("\n## ")[0]
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    return {name: [float(value) for value in values] for name, *values in rows[2:]}


def paid(resources):
    """Returns what each row has for a stack with these resources."""
    sources = [mapping["EventSourceArn"] for mapping in of_type(resources, "AWS::Lambda::EventSourceMapping").values()]
    queues = [source for source in sources if source.get("Fn::GetAtt", ["", ""])[0] in of_type(resources, "AWS::SQS::Queue")]
    return {
        "KMS key": KEY * len(of_type(resources, "AWS::KMS::Key")),
        "alarms": ALARM * len(of_type(resources, "AWS::CloudWatch::Alarm")),
        "asking the queues of deliveries and retries": QUEUE * len(queues),
        "schedule of snapshots": SNAPSHOTS * len(of_type(resources, "AWS::Events::Rule")),
        "dashboard": DASHBOARD * len(of_type(resources, "AWS::CloudWatch::Dashboard")),
    }


def main():
    with_alarms = created(AlarmEmail="ops@example.com")
    without_webhooks = created(AlarmEmail="ops@example.com", Webhooks="false")
    smallest = created(Webhooks="false")
    table = stated()
    for column, resources in enumerate((with_alarms, without_webhooks, smallest)):
        rows = paid(resources)
        rows["together"] = sum(rows.values())
        check(set(table) == {name for name in rows if name != "dashboard"}, f"docs/costs.md has the rows {sorted(table)}")
        for name, dollars in rows.items():
            found = table[name][column] if name in table else 0
            check(abs(found - dollars) < 0.001, f"docs/costs.md: {name} is {found} instead of {dollars:.2f}")
    check(table["together"][0] <= 2.20 and table["together"][1] <= 1.60, f"an idle month costs {table['together']}")
    everything = paid(created(AlarmEmail="ops@example.com", Dashboard="true"))
    check(everything["dashboard"] == DASHBOARD, "Dashboard makes no dashboard")

    counted = [name for name, resource in smallest.items() if resource["Type"] != "AWS::Lambda::Permission"]
    check(len(counted) <= MOST_RESOURCES, f"the smallest stack has {len(counted)} resources")
    functions = set(of_type(with_alarms, "AWS::Lambda::Function")) - set(of_type(smallest, "AWS::Lambda::Function"))
    check(functions == {"FanoutFunction", "DeliverFunction"}, f"without webhooks, there is no {functions}")
    check(not of_type(smallest, "AWS::SQS::Queue"), "queues without webhooks")
    modes = {str(function["TracingConfig"]["Mode"]) for function in of_type(with_alarms, "AWS::Lambda::Function").values()}
    check(modes == {str({"Fn::If": ["IsTraced", "Active", "PassThrough"]})}, f"functions are traced: {modes}")
    permissions = len(smallest) - len(counted)
    end("idle", f"idle: the smallest stack has {len(counted)} resources and {permissions} permissions")


main()
