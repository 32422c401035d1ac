"""The resources that CloudFormation creates from template.yaml, for given parameters."""

import logging

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

# Hides samtranslator's log messages about its own statistics.
logging.getLogger("samtranslator").setLevel(logging.ERROR)

# Parameter values for every kind of resource.
EVERYTHING = {
    "AlarmEmail": "ops@example.com",
    "MonthlyBudget": 20,
    "Dashboard": "true",
    "EventBusArn": "arn:aws:events:REGION:ACCOUNT:event-bus/inventory",
    "DomainName": "example.com",
    "CertificateArn": "arn:aws:acm:REGION:ACCOUNT:certificate/1",
    "HostedZoneId": "HOSTED-ZONE",
}


def created(**parameters):
    """Returns the transformed resources whose condition holds. Other parameters have their defaults."""
    with open("template.yaml", encoding="utf-8") as file:
        template = yaml_parse(file.read())
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            # `sam package` replaces the local path with the upload's address.
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    assert set(parameters) <= set(template["Parameters"]), f"template.yaml lacks one of {set(parameters)}"
    values = {name: declared.get("Default", "") for name, declared in template["Parameters"].items()} | parameters
    translator = Translator({}, Parser(), boto_session=boto3.Session(region_name="eu-central-1"))
    # The transform modifies its input.
    transformed = translator.translate(template, dict(values))

    def holds(condition):
        ((function, operands),) = condition.items()
        if function == "Condition":
            return holds(transformed["Conditions"][operands])
        if function == "Fn::Equals":
            first, second = (str(values[it["Ref"]] if isinstance(it, dict) else it) for it in operands)
            return first == second
        results = map(holds, operands)
        return {"Fn::Not": lambda: not next(results), "Fn::And": lambda: all(results), "Fn::Or": lambda: any(results)}[function]()

    for name, rule in template.get("Rules", {}).items():
        if not holds(rule["RuleCondition"]) or all(holds(it["Assert"]) for it in rule["Assertions"]):
            continue
        raise SystemExit(f"{name}: {rule['Assertions'][0]['AssertDescription']}")
    resources = transformed["Resources"].items()
    return {name: it for name, it in resources if "Condition" not in it or holds({"Condition": it["Condition"]})}


def of_type(resources, kind):
    return {name: resource["Properties"] for name, resource in resources.items() if resource["Type"] == f"AWS::{kind}"}
