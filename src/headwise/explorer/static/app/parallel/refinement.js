/*
 * A player for decoders that look again at what they wrote: in each pass words are given up (masked
 * or deleted), places are left open, and words are written there. Below stand all passes at once.
 *
 * A pass tells `before` with what was given up and `after` with what is new; the words before that
 * were not given up are, in order, the words after that are not new. So the open places are where
 * the new words will stand.
 */

import { make, makeSvg, pieceParts } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { makePlayer } from "../player.js";
import { makeBox, makeNote, makeSheet, shareOf, widthOf } from "./drawing.js";

const OPEN = "□";
const ROW = 62;

/**
 * @typedef {{piece: string, look: "kept" | "new" | "gone" | "empty", share: number | null}} Word
 * @typedef {{pass: number, key: string, words: Word[]}} Frame
 * @param {any[]} passes @returns {Frame[]}
 */
export function framesOf(passes) {
  return passes.flatMap(({ before, after }, pass) => {
    const deletes = before.some((one) => one.deletion_probability !== null);
    const given = before.some((one) => one.deleted);
    const isNew = after.some((one) => one.is_new);
    const earlier = sharesBefore(passes, pass);
    /** @type {Frame[]} */
    const frames = [];
    if (given)
      frames.push({
        pass,
        key: deletes ? "deleted" : "masked",
        words: before.map((one, place) => ({
          piece: one.piece,
          look: one.deleted ? "gone" : "kept",
          share: earlier[place] ?? null,
        })),
      });
    if (isNew) {
      frames.push({
        pass,
        key: "open",
        words: after.map((one) =>
          one.is_new
            ? { piece: OPEN, look: "empty", share: null }
            : { piece: one.piece, look: "kept", share: shareOf(one) },
        ),
      });
    }
    frames.push({
      pass,
      key: isNew ? "written" : given ? "left" : "unchanged",
      words: after.map((one) => ({
        piece: one.piece,
        look: one.is_new ? "new" : "kept",
        share: shareOf(one),
      })),
    });
    return frames;
  });
}

/** The probabilities that the words before a pass were written with. */
const sharesBefore = (/** @type {any[]} */ passes, /** @type {number} */ pass) =>
  pass ? passes[pass - 1].after.map(shareOf) : [];

/** @param {any} context */
export function makeRefinement(context) {
  const { text, percent, update, state } = context;
  /** @type {Frame[]} */
  let frames = [];
  let shown = 0;
  let isFirst = true;
  const stage = make("ol", { class: "stage" });
  const said = make("p", { class: "stage-said", "aria-live": "polite" });
  const player = makePlayer(context, {
    label: text("parallel.player"),
    where: (frame) => text("parallel.where", { pass: frames[frame].pass + 1, all: numPasses() }),
    onShow: (frame) => {
      shown = frame;
      update({ frame: frame + 1 });
      draw();
    },
  });
  const figure = makeFigure(context, {
    name: "passes",
    title: text("parallel.passes"),
    caption: text("parallel.passes_help"),
  });
  const history = make("div", { class: "tree", tabindex: "0", role: "region" });
  history.setAttribute("aria-label", text("parallel.all_passes"));
  figure.body.append(said, stage, player.root, history, legend(text));

  const numPasses = () => frames[frames.length - 1].pass + 1;

  function draw() {
    const { key, words, pass } = frames[shown];
    const told = { open: "empty", written: "new" }[key] ?? "gone";
    const count = words.filter((one) => one.look === told).length;
    said.textContent = text(`parallel.said_${key}`, { pass: pass + 1, count, all: words.length });
    stage.replaceChildren(...words.map((one) => drawWord(one)));
    for (const row of history.querySelectorAll("[data-pass]"))
      row.classList.toggle("active", Number(row.dataset.pass) === pass);
  }

  /** @param {Word} word */
  function drawWord({ piece, look, share }) {
    const bar = make("span", { class: "stage-fill" });
    bar.style.width = share === null ? "0" : `${100 * share}%`;
    return make(
      "li",
      {
        class: `stage-word ${look}`,
        title: share === null ? null : percent(share, 2),
      },
      look === "kept"
        ? null
        : make("span", { class: "unseen" }, `${text(`parallel.look_${look}`)}: `),
      make("span", { class: "stage-piece" }, ...pieceParts(piece)),
      make("span", { class: "stage-track", "aria-hidden": "true" }, bar),
      make("small", {}, share === null ? " " : percent(share, 0)),
    );
  }

  /** What each pass left, one row each. @param {any[]} passes @param {boolean} live */
  function drawHistory(passes, live) {
    const rows = passes.map(({ after }) => ({
      words: after.map((one) => ({
        piece: one.piece,
        look: one.is_new ? "new" : "kept",
        share: shareOf(one),
      })),
    }));
    const widest = (words) => words.map((one) => Math.max(30, widthOf(one.piece) + 14));
    const fixed = rows.every((row) => row.words.length === rows[0].words.length);
    // With a fixed number of places a place has one width in all rows, so that columns can be read.
    const columns = fixed
      ? rows[0].words.map((_, place) => Math.max(...rows.map((row) => widest(row.words)[place])))
      : null;
    const widths = rows.map((row) => columns ?? widest(row.words));
    const width = Math.max(...widths.map((row) => row.reduce((sum, one) => sum + one + 6, 0))) + 60;
    const { svg, paint } = makeSheet(width, rows.length * ROW + 6, live);
    rows.forEach((row, number) => {
      const group = makeSvg("g", { class: "pass-row", "data-pass": number });
      let x = 46;
      const y = 10 + number * ROW;
      group.append(makeNote(paint, 8, y + 19, String(number + 1), { "font-size": 14 }));
      row.words.forEach((one, place) => {
        group.append(makeBox(paint, { x, y, width: widths[number][place], ...one }));
        x += widths[number][place] + 6;
      });
      if (live) {
        group.classList.add("link");
        group.addEventListener("click", () =>
          player.show(frames.findLastIndex((frame) => frame.pass === number)),
        );
      }
      svg.append(group);
    });
    return svg;
  }

  return {
    root: figure.root,
    end: player.end,
    /** @param {any} trace @param {[string, any]} request */
    show(trace, request) {
      frames = framesOf(trace.passes);
      stage.lang = trace.target.language;
      history.replaceChildren(drawHistory(trace.passes, true));
      history.hidden = trace.passes.length < 2;
      figure.offer({
        table: () => ({
          columns: [
            text("parallel.pass"),
            text("parallel.place"),
            text("tree.piece"),
            text("parallel.state"),
            text("steps.probability"),
          ],
          rows: frames.flatMap((frame) =>
            frame.words.map((one, place) => [
              frame.pass + 1,
              place + 1,
              one.piece,
              text(`parallel.look_${one.look}`),
              one.share === null ? "" : one.share,
            ]),
          ),
        }),
        svg: () => drawHistory(trace.passes, false),
        data: () => trace.passes,
        request,
      });
      // A link shows its frame; what is asked for here shows how it ends.
      player.begin(frames.length, Number((isFirst && state.frame) || frames.length) - 1);
      isFirst = false;
    },
  };
}

/** @param {(key: string) => string} text */
function legend(text) {
  return make(
    "p",
    { class: "legends" },
    ...["new", "kept", "gone", "empty"].map((look) =>
      make("span", { class: `legend look-${look}` }, text(`parallel.look_${look}`)),
    ),
  );
}
