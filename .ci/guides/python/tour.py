"""A tour of the API with a generated client. docs/guides/clients.md shows parts of it."""

import json
import os
from collections.abc import Iterator
from datetime import date
from typing import TypeVar
from uuid import uuid4

from asset_lifecycle import AuthenticatedClient
from asset_lifecycle.api.assets import (
    create_asset,
    delete_asset,
    get_asset,
    get_asset_history,
    list_asset_processes,
    list_assets,
    update_asset,
)
from asset_lifecycle.api.catalog import create_asset_type, create_manufacturer, create_model
from asset_lifecycle.api.keys import create_key
from asset_lifecycle.api.meta import get_health, get_receipt_keys
from asset_lifecycle.api.processes import advance_instance, get_receipt, get_signature, start_process, update_process
from asset_lifecycle.api.settings import update_settings
from asset_lifecycle.api.users import create_user
from asset_lifecycle.models import (
    Asset,
    AssetKind,
    AssetList,
    AssetPatch,
    AssetStatus,
    AssignedUser,
    CustomFields,
    CustomFieldsSchema,
    DefinitionOrInstanceStatus,
    ExpandedField,
    ImportResult,
    InstanceStatus,
    NewApiKey,
    NewAsset,
    NewAssetType,
    NewManufacturer,
    NewModel,
    NewUser,
    Problem,
    ProcessDefinitionPatch,
    ProcessStart,
    Scope,
    SettingsPatch,
    StepData,
    StepSubmission,
    StepType,
)

client = AuthenticatedClient(base_url=os.environ.get("BASE", "http://127.0.0.1:3000/v1"), token=os.environ["KEY"])
found = list_assets.sync(client=client, status=[AssetStatus.IN_USE], limit=5)
if isinstance(found, AssetList):
    print(f"{found.meta.total} assets, the first is {found.data[0].name}")

refused = create_asset.sync(client=client, body=NewAsset(name="", purchase_price=-1))
if isinstance(refused, Problem) and refused.code == "VALIDATION_ERROR":
    for error in refused.errors or []:
        print(error.pointer, error.detail)

assert isinstance(found, AssetList) and found.meta.total > 5 and len(found.data) == 5
assert isinstance(refused, Problem)
assert [error.pointer for error in refused.errors or []] == ["/name", "/purchase_price"]

Success = TypeVar("Success")


class ApiError(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.code}: {problem.detail}")
        self.problem = problem


def ok(parsed: Success | Problem | None) -> Success:
    """Returns the body of a success. Raises the problem otherwise."""
    if isinstance(parsed, Problem):
        raise ApiError(parsed)
    if parsed is None:
        raise TypeError("a response without a type, such as that to the dry run of a creation")
    return parsed


# The service is up.
assert ok(get_health.sync(client=client)).status == "ok"


# All pages.
def all_assets() -> Iterator[Asset]:
    page = 1
    while True:
        assets = ok(list_assets.sync(client=client, page=page, limit=50, sort="created_at"))
        yield from assets.data
        if page >= assets.meta.total_pages:
            return
        page += 1


assert len({each.asset_tag for each in all_assets()}) > 50

# Fill the catalog.
asset_type = ok(
    create_asset_type.sync(
        client=client,
        body=NewAssetType(
            name="Tablet",
            code="TAB",
            kind=AssetKind.PHYSICAL,
            custom_fields_schema=CustomFieldsSchema.from_dict(
                {"type": "object", "properties": {"room": {"type": "string"}, "ports": {"type": "array"}}}
            ),
        ),
    )
).data
manufacturer = ok(create_manufacturer.sync(client=client, body=NewManufacturer(name="Wacom"))).data
model = ok(
    create_model.sync(
        client=client,
        body=NewModel(name="Cintiq 16", manufacturer_id=manufacturer.id, asset_type_id=asset_type.id),
    )
).data
settings = ok(update_settings.sync(client=client, body=SettingsPatch(asset_tag_template="{TYPE_CODE}-NNNN"))).data
assert settings.status_transitions is None

# Create an asset, and repeat the request as after a lost connection.
tablet = NewAsset(
    name="Tablet of the front desk",
    model_id=model.id,
    serial_number="WAC-88120",
    purchase_date=date(2026, 3, 5),
    purchase_price="1249.00",
    custom_fields=CustomFields.from_dict({"room": "2.13", "ports": ["USB-C", "HDMI"]}),
)
key = str(uuid4())
first = create_asset.sync_detailed(client=client, body=tablet, idempotency_key=key)
again = create_asset.sync_detailed(client=client, body=tablet, idempotency_key=key)
print(again.headers["Idempotent-Replayed"])
asset = ok(first.parsed).data
assert asset.asset_tag == "TAB-0001"
assert asset.status is AssetStatus.IN_STOCK
assert asset.manufacturer == "Wacom"
assert asset.custom_fields["ports"] == ["USB-C", "HDMI"]
assert "Idempotent-Replayed" not in first.headers
assert again.headers["Idempotent-Replayed"] == "true"
assert again.parsed == first.parsed

# A dry run writes nothing: what is not assigned yet is null. Its response has no type.
draft = create_asset.sync_detailed(client=client, body=tablet, dry_run=True)
print(draft.status_code, json.loads(draft.content)["data"]["manufacturer"])
assert draft.status_code == 200
assert json.loads(draft.content)["data"]["id"] is None

