/*
 * Decoders that write several words at once: what each pass changed, what was considered (the grid
 * of CTC, a graph, fertilities, lengths, drafts), two models beside each other on one sentence, and
 * why such a model may mix two right translations.
 *
 * Which figure is shown follows from the reply: each kind of record has one.
 */

import { make, makeNumber, makeSelect } from "../dom.js";
import { makeAlignmentGrid } from "../parallel/alignment_grid.js";
import { makeClocks } from "../parallel/clocks.js";
import { chosenDecoding, decodingBody, recorded } from "../parallel/decodings.js";
import { makeDraftRounds } from "../parallel/draft_rounds.js";
import { makeFertilityDrawing } from "../parallel/fertility_drawing.js";
import { makeGraphDrawing } from "../parallel/graph_drawing.js";
import { makeLengthTable } from "../parallel/length_table.js";
import { makeRefinement } from "../parallel/refinement.js";
import { makeWordings } from "../parallel/wordings.js";
import { makeSentence, chosenModel } from "../sentence_form.js";

export const name = "parallel";

/** One figure for each kind of record. */
const FIGURES = {
  alignment: makeAlignmentGrid,
  graph: makeGraphDrawing,
  fertilities: makeFertilityDrawing,
  drafts: makeDraftRounds,
  lengths: makeLengthTable,
};

const isStepwise = (/** @type {any} */ model) => model.output_form === "steps";

/** Models with a decoding that can be looked into. @param {any[]} models */
const inspectable = (models) =>
  models
    .filter((model) => recorded(model).length > 0)
    // Those that write all words at once come first: the view is theirs.
    .sort((one, other) => Number(isStepwise(one)) - Number(isStepwise(other)));

/** @param {any[]} models */
export const needs = (models) => inspectable(models).length > 0;

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { text } = context;
  const model = chosenModel(context, inspectable);
  const decoding = chosenDecoding(context, model);
  const figures = make("div", { class: "view-part" });
  /** @type {{root: HTMLElement, end: () => void, show: (trace: any, request: any) => void}[]} */
  let shown = [];
  let kinds = "";

  const sentence = makeSentence(context, {
    among: inspectable,
    controls: controlsOf(context, model, decoding, () => sentence.again()),
    wants: () => ({ decoding: decodingBody(context, decoding), passes: true }),
    onTrace: (trace, request) => {
      const wanted = figuresOf(trace);
      if (wanted.join() !== kinds) {
        for (const one of shown) one.end();
        kinds = wanted.join();
        shown = wanted.map((kind) => (FIGURES[kind] ?? makeRefinement)(context));
        figures.replaceChildren(...shown.map((one) => one.root));
      }
      for (const one of shown) one.show(trace, request);
      clocks.read(trace.source_text);
    },
  });
  const clocks = makeClocks(context, model, decoding);
  const wordings = makeWordings(context, model);
  root.append(
    make("h1", {}, text("parallel.title")),
    make("p", { class: "lead" }, text("parallel.lead")),
    sentence.root,
    figures,
    clocks.root,
    wordings.root,
  );
  sentence.start();
  return () => {
    for (const one of shown) one.end();
    clocks.end();
    wordings.end();
    sentence.end();
  };
}

/**
 * The passes first, unless another figure tells the only one of them in more detail.
 * @param {any} trace @returns {string[]}
 */
function figuresOf({ record, passes }) {
  const tellsAll = record && ["alignment", "graph", "fertilities"].includes(record.kind);
  return [...(passes && !tellsAll ? ["passes"] : []), ...(record ? [record.kind] : [])];
}

/**
 * The decoding and its options, as the server declares them.
 * @param {any} context @param {any} model @param {any} decoding @param {() => void} again
 */
function controlsOf(context, model, decoding, again) {
  const { state, text, update } = context;
  return [
    makeSelect({
      label: text("parallel.decoding"),
      value: decoding.kind,
      options: recorded(model).map((one) => [one.kind, one.kind]),
      onChange: (kind) => context.open(name, { decoding: kind }),
    }),
    ...decoding.options.map((option) =>
      makeNumber({
        label: option.name,
        value: Number(state[option.name] || option.value),
        min: option.low,
        max: option.high,
        step: option.is_whole ? 1 : 0.1,
        onChange: (value) => {
          update({ [option.name]: value, frame: "" });
          again();
        },
      }),
    ),
  ];
}
