"""Calls each function, through the gateway or by its trigger in AWS. Other tests check the responses."""

import json

from api import Api
from aws import FUNCTION, client, expect, outputs, pages, resources, run, wait

# A new function needs a call here.
CALLED = {
    *("AccountFunction", "AssetsFunction", "CatalogFunction", "MetaFunction", "ProcessesFunction", "SignFunction"),
    *("UsersFunction", "WebhooksFunction", "FanoutFunction", "DeliverFunction", "SnapshotsFunction"),
}
# A PNG of a black and a white pixel, because a blank signature is rejected.
SIGNATURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAAAAADRSSBWAAAAC0lEQVR42mNg+A8AAQIBANEay48AAAAASUVORK5CYII="


def check_called():
    expect(set(resources(FUNCTION)) == CALLED, f"the list of called functions is wrong: {set(resources(FUNCTION)) ^ CALLED}")


def records(api):
    """Calls assets, users, catalog, account and meta, and returns an asset and a user."""
    stranger = Api(api.base)
    expect(stranger.get("/health").json()["status"] == "ok", "not healthy")
    stranger.get("/assets", want=401)
    api.get("/nothing", want=404)
    expect(stranger.get("/openapi.json").json()["openapi"], "no OpenAPI document")
    asset = api.create("/assets", {"name": "Notebook", "serial_number": "S 1", "status": "preparing"})
    api.call("PATCH", f"/assets/{asset['id']}", {"notes": "äöü €"})
    expect(api.data(f"/assets/{asset['id']}")["notes"] == "äöü €", "the text was changed")
    # The function returns images to API Gateway in base64, which the gateway decodes.
    expect(api.get(f"/assets/{asset['id']}/label?format=png").data.startswith(b"\x89PNG"), "the label isn't an image")
    # API Gateway replaces invalid UTF-8, and the function must detect that.
    api.post("/assets", b'{"name": "\xff"}', want=400)
    api.post("/assets/import", b"name,serial_number\nZwei,S2\n", want=200, kind="text/csv")
    api.call("PUT", "/assets/by-serial/S%203", {"name": "Third"}, want=201)
    expect(api.total("/assets") == 3, "not three assets")
    expect(b"Zwei" in api.get("/assets/export?format=csv").data, "an export without an asset")
    user = api.create("/users", {"email": "grace@example.com", "display_name": "Grace"})
    kind = api.create("/catalog/asset-types", {"name": "Laptop", "code": "LAP", "kind": "physical"})
    api.call("DELETE", f"/catalog/asset-types/{kind['id']}")
    expect(api.total("/keys") == 1, "not one key")
    return asset, user


def receipt(api, asset, user):
    """Signs for an asset with a link, and gets a receipt, whose signing key KMS encrypts: processes and sign."""
    step = {"type": "signature", "key": "sig", "label": "Signature", "required": True}
    definition = {"name": "Handover", "trigger_status": "preparing", "target_status": "in_use", "steps": [step]}
    process = api.create("/processes", definition)
    instance = api.create(f"/processes/{process['id']}/start", {"asset_id": asset["id"]})
    path = f"/processes/instances/{instance['id']}"
    page, secret = api.create(f"{path}/links", {"signer": {"user_id": user["id"]}})["url"].split("#")
    # The link must start with the API address from the stack's output.
    expect(page == f"{api.base}/sign", f"a link leads to {page}")
    expect(b"<html" in Api(api.base).get("/sign").data, "no signing page")
    signer = Api(api.base, secret)
    signer.get("/sign/session")
    signer.post("/sign/advance", {"current_step": 0, "step_data": {"sig": SIGNATURE}}, want=200)
    expect(signer.get("/sign/receipt").data, "no receipt for the signer")
    expect(b"<html" in api.get(f"{path}/receipt?format=html").data, "no receipt")
    tenant = api.data("/me")["tenant"]["id"]
    keys = Api(api.base).get(f"/.well-known/receipt-keys?tenant={tenant}").json()["keys"]
    expect(len(keys) == 1, f"not one key of receipts: {keys}")
    expect(api.data(f"/assets/{asset['id']}")["status"] == "in_use", "the process didn't change the asset")


def webhook(api):
    return api.create("/webhooks", {"url": "https://hooks.example.com/in", "events": ["asset.*"]})


def deliveries(api, hook):
    return api.data(f"/webhooks/{hook['id']}/deliveries")


def attempts(api, hook):
    """Waits for the second attempt at a delivery, which uses both queues: fanout and deliver."""
    wait(20, "an event in the feed", lambda: api.data("/events"))

    def repeated():
        return next((found for found in deliveries(api, hook) if found["attempt_count"] >= 2), None)

    found = wait(60, "a second attempt of a delivery", repeated)
    errors = {attempt["error"] for attempt in found["attempts"]}
    # Here, the receiver's name resolves to this machine.
    expect(errors == {"address_not_allowed"}, f"attempts ended with {errors}")
    # Checks that the API function can send messages.
    api.post(f"/webhooks/{hook['id']}/deliveries/{found['id']}/retry", None, want=200)
    return len(deliveries(api, hook))


def snapshot():
    """Invokes the function of the schedule: snapshots."""
    rules = pages("events", "list_rules", "Rules")
    targets = [target for rule in rules for target in pages("events", "list_targets_by_rule", "Targets", Rule=rule["Name"])]
    (target,) = [target for target in targets if target["Arn"].endswith(f":{resources(FUNCTION)['SnapshotsFunction']}")]
    result = client("lambda").invoke(FunctionName=target["Arn"], Payload=target.get("Input", "{}"))
    expect("FunctionError" not in result, f"snapshots: {result['Payload'].read()!r}")
    objects = [found["Key"] for found in pages("s3", "list_objects_v2", "Contents", Bucket=outputs()["SnapshotBucketName"])]
    # Small lists have no snapshots, so the bucket has only the writer's position.
    expect([key.rpartition("/")[2] for key in objects] == ["last-tenant"], f"the bucket has {objects}")


def first_tenant(name):
    """Creates a tenant as docs/deploy.md does, and returns its key."""
    text = run("admin", "tenant", "create", "--name", name, "--admin-email", "ada@example.com", "--json")
    return json.loads(text)["api_key"]
