// All topics; the server searches, sorts and cuts into pages.
import { h } from "../dom.js";
import { bytes, count, perSecond, plural } from "../format.js";
import { choice, commands, flag, href, link, pager, search, state, table, title } from "../parts.js";

function health(row) {
  if (row.leaderless) return state(`${plural(row.leaderless, "partition")} without a leader`, "bad");
  if (row.under_replicated) return state(`${plural(row.under_replicated, "partition")} out of sync`, "warning");
  return state("in sync", "well");
}

const COLUMNS = [
  { label: "Topic", sort: "name", first: "name", cell: (row) => [link(href("topics", row.name), row.name), row.is_typed ? h("span", { class: "tag" }, "typed") : null], wide: true },
  { label: "Health", sort: "unwell", cell: health },
  { label: "Partitions", sort: "partitions", cell: (row) => count(row.partitions), end: true },
  { label: "Replicas", cell: (row) => count(row.replication_factor), end: true },
  { label: "Written", sort: "rate", cell: (row) => perSecond(row.written_per_s), end: true },
  { label: "Size", sort: "size", cell: (row) => bytes(row.size_bytes), end: true },
];

export const topics = {
  title: () => "Topics",
  draw: (data, { query }) => h("div", {},
    title("Topics"),
    h("div", { class: "controls" },
      search(query, "Search"),
      choice(query, "Show", "only", [["", "all"], ["unwell", "unwell ones"]]),
      flag(query, `Internal topics (${data.internal})`, "internal")),
    table(COLUMNS, data.rows, { caption: "Topics", keyOf: (row) => row.name, query, empty: "no topic is like that" }),
    pager(data),
    commands(data)),
};
