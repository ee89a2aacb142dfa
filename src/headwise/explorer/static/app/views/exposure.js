/*
 * Exposure bias for one sentence: a wrong first word is forced, and what the model writes after it
 * stands beside what it writes after the right one. A second model can stand beside the first. With
 * the right translation given, the decoder is compared along it and along its own words.
 */

import { ask } from "../api.js";
import { make, makeSelect, pieceParts } from "../dom.js";
import { makeAgreement } from "../exposure/agreement.js";
import { makeContinuations } from "../exposure/continuations.js";
import { EXAMPLES, chosenModel, makeSentence, translators } from "../sentence_form.js";

export const name = "exposure";

const MOST_TYPED = 60;
const MOST_CHARACTERS = 2000;

/** Models that read their own words. @param {any[]} models */
const stepwise = (models) => translators(models).filter((model) => model.output_form === "steps");

/** @param {any[]} models */
export const needs = (models) => stepwise(models).length > 0;

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text, percent, update } = context;
  const model = chosenModel(context, stepwise);
  const others = stepwise(context.models).filter(
    (one) => one.name !== model.name && one.source === model.source && one.target === model.target,
  );
  let last = new AbortController();
  let lastText = state.text;

  const typed = makeField("typed", state.wrong, MOST_TYPED, (wrong) => {
    update({ wrong, first: "" });
    sentence.again();
  });
  const reference = makeField("reference", referenceOf(), MOST_CHARACTERS, (words) => {
    update({ reference: words });
    sentence.again();
  });
  const likely = make("div", { class: "chips", role: "group" });
  const continuations = makeContinuations(context, { language: model.target });
  const agreement = makeAgreement(context, { language: model.target });
  const sentence = makeSentence(context, {
    path: "v1/exposure",
    among: stepwise,
    controls: [typed.root, reference.root, ...besides()],
    wants,
    onTrace: (reply, request) => {
      drawLikely(reply);
      show([{ name: model.name, reply }], request);
      if (other()) askOther(reply, request);
    },
  });
  root.append(
    make("h1", {}, text("exposure.title")),
    make("p", { class: "lead" }, text("exposure.lead")),
    sentence.root,
    likely,
    continuations.root,
    agreement.root,
  );
  sentence.start();

  /**
   * A field of one line.
   * @param {string} key @param {string} value @param {number} most characters
   * @param {(value: string) => void} act
   */
  function makeField(key, value, most, act) {
    const field = make("input", {
      type: "text",
      dir: "auto",
      spellcheck: "false",
      lang: model.target,
      maxlength: most,
      onchange: () => act(field.value.trim()),
    });
    field.value = value ?? "";
    const label = make(
      "label",
      { class: `field ${key === "reference" ? "wide" : ""}` },
      make("span", {}, text(`exposure.${key}`)),
      field,
    );
    return { root: label, field };
  }

  /** What the address says, or the translation of an example of the page. */
  function referenceOf() {
    if (state.reference !== undefined) return state.reference;
    const place = (EXAMPLES[model.source] ?? []).indexOf(state.text || EXAMPLES[model.source]?.[0]);
    return EXAMPLES[model.target]?.[place] ?? "";
  }

  /** What belongs to another sentence is forgotten. */
  function wants() {
    if (lastText !== undefined && state.text !== lastText) {
      delete state.reference;
      update({ wrong: "", first: "" });
      typed.field.value = "";
      reference.field.value = referenceOf();
    }
    lastText = state.text;
    const first = Number(state.first || -1);
    return {
      ...(first >= 0 ? { wrong_tokens: [first] } : state.wrong ? { wrong: state.wrong } : {}),
      reference: reference.field.value.trim(),
    };
  }

  /** The model that stands beside the first, if one does. */
  function other() {
    return others.find((one) => one.name === (state.beside ?? others[0]?.name));
  }

  function besides() {
    if (!others.length) return [];
    return [
      makeSelect({
        label: text("exposure.beside"),
        value: other()?.name ?? "-",
        options: [
          ...others.map((one) => /** @type {[string, string]} */ ([one.name, one.name])),
          ["-", text("exposure.none")],
        ],
        onChange: (beside) => {
          update({ beside });
          sentence.again();
        },
      }),
    ];
  }

  /** @param {any} one a choice of the model */
  function shareOf({ log_probability }) {
    const share = Math.exp(log_probability);
    return share < 0.001 ? text("exposure.little") : percent(share);
  }

  /** @param {any} reply */
  function drawLikely(reply) {
    const hadFocus = likely.contains(document.activeElement);
    const label = text("exposure.choose", { model: model.name });
    const chosen = reply.wrong.forced === 1 ? reply.wrong.tokens[0].token : -1;
    likely.setAttribute("aria-label", label);
    likely.replaceChildren(
      make("span", { class: "quiet", "aria-hidden": "true" }, label),
      ...reply.likely.map((one) =>
        make(
          "button",
          {
            type: "button",
            lang: model.target,
            "aria-pressed": String(one.token === chosen),
            onclick: () => {
              typed.field.value = "";
              update({ first: one.token, wrong: "" });
              sentence.again();
            },
          },
          ...pieceParts(one.piece),
          make("small", { class: "quiet" }, ` ${shareOf(one)}`),
        ),
      ),
    );
    const pressed = likely.querySelector("[aria-pressed=true]") ?? likely.querySelector("button");
    if (hadFocus) /** @type {any} */ (pressed)?.focus();
  }

  /**
   * The second model gets the same words, since it may have other tokens.
   * @param {any} first @param {[string, any]} request
   */
  async function askOther(first, request) {
    last.abort();
    last = new AbortController();
    const { signal } = last;
    const words = first.wrong.tokens
      .slice(0, first.wrong.forced)
      .map((one) => one.piece)
      .join("")
      .replaceAll("▁", " ")
      .trim();
    const body = { ...request[1], model: other().name, wrong: words };
    delete body.wrong_tokens;
    try {
      const reply = await ask("v1/exposure", body, { signal });
      if (signal.aborted) return;
      show([{ name: model.name, reply: first }, { name: other().name, reply }], request);
    } catch (fault) {
      if (signal.aborted) return;
      show(
        [{ name: model.name, reply: first }, { name: other().name, problem: fault.message }],
        request,
      );
    }
  }

  /** @param {any[]} answers @param {[string, any]} request */
  function show(answers, request) {
    continuations.show(answers, request);
    agreement.show(answers, request);
  }

  return () => {
    last.abort();
    agreement.end();
    sentence.end();
  };
}
