/*
 * A table as a figure: every number in its cell, with a bar behind the numbers of one column. The
 * same table can be saved as SVG.
 *
 * @typedef {{name: string, number?: (value: number) => string, bar?: boolean}} Column number: how
 *     its numbers are written; bar: shares of one
 * @typedef {(string | number | null)[]} Row
 */

import { FONT_FAMILY, make, makeSvg, pageColour, pieceParts, pieceSpans } from "./dom.js";

const LINE = 26;

/** @param {Column} column @param {any} cell */
function written(column, cell) {
  if (cell === null || cell === undefined) return "–";
  return typeof cell === "number" && column.number ? column.number(cell) : String(cell);
}

/**
 * Whether a column holds words: they begin at the left, numbers end at the right.
 * @param {Row[]} rows
 * @param {number} place
 */
const holdsWords = (rows, place) =>
  place === 0 || (rows.length > 0 && rows.every((row) => typeof row[place] === "string"));

/**
 * @param {{columns: Column[], rows: Row[], label: string, chosen?: number, onRow?: (row:
 *     number) => void, rowLabel?: (row: number) => string, language?: string, foot?: Row}} parts
 *     onRow: the first cell of a row is a button; foot: a last row that sums up
 */
export function makeNumberTable({
  columns,
  rows,
  label,
  chosen = -1,
  onRow = undefined,
  language = undefined,
  foot = undefined,
}) {
  const head = make(
    "tr",
    {},
    ...columns.map((column, place) =>
      make("th", { scope: "col", class: holdsWords(rows, place) ? "wordy" : null }, column.name),
    ),
  );
  const body = rows.map((row, number) =>
    make(
      "tr",
      { class: number === chosen ? "chosen" : null },
      ...row.map((cell, place) => {
        const words = written(columns[place], cell);
        if (place === 0) {
          const name = make("span", { lang: language, dir: "auto" }, ...pieceParts(words));
          return make(
            "th",
            { scope: "row" },
            onRow
              ? make(
                  "button",
                  {
                    type: "button",
                    class: "cell",
                    "aria-pressed": String(number === chosen),
                    onclick: () => onRow(number),
                  },
                  name,
                )
              : name,
          );
        }
        const td = make("td", {
          class: columns[place].bar ? "barred" : holdsWords(rows, place) ? "wordy" : null,
        });
        if (columns[place].bar && typeof cell === "number") {
          const bar = make("span", { class: "share-fill", "aria-hidden": "true" });
          bar.style.width = `${(100 * Math.min(Math.max(cell, 0), 1)).toFixed(2)}%`;
          td.append(bar);
        }
        td.append(make("span", { class: "over" }, words));
        return td;
      }),
    ),
  );
  const last = foot
    ? make(
        "tfoot",
        {},
        make(
          "tr",
          {},
          ...foot.map((cell, place) =>
            make(
              place ? "td" : "th",
              place ? {} : { scope: "row" },
              cell === null ? "" : written(columns[place], cell),
            ),
          ),
        ),
      )
    : null;
  const table = make(
    "table",
    { class: "sheet" },
    make("caption", { class: "unseen" }, label),
    make("thead", {}, head),
    make("tbody", {}, ...body),
    last,
  );
  return make(
    "div",
    { class: "scroll tall", tabindex: "0", role: "region", "aria-label": label },
    table,
  );
}

/** @param {{columns: Column[], rows: Row[], foot?: Row}} sheet @returns {SVGElement} */
export function numberTableSvg({ columns, rows, foot = undefined }) {
  const all = [
    columns.map((column) => column.name),
    ...rows.map((row) => row.map((cell, place) => written(columns[place], cell))),
    ...(foot
      ? [foot.map((cell, place) => (cell === null ? "" : written(columns[place], cell)))]
      : []),
  ];
  // Full-width characters take twice the room.
  const length = (words) =>
    [...words].reduce((sum, letter) => sum + (letter.charCodeAt(0) > 0x2e7f ? 2 : 1), 0);
  const widths = columns.map(
    (_, place) => 22 + 7.4 * all.reduce((most, row) => Math.max(most, length(row[place])), 4),
  );
  const starts = widths.map(
    (_, place) => 12 + widths.slice(0, place).reduce((sum, width) => sum + width, 0),
  );
  const [width, height] = [
    Math.ceil(24 + widths.reduce((sum, one) => sum + one, 0)),
    14 + LINE * all.length,
  ];
  const svg = makeSvg("svg", {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": FONT_FAMILY,
    "font-size": 13,
  });
  svg.append(makeSvg("rect", { width, height, fill: pageColour("--surface") }));
  all.forEach((row, number) =>
    row.forEach((words, place) => {
      const y = 7 + LINE * number;
      const value = rows[number - 1]?.[place];
      if (number > 0 && columns[place].bar && typeof value === "number") {
        svg.append(
          makeSvg("rect", {
            x: starts[place],
            y: y + 3,
            height: LINE - 6,
            width: Math.max(0, Math.min(value, 1)) * (widths[place] - 8),
            fill: pageColour("--accent-soft"),
          }),
        );
      }
      const end = !holdsWords(rows, place);
      svg.append(
        makeSvg(
          "text",
          {
            x: end ? starts[place] + widths[place] - 12 : starts[place],
            y: y + 18,
            "text-anchor": end ? "end" : "start",
            fill: pageColour(number === 0 ? "--muted" : "--ink"),
            "font-weight": number === 0 || place === 0 ? 600 : 400,
          },
          ...pieceSpans(words),
        ),
      );
    }),
  );
  return svg;
}
