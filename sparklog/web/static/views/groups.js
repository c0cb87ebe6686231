// Which reader lags: all groups and queries, and one of them.
import { h } from "../dom.js";
import { ago, count, plural, time } from "../format.js";
import { commands, href, link, note, pager, search, section, state, table, tile, title } from "../parts.js";
import { plot, withPlots } from "../plot.js";

export const queryName = (query) => (query === null ? null : h("span", { class: "reason" },
  `query ${query.name || query.id}${query.batch === null ? "" : `, batch ${count(query.batch)}`}`));

/** Kafka's word, and what `Empty` means: a query reads on its own, so its group has no members while it runs, either. */
export const groupState = (name, query) => [state(name), name === "Empty" ? h("span", { class: "reason" }, query ? "queries read without joining" : "no member now") : null];

const COLUMNS = [
  { label: "Group or query", sort: "name", cell: (row) => [link(`groups?group=${encodeURIComponent(row.group_id)}`, row.group_id), queryName(row.query)], wide: true },
  { label: "State", sort: "state", cell: (row) => groupState(row.state, row.query) },
  { label: "Lag", sort: "lag", first: "lag", cell: (row) => h("strong", {}, count(row.lag)), end: true },
  { label: "Most of it in", cell: (row) => row.worst ?? "–" },
  { label: "Has not moved for", cell: (row) => ago(row.moved_ms), end: true },
  { label: "Topics", cell: (row) => row.topics.map((name, position) => [position ? ", " : "", link(href("topics", name), name)]), wide: true },
];

function list(data, query) {
  const sorted = new URLSearchParams(query);
  if (!sorted.has("sort")) sorted.set("descending", "true");
  return h("div", {},
    title("Groups and queries"),
    h("div", { class: "controls" }, search(query, "Search")),
    table(COLUMNS, data.rows, { caption: "Groups and queries", keyOf: (row) => row.group_id, query: sorted, empty: "no group has committed offsets" }),
    pager(data),
    data.failed.length ? section("Not answered", h("ul", {}, data.failed.map((one) => h("li", { "data-key": one.group_id }, `${one.group_id}: ${one.reason}`)))) : null,
    data.left_out ? note(`${plural(data.left_out, "group")} more are not looked at`) : null,
    commands(data, "As of ", time(data.time_ms), ". Lag is what a group has not read; groups are looked at every 30 seconds. "));
}

const PARTITIONS = [
  { label: "Partition", cell: (row) => link(href("topics", row.topic), `${row.topic}-${row.partition}`), wide: true },
  { label: "Committed", cell: (row) => count(row.committed), end: true },
  { label: "End", cell: (row) => count(row.end), end: true },
  { label: "Lag", cell: (row) => h("strong", {}, count(row.lag)), end: true },
  { label: "Member", cell: (row) => row.member ?? "–", wide: true },
];

const MEMBERS = [
  { label: "Client", cell: (row) => [row.client_id, row.group_instance_id ? h("span", { class: "reason" }, `static: ${row.group_instance_id}`) : null], wide: true },
  { label: "Host", cell: (row) => row.client_host },
  { label: "Partitions", cell: (row) => count(row.partitions), end: true },
  { label: "Subscribed to", cell: (row) => row.topics.join(", "), wide: true },
  { label: "Member id", cell: (row) => h("code", {}, row.member_id), wide: true },
];

function one(data) {
  const query = data.query;
  return h("div", {},
    title(data.group_id, groupState(data.state, query)),
    h("div", { class: "tiles" },
      tile("Lag", count(data.lag), { detail: "records not read yet" }),
      tile("Has not moved for", ago(data.moved_ms), { detail: "since the page looks" }),
      tile("Members", count(data.member_count), { detail: data.assignor }),
      tile("Coordinator", `broker ${data.coordinator}`, { to: `brokers/${data.coordinator}` }),
      query ? tile("Query", query.name || query.id.slice(0, 8), { detail: query.batch === null ? "" : `batch ${count(query.batch)}` }) : null),
    section("Lag since the page began", data.history.length < 2 ? note("the second look at it is half a minute after the first") : plot("lag", "records")),
    section("Partitions", table(PARTITIONS, data.rows, { caption: "Partitions", keyOf: (row) => `${row.topic}-${row.partition}`, empty: "it has committed nothing, and has no partition" }), pager(data)),
    section("Members", table(MEMBERS, data.members, { caption: "Members", keyOf: (row) => row.member_id, empty: query ? "a query's tasks read alone; the group only shows how far" : "no member now" })),
    commands(data));
}

export const groups = {
  everyMs: 5000,
  title: ({ query }) => query.get("group") || "Groups and queries",
  draw: (data, { query }) => (data.group_id === undefined ? list(data, query) : one(data)),
  after: (main, data) => {
    if (data.history?.length > 1) withPlots(main, { lag: [data.history.map(([at]) => at / 1000), data.history.map(([, lag]) => lag)] });
  },
};
