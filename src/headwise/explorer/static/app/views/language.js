/*
 * Language models: which of two sentences is more probable, token by token, and which word comes
 * next.
 */

import { makeAsking } from "../latest_request.js";
import { make, makeNumber, makeSelect, pieceParts } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { attending, faultOf } from "../sentence_form.js";
import { makeNumberTable, numberTableSvg } from "../number_table.js";

export const name = "language";

const speakers = (models) => models.filter((model) => model.kind === "language_model");
/** @param {any[]} models */
export const needs = (models) => speakers(models).length > 0;

const EXAMPLES = {
  en: { first: "the dog is old", second: "the dog old is", beginning: "the dog ____" },
  // prettier-ignore
  zh: {
    first: "判断这个词的词性",
    second: "判断这个词的磁性",
    beginning: "判断这个词的____",
  },
};
/** Sentences in the language of the model. @param {any} model */
const examplesOf = (model) => EXAMPLES[model.source] ?? EXAMPLES.en;

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text } = context;
  const all = speakers(context.models);
  const model = all.find((one) => one.name === state.model) ?? all[0];
  const compare = mountCompare(context, model);
  const predict = mountPredict(context, model);
  root.append(
    make("h1", {}, text("language.title")),
    make("p", { class: "lead" }, text("language.lead")),
  );
  if (all.length > 1) {
    root.append(
      make(
        "div",
        { class: "row controls" },
        makeSelect({
          label: text("language.model"),
          value: model.name,
          options: all.map((one) => [one.name, one.name]),
          onChange: (next) =>
            context.open(name, {
              model: next,
              first: state.first,
              second: state.second,
              beginning: state.beginning,
            }),
        }),
      ),
    );
  }
  root.append(compare.root, predict.root);
  return () => {
    compare.end();
    predict.end();
  };
}

/** @param {any} context @param {string} label @param {string} value */
function makeLine(context, label, value) {
  const field = make("input", { type: "text", dir: "auto", spellcheck: "false" });
  field.value = value;
  return { field, root: make("label", { class: "field wide" }, make("span", {}, label), field) };
}

/** @param {any} context @param {any} model */
function mountCompare(context, model) {
  const { state, text, number, update } = context;
  const first = makeLine(context, text("language.first"), state.first ?? examplesOf(model).first);
  const second = makeLine(
    context,
    text("language.second"),
    state.second ?? examplesOf(model).second,
  );
  const form = make(
    "form",
    { class: "panel" },
    make("div", { class: "row stretch" }, first.root, second.root),
    make(
      "div",
      { class: "row" },
      make("button", { class: "main" }, text("language.compare")),
      attending([model]).length
        ? make(
            "button",
            {
              type: "button",
              onclick: () =>
                context.open("heads", { model: model.name, text: first.field.value.trim() }),
            },
            text("language.heads"),
          )
        : null,
    ),
  );
  const figure = makeFigure(context, {
    name: "compared",
    title: text("language.compared"),
    caption: text("language.compared_help"),
  });
  const root = make("section", { class: "view-part", "aria-label": text("language.compared") });
  const asking = makeAsking(root);
  root.append(form, asking.problem, figure.root);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    update({ first: first.field.value.trim(), second: second.field.value.trim() });
    ask();
  });

  function ask() {
    const texts = [first.field.value.trim(), second.field.value.trim()].filter(Boolean);
    const fault = texts.length
      ? texts.map((one) => faultOf(context, one)).find(Boolean)
      : faultOf(context, "");
    if (fault) {
      asking.complain(fault);
      return;
    }
    const body = { model: model.name, texts };
    asking.ask(["v1/score", body], (reply) => draw(reply, ["v1/score", body]));
  }

  /** @param {any} best @param {any} other */
  function verdict(best, other) {
    const apart = (best.log_probability ?? 0) - (other.log_probability ?? -Infinity);
    return text("language.verdict", {
      text: best.text,
      times:
        Number.isFinite(apart) && apart < 40
          ? number(Math.exp(apart), Math.exp(apart) < 100 ? 1 : 0)
          : "∞",
    });
  }

  /** @param {any} reply @param {[string, any]} request */
  function draw(reply, request) {
    const write = (value) => (value === null ? "−∞" : number(value, 3));
    const worst = Math.max(
      8,
      ...reply.sentences.flatMap((one) => one.tokens.map((token) => -(token.log_probability ?? 0))),
    );
    figure.body.replaceChildren(
      ...reply.sentences.map((sentence, place) =>
        make(
          "div",
          { class: place === reply.best && reply.sentences.length > 1 ? "scored best" : "scored" },
          make(
            "p",
            { class: "scored-facts" },
            make(
              "strong",
              {},
              place === reply.best && reply.sentences.length > 1
                ? text("language.more_natural")
                : text("language.sentence", { number: place + 1 }),
            ),
            make(
              "span",
              {},
              text("language.total", {
                total: write(sentence.log_probability),
                perplexity: sentence.perplexity === null ? "∞" : number(sentence.perplexity, 2),
              }),
            ),
            sentence.unknown
              ? make("span", {}, text("language.unknown", { count: sentence.unknown }))
              : null,
          ),
          make(
            "ol",
            { class: "tokens" },
            ...sentence.tokens.map((token) => {
              const bar = make("span", { class: "token-bar", "aria-hidden": "true" });
              const { log_probability: chance } = token;
              const share = chance === null ? 1 : Math.min(1, -chance / worst);
              bar.style.height = `${(100 * share).toFixed(1)}%`;
              return make(
                "li",
                { class: token.known ? "token" : "token unknown" },
                make("span", { class: "token-track", "aria-hidden": "true" }, bar),
                make("span", { class: "token-text", dir: "auto" }, ...pieceParts(token.token)),
                make("small", {}, write(token.log_probability)),
              );
            }),
          ),
        ),
      ),
    );
    figure.read(
      reply.sentences.length < 2
        ? ""
        : reply.best === null
          ? text(`language.${reply.no_best_because}`)
          : verdict(reply.sentences[reply.best], reply.sentences[1 - reply.best]),
    );
    const columns = [
      { name: text("language.token") },
      { name: text("language.of_sentence") },
      { name: "log p", number: (value) => number(value, 4) },
      { name: "p", number: (value) => number(value, 5) },
    ];
    const rows = reply.sentences.flatMap((sentence, place) =>
      sentence.tokens.map((token) => [
        token.token,
        String(place + 1),
        token.log_probability,
        token.log_probability === null ? 0 : Math.exp(token.log_probability),
      ]),
    );
    figure.offer({
      table: () => ({
        columns: columns.map((column) => column.name),
        rows: rows.map((row) => row.map((cell) => cell ?? "")),
      }),
      svg: () => numberTableSvg({ columns, rows }),
      data: () => reply,
      request,
    });
  }

  ask();
  return { root, end: asking.end };
}

