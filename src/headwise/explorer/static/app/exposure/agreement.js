/*
 * How far a decoder drifts when it reads its own words instead of the right translation: position
 * by position, of one model or of two beside each other.
 */

import { make } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { LineChart } from "../line_chart.js";
import { makeNumberTable } from "../number_table.js";

/** @param {any} context @param {{language: string}} target */
export function makeAgreement(context, { language }) {
  const { text, number } = context;
  const figure = makeFigure(context, {
    name: "drift",
    title: text("exposure.agreement"),
    caption: text("exposure.agreement_help"),
  });
  const hint = make("p", { class: "quiet" }, text("exposure.no_reference"));
  const root = make("div", { class: "view-part" }, hint, figure.root);
  figure.root.hidden = true;

  // The lines of all models above, the tables of their numbers below.
  const lines = make("div", {});
  const tables = make("div", { class: "view-part" });
  figure.body.append(lines, tables);
  const chart = new LineChart(lines, {
    context,
    onRead: figure.read,
    label: text("exposure.chart"),
  });

  const columns = [
    { name: text("exposure.position") },
    { name: text("exposure.agrees") },
    { name: text("exposure.variation"), number: (value) => number(value, 3), bar: true },
    { name: text("exposure.cosine"), number: (value) => number(value, 3) },
    { name: text("exposure.of_reference") },
    { name: text("exposure.own") },
  ];
  /** @param {any} reply */
  const rowsOf = (reply) =>
    reply.positions.map((one, place) => [
      String(place + 1),
      one.agreement ? "✓" : "✗",
      one.total_variation,
      one.cosine,
      one.reference,
      one.own,
    ]);

  return {
    root,
    end: () => chart.end(),
    /** @param {any[]} answers @param {[string, any]} request */
    show(answers, request) {
      const known = answers.filter((one) => one.reply?.positions);
      hint.hidden = known.length > 0;
      figure.root.hidden = known.length === 0;
      if (!known.length) return;
      chart.show({
        series: known.map(({ name, reply }) => ({
          name,
          points: reply.positions.map((one, place) => [place + 1, one.total_variation]),
        })),
        x: { name: text("exposure.position") },
        y: { name: text("exposure.variation"), low: 0, high: 1 },
        marks: true,
        height: 220,
      });
      tables.replaceChildren(
        ...known.map(({ name, reply }) =>
          make(
            "section",
            { "aria-label": name },
            make("h3", {}, name),
            makeNumberTable({ columns, rows: rowsOf(reply), label: name, language }),
          ),
        ),
      );
      figure.read(
        known
          .map(({ name, reply }) =>
            text("exposure.drift", {
              model: name,
              count: reply.positions.filter((one) => one.agreement).length,
              all: reply.positions.length,
            }),
          )
          .join(" "),
      );
      const all = [{ name: text("sentence.model") }, ...columns];
      const rows = known.flatMap(({ name, reply }) => rowsOf(reply).map((row) => [name, ...row]));
      figure.offer({
        table: () => ({ columns: all.map((column) => column.name), rows }),
        svg: () => chart.toSvg(),
        data: () => known,
        request,
      });
    },
  };
}
