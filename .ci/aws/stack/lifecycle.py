"""Deployment, update and deletion of the stack, with the commands of docs/deploy.md."""

import re
import shlex
import zipfile

from api import Api
from aws import Failed, client, expect, outputs, pages, resources, run, stack
from leftovers import added, contents
from people import person

ORIGIN = "https://inventory.example.com"


def key_state(key):
    return client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyState"]


def indexes():
    return client("dynamodb").describe_table(TableName=outputs()["TableName"])["Table"]["GlobalSecondaryIndexes"]


def code_of(function):
    return client("lambda").get_function(FunctionName=resources()[function])["Configuration"]["CodeSha256"]


def refused(person, *command):
    """Checks that a policy is enforced."""
    try:
        run("aws", *command, env=person)
    except Failed as error:
        return expect("AccessDenied" in str(error) or "not authorized" in str(error), str(error))
    expect(False, f"permitted: {command}")


class Lifecycle:
    def __init__(self, repository, folder):
        self.folder, self.drill = folder, str(repository / "docs/restore.sh")
        self.guide = (repository / "docs/deploy.md").read_text(encoding="utf-8")
        self.deployer = person("deployer", "deploy", "deploy-data", "deploy-options")

    def deploy(self, *arguments):
        run("sam", "deploy", "--no-confirm-changeset", *arguments, cwd=self.folder, env=self.deployer)

    def update(self, api):
        """Deploys with parameters that differ from samconfig.toml, and checks that they have only the expected effects."""
        before = outputs(), resources()
        bus = client("events").create_event_bus(Name="inventory")["EventBusArn"]
        parameters = {"Stage": "dev", "LogRetentionDays": 30, "ReservedConcurrency": 2, "DeliveryConcurrency": 10}
        parameters |= {"DeliverReservedConcurrency": 12, "CorsOrigin": ORIGIN, "AlarmEmail": "ops@example.com", "EventBusArn": bus}
        self.deploy("--parameter-overrides", shlex.join(f"{name}={value}" for name, value in parameters.items()))
        run("admin", "tenant", "upgrade")

        expect(outputs() == before[0], f"the outputs are now {outputs()}")
        now = resources()
        replaced = [name for name, id_ in before[1].items() if now.get(name) != id_]
        expect(not replaced, f"the update replaced {replaced}")
        new = sorted(set(now) - set(before[1]))
        alarms = ["CrashAlarm", "DeadLetterAlarm", "OutageAlarm", "ServerErrorAlarm", "StreamDelayAlarm", "StreamFailureAlarm"]
        alarms += ["UnreadableRecordAlarm", "AlarmSubscription", "AlarmTopic", "FailedInvocations", "UnreadableRecords"]
        expect(new == sorted(["EventBusPipe", "EventBusRole", *alarms]), f"the update added {new}")
        kept = {parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in stack()["Parameters"]}
        # Parameters not on the command line keep their values, which came from samconfig.toml and not from the template.
        expect(kept["ThrottleRate"] == "50", f"ThrottleRate is {kept['ThrottleRate']}")

        days = {group["retentionInDays"] for group in pages("logs", "describe_log_groups", "logGroups")}
        expect(days == {30}, f"logs are kept for {days} days")
        reserved = {}
        for name in ("AssetsFunction", "FanoutFunction", "DeliverFunction", "SnapshotsFunction"):
            reserved[name] = client("lambda").get_function_concurrency(FunctionName=now[name]).get("ReservedConcurrentExecutions")
        expect(list(reserved.values()) == [2, 2, 12, 1], f"reserved are {reserved}")
        mappings = pages("lambda", "list_event_source_mappings", "EventSourceMappings", FunctionName=now["DeliverFunction"])
        at_once = sorted(mapping["ScalingConfig"]["MaximumConcurrency"] for mapping in mappings)
        expect(at_once == [2, 10], f"the function deliver runs {at_once} times at once")
        (pipe,) = pages("pipes", "list_pipes", "Pipes")
        expect(pipe["Target"] == bus, f"the pipe leads to {pipe['Target']}")
        (mail,) = pages("sns", "list_subscriptions", "Subscriptions")
        expect(mail["Endpoint"] == "ops@example.com", f"alarms go to {mail['Endpoint']}")
        asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "PUT"}
        answer = Api(api.base).call("OPTIONS", "/assets", want=204, headers=asked).headers["Access-Control-Allow-Origin"]
        expect(answer == ORIGIN, f"a preflight from {ORIGIN} permits {answer}")
        expect(api.total("/assets") == 3, "the assets from before the update are missing")

    def migrate_index(self, api):
        """Adds an index with one more attribute and removes it again, as docs/deploy.md describes, with a new release of a function
        and a rollback to the release before.
        """
        path, code = self.folder / "template.yaml", self.folder / "functions/meta.zip"
        before = code.read_bytes(), code_of("MetaFunction")
        template, table = path.read_text(encoding="utf-8"), outputs()["TableName"]
        index = re.search(r" +- IndexName: list_index\n.*?(?= +# The events)", template, re.DOTALL)[0]
        another = index.replace("list_index", "list_index_2") + " " * 14 + "- notes\n"
        path.write_text(template.replace(index, index + another), encoding="utf-8")
        with zipfile.ZipFile(code, "a") as archive:
            archive.writestr("RELEASE", "2")
        self.deploy()
        expect(code_of("MetaFunction") != before[1], "the function still has the code of the old release")
        attributes = {it["IndexName"]: set(it["Projection"].get("NonKeyAttributes", [])) for it in indexes()}
        expect(attributes["list_index_2"] - attributes["list_index"] == {"notes"}, f"the indexes have {attributes}")
        rows = [pages("dynamodb", "scan", "Items", TableName=table, IndexName=name) for name in ("list_index", "list_index_2")]
        expect(len(rows[0]) == len(rows[1]) > 0, f"the indexes have {len(rows[0])} and {len(rows[1])} rows")
        expect(api.total("/assets") == 3, "the assets from before the new index are missing")
        path.write_text(template, encoding="utf-8")
        code.write_bytes(before[0])
        self.deploy()
        expect(code_of("MetaFunction") == before[1], "the function doesn't have the code of the old release again")
        names = {it["IndexName"] for it in indexes()}
        expect(names == {"list_index", "history"}, f"the indexes are {names}")
        expect(api.total("/assets") == 3, "the assets from before the removal are missing")

    def operate(self):
        """Runs the first command of each alarm and commands of the runbook, with the policy for operators."""
        operator = person("operator", "operate")
        texts = [alarm["AlarmDescription"] for alarm in pages("cloudwatch", "describe_alarms", "MetricAlarms")]
        commands = [re.search(r"First: (aws .*) - ", text)[1] for text in texts]
        snapshots = resources()["SnapshotsFunction"]
        commands += [f"aws lambda invoke --function-name {snapshots} /dev/null", "aws lambda get-account-settings"]
        commands += [f"aws sqs purge-queue --queue-url {outputs()['StreamFailuresUrl']}"]
        for command in commands:
            # Version 1 of the AWS CLI, which PyPI has, lacks this command. Version 2 calls FilterLogEvents for it.
            command = re.sub(r"logs tail (\S+) --since \w+", r"logs filter-log-events --log-group-name \1", command)
            run(*shlex.split(command), env=operator)
        refused(operator, "dynamodb", "scan", "--table-name", outputs()["TableName"])
        return len(commands)

    def restore(self, api):
        """Restores the table as in a drill, and switches to the restored table. Returns who may delete it."""
        names = {"TABLE": outputs()["TableName"], "SNAPSHOT_BUCKET": outputs()["SnapshotBucketName"]}
        restorer = person("restorer", "admin", "restore", **names) | {"TABLE_NAME": names["TABLE"]}
        refused(restorer, "dynamodb", "delete-table", "--table-name", names["TABLE"])
        text = run(self.drill, "latest", env=restorer)
        before = api.total("/assets")
        self.deploy("--parameter-overrides", re.search(r"RestoredTable=\S+ RestoredTableStream=\S+", text)[0])
        expect(outputs()["TableName"] == "asset-lifecycle-restored", f"the table is {outputs()['TableName']}")
        api.create("/assets", {"name": "Only in the restored table"})
        expect(api.total("/assets") == before + 1, "the restored table has other assets")
        return restorer

    def without_webhooks(self, api):
        """Deploys the smallest stack: nobody can create webhooks, but everything else still works."""
        parameters = {"Webhooks": "false", "AlarmEmail": "", "EventBusArn": "", "CorsOrigin": ORIGIN}
        # Back to the table of the stack.
        parameters |= {"RestoredTable": "", "RestoredTableStream": ""}
        # Passed as one argument, because the CLI would drop an empty value.
        self.deploy("--parameter-overrides", " ".join(f"{name}='{value}'" for name, value in parameters.items()))
        left = {kind: resources(kind) for kind in ("AWS::SQS::Queue", "AWS::CloudWatch::Alarm", "AWS::Pipes::Pipe")}
        expect(not any(left.values()), f"without webhooks, alarms and a bus, the stack has {left}")
        refused = api.post("/webhooks", {"url": "https://hooks.example.com/in", "events": ["asset.*"]}, want=409).json()
        expect("queue for deliveries" in refused["detail"], f"a new webhook is refused: {refused}")
        api.get("/webhooks")
        names = {asset["name"] for asset in api.data("/assets")}
        expect("Announced" in names and "Only in the restored table" not in names, f"the assets are {names}")
        return len(resources())

    def delete(self, before):
        """Deletes the stack, compares the leftovers with the guide, and deletes them with the guide's commands."""
        names = outputs()
        key = names["ReceiptKeyArn"].rpartition("/")[2]
        run("sam", "delete", "--no-prompts", cwd=self.folder, env=self.deployer)
        left = added(before, contents())
        # Bucket for uploads, which the first `sam deploy` in an account and region creates for all stacks.
        uploads = left["AWS::S3::Bucket"] - {names["SnapshotBucketName"]}
        kept = {
            "AWS::CloudFormation::Stack": {"aws-sam-cli-managed-default"},
            "AWS::DynamoDB::Table": {names["TableName"]},
            "AWS::KMS::Key": {key},
            "AWS::S3::Bucket": {names["SnapshotBucketName"], *uploads},
        }
        expect(left == kept and len(uploads) == 1, f"sam delete left {left}")
        table = {"TableName": names["TableName"]}
        expect(key_state(key) == "Enabled", f"the key is {key_state(key)}")
        expect(client("dynamodb").scan(**table, Limit=1)["Count"] == 1, "the table is empty")
        try:
            client("dynamodb").delete_table(**table)
            expect(False, "the table wasn't protected")
        except client("dynamodb").exceptions.ClientError as error:
            expect("protect" in str(error), str(error))

        commands = re.search(r"```sh\n(aws s3 rb .*?)```", self.guide, re.DOTALL)[1]
        commands = re.sub(r"<the output (\w+)>", lambda found: names[found[1]], commands)
        run("bash", "-euc", commands)
        left = added(before, contents())
        del kept["AWS::DynamoDB::Table"]
        kept["AWS::S3::Bucket"] = uploads
        expect(left == kept, f"the guide's commands left {left}")
        expect(key_state(key) == "PendingDeletion", f"the key is {key_state(key)}")
