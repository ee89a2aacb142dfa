/*
 * A translator with a memory (kNN-MT): which stored examples decided each word of a translation.
 *
 * The translation stands as a row of words. Under each is a bar: how probable it was, and how much
 * of that came from the model and from the memory. A chosen word shows the votes for it.
 */

import { codeParts, make, makeSelect, pieceParts, rove } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { makeVotes } from "../memory/votes.js";
import { partsOf, wordsOf } from "../memory/words.js";
import { numberTableSvg } from "../number_table.js";
import { chosenModel, makeSentence } from "../sentence_form.js";

export const name = "memory";

const EXAMPLES = 6;
/** What λ may be chosen as, besides what the store was tuned to. */
const WEIGHTS = ["0", "0.2", "0.4", "0.6", "0.8", "0.95"];

/** @param {any[]} models */
const remembering = (models) => models.filter((model) => model.memory);

/** @param {any[]} models */
export const needs = (models) => remembering(models).length > 0;

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text, number, percent, update } = context;
  const model = chosenModel(context, remembering);
  /** @type {any} */
  let reply = null;
  /** @type {[string, any]} */
  let request;
  /** @type {any[]} */
  let words = [];

  const figure = makeFigure(context, {
    name: "memory-words",
    title: text("memory.words"),
    caption: text("memory.words_help"),
  });
  const votes = makeVotes(context, { language: model.target, source: model.source });
  const sentence = makeSentence(context, {
    path: "v1/memory",
    among: remembering,
    controls: [makeWeight()],
    wants: () => ({
      examples: EXAMPLES,
      ...(state.weight ? { weight: Number(state.weight) } : {}),
    }),
    onTrace: (next, asked) => {
      if (reply && reply.source_text !== next.source_text) update({ place: "" });
      [reply, request] = [next, asked];
      words = wordsOf(reply);
      choose(startingPlace(), false);
    },
  });
  root.append(
    make("h1", {}, text("memory.title")),
    make("p", { class: "lead" }, text("memory.lead")),
    sentence.root,
    make("p", { class: "quiet" }, ...codeParts(facts())),
    figure.root,
    votes.root,
  );
  sentence.start();

  function facts() {
    const { lines, entries, neighbours, temperature, tuned } = model.memory;
    const known = text("memory.facts", {
      lines: number(lines),
      entries: number(entries),
      neighbours: number(neighbours),
      temperature: number(temperature, temperature < 10 ? 1 : 0),
    });
    return tuned ? known : `${known} ${text("memory.untuned")}`;
  }

  function makeWeight() {
    const own = model.memory.weight;
    const tuned =
      own === null
        ? text("memory.weight_by_distance")
        : text("memory.weight_tuned", { weight: number(own, 2) });
    const all = [...new Set([...WEIGHTS, ...(state.weight ? [state.weight] : [])])];
    return makeSelect({
      label: text("memory.weight"),
      value: state.weight ?? "",
      options: [["", tuned], ...all.map((one) => /** @type {[string, string]} */ ([one, one]))],
      onChange: (weight) => {
        update({ weight });
        sentence.again();
      },
    });
  }

  /** The token of the address, the first word that the memory changed, or the first word. */
  function startingPlace() {
    const asked = Number(state.place || -1);
    if (Number.isInteger(asked) && asked >= 0 && asked < reply.places.length) return asked;
    const changed = reply.places.findIndex((one) => one.changed);
    return Math.max(0, changed);
  }

  /** @param {number} place of a token @param {boolean} [keeps] puts it into the address */
  function choose(place, keeps = true) {
    if (keeps) update({ place });
    draw(place);
    votes.show(reply, place, request);
    figure.read(describe(words.find((one) => one.places.includes(place))));
  }

  /** @param {any} word */
  function describe(word) {
    return text(word.changed ? "memory.read_changed" : "memory.read", {
      word: word.text,
      probability: percent(word.probability),
      model: percent(word.own),
      memory: percent(word.memory),
    });
  }

  /** @param {number} chosen */
  function draw(chosen) {
    const hadFocus = figure.body.contains(document.activeElement);
    const row = make(
      "div",
      {
        class: "memory-words",
        role: "group",
        "aria-label": text("memory.words"),
        lang: model.target,
      },
      ...words.map((word) => drawWord(word, word.places.includes(chosen))),
    );
    rove(row);
    const own = words.find((one) => one.places.includes(chosen));
    figure.body.replaceChildren(row, ...drawPieces(own, chosen), ...drawAlone(), legend());
    const buttons = /** @type {HTMLElement[]} */ ([...row.children]);
    const pressed = buttons[words.indexOf(own)];
    for (const one of buttons) one.tabIndex = one === pressed ? 0 : -1;
    if (hadFocus) pressed.focus();
    offer();
  }

  /** @param {any} word @param {boolean} isChosen */
  function drawWord(word, isChosen) {
    return make(
      "button",
      {
        type: "button",
        class: `memory-word${word.changed ? " changed" : ""}`,
        "aria-pressed": String(isChosen),
        "aria-label": describe(word),
        onclick: () => choose(leadOf(word)),
      },
      make("span", { class: "memory-text" }, word.text, word.changed ? " ◆" : ""),
      makeParts(word.own, word.memory),
    );
  }

  /** The piece that tells most: one that the memory changed, or the first that is no bare mark. */
  function leadOf(/** @type {any} */ { places }) {
    return (
      places.find((place) => reply.places[place].changed) ??
      places.find((place) => reply.target.pieces[place] !== "▁") ??
      places[0]
    );
  }

  /** The pieces of a word of several, to choose among. @param {any} word @param {number} chosen */
  function drawPieces(word, chosen) {
    if (word.places.length < 2) return [];
    const row = make(
      "div",
      { class: "chips", role: "group", "aria-label": text("memory.pieces") },
      make("span", { class: "quiet" }, text("memory.pieces")),
      ...word.places.map((place) =>
        make(
          "button",
          {
            type: "button",
            "aria-pressed": String(place === chosen),
            onclick: () => {
              choose(place);
              figure.body.querySelector(".chips [aria-pressed=true]")?.focus();
            },
          },
          ...pieceParts(reply.target.pieces[place]),
        ),
      ),
    );
    return [row];
  }

  function drawAlone() {
    const isSame = reply.text_alone === reply.target_text;
    return [
      make(
        "p",
        { class: "memory-alone" },
        make("span", { class: "quiet" }, text("memory.alone"), " "),
        isSame
          ? text("memory.same")
          : make("span", { lang: model.target, dir: "auto" }, reply.text_alone),
      ),
    ];
  }

  function legend() {
    return make(
      "p",
      { class: "legends" },
      make("span", { class: "legend from-model" }, text("memory.from_model")),
      make("span", { class: "legend from-memory" }, text("memory.from_memory")),
      make("span", {}, `◆ ${text("memory.changed")}`),
    );
  }

  function offer() {
    const columns = [
      { name: text("tree.piece") },
      { name: text("memory.model"), number: (value) => percent(value), bar: true },
      { name: text("memory.neighbours"), number: (value) => percent(value), bar: true },
      { name: "λ", number: (value) => number(value, 3) },
      { name: text("memory.mixture"), number: (value) => percent(value), bar: true },
      { name: text("memory.model_best") },
      { name: text("memory.changed") },
    ];
    const rows = reply.places.map((one) => [
      one.piece,
      one.model_probability,
      one.memory_probability,
      one.weight,
      one.probability,
      one.model_best.piece,
      one.changed ? "◆" : "",
    ]);
    figure.offer({
      table: () => ({ columns: columns.map((column) => column.name), rows }),
      svg: () => numberTableSvg({ columns, rows }),
      data: () => reply,
      request,
    });
  }

  return () => sentence.end();
}

/** A bar in two parts. @param {number} own @param {number} memory shares of one */
function makeParts(own, memory) {
  return make("span", { class: "memory-track", "aria-hidden": "true" }, ...partsOf(own, memory));
}
