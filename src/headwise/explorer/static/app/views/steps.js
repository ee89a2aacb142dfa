/*
 * Decoding step by step: the most probable tokens at each position, and the translation that
 * follows if another one is chosen. For a language model the view shows the same for a given text;
 * at the last step a chosen token continues the text.
 */

import {
  FONT_FAMILY,
  make,
  makeIcon,
  makeSvg,
  pageColour,
  pieceParts,
  pieceSpans,
} from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { attending, makeSentence, readsOnly } from "../sentence_form.js";
import { groupsOf, makeTable, mapsOf } from "../trace.js";

export const name = "steps";
const TOP = 8;
const PAUSE = 900; // milliseconds a step is shown while playing

/** @param {any[]} models */
export const needs = (models) => attending(models).length > 0;

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text, number, percent, update } = context;
  let trace = null;
  let request = null;
  let timer = 0;

  const written = make("div", {
    class: "written",
    role: "group",
    "aria-label": text("steps.written"),
  });
  const slider = make("input", {
    type: "range",
    min: 1,
    max: 1,
    value: 1,
    "aria-label": text("steps.step"),
  });
  const where = make("output", { class: "where" });
  const play = make("button", { type: "button", class: "play" });
  const figure = makeFigure(context, {
    name: "step",
    title: text("steps.figure"),
    caption: text("steps.help"),
  });
  const course = makeFigure(context, {
    name: "certainty",
    title: text("steps.course"),
    caption: text("steps.course_help"),
  });
  const isReader = () => readsOnly(sentence.model);
  const kind = () => (isReader() ? "decoder_self" : "cross");
  const sentence = makeSentence(context, {
    among: attending,
    wants: () => ({ top: TOP, maps: { kinds: [kind()], bits: 16 } }),
    onTrace: (next, asked) => {
      trace = next;
      request = asked;
      slider.max = String(trace.steps.length);
      show(Number(state.step || (isReader() ? trace.steps.length : trace.prefix_length + 1)));
      drawPrefix();
    },
  });
  if (isReader()) written.setAttribute("aria-label", text("steps.written_reader"));
  const jump = (icon, words, target) =>
    make(
      "button",
      {
        type: "button",
        "aria-label": words,
        title: words,
        onclick: () => {
          stop();
          if (trace) show(target());
        },
      },
      makeIcon(icon),
    );
  const player = make(
    "div",
    { class: "player" },
    jump("first", text("steps.first"), () => 1),
    jump("back", text("steps.back"), () => current() - 1),
    play,
    jump("forward", text("steps.forward"), () => current() + 1),
    jump("last", text("steps.last"), () => trace.steps.length),
    slider,
    where,
  );
  const prefix = make("form", { class: "row" });
  root.append(
    make("h1", {}, text("steps.title")),
    make("p", { class: "lead" }, text(isReader() ? "steps.lead_reader" : "steps.lead")),
    sentence.root,
    make(
      "section",
      { class: "card wide-card", "aria-label": text("steps.player") },
      written,
      player,
      prefix,
    ),
    make("div", { class: "columns two" }, figure.root, course.root),
  );

  slider.addEventListener("input", () => {
    stop();
    show(Number(slider.value));
  });
  play.addEventListener("click", () => (timer ? stop() : start()));
  drawPlay();

  const current = () => Number(state.step || 1);

  function drawPlay() {
    play.replaceChildren(makeIcon(timer ? "pause" : "play"));
    play.setAttribute("aria-label", text(timer ? "steps.pause" : "steps.play"));
  }

  function start() {
    if (!trace) return;
    if (current() >= trace.steps.length) show(1);
    timer = window.setInterval(() => {
      if (current() >= trace.steps.length) stop();
      else show(current() + 1);
    }, PAUSE);
    drawPlay();
  }

  function stop() {
    window.clearInterval(timer);
    timer = 0;
    drawPlay();
  }

  /** @param {number} wanted */
  function show(wanted) {
    const step = Math.min(Math.max(Math.round(wanted) || 1, 1), trace.steps.length);
    update({ step });
    slider.value = String(step);
    where.textContent = text("steps.where", { step, all: trace.steps.length });
    written.replaceChildren(
      ...trace.steps.map(({ chosen }, place) =>
        make(
          "button",
          {
            type: "button",
            class: place + 1 < step ? "past" : place + 1 === step ? "now" : "future",
            "aria-current": place + 1 === step ? "step" : null,
            lang: trace.target.language,
            onclick: () => {
              stop();
              show(place + 1);
            },
          },
          ...pieceParts(chosen.piece),
        ),
      ),
    );
    drawChoices(step);
    drawCourse(step);
  }

  /** @param {number} step */
  function drawChoices(step) {
    const { chosen, best, rank, entropy } = trace.steps[step - 1];
    const isForced = !isReader() && step <= trace.prefix_length;
    const choices = best.some((one) => one.token === chosen.token) ? best : [...best, chosen];
    const bars = choices.map((one) => {
      const share = Math.exp(one.log_probability);
      const fill = make("span", { class: "bar-fill" });
      fill.style.width = `${100 * share}%`;
      const isChosen = one.token === chosen.token;
      // Half a letter is nothing that could be typed.
      const isEnd = one.piece === "</s>" || (isReader() && /^<0x/.test(one.piece));
      return make(
        "li",
        {},
        make(
          "button",
          {
            type: "button",
            class: isChosen ? "option chosen" : "option",
            disabled: isChosen || isEnd,
            "aria-label": text(isChosen ? "steps.choice_taken" : "steps.choice", {
              piece: one.piece,
              share: percent(share, 2),
            }),
            onclick: () => {
              stop();
              take(step, one);
            },
          },
          make(
            "span",
            { class: "bar-name", lang: trace.target.language },
            ...pieceParts(one.piece),
          ),
          make("span", { class: "bar-track" }, fill),
          make("span", { class: "bar-share" }, percent(share, 2)),
        ),
      );
    });
    figure.body.replaceChildren(make("ol", { class: "options" }, ...bars), drawLooks(step));
    const rest = 1 - choices.reduce((sum, one) => sum + Math.exp(one.log_probability), 0);
    figure.read(
      [
        text("steps.reading", {
          step,
          piece: chosen.piece,
          share: percent(Math.exp(chosen.log_probability), 2),
          rank,
          entropy: number(entropy, 3),
          rest: percent(Math.max(rest, 0), 2),
        }),
        isForced ? text("steps.forced") : "",
      ].join(" "),
    );
    figure.offer({
      table: () => ({
        columns: [
          text("steps.step"),
          text("steps.chosen"),
          text("steps.probability"),
          text("steps.rank"),
          text("steps.entropy"),
          ...Array.from({ length: TOP }, (_, place) => text("steps.best", { place: place + 1 })),
        ],
        rows: trace.steps.map((one, place) => [
          place + 1,
          one.chosen.piece,
          Math.exp(one.chosen.log_probability),
          one.rank,
          one.entropy,
          ...one.best.map(
            (other) => `${other.piece} ${Math.exp(other.log_probability).toFixed(4)}`,
          ),
        ]),
      }),
      svg: () => barsAsSvg(choices, chosen),
      data: () => trace.steps,
      request,
    });
  }

  /**
   * Another piece instead of the one that stands there: the search goes on from it, or the text
   * that is read ends with it.
   * @param {number} step
   * @param {any} choice
   */
  function take(step, choice) {
    if (isReader()) {
      const words = [...trace.target.pieces.slice(0, step - 1), choice.piece]
        .join("")
        .replaceAll("▁", " ")
        .trim();
      update({ text: words, step: "" });
      sentence.set(words);
    } else {
      update({
        forced: [...trace.n_best[0].tokens.slice(0, step - 1), choice.token].join("-"),
        prefix: "",
        step: step + 1,
      });
    }
    sentence.again();
  }

  /**
   * Where the decoder attended at this step: the source (or the text so far), shaded.
   * @param {number} step
   */
  function drawLooks(step) {
    const maps = mapsOf(trace, kind());
    if (!maps.length) return make("p", {});
    const table = makeTable(trace, [maps[maps.length - 1]], {
      head: "mean",
      level: "piece",
      hideMarks: false,
    });
    const seen = groupsOf(isReader() ? trace.target_input : trace.source, "piece").slice(
      0,
      isReader() ? step : undefined,
    );
    const words = seen.map(({ item }, place) => {
      const weight = table.weights[(step - 1) * table.columns.length + place];
      const word = make(
        "span",
        { class: "look", lang: item.language },
        make("span", {}, ...pieceParts(item.text)),
        make("small", {}, number(weight, 2)),
      );
      word.style.setProperty("--share", `${Math.round(100 * weight)}%`);
      return word;
    });
    return make(
      "div",
      { class: "looks" },
      make("p", { class: "quiet" }, text("steps.looks")),
      make("p", { class: "looks-words" }, ...words),
    );
  }

  /** The certainty of each step as a row of bars that can be clicked. @param {number} step */
  function drawCourse(step) {
    const bars = trace.steps.map((one, place) => {
      const fill = make("span", { class: "column-fill" });
      fill.style.height = `${Math.max(1.5, 100 * Math.exp(one.chosen.log_probability))}%`;
      const { piece, log_probability } = one.chosen;
      return make(
        "button",
        {
          type: "button",
          tabindex: "-1",
          class: place + 1 === step ? "column now" : "column",
          "aria-label": `${place + 1}: ${piece} ${percent(Math.exp(log_probability), 1)}`,
          onclick: () => {
            stop();
            show(place + 1);
          },
        },
        make("span", { class: "column-track" }, fill),
        make(
          "span",
          { class: "column-name", lang: trace.target.language },
          ...pieceParts(one.chosen.piece),
        ),
      );
    });
    const chart = make(
      "div",
      { class: "columns-chart", tabindex: "0", role: "group", "aria-label": text("steps.course") },
      ...bars,
    );
    course.body.replaceChildren(chart);
    chart.scrollLeft =
      bars[step - 1].offsetLeft - (chart.clientWidth - bars[step - 1].offsetWidth) / 2;
    const total = trace.n_best[0].log_probability;
    course.read(
      text(isReader() ? "steps.total_reader" : "steps.total", {
        total: number(total, 3),
        perplexity: number(Math.exp(-total / trace.steps.length), 3),
      }),
    );
    course.offer({
      table: () => ({
        columns: [
          text("steps.step"),
          text("steps.chosen"),
          text("steps.probability"),
          text("steps.entropy"),
        ],
        rows: trace.steps.map((one, place) => [
          place + 1,
          one.chosen.piece,
          Math.exp(one.chosen.log_probability),
          one.entropy,
        ]),
      }),
      svg: () => courseAsSvg(trace.steps),
      data: () => trace.steps.map(({ chosen, rank, entropy }) => ({ ...chosen, rank, entropy })),
      request,
    });
  }

  function drawPrefix() {
    prefix.hidden = isReader();
    if (isReader()) return; // the text itself is how it begins
    const field = make("input", {
      type: "text",
      maxlength: 400,
      lang: trace.target.language,
      autocomplete: "off",
      spellcheck: "false",
    });
    const pieces = trace.n_best[0].pieces.slice(0, trace.prefix_length);
    field.value = state.prefix || pieces.join("").replaceAll("▁", " ").trim();
    prefix.replaceChildren(
      make("label", { class: "field wide" }, make("span", {}, text("steps.prefix")), field),
      make("button", {}, text("steps.continue")),
    );
    prefix.onsubmit = (event) => {
      event.preventDefault();
      stop();
      update({ prefix: field.value.trim(), forced: "", step: "" });
      sentence.again();
    };
  }

  sentence.start();
  return () => {
    stop();
    sentence.end();
  };
}

