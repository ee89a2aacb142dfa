/*
 * Fertilities: how often each source token is copied, the copies that the decoder reads, and the
 * words it writes in their places.
 */

import { makeSvg } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { makeBox, makeRowName, makeSheet, makeWalker, shareOf, widthOf } from "./drawing.js";

const GAP = 8;
const LEFT = 10;
const ROWS = { source: 34, copies: 142, target: 232 };

/**
 * Where the boxes stand: each source piece above its copies.
 * @param {string[]} source @param {string[]} target @param {number[]} from the source piece of
 *     each position
 */
function layOut(source, target, from) {
  const sizeOf = (...pieces) => Math.max(34, ...pieces.map((piece) => widthOf(piece) + 16));
  const box = (x, width) => ({ x, width, middle: x + width / 2 });
  const [above, below] = [[], []];
  let x = LEFT;
  source.forEach((piece, place) => {
    const slots = from.flatMap((one, slot) => (one === place ? [slot] : []));
    const widths = slots.map((slot) => sizeOf(piece, target[slot] ?? ""));
    const needed = widths.reduce((sum, one) => sum + one + GAP, -GAP);
    const width = Math.max(sizeOf(piece), needed);
    // Above the first of its copies: of many copies the middle might be out of sight.
    above.push(box(x, sizeOf(piece)));
    let start = x;
    slots.forEach((slot, number) => {
      below[slot] = box(start, widths[number]);
      start += widths[number] + GAP;
    });
    x += width + 2 * GAP;
  });
  return { above, below, width: x + LEFT };
}

/** @param {any} context */
export function makeFertilityDrawing(context) {
  const { text, percent } = context;
  /** @type {any} */
  let trace = null;
  const figure = makeFigure(context, {
    name: "fertilities",
    title: text("parallel.fertilities"),
    caption: text("parallel.fertilities_help"),
  });
  const walker = makeWalker({ label: text("parallel.fertilities_label"), onChoose: choose });
  figure.body.append(walker.frame);

  const counts = () => trace.record.fertilities;
  /** The source token that each position of the decoder reads. */
  const origins = () => counts().flatMap(({ count }, place) => Array(count).fill(place));

  /** @param {number} place */
  function choose(place) {
    for (const one of walker.frame.querySelectorAll("[data-place]"))
      one.classList.toggle("active", Number(one.dataset.place) === place);
    figure.read(
      text("parallel.fertility_reading", {
        piece: trace.source.pieces[place],
        count: counts()[place].count,
        share: percent(shareOf(counts()[place]), 1),
      }),
    );
  }

  /** @param {boolean} live */
  function draw(live) {
    const [source, target, from] = [trace.source.pieces, trace.target.pieces, origins()];
    const { above, below, width: whole } = layOut(source, target, from);
    const { svg, paint } = makeSheet(Math.max(300, whole), ROWS.target + 44, live);
    const line = (x1, y1, x2, y2) =>
      paint(
        makeSvg("path", {
          fill: "none",
          "stroke-width": 1.6,
          d: `M${x1} ${y1} C${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2} ${x2} ${y2}`,
        }),
        { stroke: "--accent" },
      );
    from.forEach((place, slot) =>
      svg.append(
        line(above[place].middle, ROWS.source + 48, below[slot].middle, ROWS.copies),
        line(below[slot].middle, ROWS.copies + 28, below[slot].middle, ROWS.target),
      ),
    );
    source.forEach((piece, place) => {
      const { x, width, middle } = above[place];
      const { count } = counts()[place];
      const group = makeSvg("g", { class: "grid-column", "data-place": place });
      group.append(
        makeBox(paint, { x, y: ROWS.source, width, piece, look: count ? "kept" : "gone" }),
        paint(
          makeSvg("rect", { x: middle - 12, y: ROWS.source + 30, width: 24, height: 18, rx: 9 }),
          { fill: "--surface" },
        ),
        paint(
          makeSvg(
            "text",
            {
              x: middle,
              y: ROWS.source + 44,
              "text-anchor": "middle",
              "font-weight": 650,
              "font-size": 13,
            },
            `×${count}`,
          ),
          { fill: count ? "--accent" : "--muted" },
        ),
      );
      if (live) {
        group.addEventListener("pointerenter", () => choose(place));
        group.addEventListener("pointerdown", () => choose(place));
      }
      svg.append(group);
    });
    below.forEach(({ x, width }, slot) =>
      svg.append(
        makeBox(paint, { x, y: ROWS.copies, width, piece: source[from[slot]], look: "empty" }),
        makeBox(paint, { x, y: ROWS.target, width, piece: target[slot] ?? "", look: "new" }),
      ),
    );
    svg.append(
      makeRowName(paint, LEFT, 16, text("parallel.source_row")),
      makeRowName(paint, LEFT, ROWS.copies - 10, text("parallel.copies_row")),
      makeRowName(paint, LEFT, ROWS.target - 12, text("parallel.target_row")),
    );
    return { svg, middle: (place) => above[place].middle };
  }

  return {
    root: figure.root,
    end: () => {},
    /** @param {any} next @param {[string, any]} request */
    show(next, request) {
      trace = next;
      const { svg, middle } = draw(true);
      walker.show(svg, counts().length, middle);
      figure.read(
        text("parallel.fertility_summary", {
          source: counts().length,
          target: origins().length,
          none: counts().filter(({ count }) => !count).length,
        }),
      );
      figure.offer({
        table: () => ({
          columns: [
            text("parallel.source_piece"),
            text("parallel.fertility"),
            text("steps.probability"),
            text("parallel.writes"),
          ],
          rows: counts().map((one, place) => [
            trace.source.pieces[place],
            one.count,
            shareOf(one),
            origins()
              .map((from, slot) => (from === place ? trace.target.pieces[slot] : ""))
              .filter(Boolean)
              .join(" "),
          ]),
        }),
        svg: () => draw(false).svg,
        data: () => trace.record,
        request,
      });
    },
  };
}
