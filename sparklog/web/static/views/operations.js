// What moves now.
import { h } from "../dom.js";
import { count } from "../format.js";
import { commands, href, link, pager, section, table, title } from "../parts.js";

const MOVES = [
  { label: "Partition", cell: (row) => link(href("topics", row.topic), `${row.topic}-${row.partition}`), wide: true },
  { label: "To brokers", cell: (row) => row.adding.join(", ") || "–" },
  { label: "From brokers", cell: (row) => row.removing.join(", ") || "–" },
];

export const operations = {
  title: () => "Operations",
  draw: (data) => h("div", {},
    title("Operations"),
    section(`Partitions that move: ${count(data.total)}`, table(MOVES, data.rows, { caption: "Partitions that move", keyOf: (row) => `${row.topic}-${row.partition}` }), pager(data)),
    commands(data)),
};
