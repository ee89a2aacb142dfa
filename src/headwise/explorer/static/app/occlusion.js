/*
 * Occlusion: how much less probable the translation becomes without each source word. It is shown
 * beside attention because it measures what attention only suggests.
 */

import { ask } from "./api.js";
import { FONT_FAMILY, make, makeChoice, makeSvg, pageColour } from "./dom.js";
import { makeFigure } from "./figure_frame.js";
import { HeatMap } from "./heat_map.js";
import { heatMapSvg } from "./heat_map_svg.js";

// The server leaves words out of no longer sentences: the work grows with the square.
const MOST_PIECES = 128;

/** A figure that answers for one translation at a time. @param {any} context */
export function makeOcclusion(context) {
  const { text, number, state, update } = context;
  const figure = makeFigure(context, {
    name: "occlusion",
    title: text("occlusion.title"),
    caption: text("occlusion.help"),
  });
  const choice = make("div", { class: "row" });
  const bars = make("ol", { class: "options" });
  const area = make("div", { hidden: true });
  figure.body.append(choice, bars, area);
  let found = null;
  let asked = null;
  let last = new AbortController();
  const matrix = new HeatMap(area, {
    label: text("occlusion.matrix"),
    kind: "diverging",
    onCell: (row, column, value) =>
      figure.read(
        text("occlusion.cell", {
          word: found.words[row],
          piece: found.pieces[column],
          value: number(value, 3),
        }),
      ),
  });

  function draw() {
    const isDetailed = state.left_out === "pieces";
    choice.replaceChildren(
      makeChoice({
        label: text("occlusion.detail"),
        value: isDetailed ? "pieces" : "whole",
        options: [
          ["whole", text("occlusion.whole")],
          ["pieces", text("occlusion.pieces")],
        ],
        onChange: (value) => {
          update({ left_out: value === "pieces" ? "pieces" : "" });
          draw();
        },
      }),
    );
    bars.hidden = isDetailed;
    area.hidden = !isDetailed;
    const largest = Math.max(...found.totals.map(Math.abs), 1e-9);
    bars.replaceChildren(
      ...found.words.map((word, place) => {
        const value = found.totals[place];
        const fill = make("span", { class: value < 0 ? "bar-fill negative" : "bar-fill" });
        fill.style.width = `${(100 * Math.abs(value)) / largest}%`;
        return make(
          "li",
          { class: "option" },
          make("span", { class: "bar-name", lang: found.language }, word),
          make("span", { class: "bar-track" }, fill),
          make("span", { class: "bar-share" }, number(value, 2)),
        );
      }),
    );
    const items = (words) => words.map((word) => ({ text: word }));
    if (isDetailed)
      matrix.show({
        rows: items(found.words),
        columns: items(found.pieces),
        values: found.changes.flat(),
      });
    const best = found.totals.indexOf(Math.max(...found.totals));
    figure.read(
      text("occlusion.reading", {
        total: number(found.log_probability, 3),
        word: found.words[best],
        change: number(found.totals[best], 2),
        without: number(found.log_probability - found.totals[best], 2),
      }),
    );
    figure.offer({
      table: () => ({
        columns: [text("occlusion.word"), text("occlusion.change"), ...found.pieces],
        rows: found.words.map((word, place) => [
          word,
          found.totals[place],
          ...found.changes[place],
        ]),
      }),
      svg: () => (isDetailed ? heatMapSvg(matrix) : barsAsSvg(found)),
      data: () => found,
      request: asked,
    });
  }

  /** Nothing to show, and why. @param {string} reason */
  function clear(reason) {
    choice.replaceChildren();
    bars.replaceChildren();
    area.hidden = true;
    figure.offer({});
    figure.read(reason);
  }

  return {
    root: figure.root,
    /** @param {any} trace */
    async show(trace) {
      last.abort();
      last = new AbortController();
      const { signal } = last;
      if (Math.max(trace.source.pieces.length - 1, trace.n_best[0].tokens.length) > MOST_PIECES) {
        clear(text("occlusion.too_long", { most: MOST_PIECES }));
        return;
      }
      asked = [
        "v1/occlude",
        { model: trace.model, text: trace.source_text, tokens: trace.n_best[0].tokens },
      ];
      try {
        const reply = await ask(asked[0], asked[1], { signal });
        if (signal.aborted) return;
        found = { ...reply, language: trace.source.language };
        draw();
      } catch (problem) {
        if (!signal.aborted) clear(problem.message);
      }
    },
    end() {
      last.abort();
      matrix.end();
    },
  };
}

/** @param {any} found */
function barsAsSvg({ words, totals }) {
  const [width, height] = [520, 16 + 24 * words.length];
  const svg = makeSvg("svg", {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": FONT_FAMILY,
    "font-size": 13,
  });
  svg.append(makeSvg("rect", { width, height, fill: pageColour("--surface") }));
  const largest = Math.max(...totals.map(Math.abs), 1e-9);
  words.forEach((word, place) => {
    const [y, length] = [8 + 24 * place, (290 * Math.abs(totals[place])) / largest];
    svg.append(
      makeSvg("text", { x: 130, y: y + 14, "text-anchor": "end", fill: pageColour("--ink") }, word),
      makeSvg("rect", {
        x: 140,
        y,
        width: Math.max(1, length),
        height: 17,
        rx: 3,
        fill: pageColour(totals[place] < 0 ? "--warm" : "--accent"),
      }),
      makeSvg(
        "text",
        { x: 148 + length, y: y + 14, fill: pageColour("--muted") },
        totals[place].toFixed(2),
      ),
    );
  });
  return svg;
}
