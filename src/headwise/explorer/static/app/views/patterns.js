/*
 * Attention patterns and their cost: pictures of the kernels' own weights, and measured time and
 * memory.
 */

import { ask } from "../api.js";
import { makeAsking, makeSlider } from "../latest_request.js";
import { drawPixels, largestOf } from "../colour_scales.js";
import { LineChart } from "../line_chart.js";
import { codeParts, make, makeCheck, makeChoice, makeSelect, makeSvg, pageColour } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { HeatMap } from "../heat_map.js";
import { heatMapSvg } from "../heat_map_svg.js";

export const name = "patterns";
export const needs = () => true;

const LENGTH = 64;
const FACTS = [
  "device",
  "precision",
  "heads",
  "head_dim",
  "batch",
  "causal",
  "compiled",
  "kernels",
];
const MEASURES = {
  both: ["both_seconds", 1000],
  forward: ["forward_seconds", 1000],
  memory: ["memory_mib", 1],
};

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text, number, percent, update } = context;
  /** What the server says of every kernel, by its name. @type {Map<string, any>} */
  let known = new Map();
  const shownKinds = () =>
    [...known.values()]
      .filter((one) => one.has_own_weights && (!causal() || one.roles.includes("decoder")))
      .map((one) => one.kind);
  const kind = () => (shownKinds().includes(state.kernel) ? state.kernel : shownKinds()[0]);
  const titleOf = (one) => (known.has(one) ? known.get(one).title[context.language] : one);
  const sizeOf = (one) => known.get(one)?.size ?? null;
  const causal = () => state.causal === "yes";
  const size = (one) => {
    const given = Number(state.size);
    return one === kind() && sizeOf(one) && given >= 1 && given <= 64
      ? Math.round(given)
      : undefined;
  };
  const bodyOf = (one) => ({
    kind: one,
    length: LENGTH,
    causal: causal(),
    ...(size(one) === undefined ? {} : { size: size(one) }),
  });
  let ended = false;
  /** @type {any[]} */
  let shown = [];

  const grid = makeFigure(context, {
    name: "patterns",
    title: text("patterns.all"),
    caption: text("patterns.all_help", { length: LENGTH }),
  });
  const large = makeFigure(context, { name: "pattern", title: text("patterns.one"), caption: "" });
  const cost = makeFigure(context, {
    name: "attention-cost",
    title: text("patterns.cost"),
    caption: "",
  });
  const asking = makeAsking(root);
  const cells = make("div", {
    class: "patterns",
    role: "group",
    "aria-label": text("patterns.all"),
  });
  grid.body.append(cells);
  const slider = make("div", { class: "sliders" });
  large.body.append(slider, asking.problem);
  const matrix = new HeatMap(large.body, {
    label: text("patterns.one"),
    fits: true,
    format: (value) => number(value, 2),
    onCell: (i, j, value) =>
      large.read(text("patterns.cell", { query: i, key: j, value: number(value, 4) })),
  });
  const measures = make("div", { class: "row" });
  cost.body.append(measures);
  const chart = new LineChart(cost.body, {
    context,
    onRead: cost.read,
    label: text("patterns.cost"),
  });
  const notes = make("p", { class: "quiet" });
  cost.body.append(notes);
  root.append(
    make("h1", {}, text("patterns.title")),
    make("p", { class: "lead" }, text("patterns.lead")),
    make(
      "div",
      { class: "row controls" },
      makeCheck({
        label: text("patterns.causal"),
        checked: causal(),
        onChange: (checked) => {
          update({ causal: checked ? "yes" : "" });
          drawAll();
        },
      }),
    ),
    make("div", { class: "columns two" }, grid.root, large.root),
    cost.root,
  );

  /** All small pictures, then the large one. */
  async function drawAll() {
    root.setAttribute("aria-busy", "true");
    try {
      if (known.size === 0)
        known = new Map((await ask("v1/kinds")).attention.map((one) => [one.kind, one]));
      if (state.kernel && state.kernel !== kind()) update({ kernel: kind(), size: "" });
      const kinds = shownKinds();
      const replies = await Promise.all(
        kinds.map((one) => ask("v1/patterns", { kind: one, length: LENGTH, causal: causal() })),
      );
      if (ended) return;
      shown = replies;
      drawGrid(replies);
      drawLarge();
    } catch (fault) {
      if (ended) return;
      cells.replaceChildren();
      asking.complain(fault.message, fault.code);
      root.removeAttribute("aria-busy");
    }
  }

  /** @param {any[]} replies */
  function drawGrid(replies) {
    cells.replaceChildren(
      ...replies.map((reply) => {
        const canvas = make("canvas", { "aria-hidden": "true" });
        const values = Float64Array.from(reply.weights.flat());
        drawPixels(canvas, values, reply.length, reply.length, {
          largest: largestOf(values),
          ...coloursOf(values),
        });
        const note =
          reply.num_pairs < countable(reply)
            ? text("patterns.pairs", { share: percent(reply.share, 0) })
            : text("patterns.rank", { rank: reply.rank });
        const button = make(
          "button",
          {
            type: "button",
            "aria-pressed": String(reply.kind === kind()),
            onclick: () => {
              update({ kernel: reply.kind, size: "" });
              press();
              drawLarge();
            },
          },
          canvas,
          make("strong", {}, titleOf(reply.kind)),
          make("small", {}, note),
        );
        button.dataset.kind = reply.kind;
        return button;
      }),
    );
    const sheet = () => ({
      columns: [
        text("patterns.kernel"),
        text("patterns.num_pairs"),
        text("patterns.share"),
        text("patterns.rank_name"),
      ],
      rows: replies.map((reply) => [titleOf(reply.kind), reply.num_pairs, reply.share, reply.rank]),
    });
    grid.offer({
      table: sheet,
      svg: () => gridSvg(replies),
      data: () => replies,
      request: ["v1/patterns", { kind: kind(), length: LENGTH, causal: causal() }],
    });
  }

  /** The small pictures with their names, four in a row. @param {any[]} replies */
  function gridSvg(replies) {
    const [side, step, height] = [128, 150, 176];
    const [width, tall] = [step * 4 + 14, height * Math.ceil(replies.length / 4) + 14];
    const svg = makeSvg("svg", {
      xmlns: "http://www.w3.org/2000/svg",
      width,
      height: tall,
      viewBox: `0 0 ${width} ${tall}`,
      "font-family": "sans-serif",
      "font-size": 13,
    });
    svg.append(makeSvg("rect", { width, height: tall, fill: pageColour("--surface") }));
    replies.forEach((reply, place) => {
      const [x, y] = [14 + step * (place % 4), 14 + height * Math.floor(place / 4)];
      svg.append(
        makeSvg("image", {
          x,
          y,
          width: side,
          height: side,
          href: enlarged(cells.children[place].querySelector("canvas")),
        }),
        makeSvg("text", { x, y: y + side + 18, fill: pageColour("--ink") }, titleOf(reply.kind)),
      );
    });
    return svg;
  }

  /** Sharp pixels wherever the picture is opened. @param {HTMLCanvasElement} canvas */
  function enlarged(canvas) {
    const copy = make("canvas", { width: 4 * canvas.width, height: 4 * canvas.height });
    const pen = copy.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.drawImage(canvas, 0, 0, copy.width, copy.height);
    return copy.toDataURL();
  }

  const press = () => {
    for (const button of cells.children)
      button.setAttribute("aria-pressed", String(button.dataset.kind === kind()));
  };
  /** Pairs there are to be seen at all. @param {any} reply */
  const countable = (reply) =>
    reply.is_causal ? (reply.length * (reply.length + 1)) / 2 : reply.length ** 2;

  function drawLarge() {
    const one = kind();
    const keep = slider.dataset.kind === one;
    if (!keep) {
      slider.dataset.kind = one;
      slider.replaceChildren(
        sizeOf(one)
          ? makeSlider({
              label: sizeOf(one).label[context.language],
              min: 1,
              max: 64,
              step: 1,
              value: size(one) ?? sizeOf(one).value,
              format: (value) => number(value),
              onInput: (value) => {
                state.size = value;
                drawLarge();
              },
              onChange: () => update({}),
            })
          : "",
      );
    }
    const body = bodyOf(one);
    asking.ask(["v1/patterns", body], (reply) => {
      large.explain(known.get(one).summary[context.language]);
      const values = Float64Array.from(reply.weights.flat());
      const items = reply.weights.map((_, place) => ({ text: String(place) }));
      const { kind: ramp, scale } = coloursOf(values);
      matrix.kind = ramp;
      matrix.show({ rows: items, columns: items, values }, { scale });
      large.read(
        text("patterns.facts", {
          kernel: titleOf(one),
          pairs: number(reply.num_pairs),
          share: percent(reply.share),
          rank: reply.rank,
        }),
      );
      large.offer({
        table: () => ({
          columns: [text("patterns.corner"), ...items.map((item) => item.text)],
          rows: reply.weights.map((row, place) => [String(place), ...row]),
        }),
        svg: () => heatMapSvg(matrix),
        data: () => reply,
        request: ["v1/patterns", body],
      });
    });
  }

  /**
   * By orders of magnitude, so that small weights are seen too; mixtures may be negative and have
   * colours for both signs.
   * @param {Float64Array} values
   * @returns {{kind: "sequence" | "diverging", scale: "linear" | "log"}}
   */
  const coloursOf = (values) =>
    values.some((value) => value < 0)
      ? { kind: "diverging", scale: "linear" }
      : { kind: "sequence", scale: "log" };

  /**
   * A condition of the measurement.
   * @param {string} key
   * @param {string} value
   * @param {boolean} isShipped
   */
  function describeFact(key, value, isShipped) {
    const said =
      { True: text("patterns.true"), False: text("patterns.false") }[value] ??
      (key === "kernels" && isShipped ? text("patterns.h200_kernels") : value);
    return `${FACTS.includes(key) ? text(`patterns.fact_${key}`) : key} ${said}`;
  }
  /** @param {string} reason */
  function describeSkipped(reason) {
    const found = /^would need about ([\d.,]+) GiB of memory, ([\d.,]+) are free$/.exec(reason);
    return found ? text("patterns.needs_memory", { need: found[1], free: found[2] }) : reason;
  }

  /** @param {any[]} costs */
  function drawCost(costs) {
    const source = costs.find((one) => one.name === state.machine) ?? costs[0];
    const measure = MEASURES[state.measure] ? state.measure : "both";
    const [field, factor] = MEASURES[measure];
    measures.replaceChildren(
      makeChoice({
        label: text("patterns.measure"),
        value: measure,
        options: Object.keys(MEASURES).map((key) => [key, text(`patterns.measure_${key}`)]),
        onChange: (value) => {
          update({ measure: value });
          drawCost(costs);
        },
      }),
      costs.length > 1
        ? makeSelect({
            label: text("patterns.machine"),
            value: source.name,
            options: costs.map((one) => [one.name, one.shipped ? text("patterns.h200") : one.name]),
            onChange: (value) => {
              update({ machine: value });
              drawCost(costs);
            },
          })
        : "",
    );
    const kernels = [...new Set(source.points.map((point) => point.kernel))];
    chart.show({
      series: kernels.map((kernel) => ({
        name: titleOf(kernel),
        points: source.points
          .filter((point) => point.kernel === kernel && point[field] !== null)
          .map((point) => [point.length, point[field] * factor]),
      })),
      x: { name: text("patterns.tokens"), log: true, base: 2, format: (value) => number(value) },
      y: { name: text(`patterns.axis_${measure}`), log: true },
      marks: true,
      height: 380,
    });
    const { gpu, processor, date } = source.machine;
    const facts = Object.entries(source.conditions)
      .map(([key, value]) => describeFact(key, value, source.shipped))
      .join(text("patterns.separator"));
    const remarks = [
      ...new Set(
        source.points
          .filter((point) => point.remark)
          .map((point) =>
            text("patterns.remark", {
              kernel: titleOf(point.kernel),
              remark: source.shipped ? text("patterns.h200_remark") : point.remark,
            }),
          ),
      ),
    ];
    const left = source.points
      .filter((point) => point.skipped)
      .map((point) =>
        text("patterns.left_one", {
          kernel: titleOf(point.kernel),
          length: number(point.length),
          reason: describeSkipped(point.skipped),
        }),
      );
    cost.explain(text("patterns.cost_help"));
    const told = [
      text("patterns.measured", {
        machine: gpu ?? processor ?? source.name,
        date: date ?? "?",
        facts,
      }),
      ...remarks,
      left.length ? text("patterns.left_out", { list: left.join(text("patterns.separator")) }) : "",
    ];
    notes.replaceChildren(...codeParts(told.join(" ")));
    cost.read("");
    cost.offer({
      table: () => chart.sheet(),
      svg: () => chart.toSvg(),
      data: () => source,
      request: ["v1/costs"],
    });
  }

  const recolour = () => drawGrid(shown);
  document.addEventListener("themechange", recolour);
  drawAll();
  Promise.all([ask("v1/costs"), ask("v1/kinds")])
    .then(([{ costs }, { attention }]) => {
      known = new Map(attention.map((one) => [one.kind, one]));
      if (!ended) drawCost(costs);
    })
    .catch((fault) => {
      cost.explain(fault.message);
    });
  return () => {
    ended = true;
    document.removeEventListener("themechange", recolour);
    asking.end();
    matrix.end();
    chart.end();
  };
}
