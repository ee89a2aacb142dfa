/*
 * The graph of a decoder whose positions are vertices: its best tokens in a row, its links as
 * arches, and the path along which the translation was written. Several right translations are
 * several paths.
 */

import { makeSelect, makeSvg, make } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { makeSheet, makeWalker, shareOf, widthOf } from "./drawing.js";

const STEP = 30;
const LEFT = 30;
const TALLEST = 190;
const THRESHOLDS = [0.01, 0.05, 0.2];
const MOST_DRAWN = 240; // vertices; the table has the others

/** @param {any} context */
export function makeGraphDrawing(context) {
  const { text, percent, state, update } = context;
  /** @type {any} */
  let record = null;
  let onPath = new Map();
  const figure = makeFigure(context, {
    name: "graph",
    title: text("parallel.graph"),
    caption: text("parallel.graph_help"),
  });
  const walker = makeWalker({ label: text("parallel.graph_label"), onChoose: choose });
  const least = () => (THRESHOLDS.includes(Number(state.least)) ? Number(state.least) : 0.05);
  const controls = make(
    "div",
    { class: "row controls" },
    makeSelect({
      label: text("parallel.least"),
      value: String(least()),
      options: THRESHOLDS.map((one) => [String(one), percent(one, 0)]),
      onChange: (next) => {
        update({ least: next });
        drawLive();
      },
    }),
  );
  figure.body.append(controls, walker.frame);

  const nameOf = (/** @type {number} */ vertex) => record.vertices[vertex]?.best[0]?.piece ?? "";

  /** @param {number} vertex */
  function choose(vertex) {
    for (const one of walker.frame.querySelectorAll("[data-vertex]"))
      one.classList.toggle("active", Number(one.dataset.vertex) === vertex);
    for (const one of walker.frame.querySelectorAll("[data-from]"))
      one.classList.toggle("active", Number(one.dataset.from) === vertex);
    const { best, links } = record.vertices[vertex];
    figure.read(
      text(onPath.has(vertex) ? "parallel.vertex_on" : "parallel.vertex_off", {
        vertex,
        offers: best.map((one) => `${one.piece} ${percent(shareOf(one), 1)}`).join(", "),
        links:
          links
            .map((one) => `${one.vertex} (${nameOf(one.vertex)}) ${percent(shareOf(one), 1)}`)
            .join(", ") || text("parallel.no_links"),
      }),
    );
  }

  /** @param {boolean} live */
  function draw(live) {
    const vertices = record.vertices.slice(0, MOST_DRAWN);
    const x = (vertex) => LEFT + vertex * STEP;
    const farthest = Math.max(
      1,
      ...shownLinks(vertices).map(({ from, link }) => link.vertex - from),
    );
    // A curve reaches three quarters of the way to its control points.
    const base = 24 + 0.75 * Math.min(TALLEST, 26 + farthest * 13);
    const longest = Math.max(...vertices.map((_, vertex) => widthOf(nameOf(vertex))));
    const width = Math.max(320, x(vertices.length) + longest * 0.6);
    const { svg, paint } = makeSheet(width, base + 36 + 0.85 * longest, live);
    const arches = shownLinks(vertices).sort(
      (one, other) => Number(one.taken) - Number(other.taken),
    );
    for (const { from, link, taken } of arches) {
      const share = shareOf(link);
      const rise = Math.min(TALLEST, 26 + (link.vertex - from) * 13);
      const [start, end, top] = [x(from), x(link.vertex), base - rise];
      const path = makeSvg("path", {
        class: "arch",
        fill: "none",
        d: `M${start} ${base} C${start} ${top} ${end} ${top} ${end} ${base}`,
        "stroke-width": ((taken ? 2.2 : 0.8) + 3 * share).toFixed(2),
        "stroke-opacity": taken ? 1 : (0.3 + 0.6 * share).toFixed(2),
        "data-from": from,
      });
      if (live)
        path.append(makeSvg("title", {}, `${from} → ${link.vertex}: ${percent(share, 1)}`));
      svg.append(paint(path, { stroke: taken ? "--warm" : "--line-strong" }));
    }
    vertices.forEach((_, vertex) => svg.append(drawVertex(paint, vertex, live, x(vertex), base)));
    return { svg, middle: x };
  }

  /** @param {any[]} vertices */
  function shownLinks(vertices) {
    return vertices.flatMap(({ links }, from) =>
      links
        .map((link) => ({ from, link, taken: onPath.get(from) === link.vertex }))
        .filter(({ link }) => link.vertex < vertices.length)
        .filter(({ link, taken }) => taken || shareOf(link) >= least()),
    );
  }

  function drawVertex(paint, vertex, live, x, base) {
    const isTaken = onPath.has(vertex);
    const group = makeSvg("g", { class: "vertex", "data-vertex": vertex });
    group.append(
      paint(
        makeSvg("circle", {
          cx: x,
          cy: base,
          r: isTaken ? 7 : 4,
          "stroke-width": isTaken ? 2.5 : 1.2,
        }),
        {
          fill: isTaken ? "--chosen" : "--surface",
          stroke: isTaken ? "--warm" : "--line-strong",
        },
      ),
      paint(
        makeSvg(
          "text",
          {
            x: x - 3,
            y: base + 22,
            transform: `rotate(55 ${x - 3} ${base + 22})`,
            "font-size": isTaken ? 14 : 12,
            "font-weight": isTaken ? 650 : 400,
          },
          nameOf(vertex).replace("▁", "") || "▁",
        ),
        { fill: isTaken ? "--ink" : "--muted" },
      ),
    );
    if (live) {
      group.addEventListener("pointerenter", () => choose(vertex));
      group.addEventListener("pointerdown", () => choose(vertex));
    }
    return group;
  }

  function drawLive() {
    const { svg, middle } = draw(true);
    walker.show(svg, Math.min(record.vertices.length, MOST_DRAWN), middle);
    figure.read(
      text("parallel.graph_summary", {
        vertices: record.num_vertices,
        links: shownLinks(record.vertices.slice(0, MOST_DRAWN)).length,
        least: percent(least(), 0),
        taken: record.path.length,
      }),
    );
  }

  return {
    root: figure.root,
    end: () => {},
    /** @param {any} trace @param {[string, any]} request */
    show(trace, request) {
      record = trace.record;
      onPath = new Map(record.path.map((vertex, place) => [vertex, record.path[place + 1]]));
      walker.frame.lang = trace.target.language;
      drawLive();
      figure.offer({
        table: () => ({
          columns: [
            text("parallel.vertex"),
            text("tree.piece"),
            text("steps.probability"),
            text("parallel.taken"),
            text("parallel.next"),
          ],
          rows: record.vertices.map(({ best, links }, vertex) => [
            vertex,
            best[0]?.piece ?? "",
            best[0] ? shareOf(best[0]) : 0,
            onPath.has(vertex) ? "✓" : "",
            links.map((one) => `${one.vertex} ${shareOf(one).toFixed(3)}`).join(" · "),
          ]),
        }),
        svg: () => draw(false).svg,
        data: () => record,
        request,
      });
    },
  };
}
