/*
 * What the drawings of parallel decodings share: a sheet that is shown on the page and saved as a
 * file, boxes with a piece of text, and a frame in which the arrow keys go from place to place.
 */

import { FONT_FAMILY, make, makeSvg, pageColour, pieceSpans } from "../dom.js";

const pen = document.createElement("canvas").getContext("2d");

/**
 * The width of a piece in a drawing, also if it is bold.
 * @param {string} piece @param {number} [size]
 */
export function widthOf(piece, size = 14) {
  pen.font = `650 ${size}px ${FONT_FAMILY}`;
  return pen.measureText(piece).width;
}

/**
 * An empty drawing. Live ones take their colours from the page's variables, so that they follow
 * the theme; saved ones hold the colours of the moment.
 * @param {number} width @param {number} height @param {boolean} live
 */
export function makeSheet(width, height, live) {
  const svg = makeSvg("svg", {
    xmlns: "http://www.w3.org/2000/svg",
    width: Math.ceil(width),
    height: Math.ceil(height),
    viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
    "font-family": FONT_FAMILY,
    "font-size": 14,
    ...(live ? { "aria-hidden": "true" } : {}),
  });
  const paint = painter(live);
  if (!live) svg.append(paint(makeSvg("rect", { width, height }), { fill: "--surface" }));
  return { svg, paint };
}

/** @param {boolean} live */
const painter =
  (live) =>
  /** @param {any} element @param {Record<string, string>} colours names of the page's variables */
  (element, colours) => {
    for (const [key, colour] of Object.entries(colours)) {
      if (live) element.style.setProperty(key, `var(${colour})`);
      else element.setAttribute(key, pageColour(colour));
    }
    return element;
  };

/** How a box is drawn for each state of a token; no state is told by its colour alone. */
export const LOOKS = {
  kept: { fill: "--surface", stroke: "--line-strong", ink: "--ink", width: 1.2 },
  new: { fill: "--accent-soft", stroke: "--accent", ink: "--ink", width: 2.5, weight: 650 },
  chosen: { fill: "--chosen", stroke: "--warm", ink: "--ink", width: 2.5, weight: 650 },
  gone: {
    fill: "--surface",
    stroke: "--bad",
    ink: "--muted",
    width: 1.2,
    dashes: "4 3",
    struck: true,
  },
  empty: { fill: "--raised", stroke: "--line-strong", ink: "--muted", width: 1.2, dashes: "4 3" },
};

/**
 * A box with a piece, and below it a bar for its probability.
 * @param {any} paint
 * @param {{x: number, y: number, width: number, piece: string, look: keyof typeof LOOKS, share?:
 *     number | null, height?: number}} parts
 */
export function makeBox(paint, { x, y, width, piece, look, share = null, height = 28 }) {
  const { fill, stroke, ink, width: line, dashes, weight, struck } = {
    dashes: null,
    weight: 400,
    struck: false,
    ...LOOKS[look],
  };
  const group = makeSvg(
    "g",
    {},
    paint(
      makeSvg("rect", {
        x,
        y,
        width,
        height,
        rx: 6,
        "stroke-width": line,
        "stroke-dasharray": dashes,
      }),
      { fill, stroke },
    ),
    paint(
      makeSvg(
        "text",
        {
          x: x + width / 2,
          y: y + height / 2 + 5,
          "text-anchor": "middle",
          "font-weight": weight,
          "text-decoration": struck ? "line-through" : null,
        },
        ...pieceSpans(piece),
      ),
      { fill: ink },
    ),
  );
  if (share !== null) {
    group.append(
      paint(makeSvg("rect", { x, y: y + height + 3, width, height: 5, rx: 2 }), { fill: "--line" }),
      paint(
        makeSvg("rect", {
          x,
          y: y + height + 3,
          width: Math.max(1.5, width * share),
          height: 5,
          rx: 2,
        }),
        { fill: "--accent" },
      ),
    );
  }
  return group;
}

/**
 * Small words in a drawing.
 * @param {any} paint @param {number} x @param {number} y @param {string} words
 * @param {Record<string, any>} [more]
 */
export const makeNote = (paint, x, y, words, more = {}) =>
  paint(makeSvg("text", { x, y, "font-size": 12, ...more }, words), { fill: "--muted" });

/**
 * The name of a row, on paper of its own: lines may run behind it.
 * @param {any} paint @param {number} x @param {number} y @param {string} words
 */
export const makeRowName = (paint, x, y, words) =>
  makeSvg(
    "g",
    {},
    paint(makeSvg("rect", { x: x - 2, y: y - 13, width: widthOf(words, 12) + 6, height: 18 }), {
      fill: "--surface",
    }),
    makeNote(paint, x, y, words),
  );

/**
 * A frame that scrolls a drawing. It is one stop for Tab; the arrow keys, Home and End go from
 * place to place inside it.
 * @param {{label: string, onChoose: (place: number) => void}} parts
 */
export function makeWalker({ label, onChoose }) {
  const frame = make("div", {
    class: "tree",
    tabindex: "0",
    role: "application",
    "aria-label": label,
  });
  let place = -1;
  let count = 0;
  let middle = (/** @type {number} */ _) => 0;
  const choose = (/** @type {number} */ next) => {
    place = Math.min(Math.max(next, 0), count - 1);
    onChoose(place);
  };
  frame.addEventListener("focus", () => {
    if (place < 0 && count && frame.matches(":focus-visible")) choose(0);
  });
  frame.addEventListener("keydown", (event) => {
    const next = {
      ArrowLeft: place - 1,
      ArrowRight: place + 1,
      ArrowUp: place - 1,
      ArrowDown: place + 1,
      Home: 0,
      End: count - 1,
    }[event.key];
    if (next === undefined || !count) return;
    choose(next);
    const x = middle(place);
    if (x < frame.scrollLeft + 40 || x > frame.scrollLeft + frame.clientWidth - 40)
      frame.scrollLeft = x - frame.clientWidth / 2;
    event.preventDefault();
  });
  return {
    frame,
    choose,
    /**
     * @param {SVGElement} svg @param {number} places
     * @param {(place: number) => number} middleOf where a place stands in the drawing
     */
    show(svg, places, middleOf) {
      [count, middle, place] = [places, middleOf, -1];
      frame.replaceChildren(svg);
    },
  };
}

/** A probability of its logarithm. @param {{log_probability: number}} one */
export const shareOf = ({ log_probability }) => Math.exp(log_probability);
