"""Checks the `sam local` recipe in docs/local-lambda.md: the environment that the SAM CLI passes to functions.

Reads the first JSON block, the first line that starts with `export`, and the first `--parameter-overrides` of its section.
"""

import json
import os
import re

from samcli.commands.local.lib.local_lambda import LocalLambdaRunner
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider

with open("docs/local-lambda.md", encoding="utf-8") as file:
    recipe = file.read().split("## sam local")[1]
given_by_recipe = json.loads(re.search(r"```json\n(.*?)```", recipe, re.DOTALL)[1])
for name, value in re.findall(r"(AWS_\w+)=(\S*)", re.search(r"^export (.*)$", recipe, re.MULTILINE)[1]):
    os.environ[name] = value

overrides = dict([re.search(r"--parameter-overrides (\w+)=(\w+)", recipe).groups()])

stacks, _ = SamLocalStackProvider.get_stacks("template.yaml", parameter_overrides=overrides)
functions = SamFunctionProvider(stacks)
expected = given_by_recipe["Parameters"] | {
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_LAMBDA_HTTP_IGNORE_STAGE_IN_PATH": "true",
}
# Only some functions have these variables.
OF_SOME = ("RECEIPT_KMS_KEY_ID", "SNAPSHOTS_URL", "DELIVERY_QUEUE_URL", "RETRY_QUEUE_URL", "AWS_ENDPOINT_URL_SQS")
seen = list(functions.get_all())
for function in seen:
    runner = LocalLambdaRunner(None, functions, ".", ".", env_vars_values=given_by_recipe)
    environment = runner._make_env_vars(function).resolve()
    actual = {name: environment.get(name, value if name in OF_SOME else None) for name, value in expected.items()}
    assert actual == expected, f"docs/local-lambda.md: {function.name} gets {actual} instead of {expected}"
    assert function.architectures == [overrides["Architecture"]], f"{function.name} would run on {function.architectures}"
assert len(seen) == len(os.listdir("functions")), f"only {len(seen)} functions"
print(f"sam local: the environment of {len(seen)} functions")
