"""Runs MiniStack, with what it lacks for this template. The other files here have its gateway and the conditions of policies.

What this changes is private to MiniStack: .ci/tools/requirements/ministack.txt has its exact version, and the checks in
.ci/aws/stack fail where a change is without effect.
"""

import copy
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
    """Does something with the physical ID and the properties of a resource that was created or updated."""

    def followed(original, position):
        def handle(*arguments, **named):
            result = original(*arguments, **named)
            do(result[0], arguments[position])
            return result

        return handle

    handler = provisioners._RESOURCE_HANDLERS[kind]
    handler["create"], handler["update"] = followed(handler["create"], 1), followed(handler["update"], 2)


def reported(original):
    """A request that is denied is in the log, whatever the function makes of it."""

    def enforce(key, action, *arguments, **named):
        denied = original(key, action, *arguments, **named)
        if denied:
            print(f"AccessDenied: {action} by {getattr(denied, 'principal_arn', key)}", file=sys.stderr, flush=True)
        return denied

    return enforce


def transformed(template, provided=None, previous=None):
    """SAM's transform resolves some parameters itself, such as the origin of CORS. From MiniStack it would get the defaults."""
    parameters = engine._transform_parameters(template, provided, previous)
    return transform(copy.deepcopy(template), parameters, engine._NO_IAM_POLICY_LOADER)


def numbers(properties):
    """A number from a parameter is text, which can't be compared with the number of batches in flight."""
    scaling = properties.get("ScalingConfig")
    return properties | {"ScalingConfig": {key: int(value) for key, value in scaling.items()}} if scaling else properties


def reserve(name, properties):
    reserved = properties.get("ReservedConcurrentExecutions")
    lambda_svc._functions[name]["concurrency"] = None if reserved is None else int(reserved)


def one_for_batches(original):
    """The permission to send or delete a message is that for a batch of them ("Amazon SQS API permissions")."""

    def action(service, *arguments):
        name = original(service, *arguments)
        return name.removesuffix("Batch") if name and service == "sqs" else name

    return action


replace(iam_evaluator, "enforce", reported)
replace(changesets, "_apply_transforms", lambda _: transformed)
before("AWS::Lambda::EventSourceMapping", numbers)
after("AWS::Lambda::Function", reserve)
after("AWS::ApiGatewayV2::Api", lambda name, properties: gateway.import_document(name, properties["Body"]))
replace(iam_actions, "extract_iam_action", one_for_batches)
replace(iam_actions, "request_tag_context", conditions.with_keys)
# MiniStack compares the port, a number, with the string "443", and would bind port 443 twice.
app._port_is_bindable = lambda *_: False
# MiniStack would take these services' regional hosts for S3 buckets.
app._NON_S3_VHOST_NAMES |= {"acm", "apigateway", "cloudformation", "kms", "pipes", "xray"}

sys.exit(app.main())
