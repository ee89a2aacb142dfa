/*
 * What models write after a right and after a wrong beginning, word by word: what was forced, how
 * probable each word was, and from where on both are the same again.
 */

import { make } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { numberTableSvg } from "../number_table.js";

/**
 * @typedef {{text: string, probability: number, look: "forced" | "free" | "same"}} Word
 * @param {any} continuation of a reply of /v1/exposure
 * @param {number} same tokens at the end that the other continuation has, too
 * @returns {Word[]}
 */
export function wordsOf({ side, tokens, forced }, same) {
  return side.words.map((words, number) => {
    const places = tokens
      .map((_, place) => place)
      .filter((place) => side.word_of_piece[place] === number);
    const sum = places.reduce((total, place) => total + tokens[place].log_probability, 0);
    const isSame = places.every((place) => place >= tokens.length - same);
    const look = places[0] < forced ? "forced" : isSame ? "same" : "free";
    return { text: words, probability: Math.exp(sum), look };
  });
}

/** @param {any} context @param {{language: string}} target */
export function makeContinuations(context, { language }) {
  const { text, percent } = context;
  const figure = makeFigure(context, {
    name: "after-a-wrong-word",
    title: text("exposure.figure"),
    caption: text("exposure.figure_help"),
  });
  const SIDES = ["right", "wrong"];

  /** @param {Word} word */
  function drawWord({ text: word, probability, look }) {
    const fill = make("span", { class: "stage-fill" });
    fill.style.width = `${(100 * probability).toFixed(2)}%`;
    return make(
      "li",
      { class: `path-word ${look}` },
      make("span", { class: "path-text", lang: language }, word),
      make("span", { class: "stage-track", "aria-hidden": "true" }, fill),
      make("small", {}, look === "forced" ? text("exposure.forced") : percent(probability)),
    );
  }

  /** @param {any} reply @param {string} side */
  function drawSide(reply, side) {
    const words = wordsOf(reply[side], reply.same);
    const free = words.filter((one) => one.look !== "forced");
    const mean = free.reduce((sum, one) => sum + one.probability, 0) / Math.max(1, free.length);
    return make(
      "div",
      { class: "path" },
      make(
        "p",
        { class: "quiet" },
        make("strong", {}, text(`exposure.${side}`)),
        free.length ? ` · ${text("exposure.mean", { share: percent(mean) })}` : "",
      ),
      make(
        "ol",
        { class: "path-words", "aria-label": text(`exposure.${side}`) },
        ...words.map(drawWord),
      ),
    );
  }

  /** @param {string} name @param {any} reply */
  function tell(name, reply) {
    const count = wordsOf(reply.wrong, reply.same).filter(
      (one) => one.look === "same" && one.text !== "</s>",
    ).length;
    return text(count ? "exposure.meets" : "exposure.parts", { model: name, count });
  }

  const legend = () =>
    make(
      "p",
      { class: "legends" },
      ...["forced", "free", "same"].map((look) =>
        make("span", { class: `legend path-${look}` }, text(`exposure.${look}`)),
      ),
    );

  return {
    root: figure.root,
    /** @param {any[]} answers @param {[string, any]} request */
    show(answers, request) {
      const known = answers.filter((one) => one.reply);
      figure.body.replaceChildren(
        ...answers.map(({ name, reply, problem }) =>
          make(
            "section",
            { class: "path-model", "aria-label": name },
            make("h3", {}, name),
            ...(reply
              ? SIDES.map((side) => drawSide(reply, side))
              : [make("p", { class: "problem", role: "status" }, problem)]),
          ),
        ),
        legend(),
      );
      figure.read(known.map(({ name, reply }) => tell(name, reply)).join(" "));
      const columns = [
        { name: text("sentence.model") },
        { name: text("exposure.beginning") },
        { name: text("exposure.word") },
        { name: text("exposure.probability"), number: (value) => percent(value), bar: true },
        { name: text("exposure.state") },
      ];
      const rows = known.flatMap(({ name, reply }) =>
        SIDES.flatMap((side) =>
          wordsOf(reply[side], reply.same).map((one) => [
            name,
            text(`exposure.${side}`),
            one.text,
            one.probability,
            text(`exposure.${one.look}`),
          ]),
        ),
      );
      figure.offer({
        table: () => ({ columns: columns.map((column) => column.name), rows }),
        svg: () => numberTableSvg({ columns, rows }),
        data: () => known,
        request,
      });
    },
  };
}
