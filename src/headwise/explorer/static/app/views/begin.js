/* The view without a model: train the demo's model here, or read the commands that do it. */

import { ask } from "../api.js";
import { make, makeSelect } from "../dom.js";

export const name = "begin";
/** @param {any[]} models */
export const needs = (models) => models.length === 0;

const PAIRS = ["en-de", "zh-en", "en-zh", "de-en", "zh-de", "de-zh"];
const PAUSE = 1000; // milliseconds between two looks at the training

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { text, number, language } = context;
  let timer = 0;
  let pair = language === "zh" ? "zh-en" : "en-de";
  const panel = make("section", { class: "card", "aria-label": text("begin.training") });
  root.append(
    make("h1", {}, text("begin.title")),
    make("p", { class: "lead" }, text("begin.lead")),
    panel,
  );

  // Without a value while nothing can be told.
  const bar = make("progress", { "aria-label": text("begin.training") });
  const words = make("p", { role: "status" });

  /** @param {any} status */
  function show(status) {
    if (status.state === "ready" && status.model) {
      context.announce(text("begin.ready"));
      context.reload();
      return;
    }
    if (status.state !== "training") {
      offer(status);
      return;
    }
    if (status.step) {
      bar.max = status.steps;
      bar.value = status.step;
    }
    const left = status.step ? (status.seconds * (status.steps - status.step)) / status.step : 0;
    words.textContent = describe(status, clock(left));
    if (!panel.contains(bar))
      panel.replaceChildren(
        make("h2", {}, text("begin.training")),
        bar,
        words,
        make("p", { class: "quiet" }, text("begin.watching"), " ", curves(status.pair)),
      );
    timer = window.setTimeout(look, PAUSE);
  }

  /** @param {any} status @param {string} left */
  function describe(status, left) {
    if (!status.step) return text("begin.preparing");
    if (status.step >= status.steps) return text("begin.measuring");
    const parts = [
      text("begin.progress", {
        step: number(status.step),
        steps: number(status.steps),
        loss: number(status.loss, 3),
        left,
      }),
    ];
    return [
      ...parts,
      ...(status.bleu === null ? [] : [text("begin.bleu", { bleu: number(status.bleu, 1) })]),
    ].join(" · ");
  }

  /** The way to the curves of the run, where runs are shown. @param {string} of */
  const curves = (of) =>
    context.server.runs
      ? make(
          "a",
          { href: `#/runs?run=${of === "en-de" ? "demo" : `demo-${of}`}` },
          text("begin.curves"),
        )
      : "";

  /** Nothing is going on: a button, and the commands. @param {any} status */
  function offer(status) {
    const button = make(
      "button",
      {
        class: "main",
        type: "button",
        onclick: async () => {
          button.disabled = true;
          attempt(ask("v1/demo", { pair }, { fresh: true }));
        },
      },
      text("begin.train"),
    );
    panel.replaceChildren(
      ...(status.state === "failed"
        ? [
            make(
              "p",
              { class: "problem", role: "alert" },
              text("begin.failed", { message: status.message }),
            ),
          ]
        : []),
      make("p", {}, text("begin.offer")),
      make(
        "div",
        { class: "row" },
        makeSelect({
          label: text("begin.pair"),
          value: pair,
          options: PAIRS.map((one) => [one, one.replace("-", " → ")]),
          onChange: (value) => {
            pair = value;
          },
        }),
        button,
      ),
    );
  }

  /** @param {Promise<any>} answer */
  async function attempt(answer) {
    try {
      show(await answer);
    } catch (problem) {
      panel.replaceChildren(
        ...(problem.code === "no_training"
          ? []
          : [make("p", { class: "problem", role: "alert" }, problem.message)]),
        make("p", {}, text("begin.by_hand")),
        make("pre", { tabindex: "0" }, make("code", {}, "headwise demo\nheadwise explore")),
      );
    }
  }

  const look = () => attempt(ask("v1/demo", undefined, { fresh: true }));
  look();
  return () => window.clearTimeout(timer);
}

/** @param {number} seconds */
function clock(seconds) {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
