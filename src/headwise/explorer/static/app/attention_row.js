/*
 * One row of the loaded model's attention with all its numbers, from the query to the output. The
 * numbers come from /v1/row.
 */

import { makeAsking } from "./latest_request.js";
import { make, makeChoice, makeSelect, pieceParts, rove } from "./dom.js";
import { makeFigure } from "./figure_frame.js";
import { HeatMap } from "./heat_map.js";
import { heatMapSvg } from "./heat_map_svg.js";
import {
  chosenModel,
  EXAMPLES,
  faultOf,
  languageName,
  openable,
  readsOnly,
  tellSeveral,
} from "./sentence_form.js";
import { makeNumberTable, numberTableSvg } from "./number_table.js";

const KINDS = ["cross", "encoder_self", "decoder_self"];
const MOST_DIMENSIONS = 64;

/** @param {HTMLElement} root @param {any} context */
export function mountAttentionRow(root, context) {
  const { state, text, number, update } = context;
  const model = chosenModel(context, openable);
  const isReader = readsOnly(model);
  const kind = () =>
    isReader ? "decoder_self" : KINDS.includes(state.kind) ? state.kind : "cross";
  const nameOf = (one) => text(isReader ? "trace.text_self" : `trace.${one}`);
  const languageOf = (side) => (isReader ? model.source : model[side]);
  const whole = (value, otherwise) => (/^\d{1,3}$/.test(value ?? "") ? Number(value) : otherwise);
  let row = null;
  let request = null;

  const field = make("input", {
    type: "text",
    lang: model.source,
    dir: "auto",
    spellcheck: "false",
  });
  field.value = state.text || (model.examples?.[0] ?? EXAMPLES[model.source]?.[0] ?? "");
  const form = make(
    "form",
    { class: "sentence-form" },
    make(
      "label",
      { class: "field wide" },
      make(
        "span",
        {},
        isReader
          ? text("sentence.text")
          : text("sentence.source", { language: languageName(context, model.source) }),
      ),
      field,
    ),
    make("button", { class: "main" }, text("numbers.open")),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    update({ text: field.value.trim(), query: "" });
    ask();
  });
  const controls = make("div", { class: "row controls" });
  const words = make("div", {
    class: "words key",
    role: "group",
    "aria-label": text("numbers.choose_query"),
  });
  const several = make("div", { class: "several" });
  const panel = make(
    "div",
    { class: "panel" },
    form,
    several,
    controls,
    make("div", {}, make("p", { class: "quiet" }, text("numbers.choose_query")), words),
  );
  const asking = makeAsking(root);
  const steps = makeFigure(context, {
    name: "opened-row",
    title: text("numbers.row"),
    caption: "",
  });
  const product = makeFigure(context, {
    name: "product",
    title: text("numbers.product"),
    caption: text("numbers.product_help"),
  });
  const mix = makeFigure(context, {
    name: "weighted-sum",
    title: text("numbers.mix"),
    caption: text("numbers.mix_help"),
  });
  root.append(panel, asking.problem, steps.root, product.root, mix.root);
  const factors = new HeatMap(product.body, {
    label: text("numbers.product"),
    kind: "diverging",
    format: (value) => number(value, 2),
    onCell: (i, j, value) =>
      product.read(
        text("numbers.product_cell", {
          what: ["q", "k", "q · k"][i],
          dim: j + 1,
          value: number(value, 4),
        }),
      ),
  });
  const parts = new HeatMap(mix.body, {
    label: text("numbers.mix"),
    kind: "diverging",
    format: (value) => number(value, 2),
    onCell: (i, j, value) =>
      mix.read(
        text("numbers.mix_cell", {
          what: row.key_pieces[i] ?? text("numbers.output"),
          dim: j + 1,
          value: number(value, 4),
        }),
      ),
  });

  function ask() {
    const body = {
      model: model.name,
      text: field.value.trim(),
      kind: kind(),
      head: whole(state.head, 0),
      query: whole(state.query, 0),
      ...(state.layer ? { layer: whole(state.layer, 0) } : {}),
    };
    const fault = faultOf(context, body.text);
    if (fault) {
      asking.complain(fault);
      return;
    }
    asking.ask(["v1/row", body], (reply) => {
      row = reply;
      request = ["v1/row", body];
      if (!isReader)
        tellSeveral(several, context, {
          sentences: row.sentences,
          language: model.source,
          onChoice: (one) => {
            field.value = one;
            form.requestSubmit();
          },
        });
      draw();
    });
  }

  function draw() {
    drawControls();
    drawSteps();
    drawProduct();
    drawMix();
  }

  function drawControls() {
    const numbers = (count) => Array.from({ length: count }, (_, place) => place);
    controls.replaceChildren(
      openable(context.models).length > 1
        ? makeSelect({
            label: text("sentence.model"),
            value: model.name,
            options: openable(context.models).map((one) => [one.name, one.name]),
            onChange: (name) => context.open("numbers", { show: "row", model: name, text: "" }),
          })
        : "",
      makeChoice({
        label: text("trace.kind"),
        value: kind(),
        options: (isReader ? ["decoder_self"] : KINDS).map((one) => [one, nameOf(one)]),
        onChange: (value) => {
          update({ kind: value, layer: "", head: "", query: "" });
          ask();
        },
      }),
      makeSelect({
        label: text("trace.layer"),
        value: String(row.layer),
        options: numbers(row.num_layers).map((one) => [
          String(one),
          text("trace.layer_number", { layer: one + 1 }),
        ]),
        onChange: (layer) => {
          update({ layer });
          ask();
        },
      }),
      makeSelect({
        label: text("trace.head"),
        value: String(row.head),
        options: numbers(row.num_heads).map((one) => [
          String(one),
          text("trace.head_number", { head: one + 1 }),
        ]),
        onChange: (head) => {
          update({ head });
          ask();
        },
      }),
    );
    const language = languageOf(kind() === "encoder_self" ? "source" : "target");
    const focused = words.contains(document.activeElement);
    words.replaceChildren(
      ...row.query_pieces.map((piece, place) =>
        make(
          "button",
          {
            type: "button",
            class: place === row.query ? "chosen" : null,
            "aria-pressed": String(place === row.query),
            onclick: () => {
              update({ query: place });
              ask();
            },
          },
          make("span", { lang: language, dir: "auto" }, ...pieceParts(piece)),
        ),
      ),
    );
    rove(words);
    if (focused) words.children[row.query].focus();
  }

  /** The key whose product is written out: the one with the largest weight, or the one chosen. */
  const chosenKey = () => {
    const given = whole(state.key, -1);
    return given >= 0 && given < row.key_pieces.length
      ? given
      : row.weights.indexOf(Math.max(...row.weights));
  };

  function drawSteps() {
    const four = (value) => number(value, 4);
    const root_ = number(Math.sqrt(row.head_dim), 2);
    const columns = [
      { name: text("numbers.key") },
      { name: "q · k", number: four },
      { name: `÷ √${row.head_dim} = ${root_}`, number: four },
      ...(row.bias ? [{ name: text("numbers.bias"), number: four }] : []),
      { name: text("numbers.mask") },
      ...(row.is_softmax ? [{ name: "exp(s − max)", number: four }] : []),
      { name: text("numbers.weight"), number: four, bar: true },
    ];
    const rows = row.key_pieces.map((piece, place) => [
      piece,
      row.products[place],
      row.products[place] / Math.sqrt(row.head_dim),
      ...(row.bias ? [row.bias[place]] : []),
      row.visible[place] ? "" : text("numbers.hidden"),
      ...(row.is_softmax ? [row.visible[place] ? row.exponentials[place] : null] : []),
      row.weights[place],
    ]);
    const sum = (list) => list.reduce((total, one) => total + one, 0);
    const foot = [
      text("numbers.sum"),
      null,
      null,
      ...(row.bias ? [null] : []),
      null,
      ...(row.is_softmax ? [sum(row.exponentials)] : []),
      sum(row.weights),
    ];
    steps.explain(
      text(row.is_softmax ? "numbers.row_help" : "numbers.row_other", {
        query: row.query_pieces[row.query],
      }),
    );
    steps.body.replaceChildren(
      makeNumberTable({
        columns,
        rows,
        foot,
        label: text("numbers.row"),
        chosen: chosenKey(),
        language: languageOf(kind() === "decoder_self" ? "target" : "source"),
        onRow: (key) => {
          update({ key });
          drawSteps();
          drawProduct();
        },
      }),
    );
    const best = row.weights.indexOf(Math.max(...row.weights));
    steps.read(
      text("numbers.row_read", {
        query: row.query_pieces[row.query],
        key: row.key_pieces[best],
        weight: four(row.weights[best]),
      }),
    );
    steps.offer({
      table: () => ({
        columns: columns.map((column) => column.name),
        rows: [...rows, foot].map((cells) => cells.map((cell) => cell ?? "")),
      }),
      svg: () => numberTableSvg({ columns, rows, foot }),
      data: () => row,
      request,
    });
  }

  function drawProduct() {
    const key = chosenKey();
    const shown = Math.min(row.keys[key].length, MOST_DIMENSIONS);
    const dims = Array.from({ length: shown }, (_, place) => place);
    const lines = [
      dims.map((d) => row.q[d]),
      dims.map((d) => row.keys[key][d]),
      dims.map((d) => row.q[d] * row.keys[key][d]),
    ];
    const items = ["q", "k", "q · k"];
    factors.show({
      rows: items.map((item) => ({ text: item })),
      columns: dims.map((d) => ({ text: String(d + 1) })),
      values: Float64Array.from(lines.flat()),
    });
    const rest =
      shown < row.head_dim ? text("numbers.first_dims", { shown, all: row.head_dim }) : "";
    product.explain(`${text("numbers.product_help")} ${rest}`);
    product.read(
      text("numbers.product_read", {
        query: row.query_pieces[row.query],
        key: row.key_pieces[key],
        value: number(row.products[key], 4),
      }),
    );
    product.offer({
      table: () => ({
        columns: ["", ...dims.map((d) => String(d + 1))],
        rows: items.map((item, i) => [item, ...lines[i]]),
      }),
      svg: () => heatMapSvg(factors),
      data: () => ({ q: row.q, k: row.keys[key], products: lines[2] }),
      request,
    });
  }

  function drawMix() {
    const shown = Math.min(row.values[0].length, MOST_DIMENSIONS);
    const dims = Array.from({ length: shown }, (_, place) => place);
    const lines = [
      ...row.values.map((value, key) => dims.map((d) => row.weights[key] * value[d])),
      dims.map((d) => row.output[d]),
    ];
    const names = [
      ...row.key_pieces.map((piece, key) => `${number(row.weights[key], 2)} × ${piece}`),
      text("numbers.output"),
    ];
    parts.show({
      rows: names.map((item) => ({ text: item })),
      columns: dims.map((d) => ({ text: String(d + 1) })),
      values: Float64Array.from(lines.flat()),
    });
    mix.read(
      text("numbers.mix_read", {
        list: row.output
          .slice(0, 3)
          .map((value) => number(value, 4))
          .join(", "),
      }),
    );
    mix.offer({
      table: () => ({
        columns: ["", ...dims.map((d) => String(d + 1))],
        rows: names.map((item, i) => [item, ...lines[i]]),
      }),
      svg: () => heatMapSvg(parts),
      data: () => ({ weights: row.weights, values: row.values, output: row.output }),
      request,
    });
  }

  ask();
  return () => {
    asking.end();
    factors.end();
    parts.end();
  };
}
