/*
 * Shows attention step by step on a few numbers that can be checked by hand: the weight of a person
 * is estimated from the waists and weights of others. The query can be moved and the score chosen;
 * every number comes from /v1/attend.
 */

import { ask } from "./api.js";
import { makeAsking, makeSlider } from "./latest_request.js";
import { LineChart } from "./line_chart.js";
import { make, makeChoice, makeSelect, makeSvg, pageColour } from "./dom.js";
import { makeFigure } from "./figure_frame.js";
import { makeFormula } from "./formula.js";
import { markPath, styleOf } from "./line_styles.js";
import { makeNumberTable, numberTableSvg } from "./number_table.js";

const CURVE_POINTS = 161;
/** What the sliders reach, and what the notes ask. */
const EXAMPLES = {
  waist: { columns: ["waist"], outputs: ["weight"], ranges: [[46, 63]], queries: [[57]] },
  "two-column": {
    columns: ["waist", "chest"],
    outputs: ["weight", "height"],
    ranges: [
      [46, 63],
      [64, 94],
    ],
    queries: [
      [57, 83],
      [55, 77],
    ],
  },
};

/** @param {HTMLElement} root @param {any} context */
export function mountCalculation(root, context) {
  let end = () => {};
  let ended = false;
  ask("v1/kinds")
    .then((kinds) => {
      if (!ended) end = build(root, context, kinds);
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
 * The example, once the server has said which scores there are.
 * @param {HTMLElement} root
 * @param {any} context
 * @param {any} kinds
 */
function build(root, context, kinds) {
  const { state, text, number, update } = context;
  const scores = new Map(kinds.scores.map((one) => [one.kind, one]));
  const normalizers = kinds.weights.map((one) => one.kind);
  const titles = (all) => all.map((one) => [one.kind, one.title[context.language]]);
  const which = () => (state.example === "two-column" ? "two-column" : "waist");
  const facts = () => EXAMPLES[which()];
  const score = () => (scores.has(state.score) ? state.score : kinds.examples[which()]);
  const weights = () => (normalizers.includes(state.weights) ? state.weights : normalizers[0]);
  const within = (value, [low, high]) => Math.min(high, Math.max(low, value));
  const query = () => {
    const given = String(state.query ?? "")
      .split(",")
      .map(Number);
    return facts().ranges.map((range, place) =>
      String(state.query ?? "") !== "" && Number.isFinite(given[place])
        ? within(given[place], range)
        : facts().queries[0][place],
    );
  };
  const width = () => {
    const given = Number(state.width);
    return given >= 0.2 && given <= 8 ? given : 1;
  };

  const controls = make("div", { class: "panel" });
  const steps = makeFigure(context, {
    name: "attention-steps",
    title: text("numbers.steps"),
    caption: text("numbers.steps_help"),
  });
  const curve = makeFigure(context, {
    name: "attention-curve",
    title: text("numbers.curve"),
    caption: text("numbers.curve_help"),
  });
  const asking = makeAsking(root);
  const pair = make("div", { class: "columns two" }, steps.root, curve.root);
  root.append(controls, asking.problem, pair);
  const chart = new LineChart(curve.body, {
    context,
    onRead: curve.read,
    label: text("numbers.curve"),
  });

  function drawControls() {
    const names = facts().columns.map((one) => text(`numbers.${one}`));
    const presets =
      facts().queries.length > 1
        ? make(
            "div",
            { class: "chips", role: "group", "aria-label": text("numbers.presets") },
            make("span", { class: "quiet", "aria-hidden": "true" }, text("numbers.presets")),
            ...facts().queries.map((one) =>
              make(
                "button",
                {
                  type: "button",
                  onclick: () => {
                    update({ query: one.join(",") });
                    drawControls();
                    askAgain();
                  },
                },
                `(${one.join(", ")})`,
              ),
            ),
          )
        : null;
    controls.replaceChildren(
      make(
        "div",
        { class: "row" },
        makeChoice({
          label: text("numbers.example"),
          value: which(),
          options: [
            ["waist", text("numbers.example_waist")],
            ["two-column", text("numbers.example_two")],
          ],
          onChange: (example) => {
            update({ example, query: "", score: "" });
            drawControls();
            askAgain();
          },
        }),
        makeSelect({
          label: text("numbers.score"),
          value: score(),
          options: titles(kinds.scores),
          onChange: (value) => {
            update({ score: value });
            drawControls();
            askAgain();
          },
        }),
        makeSelect({
          label: text("numbers.weights"),
          value: weights(),
          options: titles(kinds.weights),
          onChange: (value) => {
            update({ weights: value === normalizers[0] ? "" : value });
            askAgain();
          },
        }),
      ),
      make(
        "div",
        { class: "sliders" },
        ...names.map((label, place) =>
          makeSlider({
            label: text("numbers.query_of", { name: label }),
            min: facts().ranges[place][0],
            max: facts().ranges[place][1],
            step: 0.1,
            value: query()[place],
            format: (value) => number(value, 1),
            onInput: (value) => {
              const next = query();
              next[place] = value;
              state.query = next.join(",");
              askAgain();
            },
            onChange: () => update({}),
          }),
        ),
        scores.get(score()).number === "width"
          ? makeSlider({
              label: text("numbers.width"),
              min: 0.2,
              max: 8,
              step: 0.1,
              value: width(),
              format: (value) => number(value, 1),
              onInput: (value) => {
                state.width = value === 1 ? "" : value;
                askAgain();
              },
              onChange: () => update({}),
            })
          : null,
      ),
      presets ?? "",
    );
  }

  function askAgain() {
    const body = {
      example: which(),
      queries: [query()],
      score: score(),
      weights: weights(),
      ...(scores.get(score()).number === "width" ? { width: width() } : {}),
      ...(which() === "waist" ? { curve: CURVE_POINTS } : {}),
    };
    asking.ask(["v1/attend", body], (reply) => draw(reply, ["v1/attend", body]));
  }

  /** @param {any} reply @param {[string, any]} request */
  function draw(reply, request) {
    const vector = (row) =>
      row.length === 1 ? number(row[0], 2) : `(${row.map((one) => number(one, 2)).join(", ")})`;
    const wanted = facts().outputs.map((one) => text(`numbers.out_${one}`));
    const columns = [
      { name: text("numbers.key") },
      { name: text("numbers.value") },
      { name: text("numbers.score"), number: (value) => number(value, 4) },
      { name: text("numbers.weight"), number: (value) => number(value, 4), bar: true },
      ...wanted.map((one) => ({
        name: text("numbers.part", { name: one }),
        number: (value) => number(value, 4),
      })),
    ];
    const rows = reply.keys.map((key, place) => [
      vector(key),
      vector(reply.values[place]),
      reply.scores[0][place],
      reply.weights[0][place],
      ...reply.values[place].map((value) => value * reply.weights[0][place]),
    ]);
    const foot = [
      text("numbers.sum"),
      null,
      null,
      reply.weights[0].reduce((sum, one) => sum + one, 0),
      ...reply.outputs[0],
    ];
    const answer = wanted
      .map((one, place) => `${one} ${number(reply.outputs[0][place], 4)}`)
      .join(" · ");
    steps.body.replaceChildren(
      makeFormula(`${text("numbers.score")} = ${reply.formula}`),
      makeNumberTable({ columns, rows, foot, label: text("numbers.steps") }),
      make(
        "p",
        { class: "answer" },
        text("numbers.answer", { query: vector(reply.queries[0]), answer }),
      ),
      ...writeParameters(reply),
    );
    steps.read("");
    context.announce(text("numbers.answer", { query: vector(reply.queries[0]), answer }));
    steps.offer({
      table: () => ({
        columns: columns.map((column) => column.name),
        rows: [...rows, foot].map((row) => row.map((cell) => cell ?? "")),
      }),
      svg: () => numberTableSvg({ columns, rows, foot }),
      data: () => reply,
      request,
    });
    pair.classList.toggle("two", Boolean(reply.curve));
    curve.root.hidden = !reply.curve;
    if (reply.curve) drawCurve(reply, request);
  }

  /** Learned scores have weights: what they are here. @param {any} reply */
  function writeParameters(reply) {
    const names = Object.keys(reply.parameters);
    if (!names.length) return [];
    const writeRow = (row) => row.map((value) => number(value, 3)).join(", ");
    const shown = names
      .map((one) => `${one} = [${reply.parameters[one].map(writeRow).join("; ")}]`)
      .join("   ");
    return [
      make(
        "p",
        { class: "quiet" },
        text(reply.seed === null ? "numbers.parameters_given" : "numbers.parameters_drawn", {
          seed: reply.seed,
        }),
      ),
      make("p", { class: "parameters" }, make("code", {}, shown)),
    ];
  }

  /** @param {any} reply @param {[string, any]} request */
  function drawCurve(reply, request) {
    const line = reply.curve.queries.map((one, place) => [one, reply.curve.outputs[place]]);
    const [keys, values] = [reply.keys.map((row) => row[0]), reply.values.map((row) => row[0])];
    chart.show({
      series: [{ name: text("numbers.any_query"), points: line }],
      x: { name: text("numbers.waist") },
      y: {
        name: text("numbers.out_weight"),
        low: Math.min(...values) - 1.5,
        high: Math.max(...values) + 1.5,
      },
      extra: (to) => [
        ...keys.map((key, place) => {
          const [x, y] = to(key, values[place]);
          return makeSvg("circle", {
            cx: x,
            cy: y,
            r: 4 + 12 * Math.sqrt(reply.weights[0][place]),
            fill: styleOf(0).colour,
            "fill-opacity": 0.35,
            stroke: styleOf(0).colour,
          });
        }),
        makeSvg("path", {
          d: markPath("diamond", ...to(reply.queries[0][0], reply.outputs[0][0]), 7),
          fill: styleOf(1).colour,
          stroke: pageColour("--surface"),
        }),
      ],
    });
    curve.read(
      text("numbers.curve_now", {
        query: number(reply.queries[0][0], 2),
        output: number(reply.outputs[0][0], 4),
      }),
    );
    curve.offer({
      table: () => chart.sheet(),
      svg: () => chart.toSvg(),
      data: () => reply.curve,
      request,
    });
  }

  drawControls();
  askAgain();
  return () => {
    asking.end();
    chart.end();
  };
}
