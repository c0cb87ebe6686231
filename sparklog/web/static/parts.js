// What several views are made of: tables, tiles, states, commands, pages of rows.
import { h } from "./dom.js";
import { count } from "./format.js";

/** A link inside the page. `parts` are escaped and joined by slashes. */
export const href = (...parts) => parts.map((part) => encodeURIComponent(part)).join("/") || "./";

export const link = (target, ...children) => h("a", { href: target }, ...children);

export const title = (text, ...beside) => h("div", { class: "title" }, h("h1", {}, text), ...beside);

export const section = (heading, ...children) => h("section", {}, h("h2", {}, heading), ...children);

export const note = (...children) => h("p", { class: "note" }, ...children);

/** A figure with its name; `level` is "", "warning" or "bad", `to` the view that shows more. */
export function tile(name, value, { level = "", detail = "", to = null } = {}) {
  const inside = [h("span", { class: "name" }, name), h("strong", {}, value), h("span", { class: "detail" }, detail)];
  const props = { class: `tile ${level}`, "data-key": name };
  return to === null ? h("div", props, inside) : h("a", { ...props, href: to }, inside);
}

const LEVEL_OF_STATES = {
  serving: "well", away: "bad", "crash loop": "bad", "no executor": "bad", stopped: "quiet", drained: "quiet",
  running: "warning", done: "well", failed: "bad", cancelled: "quiet", Stable: "well", Empty: "quiet", Dead: "quiet",
};

/** A state in words with a sign of its own, so that colour is never all that says it. */
export function state(name, level = LEVEL_OF_STATES[name] ?? "warning") {
  return h("span", { class: `state ${level}` }, name || "not known");
}

/** A command to run, and a button that copies it. */
export function command(text) {
  const button = h("button", { type: "button", "data-copy": text, "aria-label": `Copy: ${text}` }, "Copy");
  return h("span", { class: "command" }, h("code", {}, text), button);
}

/** The commands that a view names, at its end. */
export const commands = ({ commands: named }, ...before) => h("p", { class: "foot" }, ...before,
  named.map((one) => h("span", { class: "named", "data-key": one.does }, `${one.does}: `, command(one.command))));

/**
 * A table. Columns: {label, cell(row), end (right-aligned), sort (its name in the query), wide (may break)}.
 */
export function table(columns, rows, { caption, keyOf = null, query = null, empty = "none" } = {}) {
  if (rows.length === 0) return note(empty);
  const head = columns.map((column) => h("th", { scope: "col", class: place(column), "aria-sort": sorted(column, query) },
    column.sort && query ? sorter(column, query) : column.label));
  const body = rows.map((row, position) => h("tr", { "data-key": keyOf ? keyOf(row) : position },
    columns.map((column) => h("td", { class: place(column), "data-label": column.label }, column.cell(row)))));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

const place = (column) => [column.end ? "end" : "", column.wide ? "wide" : ""].join(" ").trim() || null;

function sorted(column, query) {
  if (!column.sort || !query || (query.get("sort") ?? column.first) !== column.sort) return null;
  return query.get("descending") === "true" ? "descending" : "ascending";
}

function sorter(column, query) {
  const direction = sorted(column, query);
  const turned = direction === null ? Boolean(column.end) : direction === "ascending";
  const sets = new URLSearchParams({ sort: column.sort, descending: String(turned), page: "0" });
  const sign = { ascending: " ▲", descending: " ▼" }[direction] ?? "";
  return h("button", { type: "button", "data-set": sets }, column.label + sign);
}

/** Buttons for the pages of a long list. */
export function pager({ page, pages, total }) {
  if (pages <= 1) return null;
  const turn = (to, text) => h("button", { type: "button", "data-set": `page=${to}`, disabled: to < 0 || to >= pages }, text);
  return h("p", { class: "pager" }, turn(page - 1, "Earlier"), ` page ${page + 1} of ${pages}, ${count(total)} rows `, turn(page + 1, "Later"));
}

/** A search field whose text is in the URL. */
export function search(query, label, name = "search") {
  return h("label", { class: "field" }, h("span", {}, label),
    h("input", { type: "search", "data-query": name, value: query.get(name) ?? "", maxlength: 250, autocomplete: "off", spellcheck: "false" }));
}

export function choice(query, label, name, options) {
  const chosen = query.get(name) ?? "";
  return h("label", { class: "field" }, h("span", {}, label), h("select", { "data-query": name },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text))));
}

export function flag(query, label, name) {
  return h("label", { class: "flag" }, h("input", { type: "checkbox", "data-query": name, checked: query.get(name) === "true" }), label);
}

/** A bar that is filled up to `share`, with its words. */
export function bar(share, text, level = "") {
  return h("span", { class: "bar" }, h("meter", { min: 0, max: 1, low: 0.8, high: 0.9, optimum: 0.1, value: share, "aria-label": text }), h("span", { class: level }, text));
}
