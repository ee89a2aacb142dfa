/*
 * The grid of a decoder with CTC: what each position offers, the alignment that was taken, and how
 * it collapses: equal neighbours are merged, then blanks are deleted.
 */

import { makeSvg, pieceSpans } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import {
  makeBox,
  makeNote,
  makeRowName,
  makeSheet,
  makeWalker,
  shareOf,
  widthOf,
} from "./drawing.js";

const RANKS = 3;
const LEFT = 10;
const GAP = 6;
const BLANK = "∅";
const MOST_DRAWN = 240; // positions; the table has the others

const WIDEST = 92; // of a column

/** The symbols of a column: the chosen one is always among them. @param {any} position */
function offersOf({ best, chosen }) {
  const first = best.slice(0, RANKS);
  return first.some((other) => other.token === chosen.token)
    ? first
    : [...first.slice(0, RANKS - 1), chosen];
}

/** A piece that is too wide for a column, cut; the line below the drawing has all of it. */
function fitted(/** @type {string} */ piece) {
  if (widthOf(piece) + 10 <= WIDEST) return piece;
  let count = piece.length;
  while (count > 1 && widthOf(`${piece.slice(0, count)}…`) + 10 > WIDEST) count -= 1;
  return `${piece.slice(0, count)}…`;
}

const nameOf = (/** @type {{piece: string}} */ { piece }) => piece || BLANK;

/**
 * Equal neighbours as one.
 * @param {any[]} positions @returns {{written: number | null, first: number, last: number, piece:
 *     string}[]}
 */
function mergeRuns(positions) {
  const runs = [];
  positions.forEach(({ chosen, written }, place) => {
    const before = runs[runs.length - 1];
    if (before && before.token === chosen.token) before.last = place;
    else {
      const { token } = chosen;
      runs.push({ token, piece: nameOf(chosen), written, first: place, last: place });
    }
  });
  return runs;
}