/** @param {any} context @param {any} model */
function mountPredict(context, model) {
  const { state, text, number, percent, update } = context;
  const beginning = makeLine(
    context,
    text("language.beginning"),
    state.beginning ?? examplesOf(model).beginning,
  );
  const bounded = (key, otherwise, high) => {
    const given = Number(state[key]);
    return given >= 1 && given <= high ? Math.round(given) : otherwise;
  };
  const form = make(
    "form",
    { class: "panel" },
    make(
      "div",
      { class: "row stretch" },
      beginning.root,
      makeNumber({
        label: text("language.count"),
        value: bounded("count", 10, 50),
        min: 1,
        max: 50,
        step: 1,
        onChange: (count) => {
          update({ count });
          ask();
        },
      }),
      makeNumber({
        label: text("language.length"),
        value: bounded("length", 1, 4),
        min: 1,
        max: 4,
        step: 1,
        onChange: (length) => {
          update({ length });
          ask();
        },
      }),
    ),
    make("button", { class: "main" }, text("language.predict")),
  );
  const figure = makeFigure(context, {
    name: "predicted",
    title: text("language.predicted"),
    caption: text("language.predicted_help"),
  });
  const root = make("section", { class: "view-part", "aria-label": text("language.predicted") });
  const asking = makeAsking(root);
  root.append(form, asking.problem, figure.root);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    update({ beginning: beginning.field.value.trim() });
    ask();
  });

  function ask() {
    const body = {
      model: model.name,
      text: beginning.field.value.trim(),
      count: bounded("count", 10, 50),
      length: bounded("length", 1, 4),
    };
    asking.ask(["v1/predict", body], (reply) => draw(reply, ["v1/predict", body]));
  }

  /**
   * Put a continuation in place of the gap and ask again; a piece that begins no word goes on with
   * the last one.
   * @param {any} prediction
   */
  function take({ text: words, tokens }) {
    const before = beginning.field.value.replace(/\s*(_{2,}|＿+|…+|\.{3,})\s*[.。]?\s*$/u, "");
    const space =
      /[\u2e80-\u9fff]$/u.test(before) || !before || !tokens[0].startsWith("▁") ? "" : " ";
    beginning.field.value = `${before}${space}${words} ____`;
    update({ beginning: beginning.field.value });
    ask();
  }

  /** @param {any} reply @param {[string, any]} request */
  function draw(reply, request) {
    const columns = [
      { name: text("language.next") },
      { name: "log p", number: (value) => number(value, 4) },
      { name: text("language.probability"), number: (value) => percent(value, 2), bar: true },
    ];
    // A piece that begins no word goes on with the last one, and says so.
    const goesOn = ({ tokens }) =>
      /^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{N}]/u.test(tokens[0]);
    const rows = reply.predictions.map((one) => [
      goesOn(one) ? `…${one.text}` : one.text,
      one.log_probability,
      one.probability,
    ]);
    const ends = (place) => reply.predictions[place].tokens.includes("</s>");
    figure.body.replaceChildren(
      makeNumberTable({
        columns,
        rows,
        label: text("language.predicted"),
        onRow: (place) => {
          if (!ends(place)) take(reply.predictions[place]);
        },
      }),
    );
    const total = rows.reduce((sum, row) => sum + row[2], 0);
    figure.read(text("language.covered", { count: rows.length, share: percent(total) }));
    figure.offer({
      table: () => ({ columns: columns.map((column) => column.name), rows }),
      svg: () => numberTableSvg({ columns, rows }),
      data: () => reply,
      request,
    });
  }

  ask();
  return { root, end: asking.end };
}
