// A topic's records: from where on, of which partitions, with which text in them; live if wanted.
import { FORMATS, readable } from "../bytes.js";
import { h } from "../dom.js";
import { bytes, count, percent, plural, time } from "../format.js";
import { choice, commands, flag, href, link, note, search, title } from "../parts.js";

const LIVE_MS = 1000;
const SHOWN_MAX = 500;
const LINE_MAX = 300;
const STEPS_MAX = 400;

const isLive = (query) => query.get("live") === "true";

/** What the server is asked: `live` and `format` are the browser's business. */
function asked(query, at) {
  const wanted = new URLSearchParams();
  for (const name of ["from", "partition", "offset", "time", "text"]) if (query.get(name)) wanted.set(name, query.get(name));
  const at_ms = Date.parse(query.get("time") ?? "");
  if (Number.isNaN(at_ms)) wanted.delete("time");
  else wanted.set("time", String(at_ms));
  if (at) wanted.set("at", at);
  return wanted;
}

const signature = (query) => asked(query, null).toString() + isLive(query);

async function load(ask, { path, query }, signal, before) {
  const own = signature(query);
  if (before?.signature === own) {
    if (before.live) return followed(ask, path, query, signal, before);
    if (before.left === 0 || before.records.length >= before.wanted || before.steps >= STEPS_MAX) return before;
    return stepped(await ask(path, asked(query, before.next), signal), before, own, query);
  }
  return stepped(await ask(path, asked(query, null), signal), null, own, query);
}

/** One bounded step more; a text is looked for until there is a page of it. */
function stepped(answer, before, own, query) {
  const records = [...(before?.records ?? []), ...answer.records];
  return { ...answer, records, gaps: [...(before?.gaps ?? []), ...answer.gaps], signature: own, live: isLive(query) ? ends(answer.bounds) : null,
    ahead: before?.ahead ?? answer.ahead, wanted: before?.wanted ?? 50, steps: (before?.steps ?? 0) + 1 };
}

const ends = (bounds) => Object.entries(bounds).map(([partition, [, end]]) => `${partition}:${end}`).join(",");

async function followed(ask, path, query, signal, before) {
  const wanted = asked(query, before.live);
  wanted.set("from", "oldest");
  wanted.set("limit", "200");
  const answer = await ask(path, wanted, signal);
  return { ...before, live: answer.next, bounds: answer.bounds, records: [...answer.records.reverse(), ...before.records].slice(0, SHOWN_MAX) };
}

const isBusy = (data) => data.live === null && data.left > 0 && data.records.length < data.wanted && data.steps < STEPS_MAX;

const more = (data) => (data.live === null && data.left > 0 && !isBusy(data) ? h("button", { type: "button", "data-act": "more" }, "More") : null);

function controls(data, query) {
  const from = query.get("from") ?? "newest";
  const partitions = Array.from({ length: Math.min(data.partitions, 1000) }, (_, number) => [String(number), `partition ${number}`]);
  return h("div", { class: "controls" },
    choice(query, "From", "from", [["", "newest"], ["oldest", "oldest"], ["offset", "an offset"], ["time", "a time"]]),
    from === "offset" ? h("label", { class: "field" }, h("span", {}, "Offset"), h("input", { type: "number", min: 0, "data-query": "offset", value: query.get("offset") ?? "" })) : null,
    from === "time" ? h("label", { class: "field" }, h("span", {}, "Time (local)"), h("input", { type: "datetime-local", step: 1, "data-query": "time", value: query.get("time") ?? "" })) : null,
    choice(query, "Of", "partition", [["", "all partitions"], ...partitions]),
    search(query, "Text in key, value or header", "text"),
    choice(query, "Show as", "format", FORMATS),
    flag(query, "Live", "live"));
}

const NONE_THERE = { time: "No record is as late as that.", offset: "No record has that offset, or a later one." };

/** How far the look is, and what is not looked at yet: offsets are at least as many as records. */
function sofar({ records: found, ahead, left, total, missing }, query) {
  const from = query.get("from") ?? "newest";
  if (missing) return `${missing === "time" ? "A time" : "An offset"} is missing: give one, and the records from there on are shown.`;
  if (total === 0) return query.get("partition") ? "The partition is empty." : "The topic is empty.";
  if (ahead === 0) return NONE_THERE[from] ?? "No record is there.";
  if (query.get("text")) return `Found ${plural(found.length, "record")}; ${left ? `searched ${percent((ahead - left) / ahead)}, ${count(ahead - left)} of ${plural(ahead, "offset")}` : "all is searched"}.`;
  const order = from === "newest" ? "the newest first" : "the oldest first";
  return `${plural(found.length, "record")}, ${order}; ${left ? `at most ${count(left)} more` : "no more"}.`;
}

