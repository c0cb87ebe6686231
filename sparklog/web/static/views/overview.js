// Whether the cluster is well: one sentence first, then its figures.
import { h } from "../dom.js";
import { bytes, count, duration, percent, short } from "../format.js";
import { command, link, section, tile } from "../parts.js";
import { columns, plot, withPlots } from "../plot.js";
import { eventList } from "./events.js";

const SIGNS = { well: "✓", warning: "!", bad: "✕" };

function verdict({ level, sentence, findings }) {
  return h("div", { class: `verdict ${level}` },
    h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[level]),
    h("h1", { role: "status" }, sentence),
    findings.length ? h("ul", {}, findings.map((finding) => h("li", { class: finding.severity, "data-key": finding.words },
      link(finding.view, finding.words), command(finding.command)))) : null);
}

function tiles(data) {
  const { brokers, fullest_disk: disk } = data;
  const diskLevel = disk && disk.free_bytes < disk.floor_bytes ? "bad" : disk?.used_share > 0.85 ? "warning" : "";
  return h("div", { class: "tiles" },
    tile("Brokers serving", `${brokers.serving} of ${brokers.total}`, { to: "brokers", level: brokers.serving < brokers.total ? "warning" : "" }),
    tile("Partitions led", `${count(data.partitions - data.leaderless)} of ${count(data.partitions)}`,
      { to: data.leaderless ? "topics?only=unwell" : "topics", level: data.leaderless ? "bad" : "", detail: `${count(data.topics)} topics` }),
    tile("Out of sync", count(data.under_replicated), { to: "topics?only=unwell", level: data.under_replicated ? "warning" : "", detail: data.moving ? `${count(data.moving)} moving` : "" }),
    tile("Written", rate(newest(data, "produced_bytes_per_s")), { to: "topics?sort=rate&descending=true", detail: records(data, "produced_records_per_s") }),
    tile("Read", rate(newest(data, "fetched_bytes_per_s")), { to: "groups", detail: records(data, "fetched_records_per_s") }),
    tile("Writes take", duration(newest(data, "produce_p99_ms")), { to: "brokers", detail: "99 of 100 are faster" }),
    tile("Largest lag", data.largest_lag ? short(data.largest_lag.lag) : "–", { to: data.largest_lag ? `groups?group=${encodeURIComponent(data.largest_lag.group_id)}` : "groups", detail: data.largest_lag?.group_id ?? "no reader commits" }),
    disk ? tile("Fullest disk", percent(disk.used_share), { to: `brokers/${disk.broker_id}`, level: diskLevel, detail: `${bytes(disk.free_bytes)} free, broker ${disk.broker_id}` }) : null);
}

const newest = (data, name) => data.figures[name]?.at(-1) ?? null;
const rate = (value) => (value === null ? "–" : `${bytes(value)}/s`);
const records = (data, name) => (newest(data, name) === null ? "" : `${short(newest(data, name))} records/s`);

const PLOTS = {
  Bytes: ["B/s", ["written", "read"], ["produced_bytes_per_s", "fetched_bytes_per_s"]],
  Records: ["records/s", ["written", "read"], ["produced_records_per_s", "fetched_records_per_s"]],
  "Time of writes, in ms": ["ms", ["99 of 100 are faster"], ["produce_p99_ms"]],
};

function plots({ figures }) {
  if (columns(figures, "times_ms") === null) return null;
  return section("The last hour", h("div", { class: "plots" }, Object.entries(PLOTS).map(([name, [unit, series]]) =>
    h("div", {}, h("h3", {}, name), plot(name, unit, series)))));
}

function office(data) {
  const active = data.controllers.find((one) => one.is_active);
  const standbys = data.controllers.length - (active ? 1 : 0);
  const where = active ? `Controller ${active.host}:${active.port}, term ${data.term}` : "No controller in office";
  const age = data.age_ms > 3000 ? ` · report ${duration(data.age_ms)} old` : "";
  return h("p", { class: "foot" }, `${where} · ${standbys} standby · release ${data.releases.join(", ") || data.page_release} · cluster ${data.cluster_id ?? "not known"}${age}`);
}

export const overview = {
  title: () => "Overview",
  after: (main, data) => {
    withPlots(main, Object.fromEntries(Object.entries(PLOTS).map(([name, [, , names]]) => [name, columns(data.figures, ...names)])));
  },
  draw: (data) => h("div", {},
    verdict(data.verdict),
    data.brokers ? [
      tiles(data),
      plots(data),
      section("Last events", eventList(data.events, "nothing has happened since the controller took office"), h("p", {}, link("events", "All events"))),
      office(data),
    ] : null),
};
