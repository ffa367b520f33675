// The same check as judge.py, with JavaScript's own JSON parser, which most servers use.
import { readFileSync } from "node:fs";

const messages = (value) => (Array.isArray(value) ? value.flatMap(messages) : value && typeof value === "object" ? [value] : []);
const plain = (name) => (typeof name === "string" ? name.normalize("NFKC").toLowerCase().replace(/[^a-z0-9]/g, "") : undefined);

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isDenied({ method, params }) {
  if (plain(method) !== "toolscall") return false;
  const tool = plain(params?.name);
  const args = params?.arguments;
  const path = (typeof args === "string" ? read(args) : args)?.path;
  return tool === "danger" || (tool === "write" && String(path).startsWith("/etc"));
}

const found = (text) => text.split(/\r\n|[\n\r\u2028\u2029\0]/).filter((line) => messages(read(line)).some(isDenied));

if (found('{"method":"ping","method":"tools/call","params":{"n\\u0061me":"danger"}}').length !== 1) {
  throw new Error("the self-check failed");
}
const all = process.argv.slice(2).flatMap((file) => found(readFileSync(file, "utf8")).map((line) => `${file}: ${line.slice(0, 300)}`));
console.log(all.join("\n"));
process.exit(all.length ? 1 : 0);
