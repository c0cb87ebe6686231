// What is wrong, or less safe than it looks: each finding with value, harm and remedy.
import { h } from "../dom.js";
import { count, time } from "../format.js";
import { commands, note, section, state, table, title } from "../parts.js";

const LEVELS = { grave: "bad", warning: "warning", note: "quiet", ok: "well" };

const FINDINGS = [
  { label: "Severity", cell: (row) => state(row.severity, LEVELS[row.severity]) },
  { label: "Subject", cell: (row) => [h("strong", {}, row.subject), h("div", { class: "detail" }, row.check)], wide: true },
  { label: "Seen", cell: (row) => row.value, wide: true },
  { label: "Harm", cell: (row) => row.harm, wide: true },
  { label: "Remedy", cell: (row) => row.remedy, wide: true },
];

const WELL = [
  { label: "Check", cell: (row) => state(row.check, "well") },
  { label: "Seen", cell: (row) => row.value, wide: true },
];

const keyOf = (row) => `${row.check} ${row.subject} ${row.value}`;

export const doctor = {
  title: () => "Doctor",
  everyMs: 30000,
  draw: (data) => {
    const found = data.findings.filter((row) => row.severity !== "ok");
    const well = data.findings.filter((row) => row.severity === "ok");
    return h("div", {},
      title("Doctor"),
      section(`Findings: ${count(found.length)}`, table(FINDINGS, found, { caption: "Findings, the worst first", keyOf, empty: "nothing is wrong" })),
      section(`Well: ${count(well.length)}`, table(WELL, well, { caption: "Checks that found nothing", keyOf })),
      commands(data, "Examined at ", time(data.time_ms), ". "));
  },
};
