// The bytes of keys, values and headers as a person reads them.
import { bytes } from "./format.js";

export const FORMATS = [["", "by itself"], ["json", "JSON"], ["text", "text"], ["number", "number"], ["hex", "hex"]];

const HEX_SHOWN = 512;

export const decode = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

/** `{text, format, isWhole}` of a part of a record: null, empty and cut parts are distinct. */
export function readable(part, wanted = "") {
  if (part === null) return { text: "null", format: "null", isWhole: true };
  const data = decode(part.base64);
  const isWhole = data.length === part.size;
  if (part.size === 0) return { text: "empty", format: "empty", isWhole };
  const readers = { json: asJson, text: asText, number: asNumber, hex: asHex };
  const order = wanted ? [wanted, "hex"] : ["json", "text", "number", "hex"];
  for (const format of order) {
    const text = readers[format](data, isWhole, wanted !== "");
    if (text !== null) return { text, format, isWhole };
  }
  return { text: "", format: "hex", isWhole };
}

function asJson(data, isWhole) {
  const text = utf8(data, isWhole);
  if (text === null || !isWhole || !/^\s*[[{"]/.test(text)) return null;
  return pretty(text);
}

/** JSON over several lines; null for what is none. Numbers stay letter by letter: 64 bits are more than ours. */
function pretty(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(/"(?:\\.|[^"\\])*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
  let depth = 0;
  let shown = "";
  tokens.forEach((token, position) => {
    const line = () => `\n${"  ".repeat(depth)}`;
    const isEmpty = /[\]}]/.test(tokens[position + 1] ?? "");
    if (token === "{" || token === "[") {
      depth += 1;
      shown += token + (isEmpty ? "" : line());
    } else if (token === "}" || token === "]") {
      depth -= 1;
      shown += (/[{[]/.test(tokens[position - 1]) && tokens[position - 1].length === 1 ? "" : line()) + token;
    } else shown += token === "," ? token + line() : token === ":" ? ": " : token;
  });
  return shown;
}

function asText(data, isWhole, isWanted) {
  const text = utf8(data, isWhole);
  if (text === null) return isWanted ? new TextDecoder("utf-8").decode(data) : null;
  // eslint-disable-next-line no-control-regex
  return !isWanted && /[\u0000-\u0008\u000e-\u001f]/.test(text) ? null : text;
}

/** Four or eight bytes as Kafka's serializers write numbers: big-endian. */
function asNumber(data, isWhole) {
  if (!isWhole || ![2, 4, 8].includes(data.length)) return null;
  const view = new DataView(data.buffer);
  if (data.length === 2) return String(view.getInt16(0));
  if (data.length === 4) return `${view.getInt32(0)} (as a float ${view.getFloat32(0)})`;
  return `${view.getBigInt64(0)} (as a double ${view.getFloat64(0)})`;
}

function asHex(data) {
  const shown = [...data.slice(0, HEX_SHOWN)].map((byte) => byte.toString(16).padStart(2, "0"));
  const lines = [];
  for (let at = 0; at < shown.length; at += 16) lines.push(shown.slice(at, at + 16).join(" "));
  const rest = data.length > HEX_SHOWN ? `\n… ${bytes(data.length - HEX_SHOWN)} more` : "";
  return lines.join("\n") + rest;
}

/** Null if it is no UTF-8; the last character of a part that is cut may be cut too. */
function utf8(data, isWhole) {
  for (let cut = 0; cut <= (isWhole ? 0 : 3); cut += 1) {
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(data.subarray(0, data.length - cut));
    } catch {
      // one byte less, then
    }
  }
  return null;
}
