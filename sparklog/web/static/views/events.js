// What the controller decided and saw, the newest first.
import { h } from "../dom.js";
import { time } from "../format.js";
import { choice, commands, note, pager, search, title } from "../parts.js";

export function eventList(rows, empty = "no event of this kind is kept") {
  if (rows.length === 0) return note(empty);
  return h("ol", { class: "events" }, rows.map((event) => h("li", { "data-key": `${event.term}.${event.number}`, class: event.kind === "loss" ? "bad" : null },
    h("span", { class: "when" }, time(event.time_ms)),
    h("span", { class: "kind" }, event.kind),
    h("span", { class: "words" }, event.words, event.cause ? h("span", { class: "cause" }, ` (${event.cause})`) : null))));
}

export const events = {
  title: () => "Events",
  draw: (data, { query }) => h("div", {},
    title("Events"),
    h("div", { class: "controls" },
      search(query, "Search"),
      choice(query, "Kind", "kind", [["", "all"], ...data.kinds.map((kind) => [kind, kind])]),
      h("label", { class: "field" }, h("span", {}, "Broker"), h("input", { type: "number", min: 0, "data-query": "broker", value: query.get("broker") ?? "" }))),
    eventList(data.rows),
    pager(data),
    commands(data)),
};
