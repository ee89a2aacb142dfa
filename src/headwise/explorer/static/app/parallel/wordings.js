/*
 * "Why is it worse?": sentences that have two right translations, both of which were in the
 * training text. Each model translates them; every word is marked with the wording that it comes
 * from, and a bar counts how often each model wrote one wording, the other, or a mixture.
 */

import { ask } from "../api.js";
import { codeParts, make } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { showProblem } from "../latest_request.js";
import { numberTableSvg } from "../number_table.js";

const COUNT = 24;
/** Words before which no space is written. */
const JOINED = /^[.,!?;:。，！？]$|[\u4e00-\u9fff]/u;
const VERDICTS = ["first", "second", "mixture", "other"];
const COMMANDS = [
  "headwise train pocket --run runs/word-by-word data.train.second_wording=0.4",
  "headwise train pocket --run runs/at-once data.train.second_wording=0.4 \\",
  "    model.kind=parallel decoding.kind=one_pass",
  "headwise distil runs/word-by-word --output distilled",
  "headwise train pocket --run runs/student data.train=distilled/train \\",
  "    model.kind=parallel decoding.kind=one_pass",
  "headwise explore runs/word-by-word runs/at-once runs/student",
].join("\n");

/** @param {any} context @param {any} model the model of the view */
export function makeWordings(context, model) {
  const { state, text, update } = context;
  const fitting = context.models.filter(
    (one) => one.pocket_wordings && one.source === model.source && one.target === model.target,
  );
  const root = make("section", { class: "view-part", "aria-label": text("parallel.wordings") });
  if (!fitting.some((one) => one.pocket_wordings === "both")) {
    root.append(
      make(
        "div",
        { class: "panel" },
        make("h2", {}, text("parallel.wordings")),
        make("p", {}, ...codeParts(text("parallel.wordings_none"))),
        make(
          "details",
          {},
          make("summary", {}, text("parallel.wordings_commands")),
          make("pre", { tabindex: "0" }, make("code", {}, COMMANDS)),
        ),
      ),
    );
    return { root, end: () => {} };
  }

  const last = new AbortController();
  const problem = make("p", { class: "problem instead", role: "alert", hidden: true });
  const figure = makeFigure(context, {
    name: "wordings",
    title: text("parallel.wordings"),
    caption: text("parallel.wordings_help", { count: COUNT }),
  });
  figure.root.hidden = true;
  root.append(problem, figure.root);
  /** @type {any[]} */
  let replies = [];
  load();

  async function load() {
    try {
      // One model after the other: a server has only so many places in its queue.
      for (const one of fitting)
        replies.push(
          await ask("v1/wordings", { model: one.name, count: COUNT }, { signal: last.signal }),
        );
    } catch (fault) {
      if (!last.signal.aborted) showProblem(problem, fault);
      return;
    }
    figure.root.hidden = false;
    draw(at(state.example) ?? firstMixed());
  }

  const at = (/** @type {any} */ given) =>
    Number(given) >= 1 && Number(given) <= COUNT ? Number(given) - 1 : undefined;

  /** A sentence that some model mixes shows the problem at once. */
  function firstMixed() {
    const mixed = (/** @type {number} */ place) =>
      replies.filter((one) => one.sentences[place].verdict === "mixture").length;
    const places = replies[0].sentences.map((_, place) => place);
    return Math.max(0, places.findIndex((place) => mixed(place) > 0));
  }

  /** @param {number} place */
  function draw(place) {
    const { source, right } = replies[0].sentences[place];
    const step = (by) =>
      make(
        "button",
        {
          type: "button",
          "data-step": by,
          disabled: place + by < 0 || place + by >= COUNT,
          onclick: () => {
            update({ example: place + by + 1 });
            draw(place + by);
            const again = figure.body.querySelector(`[data-step="${by}"]`);
            (again.disabled ? figure.body.querySelector("[data-step]:enabled") : again)?.focus();
          },
        },
        text(by < 0 ? "parallel.earlier" : "parallel.later"),
      );
    figure.body.replaceChildren(
      make(
        "div",
        { class: "row" },
        step(-1),
        step(1),
        make(
          "span",
          { class: "quiet" },
          text("parallel.example", { place: place + 1, all: COUNT }),
        ),
      ),
      make("p", { class: "wording-source", lang: model.source }, source),
      make(
        "ol",
        { class: "right-texts", lang: model.target },
        ...right.map((one, number) =>
          make("li", {}, make("span", { class: `origin ${number ? "second" : "first"}` }, one)),
        ),
      ),
      make(
        "dl",
        { class: "wordings" },
        ...replies.flatMap((reply) => [
          make("dt", {}, ...nameOf(reply)),
          make(
            "dd",
            {},
            drawWords(reply.sentences[place]),
            tally(reply),
          ),
        ]),
      ),
      legend(),
    );
    figure.read(
      replies
        .map(({ model: name, sentences }) =>
          text("parallel.verdict_of", {
            model: name,
            verdict: text(`parallel.verdict_${sentences[place].verdict}`),
          }),
        )
        .join(" "),
    );
    const columns = [
      { name: text("sentence.model") },
      { name: text("parallel.trained_on") },
      ...VERDICTS.map((one) => ({ name: text(`parallel.verdict_${one}`) })),
      { name: text("tree.translation") },
    ];
    const rows = replies.map((reply) => [
      reply.model,
      text(`parallel.trained_${trainedOn(reply)}`),
      ...VERDICTS.map((one) => countOf(reply, one)),
      reply.sentences[place].text,
    ]);
    figure.offer({
      table: () => ({ columns: columns.map((column) => column.name), rows }),
      svg: () => numberTableSvg({ columns, rows }),
      data: () => replies,
      request: ["v1/wordings", { model: replies[replies.length - 1].model, count: COUNT }],
    });
  }

  const modelOf = (reply) => fitting.find((one) => one.name === reply.model);
  const trainedOn = (reply) => modelOf(reply).pocket_wordings;
  const countOf = (reply, verdict) =>
    reply.sentences.filter((one) => one.verdict === verdict).length;

  /** @param {any} reply */
  function nameOf(reply) {
    const form = modelOf(reply).output_form === "steps" ? "by_step" : "at_once";
    return [
      make("strong", {}, reply.model),
      make(
        "span",
        { class: "quiet" },
        `${text(`parallel.form_${form}`)} · ${text(`parallel.trained_${trainedOn(reply)}`)}`,
      ),
    ];
  }

  /** @param {any} judged */
  function drawWords({ words, verdict }) {
    return make(
      "p",
      { class: "marked", lang: model.target },
      ...words.flatMap(({ text: word, origin }, place) => [
        place && !JOINED.test(word) ? " " : null,
        make("span", { class: `origin ${origin}`, title: text(`parallel.origin_${origin}`) }, word),
      ]),
      words.length ? " " : "— ",
      make("span", { class: `verdict ${verdict}` }, text(`parallel.verdict_${verdict}`)),
    );
  }

  /** How often the model wrote which wording. @param {any} reply */
  function tally(reply) {
    const parts = VERDICTS.map((verdict) => ({ verdict, count: countOf(reply, verdict) })).filter(
      ({ count }) => count,
    );
    const words = parts
      .map(({ verdict, count }) => `${text(`parallel.verdict_${verdict}`)} ${count}`)
      .join(", ");
    return make(
      "div",
      { class: "tally", role: "img", "aria-label": words },
      ...parts.map(({ verdict, count }) => {
        const title = `${text(`parallel.verdict_${verdict}`)} ${count}`;
        const part = make("span", { class: verdict, title }, String(count));
        part.style.flexGrow = String(count);
        return part;
      }),
    );
  }

  function legend() {
    return make(
      "p",
      { class: "legends" },
      ...["first", "second", "both", "neither"].map((origin) =>
        make("span", { class: `origin ${origin}` }, text(`parallel.origin_${origin}`)),
      ),
    );
  }

  return { root, end: () => last.abort() };
}
