// Numbers, sizes and times as people read them. Times are local, and UTC on hover.
import { h } from "./dom.js";

const NOTHING = "–";
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

const isKnown = (value) => value !== null && value !== undefined && value >= 0;

export const count = (value) => (isKnown(value) ? value.toLocaleString("en") : NOTHING);

/** At most five characters, for tiles: 12.3k. */
export function short(value) {
  if (!isKnown(value)) return NOTHING;
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (value >= size) return (value / (unit === "k" ? 1e3 : size)).toFixed(value / size >= 100 ? 0 : 1) + unit;
  }
  return value < 10 && !Number.isInteger(value) ? value.toFixed(1) : Math.round(value).toLocaleString("en");
}

export function bytes(value) {
  if (!isKnown(value)) return NOTHING;
  let unit = 0;
  let size = value;
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${UNITS[unit]}`;
}

export const perSecond = (value) => (isKnown(value) ? `${short(value)}/s` : NOTHING);

export const percent = (share) => (isKnown(share) ? `${Math.round(share * 100)} %` : NOTHING);

export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

export function duration(milliseconds) {
  if (!isKnown(milliseconds)) return NOTHING;
  const seconds = milliseconds / 1000;
  if (seconds < 1) return `${Math.round(milliseconds)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };

/** A moment: today's by the clock alone, others with their day. */
export function time(milliseconds, { exact = false } = {}) {
  if (!isKnown(milliseconds)) return NOTHING;
  const moment = new Date(milliseconds);
  if (Number.isNaN(moment.getTime())) return String(milliseconds);
  const isToday = moment.toDateString() === new Date().toDateString();
  const day = isToday && !exact ? "" : `${localDay(moment)} `;
  const part = exact ? `.${String(moment.getMilliseconds()).padStart(3, "0")}` : "";
  const text = day + moment.toLocaleTimeString("en-GB", CLOCK) + part;
  return h("time", { datetime: moment.toISOString(), title: `${moment.toISOString()} (UTC)` }, text);
}

function localDay(moment) {
  const two = (number) => String(number).padStart(2, "0");
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
}

/** How long ago, with the moment on hover. */
export function ago(milliseconds) {
  if (!isKnown(milliseconds)) return NOTHING;
  const moment = new Date(milliseconds);
  const title = `since ${moment.toLocaleString("en-GB")} · ${moment.toISOString()} (UTC)`;
  return h("time", { datetime: moment.toISOString(), title }, duration(Math.max(0, Date.now() - milliseconds)));
}
