// One topic: its partitions, its readers, what holds them back, its settings.
import { h } from "../dom.js";
import { ago, bytes, count, perSecond, plural } from "../format.js";
import { commands, href, link, note, pager, section, state, table, tile, title } from "../parts.js";
import { groupState, queryName } from "./groups.js";

const ids = (numbers, inSync = null) => numbers.map((id, position) => [
  position ? ", " : "",
  inSync === null || inSync.includes(id) ? link(`brokers/${id}`, id) : h("a", { href: `brokers/${id}`, class: "missing", title: "not in sync" }, id, h("span", { class: "unseen" }, " not in sync")),
]);

const PARTITIONS = [
  { label: "Partition", cell: (row) => link(`${href("topics", row.topic, "records")}?partition=${row.partition}`, row.partition), end: true },
  { label: "Leader", cell: (row) => (row.is_led ? link(`brokers/${row.leader}`, `broker ${row.leader}`) : state("none", "bad")) },
  { label: "Replicas", cell: (row) => ids(row.replicas, row.isr) },
  { label: "Start", cell: (row) => count(row.log_start_offset), end: true },
  { label: "Readable to", cell: (row) => [row.last_stable_offset >= 0 && row.last_stable_offset < row.high_watermark ? h("span", { class: "tag warning", title: "open transactions hold readers back" }, `${plural(row.high_watermark - row.last_stable_offset, "offset")} held back`) : null, " ", count(row.last_stable_offset)], end: true },
  { label: "High watermark", cell: (row) => count(row.high_watermark), end: true },
  { label: "Log end", cell: (row) => count(row.log_end_offset), end: true },
  { label: "Size", cell: (row) => bytes(row.size_bytes), end: true },
  { label: "In the store", cell: (row) => [row.remote_size_bytes === null ? "–" : bytes(row.remote_size_bytes), row.remote_trouble ? h("span", { class: "reason" }, row.remote_trouble) : null], end: true },
  { label: "", cell: (row) => (row.lost_in_epoch >= 0 ? state(`records may be lost (epoch ${row.lost_in_epoch})`, "bad") : null) },
];

const READERS = [
  { label: "Group or query", cell: (row) => [link(`groups?group=${encodeURIComponent(row.group_id)}`, row.group_id), queryName(row.query)], wide: true },
  { label: "State", cell: (row) => groupState(row.state, row.query) },
  { label: "Partitions", cell: (row) => count(row.partitions), end: true },
  { label: "Lag", cell: (row) => count(row.lag), end: true },
];

const OPEN = [
  { label: "Partition", cell: (row) => row.partition, end: true },
  { label: "Transactional id", cell: (row) => row.transactional_id ?? "not known", wide: true },
  { label: "Producer", cell: (row) => `${row.producer_id}, epoch ${row.producer_epoch}`, end: true },
  { label: "Holds back from", cell: (row) => count(row.open_since), end: true },
  { label: "Last write", cell: (row) => [ago(row.last_timestamp_ms), " ago"], end: true },
];

const SETTINGS = [
  { label: "Setting", cell: (row) => h("code", {}, row.name) },
  { label: "Value", cell: (row) => h("code", {}, row.value), wide: true },
  { label: "Source", cell: (row) => row.source },
];

function settings(rows) {
  if (rows === null) return note("not for this user to see");
  const own = rows.filter((row) => !row.is_default);
  const rest = rows.filter((row) => row.is_default);
  return [
    table(SETTINGS, own, { caption: "Settings that are not the default", keyOf: (row) => row.name, empty: "every setting has its default" }),
    h("details", {}, h("summary", {}, plural(rest.length, "default")), table(SETTINGS, rest, { caption: "Defaults", keyOf: (row) => row.name })),
  ];
}

function transactions(open) {
  if (open === null) return note("leaders do not answer");
  return table(OPEN, open, { caption: "Open transactions", keyOf: (row) => `${row.partition}.${row.producer_id}`, empty: "no open transaction holds readers back" });
}

export const topic = {
  title: ({ parts }) => parts[0],
  draw: (data) => {
    const unwell = data.leaderless ? "bad" : data.under_replicated ? "warning" : "";
    const worst = data.readers[0];
    return h("div", {},
      title(data.name, data.is_internal ? h("span", { class: "tag" }, "internal") : null, data.is_typed ? h("span", { class: "tag" }, "typed") : null,
        link(href("topics", data.name, "records"), "Records →")),
      h("div", { class: "tiles" },
        tile("Partitions", count(data.partitions), { detail: `${plural(data.replication_factor, "replica")} each` }),
        tile("Out of sync", count(data.under_replicated), { level: unwell, detail: data.leaderless ? `${count(data.leaderless)} without a leader` : "" }),
        tile("Written", perSecond(data.written_per_s), { detail: "records, last ten seconds" }),
        tile("Size at leaders", bytes(data.size_bytes)),
        tile("Largest lag", worst ? count(worst.lag) : "–", { to: worst ? `groups?group=${encodeURIComponent(worst.group_id)}` : null, detail: worst?.group_id ?? "no reader commits" })),
      section("Partitions", table(PARTITIONS, data.rows.map((row) => ({ ...row, topic: data.name })), { caption: "Partitions", keyOf: (row) => row.partition }), pager(data)),
      section("Readers that commit", table(READERS, data.readers, { caption: "Readers", keyOf: (row) => row.group_id, empty: "no group and no query has committed offsets of it" })),
      section("Open transactions and writes", transactions(data.open)),
      section("Settings", settings(data.settings)),
      commands(data));
  },
};
