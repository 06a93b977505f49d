// A handler in another language: it charges cards for a workflow of mainspring. Node 18 or newer, nothing to install.
//
//   SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw node handler.mjs 8500 charges.jsonl
//
// A command may come more than once: after a crash, or when an answer was lost. So each charge is kept in a file under
// the command's id, and a command whose id is there is answered from there. In a real service, that is a table, and the
// row is written in the transaction of the charge.
import { createHmac, timingSafeEqual } from "node:crypto";
import { existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { createServer } from "node:http";

const [port = "8500", file = "charges.jsonl"] = process.argv.slice(2);
const secret = Buffer.from((process.env.SECRET ?? "").replace(/^whsec_/, ""), "base64");
const WINDOW_SECONDS = 300;
const BODY_BYTES = 2 * 1024 * 1024;

const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
const charges = new Map(lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line)).map((c) => [c.id, c]));
const ledger = openSync(file, "a");

function charge(id, { order_id, amount }) {
  if (!(amount > 0)) return { status: 422, body: { title: "nothing to charge", detail: `The amount is ${amount}.` } };
  let made = charges.get(id);
  if (made === undefined) {
    made = { id, order_id, amount };
    writeSync(ledger, `\n${JSON.stringify(made)}`); // the effect and its key: one line, all or nothing
    fsyncSync(ledger);
    charges.set(id, made);
    if (process.env.DIE_AT === order_id) process.exit(1); // charged, and nobody was told: to see what happens then
  }
  return { status: 200, body: result(id, "CardCharged", { order_id }) };
}

function result(id, type, data) {
  return { specversion: "1.0", id: `result of ${id}`, source: "/payments", type, causationid: id, data };
}

function isProven(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": time, "webhook-signature": signatures = "" } = headers;
  if (!(Math.abs(Date.now() / 1000 - Number(time)) <= WINDOW_SECONDS)) return false;
  const expected = createHmac("sha256", secret).update(`${id}.${time}.`).update(body).digest();
  return signatures.split(" ").some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ""), "base64");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

async function answerTo(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    if ((size += part.length) > BODY_BYTES) return { status: 413, body: { title: "too large" } };
    parts.push(part);
  }
  const body = Buffer.concat(parts);
  if (!isProven(request.headers, body)) return { status: 401, body: { title: "not proven" } };
  const command = JSON.parse(body);
  if (command.type !== "ChargeCard") return { status: 422, body: { title: `${command.type} is not handled here` } };
  return charge(command.id, command.data);
}

const server = createServer(async (request, response) => {
  const { status, body } = await answerTo(request).catch((error) => ({ status: 500, body: { title: String(error) } }));
  const type = status === 200 ? "application/cloudevents+json" : "application/problem+json";
  response.writeHead(status, { "content-type": type }).end(JSON.stringify(body));
});
server.listen(Number(port), "127.0.0.1", () => console.log(`listening on ${server.address().port}`));
