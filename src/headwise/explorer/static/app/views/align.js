/* Translate and align: the source above, the translation below, and which word attends to which. */

import { make, makeCheck, makeChoice, makeSelect } from "../dom.js";
import { makeFigure } from "../figure_frame.js";
import { LinkPicture } from "../attention_links.js";
import { makeOcclusion } from "../occlusion.js";
import { makePronoun } from "../pronoun_panel.js";
import { makeSentence, translators } from "../sentence_form.js";
import { isOtherKind, kindsOf, makeTable, mapsOf, weightAt } from "../trace.js";

export const name = "align";

/** @param {any[]} models */
export const needs = (models) => translators(models).length > 0;

const KIND_ROWS = {
  cross: ["target", "source"],
  encoder_self: ["source", "source"],
  decoder_self: ["target", "target_input"],
};

/** @param {HTMLElement} root @param {any} context */
export function mount(root, context) {
  const { state, text, number, percent, update } = context;
  let trace = null;
  let request = null;
  let table = null;

  const figure = makeFigure(context, {
    name: "alignment",
    title: text("align.figure"),
    caption: text("align.help"),
  });
  const controls = make("div", { class: "row controls" });
  const picture = new LinkPicture(figure.body, {
    format: (weight) => number(weight, 2),
    onChoice: (word) => {
      update({ word: word ? `${word.side}-${word.place}` : "" });
      figure.read(word ? describe(word) : overview());
    },
  });
  const sentence = makeSentence(context, {
    wants: () => ({ maps: { kinds: [state.kind || "cross"], bits: 16 } }),
    onTrace: (next, asked) => {
      if (isOtherKind(next)) {
        update({ kind: kindsOf(next)[0], layer: "", head: "", word: "" });
        sentence.again();
        return;
      }
      trace = next;
      request = asked;
      drawControls();
      draw();
      drawPronoun();
      occlusion.show(trace);
    },
  });
  const occlusion = makeOcclusion(context);
  const pronoun = make("div", {});
  root.append(
    make("h1", {}, text("align.title")),
    make("p", { class: "lead" }, text("align.lead")),
    sentence.root,
    pronoun,
    controls,
    figure.root,
    occlusion.root,
  );

  function drawPronoun() {
    const hadFocus = pronoun.contains(document.activeElement)
      ? [...pronoun.querySelectorAll("button")].indexOf(/** @type {any} */ (document.activeElement))
      : -1;
    const panel = makePronoun(context, {
      model: sentence.model,
      body: sentence.body,
      onChoice: (changes) => {
        update(changes);
        sentence.set(changes.text);
        sentence.again();
      },
    });
    pronoun.replaceChildren(...(panel ? [panel] : []));
    if (hadFocus >= 0) pronoun.querySelectorAll("button")[hadFocus]?.focus();
  }

  const layers = () => mapsOf(trace, trace.maps[0].kind);
  /**
   * A layer and a head that exist, whatever the address says: the last layer, the mean of its
   * heads.
   */
  const place = () => {
    const numbers = layers().map((map) => String(map.layer));
    const layer = [...numbers, "all"].includes(state.layer)
      ? state.layer
      : numbers[numbers.length - 1];
    const heads = layers()[0].heads.map(String);
    const head = [...heads, "mean", "max"].includes(state.head) ? state.head : "mean";
    return { layer, head };
  };

  function drawControls() {
    if (!trace.maps.length) {
      controls.replaceChildren();
      return;
    }
    const { layer, head } = place();
    const choose = (key) => (value) => {
      update({ [key]: value, word: "" });
      draw();
    };
    controls.replaceChildren(
      makeSelect({
        label: text("trace.kind"),
        value: state.kind || "cross",
        options: kindsOf(trace).map((kind) => [kind, text(`trace.${kind}`)]),
        onChange: (kind) => {
          update({ kind, layer: "", head: "", word: "" });
          sentence.again();
        },
      }),
      makeSelect({
        label: text("trace.layer"),
        value: layer,
        options: [
          ...layers().map((map) => [
            String(map.layer),
            text("trace.layer_number", { layer: map.layer + 1 }),
          ]),
          ["all", text("trace.all_layers")],
        ],
        onChange: choose("layer"),
      }),
      makeSelect({
        label: text("trace.head"),
        value: head,
        options: [
          ["mean", text("trace.mean")],
          ["max", text("trace.max")],
          ...layers()[0].heads.map((one) => [
            String(one),
            text("trace.head_number", { head: one + 1 }),
          ]),
        ],
        onChange: choose("head"),
      }),
      makeChoice({
        label: text("trace.level"),
        value: state.level || "word",
        options: [
          ["word", text("trace.word")],
          ["piece", text("trace.piece")],
        ],
        onChange: choose("level"),
      }),
      makeCheck({
        label: text("trace.hide_marks"),
        checked: state.marks !== "show",
        onChange: (hide) => {
          update({ marks: hide ? "" : "show", word: "" });
          draw();
        },
      }),
    );
  }

  function draw() {
    if (!trace.maps.length) {
      figure.body.replaceChildren(make("p", {}, text("trace.no_attention")));
      return;
    }
    const { layer, head } = place();
    const maps = layer === "all" ? layers() : layers().filter((map) => String(map.layer) === layer);
    table = makeTable(trace, maps, {
      head,
      level: state.level || "word",
      hideMarks: state.marks !== "show",
    });
    const [query, key] = KIND_ROWS[maps[0].kind];
    picture.show(
      table,
      { query: text(`trace.${query}_looks`), key: text(`trace.${key}_seen`) },
      pinned(),
    );
    figure.read(picture.active ? describe(picture.active) : overview());
    figure.offer({
      table: () => ({
        columns: [text("trace.corner"), ...table.columns.map((item) => item.text)],
        rows: table.rows.map((item, i) => [
          item.text,
          ...table.columns.map((_, j) => weightAt(table, i, j)),
        ]),
      }),
      svg: () => picture.toSvg(),
      data: () => ({
        source: trace.source_text,
        translation: trace.target_text,
        kind: maps[0].kind,
        layer,
        head,
        rows: table.rows.map((item) => item.text),
        columns: table.columns.map((item) => item.text),
        weights: table.rows.map((_, i) => [
          ...table.weights.subarray(i * table.columns.length, (i + 1) * table.columns.length),
        ]),
      }),
      request,
    });
  }

  /** The word that the address pins, if it is there. @returns {any} */
  function pinned() {
    const [side, place_] = (state.word || "").split("-");
    const count = side === "query" ? table.rows.length : table.columns.length;
    return (side === "query" || side === "key") && Number(place_) < count
      ? { side, place: Number(place_) }
      : null;
  }

  /** @param {any} word */
  function describe({ side, place: at }) {
    const [here, there] =
      side === "query" ? [table.rows, table.columns] : [table.columns, table.rows];
    const weights = there.map((item, other) => ({
      item,
      weight: side === "query" ? weightAt(table, at, other) : weightAt(table, other, at),
    }));
    // Up to three, but none that would be written as 0.00 beside the first.
    const best = weights
      .sort((one, other) => other.weight - one.weight)
      .slice(0, 3)
      .filter(({ weight }, rank) => rank === 0 || weight >= 0.005);
    const list = best
      .map(({ item, weight }) => `“${item.text}” ${number(weight, 2)}`)
      .join(text("shell.separator"));
    const hidden =
      side === "query" && table.hidden[at] > 0.0005
        ? ` ${text("trace.hidden", { share: percent(table.hidden[at]) })}`
        : "";
    return (
      text(side === "query" ? "trace.looks_at" : "trace.seen_by", { word: here[at].text, list }) +
      hidden
    );
  }

  function overview() {
    const hidden =
      table.hidden.reduce((sum, share) => sum + share, 0) / Math.max(table.hidden.length, 1);
    return hidden > 0.0005
      ? text("trace.hidden_overall", { share: percent(hidden) })
      : text("trace.choose");
  }

  sentence.start();
  return () => {
    sentence.end();
    picture.end();
    occlusion.end();
  };
}
