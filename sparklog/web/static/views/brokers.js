// Every broker that has registered, also one that is away; and one of them.
import { h } from "../dom.js";
import { ago, bytes, count, plural, time } from "../format.js";
import { bar, commands, link, note, section, state, table, tile, title } from "../parts.js";
import { columns, plot, withPlots } from "../plot.js";
import { eventList } from "./events.js";

const address = (one) => (one.host === null ? "–" : one.port < 0 ? one.host : `${one.host}:${one.port}`);

/** Whatever the reason, a death or a restart that somebody asked for. */
const again = (times) => (times === null ? "–" : plural(times, "time"));

const disk = (found) => (found === null ? "–" : bar(found.used_share, `${bytes(found.free_bytes)} free`));

const COLUMNS = [
  { label: "Broker", cell: (one) => link(`brokers/${one.broker_id}`, `broker ${one.broker_id}`) },
  { label: "State", cell: (one) => [state(one.state), one.reason ? h("span", { class: "reason" }, one.reason) : null], wide: true },
  { label: "For", cell: (one) => ago(one.since_ms) },
  { label: "Address, application", cell: (one) => [address(one), one.application === null ? null : h("span", { class: "reason" }, one.application)], wide: true },
  { label: "Leaders", cell: (one) => count(one.leaders), end: true },
  { label: "In sync", cell: (one) => `${count(one.in_sync)} of ${count(one.replicas)}`, end: true },
  { label: "Logs", cell: (one) => bytes(one.log_bytes), end: true },
  { label: "Fullest disk", cell: (one) => disk(one.disk) },
  { label: "Started again", cell: (one) => again(one.relaunches), end: true },
];

