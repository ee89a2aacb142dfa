/*
 * Draft and verify: in each round some words are drafted, the model accepts the first of them, and
 * writes one of its own after them.
 */

import { make, makeSvg } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { makeBox, makeNote, makeSheet, makeWalker, shareOf, widthOf } from "./drawing.js";

const ROW = 50;
/** What the look of a token means here. */
const STATES = { kept: "parallel.accepted", new: "parallel.own", gone: "parallel.rejected" };
const LEFT = 40;

/** @param {any} context */
export function makeDraftRounds(context) {
  const { text, number, percent } = context;
  /** @type {any} */
  let record = null;
  const figure = makeFigure(context, {
    name: "drafts",
    title: text("parallel.drafts"),
    caption: text("parallel.drafts_help"),
  });
  const walker = makeWalker({ label: text("parallel.drafts_label"), onChoose: choose });
  figure.body.append(
    walker.frame,
    make(
      "p",
      { class: "legends" },
      make("span", { class: "legend look-kept" }, text("parallel.accepted")),
      make("span", { class: "legend look-gone" }, text("parallel.rejected")),
      make("span", { class: "legend look-new" }, text("parallel.own")),
    ),
  );

  /** The tokens of a round as they are drawn. @param {any} round */
  const boxesOf = ({ draft, num_accepted, own }) => [
    ...draft.slice(0, num_accepted).map((one) => ({ ...one, look: "kept", mark: "✓ " })),
    ...(own ? [{ ...own, look: "new", mark: "" }] : []),
    ...draft.slice(num_accepted).map((one) => ({ ...one, look: "gone", mark: "✗ " })),
  ];

  /** @param {number} round */
  function choose(round) {
    for (const one of walker.frame.querySelectorAll("[data-place]"))
      one.classList.toggle("active", Number(one.dataset.place) === round);
    const { draft, num_accepted, own } = record.rounds[round];
    const list = (tokens) =>
      tokens.map((one) => `${one.piece} ${percent(shareOf(one), 1)}`).join(", ") || "–";
    figure.read(
      text("parallel.round_reading", {
        round: round + 1,
        accepted: list(draft.slice(0, num_accepted)),
        rejected: list(draft.slice(num_accepted)),
        own: own ? list([own]) : "–",
      }),
    );
  }

  /** @param {boolean} live */
  function draw(live) {
    const rows = record.rounds.map(boxesOf);
    const sizeOf = (one) => Math.max(34, widthOf(one.mark + one.piece) + 18);
    const width = Math.max(
      300,
      ...rows.map((row) => LEFT + row.reduce((sum, one) => sum + sizeOf(one) + 6, 20)),
    );
    const { svg, paint } = makeSheet(width, rows.length * ROW + 12, live);
    rows.forEach((row, round) => {
      const y = 8 + round * ROW;
      const group = makeSvg("g", { class: "pass-row", "data-place": round });
      group.append(makeNote(paint, 8, y + 19, String(round + 1), { "font-size": 14 }));
      let x = LEFT;
      for (const one of row) {
        group.append(
          makeBox(paint, {
            x,
            y,
            width: sizeOf(one),
            piece: one.mark + one.piece,
            look: one.look,
            share: shareOf(one),
          }),
        );
        x += sizeOf(one) + 6;
      }
      if (live) group.addEventListener("pointerenter", () => choose(round));
      svg.append(group);
    });
    return svg;
  }

  return {
    root: figure.root,
    end: () => {},
    /** @param {any} trace @param {[string, any]} request */
    show(trace, request) {
      record = trace.record;
      walker.frame.lang = trace.target.language;
      walker.show(draw(true), record.rounds.length, () => 0);
      const [drafted, accepted, own] = [
        record.rounds.reduce((sum, one) => sum + one.draft.length, 0),
        record.rounds.reduce((sum, one) => sum + one.num_accepted, 0),
        record.rounds.filter((one) => one.own).length,
      ];
      figure.read(
        text("parallel.drafts_summary", {
          rounds: record.rounds.length,
          tokens: accepted + own,
          drafted,
          accepted,
          rate: number((accepted + own) / record.rounds.length, 2),
        }),
      );
      figure.offer({
        table: () => ({
          columns: [
            text("parallel.round"),
            text("tree.piece"),
            text("parallel.state"),
            text("steps.probability"),
          ],
          rows: record.rounds.flatMap((round, place) =>
            boxesOf(round).map((one) => [
              place + 1,
              one.piece,
              text(STATES[one.look]),
              shareOf(one),
            ]),
          ),
        }),
        svg: () => draw(false),
        data: () => record,
        request,
      });
    },
  };
}