/** @param {number} width @param {number} height */
function sheet(width, height) {
  const svg = makeSvg("svg", {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": FONT_FAMILY,
    "font-size": 13,
  });
  svg.append(makeSvg("rect", { width, height, fill: pageColour("--surface") }));
  return svg;
}

/** @param {any[]} choices @param {any} chosen */
function barsAsSvg(choices, chosen) {
  const svg = sheet(520, 16 + 26 * choices.length);
  choices.forEach((one, place) => {
    const [y, share] = [10 + 26 * place, Math.exp(one.log_probability)];
    svg.append(
      makeSvg(
        "text",
        { x: 130, y: y + 14, "text-anchor": "end", fill: pageColour("--ink") },
        ...pieceSpans(one.piece),
      ),
      makeSvg("rect", {
        x: 140,
        y,
        width: Math.max(1, 290 * share),
        height: 18,
        rx: 3,
        fill: pageColour(one.token === chosen.token ? "--warm" : "--accent"),
      }),
      makeSvg(
        "text",
        { x: 148 + 290 * share, y: y + 14, fill: pageColour("--muted") },
        `${(100 * share).toFixed(2)} %`,
      ),
    );
  });
  return svg;
}

/** @param {any[]} steps */
function courseAsSvg(steps) {
  const svg = sheet(40 + 30 * steps.length, 250);
  steps.forEach(({ chosen }, place) => {
    const [x, share] = [20 + 30 * place, Math.exp(chosen.log_probability)];
    svg.append(
      makeSvg("rect", {
        x,
        y: 130 - 120 * share,
        width: 22,
        height: 120 * share,
        rx: 3,
        fill: pageColour("--accent"),
      }),
      makeSvg(
        "text",
        {
          x: x + 15,
          y: 142,
          "text-anchor": "end",
          transform: `rotate(-60 ${x + 15} 142)`,
          fill: pageColour("--ink"),
        },
        ...pieceSpans(chosen.piece),
      ),
    );
  });
  return svg;
}