/** @param {any} context */
export function makeAlignmentGrid(context) {
  const { text, percent } = context;
  /** @type {any} */
  let record = null;
  const figure = makeFigure(context, {
    name: "ctc",
    title: text("parallel.ctc"),
    caption: text("parallel.ctc_help"),
  });
  const walker = makeWalker({ label: text("parallel.ctc_label"), onChoose: choose });
  figure.body.append(walker.frame);

  /** @param {number} place */
  function choose(place) {
    const { best, chosen, written } = record.positions[place];
    for (const one of walker.frame.querySelectorAll("[data-place]"))
      one.classList.toggle("active", Number(one.dataset.place) === place);
    const offers = best.map((one) => `${nameOf(one)} ${percent(shareOf(one), 1)}`).join(", ");
    figure.read(
      text(written === null ? "parallel.ctc_blank" : "parallel.ctc_word", {
        place: place + 1,
        offers,
        piece: nameOf(chosen),
        number: (written ?? 0) + 1,
      }),
    );
  }

  /** @param {boolean} live */
  function draw(live) {
    const positions = record.positions.slice(0, MOST_DRAWN);
    const widths = positions.map((one) =>
      Math.min(WIDEST, 14 + Math.max(22, ...offersOf(one).map((other) => widthOf(nameOf(other))))),
    );
    const lefts = widths.map(
      (_, place) => LEFT + widths.slice(0, place).reduce((sum, one) => sum + one + GAP, 0),
    );
    const middleOf = (place) => lefts[place] + widths[place] / 2;
    const runs = mergeRuns(positions);
    const rows = { offers: 52, merged: 52 + RANKS * 34 + 30, left: 52 + RANKS * 34 + 108 };
    const last = positions.length - 1;
    const width = Math.max(320, lefts[last] + widths[last] + LEFT);
    const { svg, paint } = makeSheet(width, rows.left + 44, live);
    positions.forEach((one, place) => {
      const group = makeSvg("g", { class: "grid-column", "data-place": place });
      group.append(
        makeNote(paint, middleOf(place), 38, String(place + 1), { "text-anchor": "middle" }),
        ...offersOf(one).map((symbol, rank) => drawOffer(paint, one, symbol, rank, place)),
      );
      if (live) {
        group.addEventListener("pointerenter", () => choose(place));
        group.addEventListener("pointerdown", () => choose(place));
      }
      svg.append(group);
    });
    runs.forEach((run) => {
      const [from, to] = [lefts[run.first], lefts[run.last] + widths[run.last]];
      const middle = (from + to) / 2;
      const look = run.written === null ? "empty" : "kept";
      svg.append(
        makeBox(paint, { x: from, y: rows.merged, width: to - from, piece: run.piece, look }),
      );
      if (run.written === null) return;
      svg.append(
        paint(
          makeSvg("path", {
            d: `M${middle} ${rows.merged + 30}V${rows.left - 2}`,
            "stroke-width": 1.6,
          }),
          { stroke: "--accent" },
        ),
        makeBox(paint, {
          x: middle - widthOf(run.piece) / 2 - 10,
          y: rows.left,
          width: widthOf(run.piece) + 20,
          piece: run.piece,
          look: "new",
        }),
      );
    });
    svg.append(
      makeRowName(paint, LEFT, 16, text("parallel.ctc_offers")),
      makeRowName(paint, LEFT, rows.merged - 12, text("parallel.ctc_merged")),
      makeRowName(paint, LEFT, rows.left - 14, text("parallel.ctc_left")),
    );
    return { svg, middle: middleOf };

    function drawOffer(on, { chosen }, symbol, rank, place) {
      const share = shareOf(symbol);
      const isChosen = symbol.token === chosen.token;
      const y = rows.offers - 4 + rank * 34;
      const shade = on(
        makeSvg("rect", {
          x: lefts[place],
          y,
          width: widths[place],
          height: 28,
          rx: 6,
          "fill-opacity": (0.04 + 0.4 * share).toFixed(3),
        }),
        { fill: "--accent" },
      );
      const outline = on(
        makeSvg("rect", {
          x: lefts[place],
          y,
          width: widths[place],
          height: 28,
          rx: 6,
          fill: "none",
          "stroke-width": isChosen ? 2.5 : 1,
        }),
        { stroke: isChosen ? "--warm" : "--line" },
      );
      const words = on(
        makeSvg(
          "text",
          {
            x: middleOf(place),
            y: y + 19,
            "text-anchor": "middle",
            "font-weight": isChosen ? 650 : 400,
          },
          ...pieceSpans(fitted(nameOf(symbol))),
        ),
        { fill: "--ink" },
      );
      return makeSvg("g", {}, shade, outline, words);
    }
  }

  return {
    root: figure.root,
    end: () => {},
    /** @param {any} trace @param {[string, any]} request */
    show(trace, request) {
      record = trace.record;
      walker.frame.lang = trace.target.language;
      const { svg, middle } = draw(true);
      walker.show(svg, Math.min(record.positions.length, MOST_DRAWN), middle);
      figure.read(
        text("parallel.ctc_summary", {
          positions: record.num_positions,
          merged: mergeRuns(record.positions).length,
          words: trace.n_best[0].tokens.length,
        }),
      );
      figure.offer({
        table: () => ({
          columns: [
            text("parallel.place"),
            text("steps.chosen"),
            text("steps.probability"),
            text("parallel.becomes"),
            ...Array.from({ length: 5 }, (_, rank) => text("steps.best", { place: rank + 1 })),
          ],
          rows: record.positions.map((one, place) => [
            place + 1,
            nameOf(one.chosen),
            shareOf(one.chosen),
            one.written === null ? "" : one.written + 1,
            ...one.best.map((other) => `${nameOf(other)} ${shareOf(other).toFixed(4)}`),
          ]),
        }),
        svg: () => draw(false).svg,
        data: () => record,
        request,
      });
    },
  };
}
