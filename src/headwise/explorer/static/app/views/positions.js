/*
 * Positions: two encodings side by side, each as a table and as its effect on a score by distance.
 */

import { ask } from "../api.js";
import { makeAsking } from "../latest_request.js";
import { LineChart } from "../line_chart.js";
import { make, makeNumber, makeSelect } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { makeFormula } from "../formula.js";
import { HeatMap } from "../heat_map.js";
import { heatMapSvg } from "../heat_map_svg.js";
import { openable } from "../sentence_form.js";

export const name = "positions";
export const needs = () => true;

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  let end = () => {};
  let ended = false;
  build(root, context, () => ended)
    .then((stop) => {
      end = stop ?? end;
    })
    .catch((fault) => {
      root.textContent = fault.message;
    });
  return () => {
    ended = true;
    end();
  };
}

/**
 * The view, once the server has said which encodings there are.
 * @param {HTMLElement} root
 * @param {any} context
 * @param {() => boolean} hasEnded
 */
async function build(root, context, hasEnded) {
  const { state, text, update } = context;
  const own = openable(context.models).map((model) => `model:${model.name}`);
  const { positions } = await ask("v1/kinds");
  if (hasEnded()) return;
  const known = positions.filter((one) => !one.needs_model);
  const options = [
    ...known.map((one) => [one.kind, one.title[context.language]]),
    ...own.map((key) => [key, text("positions.of_model", { model: key.slice(6) })]),
  ];
  const bounded = (key, otherwise, low, high) => {
    const given = Number(state[key]);
    return given >= low && given <= high ? Math.round(given) : otherwise;
  };
  const sizes = () => ({
    length: bounded("length", 48, 8, 256),
    dim: 2 * Math.round(bounded("dim", 64, 8, 256) / 2),
    heads: bounded("heads", 4, 1, 16),
  });
  const sides = ["left", "right"].map((side) => makeSide(context, side, { options, sizes }));
  const redraw = () => sides.forEach((side) => side.ask());
  const { length, dim, heads } = sizes();
  root.append(
    make("h1", {}, text("positions.title")),
    make("p", { class: "lead" }, text("positions.lead")),
    make(
      "div",
      { class: "row controls" },
      makeNumber({
        label: text("positions.length"),
        value: length,
        min: 8,
        max: 256,
        step: 1,
        onChange: (value) => {
          update({ length: value });
          redraw();
        },
      }),
      makeNumber({
        label: text("positions.dim"),
        value: dim,
        min: 8,
        max: 256,
        step: 2,
        onChange: (value) => {
          update({ dim: value });
          redraw();
        },
      }),
      makeNumber({
        label: text("positions.heads"),
        value: heads,
        min: 1,
        max: 16,
        step: 1,
        onChange: (value) => {
          update({ heads: value });
          redraw();
        },
      }),
    ),
    make("div", { class: "columns two" }, ...sides.map((side) => side.root)),
  );
  redraw();
  return () => sides.forEach((side) => side.end());
}

/** @param {any} context @param {string} side @param {{options: any[], sizes: () => any}} parts */
function makeSide(context, side, { options, sizes }) {
  const { state, text, number, update } = context;
  const chosen = () =>
    options.some(([key]) => key === state[side])
      ? state[side]
      : options[side === "left" ? 0 : 1][0];
  const root = make("section", { class: "side", "aria-label": text(`positions.${side}`) });
  const asking = makeAsking(root);
  const picture = makeFigure(context, {
    name: `positions-${side}`,
    title: text("positions.table"),
    caption: "",
  });
  const curve = makeFigure(context, {
    name: `distance-${side}`,
    title: text("positions.curve"),
    caption: "",
  });
  const formula = make("div", {});
  const origin = make("p", { class: "quiet" });
  root.append(
    makeSelect({
      label: text(`positions.${side}`),
      value: chosen(),
      options,
      onChange: (value) => {
        update({ [side]: value });
        askAgain();
      },
    }),
    asking.problem,
    formula,
    origin,
    picture.root,
    curve.root,
  );
  let shown = null;
  const rowName = (row) => String(shown.first_row + row);
  const signed = {
    kind: "diverging",
    fits: true,
    label: text("positions.table"),
    format: (value) => number(value, Number.isInteger(value) ? 0 : 2),
    onCell: (i, j, value) =>
      picture.read(
        text(`positions.cell_${shown.rows}`, {
          row: rowName(i),
          column: j,
          value: number(value, 4),
        }),
      ),
  };
  const table = new HeatMap(picture.body, signed);
  const chart = new LineChart(curve.body, {
    context,
    onRead: curve.read,
    label: text("positions.curve"),
  });

  function askAgain() {
    const [key, model] = chosen().split(":");
    const { length, dim, heads } = sizes();
    const body =
      key === "model" ? { model, length } : { position: { kind: key }, length, dim, heads };
    asking.ask(["v1/positions", body], (reply) => {
      shown = reply;
      draw(["v1/positions", body]);
    });
  }

  /** @param {[string, any]} request */
  function draw(request) {
    formula.replaceChildren(makeFormula(shown.formula));
    origin.textContent = text(`positions.origin_${shown.origin}`);
    picture.root.hidden = shown.table === null;
    if (shown.table) {
      picture.explain(
        text(
          shown.curve !== "product" ? "positions.table_buckets" : `positions.table_${shown.rows}`,
        ),
      );
      const columns = shown.table[0].map((_, place) => ({ text: String(place) }));
      table.kind = shown.curve !== "product" ? "sequence" : "diverging";
      table.show({
        rows: shown.table.map((_, row) => ({ text: rowName(row) })),
        columns,
        values: Float64Array.from(shown.table.flat()),
      });
      picture.read("");
      picture.offer({
        table: () => ({
          columns: [text("positions.row"), ...columns.map((one) => one.text)],
          rows: shown.table.map((row, i) => [rowName(i), ...row]),
        }),
        svg: () => heatMapSvg(table),
        data: () => shown,
        request,
      });
    }
    curve.explain(text(`positions.curve_${shown.curve}`));
    chart.show({
      series: shown.curves.map((one) => ({
        name:
          one.head === null
            ? text(`positions.value_${shown.curve}`)
            : text("trace.head_number", { head: one.head + 1 }),
        points: one.values.map((value, place) => [shown.first_distance + place, value]),
      })),
      x: { name: text("positions.distance") },
      y: { name: text(`positions.value_${shown.curve}`) },
    });
    curve.read("");
    curve.offer({
      table: () => chart.sheet(),
      svg: () => chart.toSvg(),
      data: () => ({ first_distance: shown.first_distance, curves: shown.curves }),
      request,
    });
  }

  return {
    root,
    ask: askAgain,
    end: () => {
      asking.end();
      table.end();
      chart.end();
    },
  };
}
