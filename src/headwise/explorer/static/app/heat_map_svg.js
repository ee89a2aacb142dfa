/*
 * Writes a heat map (heat_map.js) as an SVG picture that can be saved: its cells, the names of rows
 * and columns, and what its colours stand for.
 */

import { colourName, rampBytes, scaleEnds, shade } from "./colour_scales.js";
import { FONT_FAMILY, makeSvg, pageColour, pieceSpans, SVG_NAMESPACE } from "./dom.js";

const MOST_SQUARES = 4096; // beyond these the cells are one embedded picture

/** @typedef {import("./heat_map.js").HeatMap} HeatMap */

/** The picture by itself. @param {HeatMap} map as it is drawn on the page @returns {SVGElement} */
export function heatMapSvg(map) {
  const { rows, columns } = map.numbers;
  const [width, height] = [
    map.leftWidth + map.size * columns.length + Math.max(map.lean, 12),
    map.topHeight + map.height * rows.length + 40,
  ];
  const svg = makeSvg("svg", {
    xmlns: SVG_NAMESPACE,
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": FONT_FAMILY,
    "font-size": 13,
  });
  svg.append(
    makeSvg("rect", { width, height, fill: pageColour("--surface") }),
    makeCells(map),
    ...makeRowNames(map),
    ...makeColumnNames(map),
    ...makeScale(map, height - 22),
  );
  return svg;
}

/** @param {HeatMap} map */
function makeCells(map) {
  const { rows, columns, values } = map.numbers;
  if (values.length > MOST_SQUARES)
    return makeSvg("image", {
      x: map.leftWidth,
      y: map.topHeight,
      width: map.size * columns.length,
      height: map.height * rows.length,
      preserveAspectRatio: "none",
      href: map.pixels.toDataURL(),
    });
  const bytes = rampBytes(map.kind);
  const seam = map.isSeamed ? 1 : 0;
  const cells = makeSvg("g", { "shape-rendering": "crispEdges" });
  rows.forEach((_, i) =>
    columns.forEach((__, j) =>
      cells.append(
        makeSvg("rect", {
          x: map.leftWidth + j * map.size,
          y: map.topHeight + i * map.height,
          width: map.size - seam,
          height: map.height - seam,
          fill: colourName(bytes, shade(map.valueAt(i, j), map.how.largest, map.how)),
        }),
      ),
    ),
  );
  return cells;
}

/** @param {HeatMap} map */
function makeRowNames(map) {
  return map.numbers.rows.flatMap((item, i) =>
    i % map.everyRow === 0
      ? [
          makeSvg(
            "text",
            {
              x: map.leftWidth - 7,
              y: map.topHeight + (i + 0.5) * map.height + 4.5,
              "text-anchor": "end",
              fill: pageColour("--ink"),
            },
            ...pieceSpans(item.text),
          ),
        ]
      : [],
  );
}

/** @param {HeatMap} map */
function makeColumnNames(map) {
  return map.numbers.columns.flatMap((item, j) => {
    if (j % map.everyColumn !== 0) return [];
    const [x, y] = [map.leftWidth + (j + 0.5) * map.size, map.topHeight - 7];
    const placed = map.isUpright
      ? { "text-anchor": "middle" }
      : { transform: `rotate(-45 ${x} ${y})` };
    return [
      makeSvg("text", { x, y, fill: pageColour("--ink"), ...placed }, ...pieceSpans(item.text)),
    ];
  });
}

/** What the colours stand for. @param {HeatMap} map @param {number} y */
function makeScale(map, y) {
  const [low, high] = scaleEnds(map.how.largest, map.how, map.format);
  const bytes = rampBytes(map.kind);
  const start = 12 + 7.4 * low.length;
  const steps = Array.from({ length: 32 }, (_, step) =>
    makeSvg("rect", {
      x: start + 4 * step,
      y,
      width: 4.2,
      height: 9,
      fill: colourName(bytes, Math.round((255 * step) / 31)),
    }),
  );
  const word = (x, words, anchor) =>
    makeSvg(
      "text",
      { x, y: y + 9, "font-size": 12, "text-anchor": anchor, fill: pageColour("--muted") },
      words,
    );
  return [word(start - 6, low, "end"), ...steps, word(start + 134, high, "start")];
}
