"""Compares two versions of the OpenAPI document and finds changes that break clients.

What a request may contain can only grow, and what a response contains can't disappear. Clients must ignore fields and cope
with values of an enum that they don't know, so both can be added to responses.

Usage: breaking_changes.py OLD NEW [ACCEPTED]. ACCEPTED lists breaking changes that are wanted, one per line as printed, with
comments that begin with #. Exits with 1 if there are others, or if one of these isn't found.
"""

import json
import re
import sys

METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
# Keywords that limit a value, and whether a larger number permits more.
LIMITS = {
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), True),
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), False),
}
# Keywords of which every change is taken for one that permits less, because patterns can't be compared.
OPAQUE = ("pattern", "multipleOf", "const", "contentEncoding")
OTHER_TYPE = "the type"


def resolved(document, value):
    """Follows references."""
    while isinstance(value, dict) and "$ref" in value:
        target = document
        for part in value["$ref"].removeprefix("#/").split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        value = target
    return value


def flat(document, schema):
    """Returns a schema without references and `allOf` at its top."""
    schema = resolved(document, schema)
    if not isinstance(schema, dict):
        return {} if schema is True else {"not": {}}
    if "allOf" not in schema:
        return schema
    merged = {}
    for part in [*(flat(document, part) for part in schema["allOf"]), {key: schema[key] for key in schema if key != "allOf"}]:
        properties = {**merged.get("properties", {}), **part.get("properties", {})}
        required = [*merged.get("required", []), *part.get("required", [])]
        merged = {**merged, **part}
        if properties:
            merged["properties"] = properties
        if required:
            merged["required"] = required
    return merged


def choices(document, schema):
    """Returns the schemas of which a value fits one: those of `oneOf` and `anyOf`, and one for each type."""
    schema = flat(document, schema)
    for keyword in ("oneOf", "anyOf"):
        if keyword in schema:
            return [choice for part in schema[keyword] for choice in choices(document, part)]
    if isinstance(schema.get("type"), list):
        return [{**schema, "type": name} for name in schema["type"]]
    return [schema]


def is_other_type(found):
    """Returns whether schemas were not compared, because their types differ."""
    return any(place == "" and change.startswith(OTHER_TYPE) for place, change in found)


