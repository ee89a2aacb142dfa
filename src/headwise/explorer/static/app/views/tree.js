/*
 * The beam tree: every continuation the search considered, whether it was kept, finished or pruned,
 * and the n best translations.
 */

import { FONT_FAMILY, make, makeCheck, makeSvg, pageColour, pieceSpans, rove } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { makeSentence, translators } from "../sentence_form.js";
import { numberTableSvg } from "../number_table.js";
import { layOut } from "../tree_layout.js";

export const name = "tree";
const ROW = 34;
const HEAD = 22; // room for the numbers of the steps
const MOST_NODES = 1500; // with more, what was pruned is hidden unless asked for

/** @param {any[]} models */
export const needs = (models) => translators(models).length > 0;

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text, number, update } = context;
  let trace = null;
  let request = null;
  let layout = null;
  let active = null;

  const controls = make("div", { class: "row controls" });
  const figure = makeFigure(context, {
    name: "beam",
    title: text("tree.figure"),
    caption: text("tree.help"),
  });
  const best = makeFigure(context, {
    name: "n-best",
    title: text("tree.best"),
    caption: text("tree.best_help"),
  });
  const frame = make("div", {
    class: "tree",
    tabindex: "0",
    role: "application",
    "aria-label": text("tree.label"),
  });
  const treeless = make("p", { class: "quiet", role: "status", hidden: true });
  const sentence = makeSentence(context, {
    wants: () => ({ tree: true }),
    onTrace: (next, asked) => {
      trace = next;
      request = asked;
      const isTraced = trace.tree !== null;
      treeless.hidden = isTraced;
      treeless.textContent = isTraced ? "" : text("tree.none", { kind: trace.decoding });
      for (const part of [controls, figure.root, best.root]) part.hidden = !isTraced;
      if (!isTraced) return;
      draw();
      drawBest();
    },
  });
  figure.body.append(frame, legend(text));
  root.append(
    make("h1", {}, text("tree.title")),
    make("p", { class: "lead" }, text("tree.lead")),
    sentence.root,
    treeless,
    controls,
    figure.root,
    best.root,
  );
  frame.addEventListener("keydown", walk);
  frame.addEventListener("focus", () => {
    if (!active && layout && frame.matches(":focus-visible")) choose(layout.placed[0]);
  });

  const alpha = () => request[1].beam.alpha;
  const showsPruned = () =>
    state.pruned ? state.pruned === "show" : trace.tree.nodes.length <= MOST_NODES;

  function draw() {
    controls.replaceChildren(
      makeCheck({
        label: text("tree.show_pruned", {
          count: trace.tree.nodes.filter((node) => node.fate === "pruned").length,
        }),
        checked: showsPruned(),
        onChange: (show) => {
          update({ pruned: show ? "show" : "hide" });
          draw();
        },
      }),
    );
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `14px ${FONT_FAMILY}`;
    layout = layOut(trace.tree.nodes, trace.tree.leaves, {
      pruned: showsPruned(),
      measure: (piece) => pen.measureText(piece).width,
    });
    active = null;
    frame.replaceChildren(drawSvg(true));
    figure.read(
      text("tree.summary", {
        weighed: number(trace.tree.nodes.length),
        steps: Math.max(...trace.tree.nodes.map((node) => node.step)),
        finished: trace.tree.nodes.filter((node) => node.fate === "finished").length,
      }),
    );
    figure.offer({
      table: () => ({
        columns: [
          "#",
          text("tree.parent"),
          text("tree.step"),
          text("tree.piece"),
          "log p",
          text("tree.total"),
          text("tree.score"),
          text("tree.fate"),
        ],
        rows: trace.tree.nodes.map((node) => [
          node.number,
          node.parent,
          node.step,
          node.piece,
          node.log_probability,
          node.total,
          node.score,
          text(`tree.${node.fate}`),
        ]),
      }),
      svg: () => drawSvg(false),
      data: () => trace.tree,
      request,
    });
    const kept = layout.placed.find((one) => String(one.number) === state.node);
    if (kept) {
      choose(kept);
      frame.scrollLeft = kept.x - frame.clientWidth / 2;
    }
  }

  /**
   * @param {boolean} live whether it listens, and takes its colours from the page's style
   * @returns {SVGElement}
   */
  function drawSvg(live) {
    const [width, height] = [layout.width, HEAD + layout.rows * ROW + 8];
    const svg = makeSvg("svg", {
      xmlns: "http://www.w3.org/2000/svg",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      "font-size": 14,
      "font-family": FONT_FAMILY,
      ...(live ? { "aria-hidden": "true" } : {}),
    });
    if (!live) svg.append(makeSvg("rect", { width, height, fill: pageColour("--surface") }));
    layout.starts.forEach((x, step) => {
      if (step)
        svg.append(
          makeSvg(
            "text",
            {
              class: "step-number",
              x,
              y: 13,
              "font-size": 11,
              fill: live ? null : pageColour("--muted"),
            },
            String(step),
          ),
        );
    });
    const paint = (element, values) => {
      if (!live)
        for (const [key, colour] of Object.entries(values))
          element.setAttribute(key, pageColour(colour));
      return element;
    };
    for (const one of layout.placed) {
      const [fromX, fromY] = one.above.number
        ? [one.above.x + one.above.width, HEAD + one.above.row * ROW + 20]
        : [14, HEAD + 20];
      const [x, y] = [one.x, HEAD + one.row * ROW + 20];
      const kind = `${one.fate}${one.isBest ? " best" : ""}`;
      svg.append(
        paint(
          makeSvg("path", {
            class: `edge ${kind}`,
            fill: "none",
            d: `M${fromX} ${fromY} C${fromX + 22} ${fromY} ${x - 22} ${y} ${x} ${y}`,
            "stroke-width": one.isBest ? 2.5 : 1.2,
            "stroke-dasharray": one.fate === "pruned" ? "3 3" : null,
          }),
          { stroke: one.isBest ? "--accent" : "--line-strong" },
        ),
      );
    }
    svg.append(
      paint(makeSvg("circle", { class: "root", cx: 9, cy: HEAD + 20, r: 5 }), { fill: "--accent" }),
    );
    for (const one of layout.placed) {
      const kind = `${one.fate}${one.isBest ? " best" : ""}`;
      const box = makeSvg("rect", {
        x: one.x,
        y: HEAD + one.row * ROW + 7,
        width: one.width,
        height: 26,
        rx: 6,
        "stroke-width": one.fate === "finished" ? 2.5 : 1.2,
        "stroke-dasharray": one.fate === "pruned" ? "3 3" : null,
      });
      const words = makeSvg(
        "text",
        { x: one.x + one.width / 2, y: HEAD + one.row * ROW + 25, "text-anchor": "middle" },
        ...pieceSpans(one.piece),
      );
      paint(box, {
        fill: one.isBest ? "--accent-soft" : "--surface",
        stroke: one.fate === "finished" ? "--good" : one.isBest ? "--accent" : "--line-strong",
      });
      paint(words, { fill: one.fate === "pruned" ? "--muted" : "--ink" });
      const group = makeSvg("g", { class: `node ${kind}` }, box, words);
      if (live) {
        one.element = group;
        group.addEventListener("pointerenter", () => choose(one));
        group.addEventListener("pointerdown", () => keep(one));
      }
      svg.append(group);
    }
    return svg;
  }

  /** @param {any} one */
  function choose(one) {
    for (const other of layout.placed) other.element.classList.remove("on-path", "active");
    active = one;
    for (let node = one; node?.element; node = node.above) node.element.classList.add("on-path");
    one.element.classList.add("active");
    const length = number(one.step);
    figure.read(
      text("tree.reading", {
        piece: one.piece,
        fate: text(`tree.${one.fate}`),
        log_probability: number(one.log_probability, 4),
        total: number(one.total, 4),
        length,
        alpha: number(alpha(), 1),
        divisor: number(one.step ** alpha(), 3),
        score: number(one.score, 4),
      }),
    );
  }

  /**
   * A node that the address remembers; those only passed over are not written there.
   * @param {any} one
   */
  function keep(one) {
    choose(one);
    update({ node: one.number });
  }

  /**
   * Left to the parent, right to the best child, up and down among what stands in the same column.
   * @param {KeyboardEvent} event
   */
  function walk(event) {
    if (!active || !["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].includes(event.key)) return;
    const column = layout.placed
      .filter((one) => one.step === active.step)
      .sort((one, other) => one.row - other.row);
    const place = column.indexOf(active);
    const next = {
      ArrowLeft: active.above,
      ArrowRight: active.children[0],
      ArrowUp: column[place - 1],
      ArrowDown: column[place + 1],
    }[event.key];
    if (next?.element) {
      choose(next);
      next.element.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    event.preventDefault();
  }

  function drawBest() {
    const columns = [
      text("tree.rank"),
      text("tree.translation"),
      "log p",
      text("tree.length"),
      text("tree.divisor"),
      text("tree.score"),
    ];
    const lines = trace.n_best.map((one, rank) => {
      const length = one.token_log_probabilities.length;
      return [rank + 1, one.text, one.log_probability, length, length ** alpha(), one.score];
    });
    const rows = lines.map((line, rank) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, String(line[0])),
        make(
          "td",
          { class: "words-cell" },
          make(
            "button",
            {
              type: "button",
              class: "plain",
              lang: trace.target.language,
              onclick: () => {
                const leaf = layout.placed.find((one) => one.number === trace.tree.leaves[rank]);
                keep(leaf);
                leaf.element.scrollIntoView({ block: "nearest", inline: "nearest" });
              },
            },
            String(line[1]) || "—",
          ),
        ),
        ...line
          .slice(2)
          .map((value) =>
            make("td", {}, Number.isInteger(value) ? String(value) : number(Number(value), 4)),
          ),
      ),
    );
    const body = make("tbody", {}, ...rows);
    rove(body);
    best.body.replaceChildren(
      make(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": text("tree.best") },
        make(
          "table",
          { class: "wide-table" },
          make(
            "thead",
            {},
            make(
              "tr",
              {},
              ...columns.map((column, place) =>
                make("th", { scope: "col", class: place === 1 ? "words-cell" : null }, column),
              ),
            ),
          ),
          body,
        ),
      ),
    );
    best.offer({
      table: () => ({ columns, rows: lines }),
      svg: () =>
        numberTableSvg({
          columns: columns.map((column) => ({
            name: column,
            number: (value) => (Number.isInteger(value) ? String(value) : number(value, 4)),
          })),
          rows: lines,
        }),
      data: () => trace.n_best,
      request,
    });
  }

  sentence.start();
  return () => sentence.end();
}

/** What the boxes mean. @param {(key: string) => string} text */
function legend(text) {
  const entry = (kind, words) => make("span", { class: `legend ${kind}` }, words);
  return make(
    "p",
    { class: "legends" },
    entry("best", text("tree.best_path")),
    entry("kept", text("tree.kept")),
    entry("finished", text("tree.finished")),
    entry("pruned", text("tree.pruned")),
  );
}
