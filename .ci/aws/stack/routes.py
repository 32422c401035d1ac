"""The routes of the gateway, as template.yaml has them and as they are deployed."""

import re
from urllib.parse import urlsplit

import yaml
from aws import FUNCTION, expect, outputs, pages, resources

# Of the template's intrinsic functions, none matters here.
yaml.SafeLoader.add_multi_constructor("!", lambda loader, suffix, node: None)


def declared(template):
    """Returns the function of each route."""
    with open(template, encoding="utf-8") as file:
        functions = yaml.safe_load(file)["Resources"]
    found = {}
    for name, function in functions.items():
        events = function["Properties"].get("Events") or {} if function["Type"] == "AWS::Serverless::Function" else {}
        for event in events.values():
            if event["Type"] == "HttpApi":
                route = event["Properties"]
                found[f"{route['Method']} {route['Path']}" if "Path" in route else "$default"] = name
    return found


def deployed():
    names = {physical: name for name, physical in resources(FUNCTION).items()}
    api = resources("AWS::ApiGatewayV2::Api")["Api"]
    functions = {
        found["IntegrationId"]: names[re.search(r":function:([^:/]+)", found["IntegrationUri"])[1]]
        for found in pages("apigatewayv2", "get_integrations", "Items", ApiId=api)
    }
    routes = pages("apigatewayv2", "get_routes", "Items", ApiId=api)
    return {route["RouteKey"]: functions[route["Target"].removeprefix("integrations/")] for route in routes}


def check(template):
    expected, found = declared(template), deployed()
    expect(found == expected, f"the routes differ: {sorted(set(found.items()) ^ set(expected.items()))}")
    return len(found)


def pattern(key):
    return re.sub(r"\{\w+\}", "[^/]+", key.split(" ")[-1].replace("{proxy+}", ".+"))


def called(paths):
    """Returns the functions that requests of these paths got to."""
    routes = deployed()
    version = urlsplit(outputs()["BaseUrl"]).path

    def function(path):
        path = version + path.split("?")[0]
        # For the routes here, the longest one that fits is the most specific.
        fitting = [key for key in routes if re.fullmatch(pattern(key), path)]
        return routes[max(fitting, key=len, default="$default")]

    return {function(path) for path in paths}
