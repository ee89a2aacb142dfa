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
    const sizes = (pieces) => pieces.map((piece) => Math.max(34, widthOf(piece) + 16));
    const sum = (widths) => widths.reduce((total, one) => total + one + GAP, 0);
    const slots = from.map((place, slot) =>
      Math.max(34, widthOf(source[place]) + 16, widthOf(target[slot] ?? "") + 16),
    );
    const whole = Math.max(sum(sizes(source)), sum(slots), 300);
    /** Where boxes stand that share the whole width. */
    const places = (widths) => {
      let x = LEFT + (whole - sum(widths)) / 2;
      return widths.map((width) => {
        const at = { x, width, middle: x + width / 2 };
        x += width + GAP;
        return at;
      });
    };
    const [above, below] = [places(sizes(source)), places(slots)];
    const { svg, paint } = makeSheet(whole + 2 * LEFT, ROWS.target + 44, live);
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
