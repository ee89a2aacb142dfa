/*
 * All heads: a small picture for every head of every layer, and one of them enlarged with the value
 * under the pointer.
 */

import { drawPixels, largestOf } from "../colour_scales.js";
import {
  FONT_FAMILY,
  make,
  makeCheck,
  makeChoice,
  makeSelect,
  makeSvg,
  pageColour,
} from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { HeatMap } from "../heat_map.js";
import { heatMapSvg } from "../heat_map_svg.js";
import { attending, makeSentence, readsOnly } from "../sentence_form.js";
import { isOtherKind, KINDS, kindsOf, makeTable, mapsOf } from "../trace.js";

export const name = "heads";

/** Weights of both signs need two hues. @param {any} table */
const hue = (table) => (table.signed ? "diverging" : "sequence");

/** @param {any[]} models */
export const needs = (models) => attending(models).length > 0;

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text, number, percent, update } = context;
  const kind = () =>
    readsOnly(sentence.model) ? "decoder_self" : KINDS.includes(state.kind) ? state.kind : "cross";
  /** What a kind is called: a language model has no source. @param {string} one */
  const nameOf = (one) => text(readsOnly(sentence.model) ? "trace.text_self" : `trace.${one}`);
  const choice = () => ({ level: state.level || "word", hideMarks: state.marks === "hide" });
  let trace = null;
  let request = null;
  let shown = null;

  const controls = make("div", { class: "row controls" });
  const grid = makeFigure(context, {
    name: "heads",
    title: text("heads.grid"),
    caption: text("heads.grid_help"),
  });
  const large = makeFigure(context, {
    name: "head",
    title: text("heads.large"),
    caption: text("heads.large_help"),
  });
  const matrix = new HeatMap(large.body, {
    label: text("heads.matrix"),
    onCell: (row, column, value) =>
      large.read(
        text("heads.cell", {
          row: shown.rows[row].text,
          column: shown.columns[column].text,
          value: number(value, 4),
        }),
      ),
  });
  const sentence = makeSentence(context, {
    among: attending,
    wants: () => ({
      maps: { kinds: [kind()], bits: 16, ...(state.only ? { layers: [Number(state.only)] } : {}) },
    }),
    onTrace: (next, asked) => {
      if (isOtherKind(next)) {
        update({ kind: kindsOf(next)[0], layer: "", head: "", only: "" });
        sentence.again();
        return;
      }
      trace = next;
      request = asked;
      draw();
    },
    onProblem: (problem) => {
      // A long sentence: one layer at a time.
      if (problem.code !== "too_many_values" || state.only) return false;
      update({ only: state.layer || 0 });
      sentence.again();
      return true;
    },
  });
  const note = make("p", { class: "quiet", hidden: true }, text("heads.one_layer"));
  root.append(
    make("h1", {}, text("heads.title")),
    make("p", { class: "lead" }, text("heads.lead")),
    sentence.root,
    controls,
    note,
    make("div", { class: "columns wide-left" }, large.root, grid.root),
  );

  function draw() {
    const start = performance.now();
    note.hidden = !state.only;
    large.root.hidden = !trace.maps.length;
    if (!trace.maps.length) {
      controls.replaceChildren();
      grid.body.replaceChildren(make("p", {}, text("trace.no_attention")));
      return;
    }
    drawControls();
    drawGrid();
    drawLarge();
    performance.measure("headwise-heads", { start });
  }

  function drawControls() {
    const choose = (key) => (value) => {
      update({ [key]: value });
      draw();
    };
    controls.replaceChildren(
      makeSelect({
        label: text("trace.kind"),
        value: kind(),
        options: kindsOf(trace).map((one) => [one, nameOf(one)]),
        onChange: (value) => {
          update({ kind: value, layer: "", head: "", only: "" });
          sentence.again();
        },
      }),
      state.only
        ? makeSelect({
            label: text("trace.layer"),
            value: state.only,
            options: trace.attention
              .filter((one) => one.kind === kind())
              .map(({ layer }) => [
                String(layer),
                text("trace.layer_number", { layer: layer + 1 }),
              ]),
            onChange: (only) => {
              update({ only, layer: only });
              sentence.again();
            },
          })
        : "",
      makeChoice({
        label: text("trace.level"),
        value: choice().level,
        options: [
          ["word", text("trace.word")],
          ["piece", text("trace.piece")],
        ],
        onChange: choose("level"),
      }),
      makeChoice({
        label: text("heads.scale"),
        value: state.scale || "linear",
        options: [
          ["linear", text("heads.linear")],
          ["log", text("heads.log")],
        ],
        onChange: choose("scale"),
      }),
      makeCheck({
        label: text("trace.hide_marks"),
        checked: choice().hideMarks,
        onChange: (hide) => choose("marks")(hide ? "hide" : ""),
      }),
      // Words are left out of what is translated; a text that is only read has no such test.
      readsOnly(sentence.model)
        ? ""
        : make(
            "button",
            { type: "button", onclick: () => context.open("align") },
            text("heads.test"),
          ),
    );
  }

  /**
   * The head to show large: what the address says if it exists, else the first of the last layer.
   */
  function place() {
    const maps = mapsOf(trace, kind());
    const map = maps.find((one) => String(one.layer) === state.layer) ?? maps[maps.length - 1];
    return {
      map,
      head: map.heads.includes(Number(state.head)) ? Number(state.head) : map.heads[0],
    };
  }

  function drawGrid() {
    const { map: chosen, head: chosenHead } = place();
    const rows = mapsOf(trace, kind()).map((map) => {
      const cells = make("div", {
        class: "heads-cells",
        role: "group",
        "aria-label": text("trace.layer_number", { layer: map.layer + 1 }),
      });
      for (const head of map.heads) {
        const table = makeTable(trace, [map], { head: String(head), ...choice() });
        const canvas = make("canvas", { "aria-hidden": "true" });
        drawPixels(canvas, table.weights, table.rows.length, table.columns.length, {
          largest: largestOf(table.weights),
          scale: state.scale,
          kind: table.signed ? "diverging" : "sequence",
        });
        const label = text("trace.head_number", { head: head + 1 });
        cells.append(
          make(
            "button",
            {
              type: "button",
              "aria-pressed": String(map === chosen && head === chosenHead),
              "aria-label": `${text("trace.layer_number", { layer: map.layer + 1 })}, ${label}`,
              onclick: (event) => {
                update({ layer: map.layer, head });
                for (const button of grid.body.querySelectorAll("[aria-pressed]"))
                  button.setAttribute("aria-pressed", String(button === event.currentTarget));
                drawLarge();
              },
            },
            canvas,
            label,
          ),
        );
      }
      return make(
        "div",
        { class: "heads-row" },
        make(
          "span",
          { "aria-hidden": "true" },
          text("trace.layer_number", { layer: map.layer + 1 }),
        ),
        cells,
      );
    });
    grid.body.replaceChildren(make("div", { class: "heads" }, ...rows));
    const columns = [
      text("trace.layer"),
      text("trace.head"),
      text("heads.strongest"),
      text("heads.entropy"),
      text("heads.on_marks"),
    ];
    grid.offer({
      table: () => ({
        columns,
        rows: mapsOf(trace, kind()).flatMap((map) => map.heads.map((head) => summarize(map, head))),
      }),
      svg: () => gridAsSvg(grid.body),
      data: () => trace,
      request,
    });
  }

  /**
   * A head in three numbers: how sharp its rows are, how spread, and how much of them rests on
   * sentence marks.
   * @param {any} map
   * @param {number} head
   */
  function summarize(map, head) {
    const whole = makeTable(trace, [map], { head: String(head), level: "piece", hideMarks: false });
    const shown_ = makeTable(trace, [map], { head: String(head), level: "piece", hideMarks: true });
    let [strongest, entropy] = [0, 0];
    const width = whole.columns.length;
    for (let i = 0; i < whole.rows.length; i += 1) {
      const row = whole.weights.subarray(i * width, (i + 1) * width);
      strongest += row.reduce((most, weight) => Math.max(most, weight), 0) / whole.rows.length;
      entropy -=
        row.reduce((sum, weight) => sum + (weight > 0 ? weight * Math.log(weight) : 0), 0) /
        whole.rows.length;
    }
    const onMarks = shown_.hidden.reduce((sum, share) => sum + share, 0) / shown_.hidden.length;
    return [String(map.layer + 1), head + 1, strongest, entropy, onMarks];
  }

  function drawLarge() {
    const { map, head } = place();
    shown = makeTable(trace, [map], { head: String(head), ...choice() });
    matrix.kind = shown.signed ? "diverging" : "sequence";
    matrix.show(
      { rows: shown.rows, columns: shown.columns, values: shown.weights },
      { scale: state.scale, kind: hue(shown) },
    );
    const where = text("heads.where", {
      layer: map.layer + 1,
      head: head + 1,
      kind: nameOf(map.kind),
    });
    large.explain(
      `${where} ${text(readsOnly(sentence.model) ? "heads.reader_help" : "heads.large_help")}`,
    );
    const hidden =
      shown.hidden.reduce((sum, share) => sum + share, 0) / Math.max(shown.hidden.length, 1);
    large.read(
      hidden > 0.0005 ? text("heads.hidden", { share: percent(hidden) }) : text("heads.point"),
    );
    large.offer({
      table: () => ({
        columns: [text("trace.corner"), ...shown.columns.map((item) => item.text)],
        rows: shown.rows.map((item, i) => [
          item.text,
          ...shown.columns.map((_, j) => matrix.valueAt(i, j)),
        ]),
      }),
      svg: () => heatMapSvg(matrix),
      data: () => ({
        kind: map.kind,
        layer: map.layer,
        head,
        rows: shown.rows.map((item) => item.text),
        columns: shown.columns.map((item) => item.text),
        weights: shown.rows.map((_, i) => shown.columns.map((__, j) => matrix.valueAt(i, j))),
      }),
      request: [
        "v1/trace",
        { ...request[1], maps: { ...request[1].maps, layers: [map.layer], heads: [head] } },
      ],
    });
  }

  const redraw = () => {
    if (trace?.maps.length) drawGrid();
  };
  document.addEventListener("themechange", redraw);
  sentence.start();
  return () => {
    document.removeEventListener("themechange", redraw);
    sentence.end();
    matrix.end();
  };
}

