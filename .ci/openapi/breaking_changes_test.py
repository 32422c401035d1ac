"""Applies made-up changes to the OpenAPI document and checks how breaking_changes.py judges each.

Usage: breaking_changes_test.py DOCUMENT
"""

import copy
import json
import re
import sys

from breaking_changes import METHODS, breaking_changes, flat, load, resolved

JSON = "application/json"


class Change:
    """A document that is being changed."""

    def __init__(self, document):
        self.document = copy.deepcopy(document)

    def operation(self, name):
        """Returns the operation with this ID, and the item of its path."""
        for item in self.document["paths"].values():
            for method in METHODS:
                if item.get(method, {}).get("operationId") == name:
                    return item[method], item, method
        raise KeyError(name)

    def request(self, name):
        """Returns the schema of an operation's body, to change it for this operation only."""
        content = self.operation(name)[0]["requestBody"]["content"][JSON]
        content["schema"] = copy.deepcopy(flat(self.document, content["schema"]))
        return content["schema"]

    def response(self, name, status="200"):
        """Returns the schema of what a response has in `data`, to change it for this operation only."""
        operation = self.operation(name)[0]
        response = operation["responses"][status] = copy.deepcopy(resolved(self.document, operation["responses"][status]))
        schema = copy.deepcopy(flat(self.document, response["content"][JSON]["schema"]))
        response["content"][JSON]["schema"] = schema
        schema["properties"]["data"] = copy.deepcopy(flat(self.document, schema["properties"]["data"]))
        return schema["properties"]["data"]

    def values(self, schema, field):
        """Returns the values that a field can have, to change them for this field only."""
        schema["properties"][field] = copy.deepcopy(self.enum(schema["properties"][field]))
        return schema["properties"][field]["enum"]

    def enum(self, schema):
        schema = flat(self.document, schema)
        parts = [schema, *(flat(self.document, part) for part in schema.get("oneOf", schema.get("anyOf", ())))]
        return next(part for part in parts if "enum" in part)

    def parameter(self, operation, name):
        """Returns a parameter, to change it for this operation only."""
        parameters = self.operation(operation)[0]["parameters"]
        for index, parameter in enumerate(parameters):
            if resolved(self.document, parameter)["name"] == name:
                parameters[index] = copy.deepcopy(resolved(self.document, parameter))
                return parameters, parameters[index]
        raise KeyError(name)


def remove_operation(change):
    _, item, method = change.operation("get_stats")
    del item[method]


def rename_operation(change):
    change.operation("get_stats")[0]["operationId"] = "statistics"


def require_new_field(change):
    schema = change.request("create_asset")
    schema["properties"]["colour"] = {"type": "string"}
    schema["required"].append("colour")


def require_known_field(change):
    change.request("create_asset")["required"].append("serial_number")


def remove_field_of_request(change):
    del change.request("create_asset")["properties"]["notes"]


def narrow_values_of_request(change):
    change.values(change.request("create_user"), "role").remove("helpdesk")


def shorten_field_of_request(change):
    change.request("create_asset")["properties"]["name"] = {"type": "string", "minLength": 1, "maxLength": 20}


def change_type_in_request(change):
    change.request("create_user")["properties"]["is_active"] = {"type": "string"}


def require_body(change):
    body = change.operation("rotate_key")[0]["requestBody"]
    body["required"] = not body.get("required", False)


def remove_media_type(change):
    del change.operation("import_assets")[0]["requestBody"]["content"]["text/csv"]


def remove_field_of_response(change):
    schema = change.response("get_asset")
    del schema["properties"]["asset_tag"]
    schema["required"].remove("asset_tag")


def leave_field_of_response_out(change):
    change.response("get_asset")["required"].remove("asset_tag")


def make_field_of_response_nullable(change):
    schema = change.response("get_asset")
    schema["properties"]["asset_tag"] = {"oneOf": [{"type": "null"}, schema["properties"]["asset_tag"]]}


def change_type_in_response(change):
    change.response("get_asset")["properties"]["asset_tag"] = {"type": "integer"}


def change_items_of_list(change):
    change.response("list_assets")["items"] = {"type": "string"}


