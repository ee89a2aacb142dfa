/*
 * The form above every view of a translation, or of a text that a language model reads: the
 * sentence, examples, the search, and one request to /v1/trace for all views.
 *
 *     const sentence = makeSentence(context, {
 *       wants: (state) => ({maps: {kinds: ["cross"]}}), onTrace: (trace, request) => …
 *     });
 */

import { ask } from "./api.js";
import { showProblem } from "./latest_request.js";
import { make, makeNumber, makeSelect } from "./dom.js";

const MOST_CHARACTERS = 2000;
export const EXAMPLES = {
  en: [
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
    "The man caught three foxes two weeks ago.",
  ],
  zh: [
    "那只动物没有过马路，因为它太累了。",
    "那只动物没有过马路，因为它太宽了。",
    "那个男人两个星期前抓住了三只狐狸。",
  ],
  de: [
    "Das Tier überquerte die Straße nicht, weil es zu müde war.",
    "Das Tier überquerte die Straße nicht, weil sie zu breit war.",
    "Der Mann fing vor zwei Wochen drei Füchse.",
  ],
};

/** The models that translate. @param {any[]} models */
export const translators = (models) => models.filter((model) => model.kind === "translator");

/**
 * Whether a model reads one text and translates nothing: the text then stands where a translation
 * would.
 * @param {any} model
 */
export const readsOnly = (model) => model.kind === "language_model";

/**
 * Those that attend: translators, and language models that are Transformers.
 * @param {any[]} models
 */
export const attending = (models) =>
  models.filter(
    (model) =>
      model.kind === "translator" || (readsOnly(model) && model.architecture === "decoder_only"),
  );

/**
 * Those whose rows can be opened up: Transformers, whether they translate or read.
 * @param {any[]} models
 */
export const openable = (models) =>
  attending(models).filter((model) => model.architecture !== "recurrent");

/**
 * The model the address names, or the first that translates.
 * @param {any} context
 * @param {(models: any[]) => any[]} [among]
 */
export function chosenModel(context, among = translators) {
  const all = among(context.models);
  return all.find((model) => model.name === context.state.model) ?? all[0];
}

/**
 * @param {any} context
 * @param {{wants: (state: any) => Record<string, any>, onTrace: (trace: any, request: [string,
 *     any]) => void, onProblem?: (problem: any) => boolean, among?: (models: any[]) => any[],
 *     controls?: HTMLElement[] | null, path?: string}}
 *     parts
 *     wants: what this view needs of the trace besides the sentence; onProblem: true if the view
 *     asked again by itself; among: the models it can show; controls: of another search, in place
 *     of those of beam search; path: another route that translates one sentence
 */
