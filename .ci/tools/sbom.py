"""Writes the components that a package links as a CycloneDX document, from what `cargo metadata` prints.

    cargo metadata --locked --format-version 1 --filter-platform PLATFORM | sbom.py PACKAGE
"""

import json
import sys

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL


def component(package, type=ComponentType.LIBRARY):
    name, version = package["name"], package["version"]
    url = PackageURL("cargo", name=name, version=version)
    # Older manifests separate licenses by a slash.
    expression = (package["license"] or "").replace("/", " OR ")
    licenses = [LicenseFactory().make_from_string(expression)] if expression else []
    return Component(name=name, version=version, type=type, purl=url, bom_ref=str(url), licenses=licenses)


def main():
    metadata = json.load(sys.stdin)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    (root,) = [id for id in metadata["workspace_members"] if packages[id]["name"] == sys.argv[1]]
    bom = Bom()
    bom.metadata.component = component(packages[root], ComponentType.APPLICATION)
    components, left = {root: bom.metadata.component}, [root]
    while left:
        id = left.pop()
        # Build scripts and tests link nothing into the program.
        linked = [dep["pkg"] for dep in nodes[id]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        for new in [dep for dep in linked if dep not in components]:
            components[new] = component(packages[new])
            bom.components.add(components[new])
            left.append(new)
        bom.register_dependency(components[id], [components[dep] for dep in linked])
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"sbom: {error}")
    print(text)


main()
