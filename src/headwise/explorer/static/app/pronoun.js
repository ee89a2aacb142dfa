/*
 * The notes' pronoun: two sentences that differ in one word, and in what "it" stands for. The head that tells them apart is
 * looked for, not fixed: the one whose row of the pronoun changes most from one sentence to the other.
 */

import { ask } from "./api.js";
import { make, makeChoice } from "./dom.js";
import { makeTable, mapsOf } from "./trace.js";

const PAIRS = {
  en: { pronoun: "it", sentences: ["The animal didn't cross the street because it was too tired.", "The animal didn't cross the street because it was too wide."] },
  zh: { pronoun: "它", sentences: ["那只动物没有过马路，因为它太累了。", "那只动物没有过马路，因为它太宽了。"] },
};
const TRANSLATED = ["es", "er", "sie", "ihn", "ihm"];

/** @param {any} trace @param {any} map @param {number} head */
const wordTable = (trace, map, head) => makeTable(trace, [map], { head: String(head), level: "word", hideMarks: true });

/** The row of the pronoun in a table. @param {any} table @param {string[]} wanted */
function pronounRow(table, wanted) {
  const words = table.rows.map((item) => item.text.toLowerCase());
  return words.reduce((found, word, place) => (wanted.includes(word) ? place : found), -1);
}

/** The head that changes most. @param {any[]} traces @param {string} kind @param {string[]} wanted @returns {{layer: number, head: number, row: number} | null} */
export function tellingHead(traces, kind, wanted) {
  let best = null;
  let most = -1;
  mapsOf(traces[0], kind).forEach((map, number) => map.heads.forEach((head) => {
    const tables = traces.map((trace) => wordTable(trace, mapsOf(trace, kind)[number], head));
    const rows = tables.map((table) => pronounRow(table, wanted));
    if (rows.includes(-1) || tables[0].columns.length !== tables[1].columns.length) return;
    const width = tables[0].columns.length;
    let change = 0;
    for (let j = 0; j < width; j += 1) change += Math.abs(tables[0].weights[rows[0] * width + j] - tables[1].weights[rows[1] * width + j]);
    if (change > most) [most, best] = [change, { layer: map.layer, head, row: rows[0] }];
  }));
  return best;
}

/**
 * A panel for models that can read the sentence: tired or wide, while it is read or while it is written.
 * @param {any} context @param {{model: any, body: (text: string) => any, onChoice: (state: any) => void}} parts
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
    const found = tellingHead(traces, kind, kind === "cross" ? TRANSLATED : [pair.pronoun]);
    onChoice({ text: pair.sentences[sentence], kind, level: "word", marks: "", ...(found ? { layer: found.layer, head: found.head, word: `query-${found.row}` } : {}) });
  };
  const kind = ["cross", "encoder_self"].includes(state.kind) ? state.kind : "cross";
  return make("section", { class: "card wide-card pronoun", "aria-label": text("pronoun.title") },
    make("div", {}, make("h2", {}, text("pronoun.title")), make("p", { class: "quiet" }, text("pronoun.help"))),
    make("div", { class: "row" },
      makeChoice({ label: text("pronoun.sentence"), value: place < 0 ? "" : String(place), options: [["0", text("pronoun.tired")], ["1", text("pronoun.wide")]], onChange: (value) => show(Number(value), kind) }),
      makeChoice({ label: text("pronoun.when"), value: place < 0 ? "" : kind, options: [["encoder_self", text("pronoun.read")], ["cross", text("pronoun.written")]], onChange: (value) => show(Math.max(place, 0), value) })));
}
