// The page: finds the view of the URL, asks for what it shows, and asks again while somebody looks.
import { Refused, ask } from "./ask.js";
import { h, morph } from "./dom.js";
import { time } from "./format.js";
import { note } from "./parts.js";
import { VIEWS, viewAt } from "./views.js";

const base = new URL(document.baseURI);
document.querySelector("base").href = base.href; // what is relative stays so when the URL changes

const TYPING_MS = 250;
const COPIED_MS = 1500;
const FAILED_MS = 3000;
const LEVEL_EVERY_MS = 5000;

const main = document.getElementById("view");
const silence = document.getElementById("silence");
let shown = { url: "", data: null, failedSince: null, otherPages: [] };
let timer = 0;
let asking = null;

const here = () => viewAt(location.pathname.slice(base.pathname.length), new URLSearchParams(location.search));

async function refresh() {
  clearTimeout(timer);
  asking?.abort();
  const at = here();
  const own = (asking = new AbortController());
  let pause = at.view.everyMs;
  try {
    const data = await at.view.load(ask, at, own.signal, shown.url === location.pathname ? shown.data : null);
    if (own !== asking) return;
    show(at, data);
    pause = at.view.pauseMs ? at.view.pauseMs(data) : pause;
  } catch (error) {
    if (own !== asking || error.name === "AbortError") return;
    fail(at, error);
    pause = FAILED_MS;
  }
  if (document.visibilityState === "visible" && pause) timer = setTimeout(refresh, pause);
}

function show(at, data) {
  const isNew = shown.url !== location.pathname;
  shown = { ...shown, url: location.pathname, data, failedSince: null };
  silence.hidden = true;
  draw(at, data, isNew);
  morph(document.getElementById("clock"), [h("span", { title: "when this was asked for" }, time(Date.now()))]);
  document.body.classList.remove("old");
}

function draw(at, data, isNew) {
  document.title = `${at.view.title(at)} · sparklog`;
  morph(document.getElementById("views"), VIEWS.filter((view) => view.name).map((view) => h("a", { href: view.path || "./",
    "aria-current": view.isOf(at) ? "page" : null }, view.name)));
  if (isNew) main.replaceChildren();
  morph(main, [at.view.draw(data, at)]);
  at.view.after?.(main, data, at);
  if (data?.verdict) noteLevel(data);
}

/** The sign beside the name is true in each view: the overview is asked for there too, only not as often. */
async function watchLevel() {
  if (document.visibilityState !== "visible" || here().view === VIEWS[0]) return;
  const data = await ask("", new URLSearchParams()).catch(() => null);
  if (data?.verdict) noteLevel(data);
}

function noteLevel(data) {
  const level = document.getElementById("level");
  level.className = `dot ${data.verdict.level}`;
  level.setAttribute("aria-label", data.verdict.sentence);
  shown.otherPages = (data.controllers ?? []).map((one) => one.web_url).filter((url) => url && !location.href.startsWith(url));
}

function fail(at, error) {
  if (error instanceof Refused) {
    if (shown.url === location.pathname && shown.data && error.status >= 500) {
      silence.hidden = false;
      morph(silence, [h("span", {}, "The cluster does not answer this now: ", error.message)]);
    } else {
      shown = { ...shown, url: location.pathname, data: null };
      silence.hidden = true;
      draw({ ...at, view: { ...at.view, draw: () => note(error.message), after: null } }, null, true);
    }
    return;
  }
  shown.failedSince ??= Date.now();
  document.body.classList.add("old");
  silence.hidden = false;
  const others = shown.otherPages.map((url) => h("a", { href: url, rel: "noreferrer" }, url));
  morph(silence, [h("span", {}, "This page's process has not answered since ", time(shown.failedSince), ". What you see is as old. ",
    others.length ? ["Other pages of this cluster: ", others] : h("span", {}, "A page from anywhere: ", h("code", {}, "sparklog page --bootstrap-server HOST:PORT")))]);
}

/** Go to a URL of this page. The view's state is in it. */
function go(url, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", url);
  refresh();
}

function set(changes, replace) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of new URLSearchParams(changes)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), { replace });
}

document.addEventListener("click", (event) => {
  const target = event.target.closest("a[href], [data-set], [data-copy], [data-skip], [data-act]");
  if (!target || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  if (target.matches("[data-skip]")) main.focus();
  else if (target.matches("[data-copy]")) copy(target);
  else if (target.matches("[data-set]")) set(target.dataset.set, false);
  else if (target.matches("[data-act]")) here().view.act(target.dataset.act, shown.data, refresh);
  else if (target.href.startsWith(base.href) && !target.hasAttribute("download")) {
    event.preventDefault();
    go(target.href);
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
});

let typing = 0;
document.addEventListener("input", (event) => {
  const control = event.target.closest("[data-query]");
  if (!control) return;
  const value = control.type === "checkbox" ? (control.checked ? "true" : "") : control.value;
  clearTimeout(typing);
  const isText = control.matches("input:not([type=checkbox])");
  typing = setTimeout(() => set(new URLSearchParams({ [control.dataset.query]: value, page: "" }), true), isText ? TYPING_MS : 0);
});

async function copy(button) {
  await navigator.clipboard.writeText(button.dataset.copy).catch(() => null);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, COPIED_MS);
}

addEventListener("popstate", refresh);
document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") refresh(); });
refresh();
watchLevel();
setInterval(watchLevel, LEVEL_EVERY_MS);
