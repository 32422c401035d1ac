"""Runs MiniStack with patches for features that this template needs. The other files here patch its gateway and its policy
conditions. The patches depend on private functions: .ci/tools/requirements/ministack.txt pins the version, and the checks in
.ci/aws/stack fail if a patch has no effect.
"""

import copy
import json
import sys

import conditions
import gateway
from ministack import app
from ministack.core import iam_actions, iam_evaluator
from ministack.services import lambda_svc
from ministack.services.cloudformation import changesets, engine, provisioners
from samtranslator.translator.transform import transform


def replace(module, name, make):
    setattr(module, name, make(getattr(module, name)))


def before(kind, change):
    """Changes the properties of resources of a type before they are created or updated."""
    handler = provisioners._RESOURCE_HANDLERS[kind]
    create, update = handler["create"], handler["update"]
    handler["create"] = lambda name, new, stack: create(name, change(new), stack)
    handler["update"] = lambda physical, old, new, *rest, **named: update(physical, change(old), change(new), *rest, **named)


def after(kind, do):
    """Calls a function with the physical ID and the properties of a created or updated resource."""

    def followed(original, position):
        def handle(*arguments, **named):
            result = original(*arguments, **named)
            do(result[0], arguments[position])
            return result

        return handle

    handler = provisioners._RESOURCE_HANDLERS[kind]
    handler["create"], handler["update"] = followed(handler["create"], 1), followed(handler["update"], 2)


def reported(original):
    """Logs denied requests, even if the function handles the error."""

    def enforce(key, action, *arguments, **named):
        denied = original(key, action, *arguments, **named)
        if denied:
            print(f"AccessDenied: {action} by {getattr(denied, 'principal_arn', key)}", file=sys.stderr, flush=True)
        return denied

    return enforce


def transformed(template, provided=None, previous=None):
    """Passes parameters to SAM's transform, which resolves some, such as the CORS origin. MiniStack would pass the defaults."""
    parameters = engine._transform_parameters(template, provided, previous)
    return transform(copy.deepcopy(template), parameters, engine._NO_IAM_POLICY_LOADER)


def numbers(properties):
    """Converts numeric parameters, which are strings, to compare them with the number of batches in flight."""
    scaling = properties.get("ScalingConfig")
    return properties | {"ScalingConfig": {key: int(value) for key, value in scaling.items()}} if scaling else properties


def reserve(name, properties):
    reserved = properties.get("ReservedConcurrentExecutions")
    lambda_svc._functions[name]["concurrency"] = None if reserved is None else int(reserved)


def one_for_batches(original):
    """Lets the permission to send or delete a message cover batches as well ("Amazon SQS API permissions")."""

    def action(service, *arguments):
        name = original(service, *arguments)
        return name.removesuffix("Batch") if name and service == "sqs" else name

    return action


def of_restores(original):
    """Names both tables of a restore, for which MiniStack would require a permission on everything."""

    def arns(body, region, account):
        request = json.loads(body or b"{}")
        names = [request[key] for key in ("SourceTableName", "TargetTableName") if key in request]
        found = [arn for name in names for arn in original(json.dumps({"TableName": name}), region, account)]
        return found or original(body, region, account)

    return arns


replace(iam_evaluator, "enforce", reported)
replace(iam_actions, "dynamodb_resource_arns", of_restores)
replace(changesets, "_apply_transforms", lambda _: transformed)
before("AWS::Lambda::EventSourceMapping", numbers)
after("AWS::Lambda::Function", reserve)
after("AWS::ApiGatewayV2::Api", lambda name, properties: gateway.import_document(name, properties["Body"]))
replace(iam_actions, "extract_iam_action", one_for_batches)
replace(iam_actions, "request_tag_context", conditions.with_keys)
# MiniStack compares the port, a number, with the string "443", and would bind port 443 twice.
app._port_is_bindable = lambda *_: False
# MiniStack would mistake these services' regional hosts for S3 buckets.
app._NON_S3_VHOST_NAMES |= {"acm", "apigateway", "cloudformation", "kms", "pipes", "xray"}

sys.exit(app.main())
