"""Imports the OpenAPI document that SAM generates from the routes, as API Gateway does. MiniStack ignores the document."""

from ministack.core.responses import new_uuid
from ministack.services import apigateway
from ministack.services.cloudformation import provisioners

ANY, DEFAULT = "x-amazon-apigateway-any-method", "$default"


def route_key(method, path):
    if path == f"/{DEFAULT}" or path == DEFAULT:
        return DEFAULT
    return f"{'ANY' if method == ANY else method.upper()} {path}"


def import_document(api_id, document):
    routes, integrations = {}, {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            function = operation["x-amazon-apigateway-integration"]
            properties = {"IntegrationType": function["type"].upper(), "IntegrationUri": function["uri"]}
            properties["PayloadFormatVersion"] = function["payloadFormatVersion"]
            integration, route = new_uuid()[:8], new_uuid()[:8]
            integrations[integration] = provisioners._apigw_v2_integration_props(properties) | {"integrationId": integration}
            properties = {"RouteKey": route_key(method, path), "Target": f"integrations/{integration}"}
            routes[route] = provisioners._apigw_v2_route_props(properties) | {"routeId": route}
    apigateway._routes[api_id], apigateway._integrations[api_id] = routes, integrations
    apigateway._apis[api_id]["corsConfiguration"] = document["x-amazon-apigateway-cors"]
