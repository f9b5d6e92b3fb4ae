// SPDX-License-Identifier: Apache-2.0
// Whether the packages standardwebhooks and cloudevents accept the requests that receiver.py has stored.
//
//   node verify.mjs MODULES_FOLDER REQUESTS_FILE SECRET...
//
// Every request must verify with every secret alone, fail with another one and when it is changed, and be a CloudEvent.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";

const [folder, file, ...secrets] = process.argv.slice(2);
const require = createRequire(folder + "/");
const {Webhook, WebhookVerificationError} = require("standardwebhooks");
const {HTTP} = require("cloudevents");
assert.ok(secrets.length > 0);

const stranger = "whsec_" + Buffer.from("somebody else's key, 32 bytes...").toString("base64");
const counts = {binary: 0, structured: 0};
for (const line of readFileSync(file, "utf8").trimEnd().split("\n")) {
  const request = JSON.parse(line);
  const headers = Object.fromEntries(request.headers);
  const bytes = Buffer.from(request.body, "base64");
  const body = bytes.toString("utf8");
  for (const secret of secrets) new Webhook(secret).verify(body, headers);
  assert.throws(() => new Webhook(stranger).verify(body, headers), WebhookVerificationError);
  assert.throws(() => new Webhook(secrets[0]).verify(body + " ", headers), WebhookVerificationError);

  const event = HTTP.toEvent({headers, body});
  assert.ok(HTTP.isEvent({headers, body}));
  assert.ok(event.validate());
  assert.equal(event.id, headers["webhook-id"]);
  assert.equal(event.specversion, "1.0");
  assert.equal(event.type, "OrderPlaced");
  assert.equal(event.data.id, event.id, "the payload is this event's");
  assert.equal(headers.traceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  counts["ce-id" in headers ? "binary" : "structured"]++;
}
console.log("accepted " + counts.binary + " binary, " + counts.structured + " structured");