export function makeSentence(
  context,
  {
    wants,
    onTrace,
    onProblem = () => false,
    among = translators,
    controls = null,
    path = "v1/trace",
  },
) {
  const { state, text, update } = context;
  const model = chosenModel(context, among);
  const isReader = readsOnly(model);
  const isBeam = !isReader && controls === null;
  const examples = model.examples?.length
    ? model.examples
    : (EXAMPLES[model.source] ?? (isReader ? EXAMPLES.en : []));
  state.text ||= examples[0] ?? "";
  let last = new AbortController();

  const field = make("textarea", { rows: 2, lang: model.source, dir: "auto", spellcheck: "false" });
  field.value = state.text;
  const button = make(
    "button",
    { class: "main" },
    text(isReader ? "sentence.read" : "sentence.go"),
  );
  const problem = make("p", { class: "problem instead", role: "alert", hidden: true });
  const several = make("div", { class: "several" });
  const doubt = make("p", { class: "doubt", role: "status", hidden: true });
  const forced = make("p", { class: "quiet forced" });
  const target = make("p", { class: "translation", lang: model.target, dir: "auto" });

  /** @param {string} words @param {string} [kind] of attention, if that is all that is wanted */
  const makeBody = (words, kind) => ({
    model: model.name,
    text: words,
    ...(!isBeam
      ? {}
      : { beam: { size: Number(state.beam || 4), alpha: Number(state.alpha || 1) } }),
    ...(kind ? { maps: { kinds: [kind], bits: 16 } } : {}),
  });
  const askAgain = async () => {
    last.abort();
    last = new AbortController();
    const { signal } = last;
    const body = {
      ...makeBody(state.text),
      ...(isBeam ? beginning(state) : {}),
      ...wants(state),
    };
    root.setAttribute("aria-busy", "true");
    try {
      const trace = await ask(path, body, { signal });
      if (signal.aborted) return;
      problem.hidden = true;
      if (isReader) {
        context.announce(text("sentence.has_read"));
      } else {
        target.textContent = trace.target_text;
        drawDoubt(trace.warning);
        drawForced(trace);
        drawSeveral(trace.sentences);
        context.announce(text("sentence.done", { translation: trace.target_text }));
      }
      onTrace(trace, [path, body]);
    } catch (fault) {
      if (signal.aborted || onProblem(fault)) return;
      showProblem(problem, fault);
    } finally {
      if (!signal.aborted) root.removeAttribute("aria-busy");
    }
  };
  /**
   * Say that the sentence is unlike what the model learned to read.
   * @param {{message: string, message_zh: string} | null} warning
   */
  const drawDoubt = (warning) => {
    doubt.hidden = !warning;
    doubt.textContent = warning
      ? context.language === "zh"
        ? warning.message_zh
        : warning.message
      : "";
  };
  /** Say that the translation does not begin freely, and offer to let it. @param {any} trace */
  const drawForced = (trace) => {
    const asked = trace.n_best?.[0].pieces
      ?.slice(0, trace.prefix_length)
      .join("")
      .replaceAll("▁", " ")
      .trim();
    forced.replaceChildren(
      ...(trace.prefix_length
        ? [
            make("span", {}, text("sentence.forced", { words: asked })),
            make(
              "button",
              {
                type: "button",
                onclick: () => {
                  update({ prefix: "", forced: "", step: "" });
                  askAgain();
                },
              },
              text("sentence.free"),
            ),
          ]
        : []),
    );
  };
  const drawSeveral = (sentences) =>
    tellSeveral(several, context, {
      sentences,
      language: model.source,
      onChoice: (one) => {
        field.value = one;
        form.requestSubmit();
      },
    });
  /** @param {Record<string, any>} [changes] of the address, if there is a sentence to ask about */
  const go = (changes = {}) => {
    const words = field.value.trim();
    const fault = faultOf(context, words);
    if (fault) {
      showProblem(problem, { message: fault });
      return;
    }
    update({ ...changes, text: words });
    askAgain();
  };

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
    button,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go({ prefix: "", forced: "", only: "", step: "", word: "", node: "" });
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });

  const chips = make(
    "div",
    { class: "chips", role: "group", "aria-label": text("sentence.examples") },
    make("span", { class: "quiet", "aria-hidden": "true" }, text("sentence.examples")),
    ...examples.map((example) =>
      make(
        "button",
        {
          type: "button",
          lang: model.source,
          onclick: () => {
            field.value = example;
            form.requestSubmit();
          },
        },
        example,
      ),
    ),
  );

  const nameOf = (one) =>
    readsOnly(one)
      ? `${one.name} (${text("sentence.language_model")})`
      : `${one.name} (${one.source} → ${one.target})`;
  const settings = make(
    "div",
    { class: "row" },
    among(context.models).length > 1
      ? makeSelect({
          label: text("sentence.model"),
          value: model.name,
          options: among(context.models).map((one) => [one.name, nameOf(one)]),
          onChange: (name) =>
            context.open(context.name, { model: name, text: "", prefix: "", forced: "" }),
        })
      : null,
    ...(!isBeam
      ? (controls ?? [])
      : [
          makeNumber({
            label: text("sentence.size"),
            value: Number(state.beam || 4),
            min: 1,
            max: 8,
            step: 1,
            onChange: (beam) => {
              update({ beam, node: "" });
              go();
            },
          }),
          makeNumber({
            label: text("sentence.alpha"),
            value: Number(state.alpha || 1),
            min: 0,
            max: 2,
            step: 0.1,
            onChange: (alpha) => {
              update({ alpha, node: "" });
              go();
            },
          }),
        ]),
  );

  const root = make(
    "section",
    { class: "sentence", "aria-label": text("sentence.name") },
    form,
    examples.length ? chips : null,
    settings,
    problem,
    several,
    isReader
      ? null
      : make(
          "div",
          { class: "translation-box" },
          make(
            "span",
            { class: "quiet" },
            text("sentence.target", { language: languageName(context, model.target) }),
          ),
          target,
          doubt,
          forced,
        ),
  );
  return {
    root,
    start: () => {
      if (state.text) go();
    },
    again: askAgain,
    end: () => last.abort(),
    model,
    body: makeBody,
    set: (words) => {
      field.value = words;
    },
  };
}

/**
 * A model reads a sentence at a time: say that more were given, and offer each.
 * @param {HTMLElement} area
 * @param {any} context
 * @param {{sentences: string[], language: string, onChoice: (sentence: string) => void}} given
 */
export function tellSeveral(area, { text }, { sentences, language, onChoice }) {
  area.replaceChildren(
    ...(sentences.length > 1
      ? [
          make("p", { role: "status" }, text("sentence.several", { count: sentences.length })),
          make(
            "div",
            { class: "chips" },
            ...sentences.map((one) =>
              make("button", { type: "button", lang: language, onclick: () => onChoice(one) }, one),
            ),
          ),
        ]
      : []),
  );
}

/** What keeps a text from being read, or "". @param {any} context @param {string} words */
export function faultOf({ text, number }, words) {
  const count = [...words].length;
  if (count > MOST_CHARACTERS)
    return text("sentence.too_long", { count: number(count), most: number(MOST_CHARACTERS) });
  return count ? "" : text("sentence.empty");
}

/** How the translation must begin: tokens chosen one by one, or words. @param {any} state */
function beginning(state) {
  if (state.forced) return { prefix_tokens: state.forced.split("-").map(Number) };
  return state.prefix ? { prefix: state.prefix } : {};
}

/** A language code as people say it. @param {any} context @param {string} code */
export function languageName(context, code) {
  try {
    return new Intl.DisplayNames([context.language], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}
