// What is done to brokers, and what moves now.
import { h } from "../dom.js";
import { count, plural, time } from "../format.js";
import { bar, commands, href, link, pager, section, state, table, title } from "../parts.js";

const ids = (brokers) => brokers.map((id, position) => [position ? ", " : "", link(`brokers/${id}`, id)]);

const progress = (one) => bar(one.total ? one.done / one.total : 1, `${count(one.done)} of ${plural(one.total, one.unit)}`);

/** What a person asks of one that is under way: which broker now, what it waits for, who is next. */
function place(one) {
  const waits = one.waiting_for.map((words) => h("div", {}, `waits for: ${words}`));
  return [
    one.now === null ? null : h("div", {}, "at ", link(`brokers/${one.now}`, `broker ${one.now}`), one.then.length ? [", then ", ids(one.then)] : null),
    waits, one.reason];
}

const OPERATIONS = [
  { label: "Operation", cell: (one) => `${one.id} ${one.kind}` },
  { label: "Brokers", cell: (one) => (one.brokers.length ? ids(one.brokers) : "–") },
  { label: "State", cell: (one) => state(one.state) },
  { label: "Done", cell: progress },
  { label: "Where it is", cell: place, wide: true },
  { label: "Asked for", cell: (one) => [time(one.since_ms), h("span", { class: "reason" }, `by ${one.requested_by}`)] },
];

const MOVES = [
  { label: "Partition", cell: (row) => link(href("topics", row.topic), `${row.topic}-${row.partition}`), wide: true },
  { label: "To brokers", cell: (row) => row.adding.join(", ") || "–" },
  { label: "From brokers", cell: (row) => row.removing.join(", ") || "–" },
];

export const operations = {
  title: () => "Operations",
  draw: (data) => {
    const running = data.operations.filter((one) => one.state === "running");
    return h("div", {},
      title("Operations"),
      section(`On brokers: ${count(running.length)} under way`, table(OPERATIONS, data.operations, { caption: "Operations on brokers", keyOf: (one) => one.id, empty: "there is no operation, and none has ended" })),
      section(`Partitions that move: ${count(data.total)}`, table(MOVES, data.rows, { caption: "Partitions that move", keyOf: (row) => `${row.topic}-${row.partition}` }), pager(data)),
      commands(data));
  },
};