class Comparison:
    """The breaking changes from an old to a new document."""

    def __init__(self, old, new):
        self.old, self.new = old, new
        # Pairs of schemas that are being compared, since schemas can contain themselves.
        self.pending = set()

    def schemas(self, old, new, is_request):
        """Yields where, within a value, and how `new` breaks clients that know `old`."""
        pair = (id(resolved(self.old, old)), id(resolved(self.new, new)), is_request)
        if pair in self.pending:
            return
        self.pending.add(pair)
        old_choices, new_choices = choices(self.old, old), choices(self.new, new)
        # Whatever a client sends must fit one of the new choices; whatever it gets, one of those that it knows.
        for needed in old_choices if is_request else new_choices:
            attempts = []
            for offered in new_choices if is_request else old_choices:
                attempts.append(list(self.single(*((needed, offered) if is_request else (offered, needed)), is_request)))
            # The closest one tells best what has changed.
            yield from min(attempts, key=lambda found: (is_other_type(found), len(found)), default=())
        self.pending.discard(pair)

    def single(self, old, new, is_request):
        """Compares schemas without choices."""
        smaller, larger = (old, new) if is_request else (new, old)
        kind, permitted = smaller.get("type"), larger.get("type")
        if permitted not in (None, kind) and not (kind == "integer" and permitted == "number"):
            yield "", f"{OTHER_TYPE} {old.get('type', 'any')} became {new.get('type', 'any')}"
            return
        if old.get("format") != new.get("format") and (not is_request or "format" in new):
            yield "", f"the format {old.get('format', 'none')} became {new.get('format', 'none')}"
        if is_request:
            yield from self.limits(old, new)
        elif "enum" in old and "enum" not in new:
            yield "", "the list of values was removed"
        yield from self.properties(old, new, is_request)
        if "items" in old or "items" in new:
            found = self.schemas(old.get("items", True), new.get("items", True), is_request)
            yield from ((f"/*{place}", change) for place, change in found)

    def limits(self, old, new):
        """Finds values that requests may not contain any more."""
        for value in old.get("enum", ()) if "enum" in new else ():
            if value not in new["enum"]:
                yield "", f"the value {json.dumps(value)} was removed"
        if "enum" in new and "enum" not in old:
            yield "", "a list of values was added"
        for keyword, is_upper in LIMITS.items():
            before, after = old.get(keyword), new.get(keyword)
            if after is not None and (before is None or (after < before if is_upper else after > before)):
                if (keyword, after) not in (("minLength", 0), ("minItems", 0), ("minProperties", 0)):
                    yield "", f"{keyword} became {after}"
        for keyword in OPAQUE:
            if keyword in new and new[keyword] != old.get(keyword):
                yield "", f"{keyword} became {json.dumps(new[keyword])}"
        if new.get("uniqueItems") and not old.get("uniqueItems"):
            yield "", "uniqueItems became true"

    def properties(self, old, new, is_request):
        """Compares the members of objects."""
        before, after = old.get("properties", {}), new.get("properties", {})
        for name in before:
            if name not in after:
                yield f"/{name}", "was removed"
                continue
            found = self.schemas(before[name], after[name], is_request)
            yield from ((f"/{name}{place}", change) for place, change in found)
        needed, known = (new, old) if is_request else (old, new)
        for name in sorted(set(needed.get("required", ())) - set(known.get("required", ()))):
            if is_request or name in after:
                yield f"/{name}", "became required" if is_request else "is no longer always present"
        before, after = old.get("additionalProperties", True), new.get("additionalProperties", True)
        if is_request and after is False and before is not False:
            yield "", "other fields are no longer accepted"
        elif isinstance(before, dict) or isinstance(after, dict):
            if before is not False and after is not False:
                found = self.schemas(before, after, is_request)
                yield from ((f"/*{place}", change) for place, change in found)

    def contents(self, place, old, new, is_request):
        """Compares bodies by media type."""
        for media_type, content in old.items():
            if media_type not in new:
                yield f"{place}: {media_type} was removed"
                continue
            found = self.schemas(content.get("schema", True), new[media_type].get("schema", True), is_request)
            yield from (f"{place} {path}: {change}".replace(" :", ":") for path, change in found)

    def parameters(self, place, old, new):
        """Compares parameters, all of which are in requests."""
        for key, parameter in old.items():
            if key not in new:
                yield f"{place}: the {key[0]} parameter {key[1]} was removed"
                continue
            found = self.schemas(parameter.get("schema", True), new[key].get("schema", True), True)
            yield from (f"{place}: the {key[0]} parameter {key[1]}{path}: {change}" for path, change in found)
        for key, parameter in new.items():
            if parameter.get("required") and not old.get(key, {}).get("required"):
                yield f"{place}: the {key[0]} parameter {key[1]} became required"

    def operation(self, place, old, new):
        """Compares operations."""
        if old.get("operationId") != new.get("operationId"):
            yield f"{place}: the operation {old.get('operationId')} became {new.get('operationId')}"
        by_name = {}
        for document, operation in ((self.old, old), (self.new, new)):
            parameters = [resolved(document, parameter) for parameter in operation.get("parameters", ())]
            # Parameters of the path are compared by their places in it.
            by_name[document is self.new] = {(p["in"], p["name"]): p for p in parameters if p["in"] != "path"}
        yield from self.parameters(place, by_name[False], by_name[True])
        before, after = resolved(self.old, old.get("requestBody")), resolved(self.new, new.get("requestBody"))
        if after and after.get("required") and not (before and before.get("required")):
            yield f"{place}: the body became required"
        if before:
            yield from self.contents(f"{place} request", before["content"], (after or {}).get("content", {}), True)
        for status, response in old["responses"].items():
            if status.startswith("2"):
                yield from self.response(f"{place} {status}", response, new["responses"].get(status))
        for wanted in old.get("security", self.old.get("security", [{}])) or [{}]:
            offered = new.get("security", self.new.get("security", [{}])) or [{}]
            if not any(suffices(wanted, choice) for choice in offered):
                yield f"{place}: {json.dumps(wanted)} no longer suffices, but {json.dumps(offered)} does"

    def response(self, place, old, new):
        """Compares successful responses."""
        if new is None:
            yield f"{place}: was removed"
            return
        old, new = resolved(self.old, old), resolved(self.new, new)
        yield from self.contents(place, old.get("content", {}), new.get("content", {}), False)
        for name in old.get("headers", {}):
            if name not in new.get("headers", {}):
                yield f"{place}: the header {name} was removed"


def suffices(credentials, requirement):
    """Returns whether a client that meets one security requirement also meets another."""
    return all(name in credentials and set(scopes) <= set(credentials[name]) for name, scopes in requirement.items())


def operations(document):
    """Returns the operations by method and path, without the names of parameters and with the path of the server."""
    servers = document.get("servers") or [{"url": "/"}]
    base = re.sub(r"^\w+://[^/]*", "", servers[0]["url"]).rstrip("/")
    found = {}
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                parameters = [*item.get("parameters", ()), *item[method].get("parameters", ())]
                place = f"{method.upper()} {base}{re.sub('{[^}]*}', '{}', path)}"
                found[place] = {**item[method], "parameters": parameters}
    return found


def breaking_changes(old, new):
    """Returns the changes that break clients, a line for each."""
    comparison, changes = Comparison(old, new), []
    before, after = operations(old), operations(new)
    for place, operation in before.items():
        changes += comparison.operation(place, operation, after[place]) if place in after else [f"{place}: was removed"]
    return list(dict.fromkeys(changes))


def load(path):
    """Reads a document."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main(old, new, accepted=None):
    """Prints the breaking changes that nobody has accepted."""
    changes = breaking_changes(load(old), load(new))
    wanted = []
    if accepted:
        with open(accepted, encoding="utf-8") as file:
            wanted = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    unwanted = [change for change in changes if change not in wanted]
    outdated = [line for line in wanted if line not in changes]
    for change in unwanted:
        print(f"breaking: {change}")
    for line in outdated:
        print(f"accepted, but not found: {line}")
    if unwanted or outdated:
        sys.exit(1)
    print(f"{len(changes)} breaking changes, all accepted" if changes else "no breaking changes")


if __name__ == "__main__":
    main(*sys.argv[1:])