# Change it, unless someone else did.
etag = get_asset.sync_detailed(asset.id, client=client).headers["ETag"]
changed = update_asset.sync(asset.id, client=client, body=AssetPatch(notes="Cracked screen"), if_match=etag)
stale = update_asset.sync(asset.id, client=client, body=AssetPatch(notes=None), if_match=etag)
if isinstance(stale, Problem):
    print(stale.status, stale.code)
assert ok(changed).data.notes == "Cracked screen"
assert isinstance(stale, Problem) and stale.status == 412 and stale.code == "PRECONDITION_FAILED"

# Read it only if it has changed.
current = get_asset.sync_detailed(asset.id, client=client)
assert ok(current.parsed).data.notes == "Cracked screen"
unchanged = get_asset.sync_detailed(asset.id, client=client, if_none_match=current.headers["ETag"])
assert unchanged.status_code == 304

# Assign it, and find it.
user = ok(create_user.sync(client=client, body=NewUser(email="mary@example.org", display_name="Mary Jackson"))).data
assigned = AssetPatch(assigned_to=user.id, status=AssetStatus.IN_USE)
ok(update_asset.sync(asset.id, client=client, body=assigned))
hers = ok(
    list_assets.sync(
        client=client,
        assigned_to=user.id,
        kind=AssetKind.PHYSICAL,
        q="wac desk",
        sort="-name",
        expand=ExpandedField.ASSIGNED_TO,
    )
)
assert hers.meta.total == 1
assert isinstance(hers.data[0].assigned_user, AssignedUser)
assert hers.data[0].assigned_user.email == "mary@example.org"

# Hand it over with a process.
prepared = AssetPatch(assigned_to=None, status=AssetStatus.PREPARING)
ok(update_asset.sync(asset.id, client=client, body=prepared))
startable = ok(list_asset_processes.sync(asset.id, client=client)).data
onboarding = next(process for process in startable if process.slug == "employee-onboarding")
assert onboarding.can_start
started = start_process.sync(
    onboarding.id,
    client=client,
    body=ProcessStart(
        asset_id=asset.id,
        step_data=StepData.from_dict({"employee": str(user.id)}),
        through="employee",
    ),
)
instance = ok(started).data
running = delete_asset.sync(asset.id, client=client)
assert isinstance(running, Problem) and running.code == "PROCESS_RUNNING"
assert running["instance_id"] == str(instance.id)

# Submit the steps: one, then the others.
checked = StepSubmission(step_data=StepData.from_dict({"handover": ["Device", "Power supply"]}))
ok(advance_instance.sync(instance.id, client=client, body=checked))
image = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAAAAADRSSBWAAAAC0lEQVR42mNg+A8AAQIBANEay48AAAAASUVORK5CYII="
signature = StepData.from_dict({"signature": f"data:image/png;base64,{image}"})
completed = ok(
    advance_instance.sync(instance.id, client=client, body=StepSubmission(step_data=signature, through="complete"))
).data
print(f"{completed.process_name}: {completed.status}")
assert completed.status is InstanceStatus.COMPLETED
assert completed.step_data["handover"] == ["Device", "Power supply"]
assert completed.steps[2].type_ is StepType.SIGNATURE
assert ok(get_signature.sync(instance.id, "signature", client=client)).payload.read(4) == b"\x89PNG"

# A PATCH of a process has one type, whatever its ID names.
closed = ProcessDefinitionPatch(status=DefinitionOrInstanceStatus.INACTIVE)
assert ok(update_process.sync(onboarding.id, client=client, body=closed)).data.name == "Employee Onboarding"
as_it_is = ProcessDefinitionPatch(status=DefinitionOrInstanceStatus.COMPLETED)
assert ok(update_process.sync(instance.id, client=client, body=as_it_is)).data.asset_id == asset.id

# The history and the receipt.
history = ok(get_asset_history.sync(asset.id, client=client, verify=True, limit=1))
assert history.verification and history.verification.valid
signed = ok(get_receipt.sync(instance.id, client=client))
assert signed.receipt.steps[0].user_name == "Mary Jackson"
keys = ok(get_receipt_keys.sync(client=client, tenant=signed.receipt.tenant_id)).keys
assert next(key for key in keys if key.kid == signed.signature.kid).crv == "Ed25519"

# An import, which the generator leaves out.
people = "email,display_name\nada@example.org,Ada Lovelace\n"
imported = client.get_httpx_client().post("/users/import", content=people, headers={"Content-Type": "text/csv"})
assert ImportResult.from_dict(imported.json()).meta.created == 1

# A read-only key can't write.
reader = ok(create_key.sync(client=client, body=NewApiKey(name="reader", scopes=[Scope.ASSETS_READ]))).data
assert reader.api_key
read_only = AuthenticatedClient(base_url=os.environ["BASE"], token=reader.api_key)
ok(list_assets.sync(client=read_only, limit=1))
forbidden = create_asset.sync(client=read_only, body=NewAsset(name="x"))
assert isinstance(forbidden, Problem) and forbidden.status == 403
assert forbidden.detail == "The API key lacks the scope assets:write."

# Delete the asset.
ok(delete_asset.sync(asset.id, client=client))
try:
    ok(get_asset.sync(asset.id, client=client))
    raise AssertionError("the asset is still there")
except ApiError as error:
    assert error.problem.status == 404