function progress(data, query) {
  return h("p", { class: "progress", role: "status" }, isLive(query) ? "Live: new records appear on top." : sofar(data, query),
    isBusy(data) ? h("span", {}, " Looking on …") : null, more(data));
}

function part(value, format) {
  const { text, format: found } = readable(value, format);
  if (found === "null" || found === "empty") return h("span", { class: "void" }, found);
  const line = found === "hex" ? text : text.replace(/\s+/g, " ");
  return h("code", { title: found }, line.length > LINE_MAX ? `${line.slice(0, LINE_MAX)}…` : line);
}

const whole = (label, value, format, target) => h("div", { class: "whole" },
  h("h3", {}, label, value === null || target === null ? null : [h("span", { class: "size" }, bytes(value.size)), h("a", { href: target, download: true }, "Download")]),
  value === null ? h("span", { class: "void" }, "null") : [h("pre", { tabindex: 0 }, readable(value, format).text), readable(value, format).isWhole ? null : note(`the first ${bytes(Math.floor((value.base64.length * 3) / 4))}; a download has all`)]);

function record(one, data, format) {
  const target = (name) => `api/${href("topics", data.topic, "records", one.partition, one.offset, name)}`;
  const summary = one.decoded ? h("code", {}, one.decoded.value.slice(0, LINE_MAX)) : part(one.value, format);
  const key = one.decoded ? h("code", {}, one.decoded.key.slice(0, LINE_MAX)) : part(one.key, format);
  return h("details", { class: "record", "data-key": `${one.partition}:${one.offset}` },
    h("summary", {}, h("span", { class: "place" }, `${one.partition}:${one.offset}`), h("span", { class: "when" }, time(one.timestamp_ms)), h("span", { class: "key" }, key), h("span", { class: "value" }, summary)),
    h("div", { class: "inside" },
      note(`Partition ${one.partition}, offset ${count(one.offset)}, `, time(one.timestamp_ms, { exact: true })),
      one.decoded ? [h("h3", {}, "In words"), h("pre", { tabindex: 0 }, `${one.decoded.key}\n${one.decoded.value}`)] : null,
      whole("Key", one.key, format, target("key")),
      whole("Value", one.value, format, target("value")),
      one.headers.map((header, position) => h("div", { "data-key": position }, whole(`Header ${header.key}`, header.value, format, null)))));
}

const REASONS = {
  marker: "the mark that ends a transaction or a write",
  aborted: "records of a transaction or a write that was given up (aborted)",
  compacted: "compaction removed them",
};

function gaps(data) {
  const named = new Map(data.gaps.map((gap) => [`${gap.partition}:${gap.begin}`, gap]));
  if (named.size === 0) return null;
  return h("details", {}, h("summary", {}, `Offsets without a record for readers: at ${plural(named.size, "place")}`), h("ul", {}, [...named.values()].map((gap) => h("li", {},
    `partition ${gap.partition}, ${gap.end - gap.begin === 1 ? "offset" : "offsets"} ${count(gap.begin)}${gap.end - gap.begin === 1 ? "" : ` to ${count(gap.end - 1)}`}: ${REASONS[gap.reason] ?? gap.reason}`))));
}

export const records = {
  everyMs: 0,
  pauseMs: (data) => (data.live !== null ? LIVE_MS : isBusy(data) ? 1 : 0),
  title: ({ parts }) => `Records of ${parts[0]}`,
  load,
  act: (_, data, again) => {
    data.wanted = data.records.length + 50;
    data.steps = 0;
    again();
  },
  draw: (data, { query }) => h("div", {},
    title("Records of ", link(href("topics", data.topic), data.topic)),
    controls(data, query),
    progress(data, query),
    data.records.length ? h("div", { class: "records" }, h("div", { class: "head", "aria-hidden": "true" }, ["Partition:offset", "Time", "Key", "Value"].map((name) => h("span", {}, name))), data.records.map((one) => record(one, data, query.get("format") ?? ""))) : data.live === null && data.ahead === 0 ? null : note(data.left > 0 ? "nothing found yet" : query.get("text") ? "no record has that text" : "no record to show"),
    data.records.length > 20 ? more(data) : null,
    gaps(data),
    commands(data)),
};
