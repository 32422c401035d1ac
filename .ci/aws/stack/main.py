"""Deploys the stack into the emulated account, calls it, changes it and deletes it.

    main.py REPOSITORY STACK [COMMAND [ARGUMENT…]]

REPOSITORY has the documents, STACK the unpacked archive. Runs COMMAND instead of the checks, with a
tenant's key.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import api_tests
import functions
import leftovers
import permissions
from api import Api
from aws import Failed, expect, explain, logs, outputs, run
from lifecycle import Lifecycle


def step(text):
    print(f"{time.monotonic() - BEGIN:5.0f} s  {text}", flush=True)


def checks(repository, folder):
    lifecycle = Lifecycle(repository, folder)
    before = leftovers.contents()
    lifecycle.deploy()
    step(f"deployed: {leftovers.check_lists(before)} resources")
    names = outputs()
    expect(f"-{names['Release']}-" in folder.name, f"the release is {names['Release']} instead of {folder.name}")
    os.environ["TABLE_NAME"] = names["TableName"]
    api = Api(names["BaseUrl"], functions.first_tenant("Acme"))
    hook = functions.webhook(api)
    asset, user = functions.records(api)
    functions.receipt(api, asset, user)
    step("a tenant, assets, users, a webhook, and a receipt of a signature through a link")
    step(f"{functions.attempts(api, hook)} deliveries, of which one was attempted again")
    functions.snapshot()
    step("the function of the schedule, which writes no snapshots of small lists")
    functions.check_called()
    if binary := os.environ.get("API_TESTS"):
        step(f"{api_tests.run(repository, binary)} tests of the API over HTTP, each with a separate tenant")
    expect(logs(), "the functions log nothing")
    permissions.expect_none_missing()
    step(f"every function ran, and none of their {len(logs())} log lines says that a permission is missing")
    lifecycle.update(api)
    step("an update with different parameters")
    step(f"{lifecycle.operate()} commands of alarms and of the runbook, with the policy for operators")
    lifecycle.migrate_index(api)
    step("a new release with one more index, and a rollback to the release before")
    permissions.expect_none_missing()
    other = Api(api.base, functions.first_tenant("Other")).data("/me")["tenant"]["id"]
    permissions.controls(api, other)
    step("a permission denied: 500 for a partition and an encryption context, no delivery without a queue")
    restorer = lifecycle.restore(api)
    step("a restore, and a switch to the restored table, with the policies for it")
    step(f"back to the table, without webhooks, alarms and a bus: {lifecycle.without_webhooks(api)} resources")
    run(lifecycle.drill, "--drop", env=restorer)
    lifecycle.delete(before)
    step("sam delete left the table, the key and the bucket, which the guide's commands delete")


def main():
    repository, folder, *command = sys.argv[1:]
    try:
        if not command:
            return checks(Path(repository), Path(folder))
        Lifecycle(Path(repository), Path(folder)).deploy()
        names = outputs()
        os.environ |= {"BASE": names["BaseUrl"], "TABLE_NAME": names["TableName"], "RECEIPT_KMS_KEY_ID": names["ReceiptKeyArn"]}
        os.environ["KEY"] = functions.first_tenant("Acme")
        step(f"{names['BaseUrl']} is BASE, and KEY a key of its first tenant")
    except Failed as error:
        print(*explain(), sep="\n", file=sys.stderr)
        sys.exit(f"deploy: {error}")
    except Exception:
        print(*explain(), sep="\n", file=sys.stderr)
        raise
    sys.exit(subprocess.run(command, check=False).returncode)


BEGIN = time.monotonic()
main()
