/*
 * Two models on one sentence, each with its clock. The server measures, from the text of the
 * sentence to the text of its translation, one model after the other, so that neither waits for
 * the other.
 */

import { ask } from "../api.js";
import { make, makeSelect } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { showProblem } from "../latest_request.js";
import { numberTableSvg } from "../number_table.js";
import { decodingBody } from "./decodings.js";

const REPEATS = 7;

/** @param {number[]} values */
function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @param {any} context @param {any} model the model of the view @param {any} decoding */
export function makeClocks(context, model, decoding) {
  const { state, text, number, update } = context;
  const fitting = context.models.filter(
    (one) => one.decodings?.length && one.source === model.source && one.target === model.target,
  );
  const first = fitting.find((one) => one.output_form === "steps") ?? model;
  const choices = fitting.flatMap((one) =>
    one.decodings.map(({ kind }) => [`${one.name}:${kind}`, `${one.name} · ${kind}`]),
  );
  const known = (wanted, otherwise) =>
    choices.some(([key]) => key === wanted) ? wanted : otherwise;
  const sides = [
    known(state.left, `${first.name}:${first.decodings[0].kind}`),
    known(state.right, `${model.name}:${decoding.kind}`),
  ];
  let sentence = "";
  let last = new AbortController();

  const problem = make("p", { class: "problem instead", role: "alert", hidden: true });
  const button = make("button", { class: "main", type: "button" }, text("parallel.measure"));
  const form = make(
    "form",
    { class: "panel" },
    make("h2", {}, text("parallel.clocks")),
    make("p", { class: "caption" }, text("parallel.clocks_help", { count: REPEATS })),
    make(
      "div",
      { class: "row" },
      ...["left", "right"].map((side, place) =>
        makeSelect({
          label: text(place ? "parallel.right" : "parallel.left"),
          value: sides[place],
          options: choices,
          onChange: (next) => {
            sides[place] = next;
            update({ [side]: next });
          },
        }),
      ),
      button,
    ),
  );
  const figure = makeFigure(context, {
    name: "clocks",
    title: text("parallel.clocks_figure"),
    caption: "",
    level: 3,
  });
  figure.root.hidden = true;
  const root = make("section", { class: "view-part", "aria-label": text("parallel.clocks") });
  root.append(form, problem, figure.root);
  button.addEventListener("click", measure);

  async function measure() {
    last.abort();
    last = new AbortController();
    const { signal } = last;
    const bodies = sides.map((side) => {
      const place = side.lastIndexOf(":");
      const isShown = side === `${model.name}:${decoding.kind}`;
      return {
        model: side.slice(0, place),
        text: sentence,
        // What is shown above is measured with the numbers that are set there.
        decoding: isShown ? decodingBody(context, decoding) : { kind: side.slice(place + 1) },
        repeats: REPEATS,
      };
    });
    root.setAttribute("aria-busy", "true");
    button.disabled = true;
    try {
      const replies = [];
      for (const body of bodies) replies.push(await ask("v1/time", body, { signal, fresh: true }));
      problem.hidden = true;
      draw(replies, bodies[1]);
    } catch (fault) {
      if (!signal.aborted) showProblem(problem, fault);
    } finally {
      if (!signal.aborted) root.removeAttribute("aria-busy");
      button.disabled = false;
    }
  }

  /** @param {any[]} replies @param {any} body */
  function draw(replies, body) {
    const ms = (seconds) => number(1000 * seconds, 1);
    const longest = Math.max(...replies.flatMap((one) => one.seconds));
    figure.root.hidden = false;
    figure.body.replaceChildren(...replies.map(drawClock));
    const [one, other] = replies.map((reply) => median(reply.seconds));
    const [quick, slow] = one <= other ? replies : [...replies].reverse();
    figure.explain(
      text("parallel.clocks_facts", {
        device: replies[0].device,
        threads: replies[0].threads,
        sentence: body.text,
      }),
    );
    figure.read(
      text("parallel.clocks_read", {
        quick: `${quick.model} · ${quick.decoding}`,
        slow: `${slow.model} · ${slow.decoding}`,
        times: number(Math.max(one, other) / Math.min(one, other), 2),
      }) + (replies[0].text === replies[1].text ? ` ${text("parallel.same_text")}` : ""),
    );
    const columns = [
      { name: text("parallel.decoding") },
      { name: text("parallel.median"), number: (value) => number(value, 2) },
      { name: text("parallel.fastest"), number: (value) => number(value, 2) },
      { name: text("parallel.slowest"), number: (value) => number(value, 2) },
      { name: text("parallel.asked") },
      { name: text("tree.length") },
      { name: text("tree.translation") },
    ];
    const rows = replies.map((reply) => [
      `${reply.model} · ${reply.decoding}`,
      1000 * median(reply.seconds),
      1000 * Math.min(...reply.seconds),
      1000 * Math.max(...reply.seconds),
      reply.passes,
      reply.tokens,
      reply.text,
    ]);
    figure.offer({
      table: () => ({ columns: columns.map((column) => column.name), rows }),
      svg: () => numberTableSvg({ columns, rows }),
      data: () => replies,
      request: ["v1/time", body],
    });

    function drawClock(reply) {
      const bar = make("span", { class: "clock-fill" });
      bar.style.width = `${(100 * median(reply.seconds)) / longest}%`;
      const marks = reply.seconds.map((seconds) => {
        const mark = make("span", { class: "clock-mark" });
        mark.style.left = `${(100 * seconds) / longest}%`;
        return mark;
      });
      return make(
        "div",
        { class: "clock" },
        make(
          "p",
          { class: "clock-facts" },
          make("strong", {}, `${reply.model} · ${reply.decoding}`),
          make("span", {}, text("parallel.clock", { ms: ms(median(reply.seconds)) })),
          make(
            "span",
            {},
            text("parallel.clock_passes", { passes: reply.passes, tokens: reply.tokens }),
          ),
        ),
        make("div", { class: "clock-track", "aria-hidden": "true" }, bar, ...marks),
        make("p", { lang: model.target, dir: "auto" }, reply.text),
      );
    }
  }

  return {
    root,
    /** @param {string} words the sentence that is shown above */
    read(words) {
      sentence = words;
      figure.root.hidden = true; // it told of another sentence, or of other numbers
    },
    end: () => last.abort(),
  };
}
