"""A tour of the API with a generated client. docs/guides/clients.md shows parts of it."""

import json
import os
from datetime import date
from typing import TypeVar
from uuid import uuid4

from asset_lifecycle import AuthenticatedClient
from asset_lifecycle.api.assets import create_asset, get_asset, list_asset_processes, list_assets, update_asset
from asset_lifecycle.api.processes import get_receipt, get_signature, start_process, update_process
from asset_lifecycle.api.users import create_user
from asset_lifecycle.models import (
    AssetList,
    AssetPatch,
    AssetStatus,
    CustomFields,
    DefinitionOrInstanceStatus,
    ImportResult,
    InstanceStatus,
    NewAsset,
    NewUser,
    Problem,
    ProcessDefinitionPatch,
    ProcessStart,
    StepData,
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


def ok(parsed: Success | Problem | None) -> Success:
    """Returns the body of a successful response. Otherwise, raises the problem document."""
    # Responses without a type, such as the response to a dry run of a creation, are None.
    assert parsed is not None and not isinstance(parsed, Problem), parsed
    return parsed


# Create an asset, and repeat the request as if its response had been lost.
tablet = NewAsset(
    name="Tablet of the front desk",
    purchase_date=date(2026, 3, 5),
    purchase_price="1249.00",
    custom_fields=CustomFields.from_dict({"room": "2.13", "ports": ["USB-C", "HDMI"]}),
)
key = str(uuid4())
first = create_asset.sync_detailed(client=client, body=tablet, idempotency_key=key)
again = create_asset.sync_detailed(client=client, body=tablet, idempotency_key=key)
print(again.headers["Idempotent-Replayed"])
asset = ok(first.parsed).data
assert asset.status is AssetStatus.IN_STOCK
assert asset.custom_fields["ports"] == ["USB-C", "HDMI"]
assert "Idempotent-Replayed" not in first.headers
assert again.headers["Idempotent-Replayed"] == "true"
assert again.parsed == first.parsed

# A dry run writes nothing. Values that only the real request assigns are null. Its response has no type.
draft = create_asset.sync_detailed(client=client, body=tablet, dry_run=True)
assert draft.status_code == 200
assert json.loads(draft.content)["data"]["id"] is None

# Change the tablet, unless someone else has changed it.
etag = get_asset.sync_detailed(asset.id, client=client).headers["ETag"]
changed = update_asset.sync(asset.id, client=client, body=AssetPatch(notes="Cracked screen"), if_match=etag)
stale = update_asset.sync(asset.id, client=client, body=AssetPatch(notes=None), if_match=etag)
if isinstance(stale, Problem):
    print(stale.status, stale.code)
assert ok(changed).data.notes == "Cracked screen"
assert isinstance(stale, Problem) and stale.status == 412 and stale.code == "PRECONDITION_FAILED"

# Hand the tablet over in a process.
user = ok(create_user.sync(client=client, body=NewUser(email="mary@example.org", display_name="Mary Jackson"))).data
ok(update_asset.sync(asset.id, client=client, body=AssetPatch(status=AssetStatus.PREPARING)))
startable = ok(list_asset_processes.sync(asset.id, client=client)).data
onboarding = next(process for process in startable if process.slug == "employee-onboarding")
image = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAAAAADRSSBWAAAAC0lEQVR42mNg+A8AAQIBANEay48AAAAASUVORK5CYII="
values = {"employee": str(user.id), "handover": ["Device", "Power supply"], "signature": f"data:image/png;base64,{image}"}
start = ProcessStart(asset_id=asset.id, step_data=StepData.from_dict(values), through="complete")
instance = ok(start_process.sync(onboarding.id, client=client, body=start)).data
assert instance.status is InstanceStatus.COMPLETED
assert isinstance(instance.step_data, StepData) and instance.step_data["handover"] == ["Device", "Power supply"]
assert ok(get_signature.sync(instance.id, "signature", client=client)).payload.read(4) == b"\x89PNG"
signed = ok(get_receipt.sync(instance.id, client=client))
assert signed.receipt.steps[0].user_name == "Mary Jackson"

# The response to PATCH /processes/{id} has one type, for process IDs and instance IDs.
as_it_is = ProcessDefinitionPatch(status=DefinitionOrInstanceStatus.COMPLETED)
assert ok(update_process.sync(instance.id, client=client, body=as_it_is)).data.asset_id == asset.id

# Import users. The generator leaves this operation out.
people = "email,display_name\nada@example.org,Ada Lovelace\n"
imported = client.get_httpx_client().post("/users/import", content=people, headers={"Content-Type": "text/csv"})
assert ImportResult.from_dict(imported.json()).meta.created == 1
