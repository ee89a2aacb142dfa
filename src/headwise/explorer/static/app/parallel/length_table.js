/*
 * The lengths that a decoder tried: it must know how many words there will be before it writes
 * them, so it asks a classifier and writes several candidates side by side.
 */

import { makeFigure } from "../figure_frame.js";
import { makeNumberTable, numberTableSvg } from "../number_table.js";
import { shareOf } from "./drawing.js";

/** @param {any} context */
export function makeLengthTable(context) {
  const { text, number, percent } = context;
  const figure = makeFigure(context, {
    name: "lengths",
    title: text("parallel.lengths"),
    caption: text("parallel.lengths_help"),
  });
  return {
    root: figure.root,
    end: () => {},
    /** @param {any} trace @param {[string, any]} request */
    show(trace, request) {
      const { lengths, chosen } = trace.record;
      const columns = [
        { name: text("parallel.length") },
        { name: text("steps.probability"), number: (value) => percent(value, 1), bar: true },
        { name: text("parallel.mean"), number: (value) => number(value, 4) },
      ];
      // What is told is the number of words; the classifier's class counts the end, too.
      const rows = lengths.map((one) => [String(one.length - 1), shareOf(one), one.score]);
      figure.body.replaceChildren(
        makeNumberTable({ columns, rows, label: text("parallel.lengths"), chosen }),
      );
      figure.read(
        text("parallel.length_taken", {
          length: lengths[chosen].length - 1,
          tried: lengths.length,
          rank: chosen + 1,
        }),
      );
      figure.offer({
        table: () => ({ columns: columns.map((column) => column.name), rows }),
        svg: () => numberTableSvg({ columns, rows }),
        data: () => trace.record,
        request,
      });
    },
  };
}
