"""The resources that CloudFormation creates from template.yaml, for given parameters."""

import logging

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

# It warns of statistics about itself that nobody wants.
logging.getLogger("samtranslator").setLevel(logging.ERROR)


def created(**parameters):
    """Returns the transformed resources whose condition holds. Parameters that aren't named have their defaults."""
    with open("template.yaml", encoding="utf-8") as file:
        template = yaml_parse(file.read())
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            # `sam package` puts the address of the upload here.
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    unknown = set(parameters) - set(template["Parameters"])
    assert not unknown, f"template.yaml has no parameter {unknown}"
    values = {name: declared.get("Default", "") for name, declared in template["Parameters"].items()} | parameters
    translator = Translator({}, Parser(), boto_session=boto3.Session(region_name="eu-central-1"))
    # The transform changes what it gets.
    transformed = translator.translate(template, dict(values))
    conditions = transformed["Conditions"]

    def value_of(operand):
        return str(values[operand["Ref"]] if isinstance(operand, dict) else operand)

    def holds(condition):
        ((function, operands),) = condition.items()
        match function:
            case "Condition":
                return holds(conditions[operands])
            case "Fn::Not":
                return not holds(operands[0])
            case "Fn::And":
                return all(map(holds, operands))
            case "Fn::Or":
                return any(map(holds, operands))
            case "Fn::Equals":
                return value_of(operands[0]) == value_of(operands[1])
        raise ValueError(f"condition {condition}")

    def exists(resource):
        return "Condition" not in resource or holds(conditions[resource["Condition"]])

    return {name: resource for name, resource in transformed["Resources"].items() if exists(resource)}


def of_type(resources, kind):
    return {name: resource["Properties"] for name, resource in resources.items() if resource["Type"] == kind}
