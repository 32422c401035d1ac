"""Writes a CycloneDX document with the components that a package links.

    cargo tree -p PACKAGE -e normal,no-proc-macro --prefix none --format '{p}|{l}' | sbom.py
"""

import sys

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL


def component(line, type=ComponentType.LIBRARY):
    package, _, license = line.partition("|")
    name, version = package.split()[:2]
    url = PackageURL("cargo", name=name, version=version.removeprefix("v"))
    # `(*)` marks a package that already appeared in the tree. Older manifests separate licenses with a slash.
    expression = license.removesuffix("(*)").strip().replace("/", " OR ")
    licenses = [LicenseFactory().make_from_string(expression)] if expression else []
    return Component(name=name, version=url.version, type=type, purl=url, bom_ref=str(url), licenses=licenses)


def main():
    root, *linked = filter(None, map(str.strip, sys.stdin))
    bom = Bom()
    bom.metadata.component = component(root, ComponentType.APPLICATION)
    components = {found.bom_ref.value: found for found in map(component, linked)}
    for found in components.values():
        bom.components.add(found)
    bom.register_dependency(bom.metadata.component, components.values())
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"sbom: {error}")
    print(text)


main()