const CONTROLLERS = [
  { label: "Controller", cell: (one) => `${one.host}:${one.port}` },
  { label: "Office", cell: (one) => (one.is_active ? state("in office", "well") : state("standby", "quiet")) },
  { label: "Application", cell: (one) => one.application },
  { label: "Release", cell: (one) => one.release ?? "–" },
  { label: "Page", cell: (one) => (one.web_url && /^https?:\/\//.test(one.web_url) ? h("a", { href: one.web_url, rel: "noreferrer" }, one.web_url) : "–") },
];

export const brokers = {
  title: () => "Brokers",
  draw: (data) => h("div", {},
    title("Brokers"),
    table(COLUMNS, data.brokers, { caption: "Brokers", keyOf: (one) => one.broker_id, empty: "no broker has registered" }),
    section("Controllers", table(CONTROLLERS, data.controllers, { caption: "Controllers", keyOf: (one) => `${one.host}:${one.port}` })),
    commands(data)),
};

const DIRECTORIES = [
  { label: "Directory", cell: (one) => h("code", {}, one.log_dir), wide: true },
  { label: "State", cell: (one) => (one.is_offline ? state("failed", "bad") : one.free_bytes < one.floor_bytes ? state("nearly full: writes are refused", "bad") : state("in use", "well")) },
  { label: "Replicas", cell: (one) => count(one.replicas), end: true },
  { label: "Logs", cell: (one) => bytes(one.log_bytes), end: true },
  { label: "Free", cell: (one) => bytes(one.free_bytes), end: true },
  { label: "Size of disk", cell: (one) => bytes(one.total_bytes), end: true },
];

const SETTINGS = [
  { label: "Setting", cell: (one) => h("code", {}, one.name) },
  { label: "Value", cell: (one) => h("code", {}, one.value), wide: true },
  { label: "Source", cell: (one) => one.source },
];

const PLOTS = {
  Bytes: ["B/s", ["written", "read"], ["produced_bytes_per_s", "fetched_bytes_per_s"]],
  Records: ["records/s", ["written", "read"], ["produced_records_per_s", "fetched_records_per_s"]],
  "99 of 100 are faster than, in ms": ["ms", ["writes", "reads with their wait for records"], ["produce_p99_ms", "fetch_p99_ms"]],
  "Records that a follower lacks": ["records", ["lag"], ["replica_lag_max"]],
  Memory: ["B", ["memory"], ["memory_bytes"]],
  "Cores in use": ["cores", ["in use"], ["cpu_cores"]],
};

const FIGURES_MAX = 720;

/** The figures of before, and those that are new. */
function together(before, now) {
  if (!before || before.times_ms.length === 0) return now;
  const names = Object.keys(now.times_ms.length ? now : before);
  return Object.fromEntries(names.map((name) => [name, [...(before[name] ?? before.times_ms.map(() => null)), ...(now[name] ?? [])].slice(-FIGURES_MAX)]));
}

const WARNINGS = [
  { label: "When", cell: (one) => time(one.time_ms) },
  { label: "Level", cell: (one) => state(one.level.toLowerCase(), one.level === "WARNING" ? "warning" : "bad") },
  { label: "Words", cell: (one) => h("span", { title: one.logger }, one.words), wide: true },
];

const warnings = (found) => (found.rows === undefined ? note(found.why_none)
  : table(WARNINGS, found.rows, { caption: "Warnings", keyOf: (one) => one.number, empty: "it has logged none since its start" }));

export const broker = {
  title: ({ parts }) => `Broker ${parts[0]}`,
  load: async (ask, at, signal, before) => {
    const query = new URLSearchParams(at.query);
    const last = before?.figures.times_ms.at(-1);
    if (last) query.set("after", last);
    const data = await ask(at.path, query, signal);
    return { ...data, figures: together(before?.figures, data.figures) };
  },
  after: (main, data) => withPlots(main, Object.fromEntries(Object.entries(PLOTS).map(([name, [, , names]]) => [name, columns(data.figures, ...names)]))),
  draw: (data) => {
    const one = data.broker;
    return h("div", {},
      title(`Broker ${one.broker_id}`, state(one.state)),
      one.reason ? note(one.reason) : null,
      h("div", { class: "tiles" },
        tile("Leads", plural(one.leaders, "partition")),
        tile("In sync", `${count(one.in_sync)} of ${count(one.replicas)}`, { level: one.in_sync < one.replicas ? "warning" : "" }),
        tile("Logs", bytes(one.log_bytes)),
        tile("In this state", ago(one.since_ms), { detail: one.relaunches === null ? "" : `started again ${again(one.relaunches)}, by whomever` })),
      data.process ? h("div", { class: "tiles" },
        tile("Memory", bytes(data.process.memory_bytes), { detail: `process ${data.process.pid} on ${data.process.host}` }),
        tile("Open files", count(data.process.open_files), { level: data.process.open_files > 0.8 * data.process.open_files_max ? "warning" : "", detail: `of ${count(data.process.open_files_max)}` }),
        tile("Running for", ago(data.process.started_ms), { detail: plural(data.process.cores, "core") })) : null,
      note(`${address(one)} · application ${one.application ?? "not known"} · release ${one.release ?? "not known"}${one.rack ? ` · rack ${one.rack}` : ""}`),
      columns(data.figures, "times_ms") === null ? null : section("The last hour", h("div", { class: "plots" },
        Object.entries(PLOTS).map(([name, [unit, series]]) => h("div", {}, h("h3", {}, name), plot(name, unit, series))))),
      section("Log directories", table(DIRECTORIES, data.log_dirs, { caption: "Log directories", keyOf: (row) => row.log_dir, empty: "the broker does not answer" })),
      section(data.warnings.total > 50 ? `The last 50 of ${count(data.warnings.total)} warnings` : "Warnings", warnings(data.warnings)),
      section("Its events", eventList(data.events, "no event about it is kept")),
      section("Settings that are not the default", data.settings === null ? note("the broker does not answer") : table(SETTINGS, data.settings, { caption: "Settings", keyOf: (row) => row.name })),
      commands(data));
  },
};