/** The small pictures as they stand on the page. @param {HTMLElement} body */
function gridAsSvg(body) {
  const rows = [...body.querySelectorAll(".heads-row")];
  const most = Math.max(...rows.map((row) => row.querySelectorAll("canvas").length));
  const [width, height] = [80 + 112 * most, 8 + 132 * rows.length];
  const svg = makeSvg("svg", {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": FONT_FAMILY,
    "font-size": 12,
  });
  svg.append(makeSvg("rect", { width, height, fill: pageColour("--surface") }));
  rows.forEach((row, i) => {
    svg.append(
      makeSvg(
        "text",
        { x: 8, y: 30 + 132 * i, fill: pageColour("--muted") },
        row.firstChild.textContent,
      ),
    );
    [...row.querySelectorAll("button")].forEach((button, j) => {
      const [x, y] = [74 + 112 * j, 8 + 132 * i];
      svg.append(
        makeSvg("image", {
          x,
          y,
          width: 104,
          height: 104,
          preserveAspectRatio: "none",
          "image-rendering": "pixelated",
          href: button.firstChild.toDataURL(),
        }),
        makeSvg(
          "text",
          { x: x + 52, y: y + 119, "text-anchor": "middle", fill: pageColour("--muted") },
          button.textContent,
        ),
      );
    });
  });
  return svg;
}
