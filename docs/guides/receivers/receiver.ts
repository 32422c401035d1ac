// Receives webhooks: verifies each delivery, stores it, responds, and then processes it.
import { existsSync, mkdirSync } from "node:fs";
import { readFile, readdir, rename, writeFile } from "node:fs/promises";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { Webhook } from "standardwebhooks";
import type { FeedEvent, WebhookEvent } from "./asset-lifecycle.js";

const webhook = new Webhook(process.env["WEBHOOK_SECRET"] ?? "");
for (const folder of ["inbox", "done"]) mkdirSync(folder, { recursive: true });

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const header = (name: string) => String(request.headers[name] ?? "");
  const names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
  try {
    webhook.verify(body, Object.fromEntries(names.map((name) => [name, header(name)])));
  } catch {
    console.log("answered 401");
    response.writeHead(401).end();
    return;
  }
  const isNew = await store(header("webhook-id"), body);
  response.writeHead(204).end();
  if (!isNew) console.log("again:", parse(body).type);
  reactions = reactions.then(react);
}

// All attempts have the same ID, so a known ID means a duplicate.
async function store(id: string, body: Buffer): Promise<boolean> {
  if (existsSync(`inbox/${id}.json`) || existsSync(`done/${id}.json`)) return false;
  await writeFile(`inbox/${id}.part`, body);
  await rename(`inbox/${id}.part`, `inbox/${id}.json`);
  return true;
}

// Deliveries can overtake each other, so ignore a version older than the newest one.
const newest = new Map<string, number>();
function isNewest({ entity_id, version }: FeedEvent): boolean {
  if (version < (newest.get(entity_id) ?? 0)) return false;
  newest.set(entity_id, version);
  return true;
}

async function react(): Promise<void> {
  for (const file of await stored("inbox")) {
    const { type, data } = parse(await readFile(`inbox/${file}`));
    if (isNewest(data)) console.log(type, data.entity_tag, "version", data.version);
    else console.log("out of date: version", data.version);
    await rename(`inbox/${file}`, `done/${file}`);
  }
}

async function stored(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith(".json")).sort();
}

function parse(body: Buffer): WebhookEvent {
  const event: WebhookEvent = JSON.parse(body.toString());
  return event;
}

for (const file of await stored("done")) isNewest(parse(await readFile(`done/${file}`)).data);
// Start with deliveries stored before a restart.
let reactions = react();
createServer((request, response) => {
  receive(request, response).catch((error: unknown) => {
    console.log("answered 500", error);
    response.writeHead(500).end();
  });
}).listen(Number(process.argv[2]), "127.0.0.1");
