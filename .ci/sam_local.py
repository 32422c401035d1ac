"""Checks the recipe of docs/local-lambda.md for `sam local`: what functions get by it, as the SAM CLI works it out."""

import json
import os
import re
import sys

from samcli.commands.local.lib.local_lambda import LocalLambdaRunner
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider

with open("docs/local-lambda.md", encoding="utf-8") as file:
    recipe = file.read().split("## sam local")[1]
handed_on = json.loads(re.search(r"```json\n(.*?)```", recipe, re.DOTALL)[1])
for name, value in re.findall(r"(AWS_\w+)=(\S*)", re.search(r"^export (.*)$", recipe, re.MULTILINE)[1]):
    os.environ[name] = value

overrides = dict([re.search(r"--parameter-overrides (\w+)=(\w+)", recipe).groups()])

stacks, _ = SamLocalStackProvider.get_stacks("template.yaml", parameter_overrides=overrides)
functions = SamFunctionProvider(stacks)
wanted = handed_on["Parameters"] | {
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_LAMBDA_HTTP_IGNORE_STAGE_IN_PATH": "true",
}
faults = []
seen = 0
for function in functions.get_all():
    runner = LocalLambdaRunner(None, functions, ".", ".", env_vars_values=handed_on)
    environment = runner._make_env_vars(function).resolve()
    for name, value in wanted.items():
        # Only one function has a key for receipts.
        is_given = environment.get(name, "" if name == "RECEIPT_KMS_KEY_ID" else None)
        if is_given != value:
            faults.append(f"{function.name} gets {name}={is_given}, not {value}")
    if function.architectures != [overrides["Architecture"]]:
        faults.append(f"{function.name} would run on {function.architectures}")
    seen += 1
for fault in faults:
    print(f"docs/local-lambda.md, sam local: {fault}", file=sys.stderr)
print(f"sam local: the environment of {seen} functions, {len(faults)} faults")
sys.exit(1 if faults or seen != 6 else 0)
