// All views, and which one a path belongs to.
import { broker, brokers } from "./views/brokers.js";
import { doctor } from "./views/doctor.js";
import { events } from "./views/events.js";
import { groups } from "./views/groups.js";
import { operations } from "./views/operations.js";
import { overview } from "./views/overview.js";
import { records } from "./views/records.js";
import { topic } from "./views/topic.js";
import { topics } from "./views/topics.js";

/** A view that just asks for the path of its own. */
const plain = (view) => ({
  everyMs: 2000,
  load: (ask, at, signal) => ask(at.path, at.query, signal),
  ...view,
});

export const VIEWS = [
  { ...plain(overview), name: "Overview", path: "", pattern: /^$/ },
  { ...plain(brokers), name: "Brokers", path: "brokers", pattern: /^brokers$/ },
  { ...plain(broker), path: "brokers/", pattern: /^brokers\/([^/]+)$/ },
  { ...plain(topics), name: "Topics", path: "topics", pattern: /^topics$/ },
  { ...plain(topic), path: "topics/", pattern: /^topics\/([^/]+)$/ },
  { ...plain(records), path: "topics/", pattern: /^topics\/([^/]+)\/records$/ },
  { ...plain(groups), name: "Groups", path: "groups", pattern: /^groups$/ },
  { ...plain(events), name: "Events", path: "events", pattern: /^events$/ },
  { ...plain(operations), name: "Operations", path: "operations", pattern: /^operations$/ },
  { ...plain(doctor), name: "Doctor", path: "doctor", pattern: /^doctor$/ },
].map((view) => ({
  ...view,
  isOf: (at) => at.path === view.path || (view.path !== "" && at.path.startsWith(`${view.path}/`)),
}));

/** The view of a path below the page's base, with what its pattern found. The overview, if there is none. */
export function viewAt(path, query) {
  for (const view of VIEWS) {
    const found = view.pattern.exec(path);
    if (found) return { view, path, query, parts: found.slice(1).map(decodeURIComponent) };
  }
  return { view: VIEWS[0], path: "", query, parts: [] };
}
