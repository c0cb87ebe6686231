// Whether the cluster is well: one sentence first, then its figures.
import { h } from "../dom.js";
import { bytes, count, duration, perSecond, percent, short } from "../format.js";
import { command, link, section, tile } from "../parts.js";
import { plot, withPlots } from "../plot.js";
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
    tile("Written", perSecond(data.written.at(-1)?.[1]), { to: "topics?sort=rate&descending=true", detail: "records, last ten seconds" }),
    tile("Largest lag", data.largest_lag ? short(data.largest_lag.lag) : "–", { to: data.largest_lag ? `groups?group=${encodeURIComponent(data.largest_lag.group_id)}` : "groups", detail: data.largest_lag?.group_id ?? "no reader commits" }),
    disk ? tile("Fullest disk", percent(disk.used_share), { to: `brokers/${disk.broker_id}`, level: diskLevel, detail: `${bytes(disk.free_bytes)} free, broker ${disk.broker_id}` }) : null);
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
    if (data.written?.length > 1) withPlots(main, { written: [data.written.map(([at]) => at / 1000), data.written.map(([, rate]) => rate)] });
  },
  draw: (data) => h("div", {},
    verdict(data.verdict),
    data.brokers ? [
      tiles(data),
      data.written.length > 1 ? section("Records written per second", plot("written", "records/s")) : null,
      section("Last events", eventList(data.events, "nothing has happened since the controller took office"), h("p", {}, link("events", "All events"))),
      office(data),
    ] : null),
};
