/*
 * Shows what a pronoun attends to in two sentences that differ in one word, and so in what "it"
 * refers to. The panel searches for the head whose pronoun looks most at the right noun in both
 * sentences. If no head does that, it says so and shows the mean of the last layer (the same rule
 * as in explorer/pictures/pronoun_picture.py).
 */

import { ask } from "./api.js";
import { make, makeChoice } from "./dom.js";
import { makeTable, mapsOf } from "./trace.js";

const PAIRS = {
  en: {
    pronoun: "it",
    nouns: ["animal", "street"],
    ends: ["too tired", "too wide"],
    sentences: [
      "The animal didn't cross the street because it was too tired.",
      "The animal didn't cross the street because it was too wide.",
    ],
  },
  zh: {
    pronoun: "它",
    nouns: ["动物", "马路"],
    ends: ["太累", "太宽"],
    // prettier-ignore
    sentences: [
      "那只动物没有过马路，因为它太累了。",
      "那只动物没有过马路，因为它太宽了。",
    ],
  },
};
const TRANSLATED = ["es", "er", "sie", "ihn", "ihm"];

/** @param {any} trace @param {any} map @param {number} head */
const wordTable = (trace, map, head) =>
  makeTable(trace, [map], { head: String(head), level: "word", hideMarks: true });

/** The row of the pronoun in a table. @param {any} table @param {string[]} wanted */
function pronounRow(table, wanted) {
  const words = table.rows.map((item) => item.text.toLowerCase());
  return words.reduce((found, word, place) => (wanted.includes(word) ? place : found), -1);
}

const RESOLVED = 0.1; // of the pronoun's weight on the noun that is meant; less is no look
const verdicts = new Map(); // by model and kind: whether a head was found

/**
 * The head that attends to the noun that is meant: nouns[n] in sentence n.
 * @param {any[]} traces
 * @param {string} kind
 * @param {string[]} wanted
 * @param {string[]} nouns
 * @returns {{layer: number, head: number, row: number} | null}
 */
export function antecedentHead(traces, kind, wanted, nouns) {
  let best = null;
  let most = 0;
  mapsOf(traces[0], kind).forEach((map, number) =>
    map.heads.forEach((head) => {
      const tables = traces.map((trace) => wordTable(trace, mapsOf(trace, kind)[number], head));
      const rows = tables.map((table) => pronounRow(table, wanted));
      const looks = tables.map((table, n) =>
        nouns.map((noun) => {
          const column = table.columns.findIndex((item) => item.text.toLowerCase() === noun);
          return rows[n] < 0 || column < 0
            ? -1
            : table.weights[rows[n] * table.columns.length + column];
        }),
      );
      if (
        !looks.every(
          (look, n) =>
            look[n] >= RESOLVED &&
            look.every((weight, noun) => noun === n || (weight >= 0 && weight < look[n])),
        )
      )
        return;
      const total = looks.reduce((sum, look, n) => sum + look[n], 0);
      if (total > most) [most, best] = [total, { layer: map.layer, head, row: rows[0] }];
    }),
  );
  return best;
}

/**
 * A panel for models that can read the sentence: tired or wide, while it is read or while it is
 * written.
 * @param {any} context
 * @param {{model: any, body: (text: string) => any, onChoice: (state: any) => void}} parts
 *     body: the request for a sentence; onChoice: what to show then
 */
export function makePronoun(context, { model, body, onChoice }) {
  const pair = PAIRS[model.source];
  // Only German must say which: its pronouns follow the noun.
  if (!pair || model.target !== "de") return null;
  const { text, state } = context;
  const place = pair.sentences.indexOf(state.text);
  const show = async (sentence, kind) => {
    const traces = await Promise.all(pair.sentences.map((one) => ask("v1/trace", body(one, kind))));
    const found = antecedentHead(
      traces,
      kind,
      kind === "cross" ? TRANSLATED : [pair.pronoun],
      pair.nouns,
    );
    verdicts.set(`${model.name} ${kind}`, Boolean(found));
    onChoice({
      text: pair.sentences[sentence],
      kind,
      level: "word",
      marks: "",
      layer: found ? found.layer : "",
      head: found ? found.head : "",
      word: found ? `query-${found.row}` : "",
    });
  };
  // As the view has it.
  const shown = ["cross", "encoder_self"].includes(state.kind) ? state.kind : "cross";
  const kind = state.kind ? shown : "encoder_self"; // what a first click shows
  const isUnresolved = place >= 0 && verdicts.get(`${model.name} ${shown}`) === false;
  const endings = ["tired", "wide"].map(
    (key, n) =>
      /** @type {[string, string]} */ ([
        String(n),
        pair.ends[n] === text(`pronoun.${key}`)
          ? pair.ends[n]
          : `${pair.ends[n]} (${text(`pronoun.${key}`)})`,
      ]),
  );
  // Until then no head of this panel is shown.
  const isChosen = place >= 0 && (state.head || verdicts.has(`${model.name} ${shown}`));
  return make(
    "section",
    { class: "card wide-card pronoun", "aria-label": text("pronoun.title") },
    make(
      "div",
      {},
      make("h2", {}, text("pronoun.title")),
      make("p", { class: "quiet" }, text("pronoun.help")),
      isUnresolved ? make("p", { role: "status" }, text("pronoun.unresolved")) : null,
    ),
    make(
      "div",
      { class: "row" },
      makeChoice({
        label: text("pronoun.sentence"),
        value: place < 0 ? "" : String(place),
        options: endings,
        onChange: (value) => show(Number(value), kind),
      }),
      makeChoice({
        label: text("pronoun.when"),
        value: isChosen ? shown : "",
        options: [
          ["encoder_self", text("pronoun.read")],
          ["cross", text("pronoun.written")],
        ],
        onChange: (value) => show(Math.max(place, 0), value),
      }),
    ),
  );
}
