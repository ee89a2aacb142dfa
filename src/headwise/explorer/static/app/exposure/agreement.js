/*
 * How far a decoder drifts when it reads its own words instead of the right translation: position
 * by position, of one model or of two beside each other.
 */

import { make } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { makeNumberTable, numberTableSvg } from "../number_table.js";

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

  const columns = [
    { name: text("exposure.position") },
    { name: text("exposure.of_reference") },
    { name: text("exposure.own") },
    { name: text("exposure.agrees") },
    { name: text("exposure.variation"), number: (value) => number(value, 3), bar: true },
    { name: text("exposure.cosine"), number: (value) => number(value, 3) },
  ];
  /** @param {any} reply */
  const rowsOf = (reply) =>
    reply.positions.map((one, place) => [
      String(place + 1),
      one.reference,
      one.own,
      one.agreement ? "✓" : "✗",
      one.total_variation,
      one.cosine,
    ]);

  return {
    root,
    /** @param {any[]} answers @param {[string, any]} request */
    show(answers, request) {
      const known = answers.filter((one) => one.reply?.positions);
      hint.hidden = known.length > 0;
      figure.root.hidden = known.length === 0;
      if (!known.length) return;
      figure.body.replaceChildren(
        make(
          "div",
          { class: known.length > 1 ? "columns two" : "columns" },
          ...known.map(({ name, reply }) =>
            make(
              "section",
              { "aria-label": name },
              make("h3", {}, name),
              makeNumberTable({ columns, rows: rowsOf(reply), label: name, language }),
            ),
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
        svg: () => numberTableSvg({ columns: all, rows }),
        data: () => known,
        request,
      });
    },
  };
}
