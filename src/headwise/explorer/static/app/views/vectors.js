/* Word vectors: a map of words with their neighbours, and arithmetic with words. */

import { makeAsking } from "../latest_request.js";
import { make, makeChoice, makeNumber, makeSelect } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { makeNumberTable, numberTableSvg } from "../number_table.js";
import { WordMap } from "../word_map.js";

export const name = "vectors";

const spaces = (models) => models.filter((model) => model.kind === "word_vectors");
/** @param {any[]} models */
export const needs = (models) => spaces(models).length > 0;

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text, number, update } = context;
  const all = spaces(context.models);
  const model = all.find((one) => one.name === state.model) ?? all[0];
  const count = () => {
    const given = Number(state.count);
    return given >= 1 && given <= 30 ? Math.round(given) : 12;
  };
  const layout = () => (state.layout === "tsne" ? "tsne" : "pca");
  const field = make("input", { type: "text", maxlength: 1600, dir: "auto", spellcheck: "false" });
  field.value = state.words ?? "";
  const form = make(
    "form",
    { class: "panel" },
    make(
      "div",
      { class: "row stretch" },
      make("label", { class: "field wide" }, make("span", {}, text("vectors.words")), field),
      makeNumber({
        label: text("vectors.count"),
        value: count(),
        min: 1,
        max: 30,
        step: 1,
        onChange: (value) => {
          update({ count: value });
          ask();
        },
      }),
      makeChoice({
        label: text("vectors.layout"),
        value: layout(),
        options: [
          ["pca", "PCA"],
          ["tsne", "t-SNE"],
        ],
        onChange: (value) => {
          update({ layout: value });
          ask();
        },
      }),
      all.length > 1
        ? makeSelect({
            label: text("language.model"),
            value: model.name,
            options: all.map((one) => [one.name, one.name]),
            onChange: (next) => context.open(name, { model: next }),
          })
        : null,
    ),
    make("button", { class: "main" }, text("vectors.show")),
  );
  const map = makeFigure(context, {
    name: "word-map",
    title: text("vectors.map"),
    caption: text("vectors.map_help"),
  });
  const near = makeFigure(context, {
    name: "neighbours",
    title: text("vectors.near"),
    caption: text("vectors.near_help"),
  });
  const asking = makeAsking(root);
  root.append(
    make("h1", {}, text("vectors.title")),
    make("p", { class: "lead" }, text("vectors.lead")),
    form,
    asking.problem,
    map.root,
    near.root,
  );
  let reply = null;
  const points = new WordMap(map.body, {
    label: text("vectors.map"),
    onChoice: (point) => map.read(describe(point)),
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    update({ words: field.value.trim() });
    ask();
  });

  function ask() {
    const queries = [
      ...new Set(
        field.value
          .split(/[,，、;；\n]/)
          .map((one) => one.trim())
          .filter(Boolean),
      ),
    ].slice(0, 16);
    const body = {
      model: model.name,
      ...(queries.length ? { queries } : {}),
      count: count(),
      layout: layout(),
    };
    asking.ask(["v1/vectors", body], (next) => {
      reply = next;
      // Nothing was asked for: the server chose words that it knows.
      field.value ||= reply.queries.map((one) => one.query).join(", ");
      draw(["v1/vectors", body]);
    });
  }

  /** @param {any} point */
  function describe(point) {
    const found = reply.queries.flatMap((one) =>
      one.nearest
        .filter((other) => other.word === point.word)
        .map((other) =>
          text("vectors.cosine_with", { query: one.query, cosine: number(other.cosine, 3) }),
        ),
    );
    return `${point.word}${found.length ? `: ${found.join(" · ")}` : ""}`;
  }

  /** @param {[string, any]} request */
  function draw(request) {
    points.show(reply.words);
    map.read(
      text("vectors.facts", {
        shown: reply.words.length,
        words: number(reply.vocabulary),
        dim: reply.dim,
      }),
    );
    map.offer({
      table: () => ({
        columns: [text("vectors.word"), "x", "y", text("vectors.asked")],
        rows: reply.words.map((one) => [one.word, one.x, one.y, one.asked ? "✓" : ""]),
      }),
      svg: () => points.toSvg(),
      data: () => reply,
      request,
    });
    const columns = [
      { name: text("vectors.word") },
      { name: text("vectors.cosine"), number: (value) => number(value, 3), bar: true },
    ];
    near.body.replaceChildren(
      make(
        "div",
        { class: "neighbours" },
        ...reply.queries.map((one) =>
          make(
            "div",
            {},
            make("h3", { dir: "auto" }, one.query),
            one.too_little_text
              ? make(
                  "p",
                  { class: "doubt" },
                  text("vectors.too_little_text", { count: number(reply.text_words) }),
                )
              : null,
            makeNumberTable({
              columns,
              rows: one.nearest.map((other) => [other.word, other.cosine]),
              label: text("vectors.near_of", { query: one.query }),
              onRow: (place) => {
                field.value = `${field.value}, ${one.nearest[place].word}`;
                update({ words: field.value });
                ask();
              },
            }),
          ),
        ),
      ),
    );
    const flat = reply.queries.flatMap((one) =>
      one.nearest.map((other) => [one.query, other.word, other.cosine]),
    );
    const names = [{ name: text("vectors.asked") }, ...columns];
    near.offer({
      table: () => ({ columns: names.map((column) => column.name), rows: flat }),
      svg: () => numberTableSvg({ columns: names, rows: flat }),
      data: () => reply.queries,
      request,
    });
  }

  ask();
  return () => {
    asking.end();
    points.end();
  };
}
