/*
 * The votes for one token of a translation: the model against the memory, and the stored examples
 * with their shares. In each stored sentence the word that the vote is for is marked.
 */

import { make } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { numberTableSvg } from "../number_table.js";
import { partsOf } from "./words.js";

/** @param {any} context @param {{language: string, source: string}} languages */
export function makeVotes(context, { language, source }) {
  const { text, number, percent } = context;
  const figure = makeFigure(context, {
    name: "memory-votes",
    title: text("memory.votes"),
    caption: text("memory.votes_help"),
  });

  /**
   * A bar with its name and number.
   * @param {string} label @param {number} value @param {any[]} parts
   */
  const bar = (label, value, parts) =>
    make(
      "div",
      { class: "memory-bar" },
      make("span", { class: "memory-label" }, label),
      make("span", { class: "memory-track", "aria-hidden": "true" }, ...parts),
      make("span", { class: "memory-number" }, percent(value)),
    );

  /** @param {any} one */
  function bars(one) {
    const { weight, probability, model_probability: own, memory_probability: remembered } = one;
    return make(
      "div",
      { class: "memory-bars" },
      bar(text("memory.model"), own, partsOf(own, 0)),
      bar(text("memory.neighbours"), remembered, partsOf(0, remembered)),
      bar(
        text("memory.mixture_of", { weight: number(weight, 2) }),
        probability,
        partsOf((1 - weight) * own, weight * remembered),
      ),
    );
  }

  /** @param {any} example */
  function drawExample(example) {
    const { before, word, after, share, agrees } = example;
    const fill = make("span", { class: `memory-part ${agrees ? "from-memory" : "from-other"}` });
    fill.style.width = `${(100 * share).toFixed(2)}%`;
    return make(
      "li",
      { class: agrees ? "agrees" : null },
      make(
        "div",
        { class: "memory-bar" },
        make(
          "span",
          { class: "memory-label" },
          text("memory.for", { piece: spell(example.piece) }),
        ),
        make("span", { class: "memory-track", "aria-hidden": "true" }, fill),
        make("span", { class: "memory-number" }, percent(share)),
      ),
      make("p", { class: "memory-source", lang: source, dir: "auto" }, example.source),
      make(
        "p",
        { class: "memory-target", lang: language, dir: "auto" },
        before,
        word ? make("mark", {}, word) : null,
        after,
        example.piece === "</s>" ? make("mark", {}, text("memory.end")) : null,
      ),
      make(
        "p",
        { class: "quiet" },
        text("memory.from", {
          corpus: example.corpus,
          line: number(example.line),
          distance: number(example.distance, example.distance < 10 ? 2 : 0),
        }),
      ),
    );
  }

  /** A piece as words have it. @param {string} piece */
  const spell = (piece) =>
    piece === "</s>" ? text("memory.end") : piece.replaceAll("▁", "") || piece;

  /** @param {any} one @param {number} place */
  function describe(one, place) {
    const values = {
      place: place + 1,
      piece: spell(one.piece),
      model: percent(one.model_probability),
      memory: percent(one.memory_probability),
      mixture: percent(one.probability),
      best: spell(one.model_best.piece),
      share: percent(Math.exp(one.model_best.log_probability)),
    };
    const isBest = one.model_best.token === one.token;
    const key = one.changed ? "vote_changed" : isBest ? "vote_same" : "vote_other";
    return `${text("memory.vote", values)} ${text(`memory.${key}`, values)}`;
  }

  return {
    root: figure.root,
    /** @param {any} reply @param {number} place @param {[string, any]} request */
    show(reply, place, request) {
      const one = reply.places[place];
      figure.body.replaceChildren(
        bars(one),
        make("ol", { class: "memory-examples" }, ...one.examples.map(drawExample)),
        one.left_out > 0
          ? make(
              "p",
              { class: "quiet" },
              text("memory.left_out", {
                count: number(one.left_out),
                share: percent(one.left_out_share),
              }),
            )
          : "",
      );
      figure.read(describe(one, place));
      const columns = [
        { name: text("memory.vote_for") },
        { name: text("memory.share"), number: (value) => percent(value), bar: true },
        { name: text("memory.distance"), number: (value) => number(value, 2) },
        { name: text("memory.corpus") },
        { name: text("memory.line") },
        { name: text("memory.source") },
        { name: text("memory.target") },
      ];
      const rows = one.examples.map((example) => [
        example.piece,
        example.share,
        example.distance,
        example.corpus,
        example.line,
        example.source,
        example.before + example.word + example.after,
      ]);
      figure.offer({
        table: () => ({ columns: columns.map((column) => column.name), rows }),
        svg: () => numberTableSvg({ columns, rows }),
        data: () => one,
        request,
      });
    },
  };
}
