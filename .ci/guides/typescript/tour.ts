// A tour of the API with a generated client. docs/guides/clients.md shows parts of it.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { NewAsset, Problem, StepData, paths } from "./asset-lifecycle.js";

const api = createClient<paths>({
  baseUrl: process.env["BASE"] ?? "http://127.0.0.1:3000/v1",
  headers: { Authorization: `Bearer ${process.env["KEY"]}` },
  // Several values of a filter are separated by commas.
  querySerializer: { array: { style: "form", explode: false } },
});
const list = await api.GET("/assets", { params: { query: { status: ["in_use", "in_stock"], limit: 5 } } });
if (list.error) throw new Error(`${list.error.code}: ${list.error.detail}`);
console.log(`${list.data.meta.total} assets, the first is ${list.data.data[0]?.name}`);
assert.ok(list.data.meta.total > 5);
assert.equal(list.data.data.length, 5);

/** Returns the body of a successful response. Otherwise, throws the problem document. */
function ok<T>(result: { data: T; error?: never } | { data?: never; error: Problem }): T {
  if (result.error) throw new Error(`${result.error.code}: ${result.error.detail}`);
  return result.data;
}

// Create an asset, and repeat the request as if its response had been lost.
const tablet: NewAsset = {
  name: "Tablet of the front desk",
  purchase_price: "1249.00",
  custom_fields: { room: "2.13", ports: ["USB-C", "HDMI"] },
};
const request = { body: tablet, params: { header: { "Idempotency-Key": crypto.randomUUID() } } };
const first = await api.POST("/assets", request);
const again = await api.POST("/assets", request);
console.log(again.response.headers.get("Idempotent-Replayed"));
const asset = ok(first).data;
assert.equal(asset.status, "in_stock");
assert.deepEqual(asset.custom_fields["ports"], ["USB-C", "HDMI"]);
assert.equal(first.response.headers.get("Idempotent-Replayed"), null);
assert.equal(again.response.headers.get("Idempotent-Replayed"), "true");
assert.deepEqual(again.data, first.data);

// A dry run writes nothing. Values that only the real request assigns are null.
const draft = ok(await api.POST("/assets", { body: tablet, params: { query: { dry_run: true } } })).data;
assert.equal(draft.id, null);

// Change the tablet, unless someone else has changed it.
const path = { id: asset.id };
const { response } = await api.GET("/assets/{id}", { params: { path } });
const header = { "If-Match": response.headers.get("ETag") ?? "" };
const changed = await api.PATCH("/assets/{id}", { params: { path, header }, body: { notes: "Cracked screen" } });
const stale = await api.PATCH("/assets/{id}", { params: { path, header }, body: { notes: null } });
console.log(changed.data?.data.notes, stale.response.status, stale.error?.code);
assert.equal(ok(changed).data.notes, "Cracked screen");
assert.equal(stale.response.status, 412);
assert.equal(stale.error?.code, "PRECONDITION_FAILED");

// Problem details.
const refused = await api.POST("/assets", { body: { name: "", purchase_price: -1 } });
if (refused.error?.code === "VALIDATION_ERROR") {
  for (const { pointer, detail } of refused.error.errors ?? []) console.log(pointer, detail);
}
assert.deepEqual(refused.error?.errors?.map((each) => each.pointer), ["/name", "/purchase_price"]);

// Hand the tablet over in a process.
const user = ok(
  await api.POST("/users", { body: { email: "mary@example.org", display_name: "Mary Jackson" } }),
).data;
ok(await api.PATCH("/assets/{id}", { params: { path }, body: { status: "preparing" } }));
const startable = ok(await api.GET("/assets/{id}/processes", { params: { path } })).data;
const onboarding = startable.find((process) => process.slug === "employee-onboarding");
assert.ok(onboarding?.can_start);
const image = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAAAAADRSSBWAAAAC0lEQVR42mNg+A8AAQIBANEay48AAAAASUVORK5CYII=";
const values: StepData = { employee: user.id, handover: ["Device", "Power supply"], signature: `data:image/png;base64,${image}` };
const instance = ok(
  await api.POST("/processes/{id}/start", {
    params: { path: { id: onboarding.id } },
    body: { asset_id: asset.id, step_data: values, through: "complete" },
  }),
).data;
assert.equal(instance.status, "completed");
assert.deepEqual(instance.step_data?.["handover"], ["Device", "Power supply"]);

// The response to PATCH /processes/{id} has one type, for process IDs and instance IDs.
const instancePath = { id: instance.id };
const sentBack = await api.PATCH("/processes/{id}", { params: { path: instancePath }, body: { status: instance.status } });
assert.equal(ok(sentBack).data.status, "completed");

// The receipt.
const signed = ok(await api.GET("/processes/instances/{id}/receipt", { params: { path: instancePath } }));
// With `format=html`, it is a page.
assert.ok(typeof signed !== "string");
assert.equal(signed.receipt.steps[0]?.user_name, "Mary Jackson");
