"""Calls each function once, through the gateway or by what starts it in AWS."""

import base64
import json
import os
import struct
import zlib

from api import Api
from aws import FUNCTION, client, expect, outputs, pages, resources, run, wait
from routes import called, deployed


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def signature():
    """Returns a picture with noise as a data URL: signatures without any stroke are refused."""
    rows = b"".join(b"\0" + os.urandom(60) for _ in range(20))
    picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 60, 20, 8, 0, 0, 0, 0))
    picture += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(picture).decode()


def records(api):
    """Calls assets, users, catalog, account and meta, and returns an asset and a user."""
    stranger = Api(api.base)
    expect(stranger.get("/health").json()["status"] == "ok", "not healthy")
    stranger.get("/assets", want=401)
    api.get("/nothing", want=404)
    expect(stranger.get("/openapi.json").json()["openapi"], "no OpenAPI document")
    asset = api.post("/assets", {"name": "Notebook", "serial_number": "S 1", "status": "preparing"}).data
    expect(asset["asset_tag"] == "AST-000001", f"the first asset is {asset['asset_tag']}")
    api.call("PATCH", f"/assets/{asset['id']}", {"notes": "äöü €"})
    expect(api.get(f"/assets/{asset['id']}").data["notes"] == "äöü €", "text isn't what was sent")
    expect(api.get("/assets?q=notebook").json()["meta"]["total"] == 1, "the asset isn't found")
    expect(api.get(f"/assets/{asset['id']}/history").json()["meta"]["total"] == 2, "not two entries in the history")
    # The gateway gets a picture from the function as text in base64.
    expect(api.get(f"/assets/{asset['id']}/label?format=png").body.startswith(b"\x89PNG"), "the label is no picture")
    # It replaces what isn't UTF-8, and functions must notice.
    api.post("/assets", b'{"name": "\xff"}', want=400)
    rows = api.post("/assets/import", b"name,serial_number\nZwei,S2\n", want=200, kind="text/csv").json()
    expect(rows["meta"]["created"] == 1, f"import: {rows}")
    api.call("PUT", "/assets/by-serial/S%203", {"name": "Third"}, want=201)
    expect(b"Zwei" in api.get("/assets/export?format=csv").body, "an export without an asset")
    expect(api.get("/stats").data, "no statistics")
    user = api.post("/users", {"email": "grace@example.com", "display_name": "Grace"}).data
    expect(api.get("/users").json()["meta"]["total"] == 2, "not two users")
    kind = api.post("/catalog/asset-types", {"name": "Laptop", "code": "LAP", "kind": "physical"}).data
    api.call("DELETE", f"/catalog/asset-types/{kind['id']}")
    expect(api.get("/keys").json()["meta"]["total"] == 1, "not one key")
    return asset, user


def receipt(api, asset, user):
    """Signs for an asset with a link, and gets a receipt, whose key KMS encrypts: processes and sign."""
    step = {"type": "signature", "key": "sig", "label": "Signature", "required": True}
    definition = {"name": "Handover", "trigger_status": "preparing", "target_status": "in_use", "steps": [step]}
    process = api.post("/processes", definition).data
    instance = api.post(f"/processes/{process['id']}/start", {"asset_id": asset["id"]}).data
    path = f"/processes/instances/{instance['id']}"
    expect(api.get("/processes/instances").json()["meta"]["total"] == 1, "not one instance")
    page, secret = api.post(f"{path}/links", {"signer": {"user_id": user["id"]}}).data["url"].split("#")
    # The address that the output has.
    expect(page == f"{api.base}/sign", f"a link leads to {page}")
    signer = Api(api.base, secret)
    expect(b"<html" in Api(api.base).get("/sign").body, "no signing page")
    signer.get("/sign/session")
    signer.post("/sign/advance", {"current_step": 0, "step_data": {"sig": signature()}}, want=200)
    expect(signer.get("/sign/receipt").body, "no receipt for the signer")
    expect(api.get(f"{path}/receipt?format=html").body.count(b"<html") == 1, "no receipt")
    tenant = api.get("/me").data["tenant"]["id"]
    keys = Api(api.base).get(f"/.well-known/receipt-keys?tenant={tenant}").json()["keys"]
    expect(len(keys) == 1, f"not one key of receipts: {keys}")
    expect(api.get(f"/assets/{asset['id']}").data["status"] == "in_use", "the process didn't change the asset")


def webhook(api):
    return api.post("/webhooks", {"url": "https://hooks.example.com/in", "events": ["asset.*"]}).data


def deliveries(api, hook):
    return api.get(f"/webhooks/{hook['id']}/deliveries").data


def attempts(api, asset, hook):
    """Waits for a second attempt of a delivery, which came through both queues: fanout and deliver."""
    wait(20, "an event in the feed", lambda: api.get("/events").data)
    wait(20, "an event of the asset", lambda: api.get(f"/events?entity_id={asset['id']}").data)

    def repeated():
        return next((found for found in deliveries(api, hook) if found["attempt_count"] >= 2), None)

    found = wait(60, "a second attempt of a delivery", repeated)
    errors = {attempt["error"] for attempt in found["attempts"]}
    # Here, the receiver's name is an address of this machine.
    expect(errors == {"address_not_allowed"}, f"attempts ended with {errors}")
    # The function of the API that sends a message too.
    expect(api.get("/webhooks").json()["meta"]["total"] == 1, "not one webhook")
    api.post(f"/webhooks/{hook['id']}/deliveries/{found['id']}/retry", None, want=200)
    return len(deliveries(api, hook))


def snapshot():
    """Invokes what the schedule names, as the schedule would: snapshots."""
    rules = pages("events", "list_rules", "Rules")
    targets = [target for rule in rules for target in pages("events", "list_targets_by_rule", "Targets", Rule=rule["Name"])]
    (target,) = [target for target in targets if target["Arn"].endswith(f":{resources(FUNCTION)['SnapshotsFunction']}")]
    result = client("lambda").invoke(FunctionName=target["Arn"], Payload=target.get("Input", "{}"))
    expect("FunctionError" not in result, f"snapshots: {result['Payload'].read()!r}")
    bucket = outputs()["SnapshotBucketName"]
    objects = [found["Key"] for found in pages("s3", "list_objects_v2", "Contents", Bucket=bucket)]
    # Small lists have no snapshots. The writer stores where it ended.
    expect([key.rpartition("/")[2] for key in objects] == ["last-tenant"], f"the bucket has {objects}")


def first_tenant(name):
    """Creates a tenant as docs/deploy.md does, and returns its key."""
    text = run("admin", "tenant", "create", "--name", name, "--admin-email", "ada@example.com", "--json")
    return json.loads(text)["api_key"]


def check_called(api):
    """Checks that requests got to every function that has a route, and everything else to a test of what it does."""
    without_route = set(resources(FUNCTION)) - set(deployed().values())
    expect(without_route == {"SnapshotsFunction", "FanoutFunction", "DeliverFunction"}, f"nothing calls {without_route}")
    missing = set(deployed().values()) - called(api.paths)
    expect(not missing, f"no request got to {missing}")
