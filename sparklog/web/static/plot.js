// Plots of figures over time, by uPlot. A table with the newest values stands beside each for screen readers.
import { h } from "./dom.js";
import { bytes, short } from "./format.js";
import uPlot from "./uplot/uPlot.esm.js";

const HEIGHT = 170;
const COLOURS = ["--accent", "--warning", "--well", "--bad"];

/** A place for a plot, which `withPlots` fills. */
export const plot = (name, unit, series = [name]) => h("figure", { class: "plot", "data-plot": name, "data-unit": unit, "data-series": series.join("|"), "data-kept": true, role: "img", "aria-label": `${name} over time` });

const drawn = new WeakMap();

/** A value with its unit; bytes have units of their own. */
function worded(value, unit) {
  if (value === null || value === undefined) return "–";
  return unit.startsWith("B") ? bytes(value) + unit.slice(1) : `${short(value)} ${unit}`;
}

/** What `withPlots` takes, from the columns that the server gives; nothing before there are two moments. */
export const columns = (figures, ...names) => (figures && figures.times_ms.length > 1 && names[0] in figures
  ? [figures.times_ms.map((at) => at / 1000), ...names.map((name) => figures[name] ?? figures.times_ms.map(() => null))] : null);

/** Draw `figures[name]`: times in seconds, then a list of values for each series. */
export function withPlots(main, figures) {
  for (const place of main.querySelectorAll("[data-plot]")) {
    const data = figures[place.dataset.plot];
    if (!data) continue;
    const before = drawn.get(place);
    if (before) {
      before.setData(data);
      nameNewest(before);
    } else drawn.set(place, draw(place, data));
    place.setAttribute("aria-label", describe(place, data));
  }
}

const describe = (place, data) => place.dataset.series.split("|").map((name, position) =>
  `${name}: ${worded(data[position + 1].at(-1), place.dataset.unit)} now`).join(", ");

/** Without a pointer over it the legend has the newest values. */
function nameNewest(chart) {
  if (chart.cursor.idx === null || chart.cursor.idx === undefined) chart.setLegend({ idx: chart.data[0].length - 1 });
}

function innerWidth(place) {
  const { paddingLeft, paddingRight } = getComputedStyle(place);
  return Math.max(200, Math.floor(place.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)));
}

const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);

function draw(place, data) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const names = place.dataset.series.split("|");
  const chart = new uPlot({
    width: innerWidth(place),
    height: HEIGHT,
    padding: [12, 30, 0, 0], // the last time is half as wide
    cursor: { y: false, points: { size: 6 } },
    legend: { show: true, live: true },
    hooks: { setCursor: [nameNewest] },
    scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 1) * 1.05)] } },
    axes: [{ ...axis, size: 30, space: 84, values: "{HH}:{mm}:{ss}" }, { ...axis, size: 68, ...(place.dataset.unit.startsWith("B") ? { incrs: POWERS_OF_TWO } : {}), values: (_, ticks) => ticks.map((tick) => (place.dataset.unit.startsWith("B") ? bytes(tick) : short(tick))) }],
    series: [{ label: "at", value: "{HH}:{mm}:{ss}" }, ...names.map((label, position) => ({
      label, width: 1.75, stroke: colour(COLOURS[position % COLOURS.length]), points: { show: false }, value: (_, value) => worded(value, place.dataset.unit) }))],
  }, data, place);
  nameNewest(chart);
  new ResizeObserver(() => chart.setSize({ width: innerWidth(place), height: HEIGHT })).observe(place);
  return chart;
}