def remove_status(change):
    responses = change.operation("create_asset")[0]["responses"]
    responses["202"] = responses.pop("201")


def remove_header_of_response(change):
    operation = change.operation("create_asset")[0]
    operation["responses"]["201"] = response = copy.deepcopy(resolved(change.document, operation["responses"]["201"]))
    del response["headers"]["Location"]


def remove_parameter(change):
    parameters, parameter = change.parameter("list_assets", "q")
    parameters.remove(parameter)


def require_parameter(change):
    change.parameter("list_assets", "q")[1]["required"] = True


def require_new_parameter(change):
    parameter = {"name": "site", "in": "query", "required": True, "schema": {"type": "string"}}
    change.operation("list_assets")[0]["parameters"].append(parameter)


def require_scope(change):
    change.operation("get_asset")[0]["security"] = [{"api_key": ["assets:read", "users:read"]}]


BREAKING = {
    "GET /v1/stats": [remove_operation, rename_operation],
    "POST /v1/assets": [
        require_new_field, require_known_field, remove_field_of_request, shorten_field_of_request, remove_status,
        remove_header_of_response,
    ],
    "POST /v1/users": [narrow_values_of_request, change_type_in_request],
    "POST /v1/keys/{}/rotate": [require_body],
    "POST /v1/assets/import": [remove_media_type],
    "GET /v1/assets/{}": [
        remove_field_of_response, leave_field_of_response_out, make_field_of_response_nullable, change_type_in_response,
        require_scope,
    ],
    "GET /v1/assets": [change_items_of_list, remove_parameter, require_parameter, require_new_parameter],
}


def nothing(_):
    pass


def add_operation(change):
    change.document["paths"]["/colours"] = {"get": {"operationId": "list_colours", "responses": {"200": {"description": "OK"}}}}


def add_optional_field(change):
    change.request("create_asset")["properties"]["colour"] = {"type": "string"}


def add_field_to_response(change):
    schema = change.response("get_asset")
    schema["properties"]["colour"] = {"type": "string"}
    schema["required"].append("colour")


def widen_values_of_request(change):
    change.values(change.request("create_user"), "role").append("auditor")


def widen_values_of_response(change):
    change.values(change.response("get_asset"), "status").append("lost")


def narrow_values_of_response(change):
    change.values(change.response("get_asset"), "status").remove("scrapped")


def need_less(change):
    change.request("create_asset")["required"].remove("name")


def add_parameter(change):
    parameter = {"name": "site", "in": "query", "schema": {"type": "string"}}
    change.operation("list_assets")[0]["parameters"].append(parameter)


def describe_otherwise(change):
    change.operation("list_assets")[0].update(summary="Assets", description="All of them.", tags=["other"])


def rename_schemas(change):
    change.document = json.loads(json.dumps(change.document).replace("#/components/schemas/", "#/components/schemas/The"))
    schemas = change.document["components"]["schemas"]
    change.document["components"]["schemas"] = {f"The{name}": schema for name, schema in schemas.items()}


def rename_parameters_of_paths(change):
    change.document = json.loads(json.dumps(change.document).replace("{id}", "{identifier}"))


def inline_schemas(change):
    change.request("create_asset")
    change.response("get_asset")


HARMLESS = [
    nothing, add_operation, add_optional_field, add_field_to_response, widen_values_of_request, widen_values_of_response,
    narrow_values_of_response, need_less, add_parameter, describe_otherwise, rename_schemas, rename_parameters_of_paths,
    inline_schemas,
]


def main(path):
    document, errors = load(path), []
    cases = [(place, change) for place, changes in BREAKING.items() for change in changes]
    for place, change in [*cases, *((None, change) for change in HARMLESS)]:
        changed = Change(document)
        change(changed)
        found = breaking_changes(document, changed.document)
        is_right = len(found) == 1 and re.match(rf"{re.escape(place)}[ :]", found[0]) if place else not found
        if not is_right:
            errors.append(f"{change.__name__}: expected {f'one change of {place}' if place else 'nothing'}, found {found}")
    if errors:
        sys.exit("\n".join(errors))
    print(f"{len(cases)} breaking and {len(HARMLESS)} harmless changes are judged as they should be")


if __name__ == "__main__":
    main(sys.argv[1])
