/*
 * A map of words: labelled points in an SVG as wide as its area. A label that would cover another
 * one is left out until its point is chosen; arrow keys move from point to point.
 *
 * @typedef {{word: string, x: number, y: number, asked: boolean}} Point
 */

import { FONT_FAMILY, make, makeSvg, pageColour } from "./dom.js";
import { markPath, styleOf } from "./line_styles.js";

const MARGIN = 34;

export class WordMap {
  /**
   * @param {HTMLElement} area
   * @param {{label: string, onChoice: (point: Point) => void}} options
   */
  constructor(area, { label, onChoice }) {
    this.onChoice = onChoice;
    this.picture = make("div", { class: "chart", role: "img", tabindex: "0", "aria-label": label });
    area.append(this.picture);
    this.place = -1;
    this.again = () => this.draw();
    this.observer = new ResizeObserver(this.again);
    this.observer.observe(this.picture);
    document.addEventListener("themechange", this.again);
    this.picture.addEventListener("keydown", (event) => this.walk(event));
    this.picture.addEventListener("pointermove", (event) => this.point(event));
  }

  end() {
    this.observer.disconnect();
    document.removeEventListener("themechange", this.again);
  }

  /** @param {Point[]} points */
  show(points) {
    this.points = points;
    this.place = -1;
    this.draw();
  }

  draw() {
    const width = Math.floor(this.picture.clientWidth);
    if (!this.points || width < 40) return;
    this.size = { width, height: Math.round(Math.min(560, Math.max(320, width * 0.66))) };
    this.picture.replaceChildren(this.toSvg());
  }

  /** @param {Point} point */
  at(point) {
    const { width, height } = this.size;
    return [
      MARGIN + ((point.x + 1) / 2) * (width - 2.6 * MARGIN),
      MARGIN / 2 + ((1 - point.y) / 2) * (height - MARGIN),
    ];
  }

  /** @returns {SVGElement} */
  toSvg() {
    const { width, height } = this.size;
    const svg = makeSvg("svg", {
      xmlns: "http://www.w3.org/2000/svg",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      "font-family": FONT_FAMILY,
      "font-size": 13,
      "aria-hidden": "true",
    });
    svg.append(makeSvg("rect", { width, height, rx: 6, fill: pageColour("--surface") }));
    const taken = [];
    const names = [];
    const dots = this.points.map((point) => {
      const [x, y] = this.at(point);
      return [x - 4, y - 4, x + 4, y + 4];
    });
    const order = this.points
      .map((_, place) => place)
      .sort((one, other) => this.rank(other) - this.rank(one));
    for (const place of order) {
      const point = this.points[place];
      const [x, y] = this.at(point);
      const style = styleOf(point.asked ? 1 : 0);
      const chosen = place === this.place;
      svg.append(
        makeSvg("path", {
          d: markPath(point.asked ? "diamond" : "circle", x, y, chosen ? 6.5 : 4),
          fill: style.colour,
          stroke: chosen ? pageColour("--ink") : "none",
          "stroke-width": 1.5,
        }),
      );
      const label = this.free(point.word, x, y, {
        width,
        height,
        taken,
        dots,
        must: chosen || point.asked,
      });
      if (!label) continue;
      names.push(
        makeSvg(
          "text",
          {
            x: label.x.toFixed(1),
            y: label.y.toFixed(1),
            fill: point.asked ? style.colour : pageColour("--ink"),
            "font-weight": point.asked || chosen ? 650 : 400,
            stroke: pageColour("--surface"),
            "stroke-width": 3,
            "paint-order": "stroke",
          },
          point.word,
        ),
      );
    }
    svg.append(...names.reverse()); // above every point, the words asked for above the others
    return svg;
  }

  /** @param {number} place */
  rank(place) {
    return (place === this.place ? 2 : 0) + (this.points[place].asked ? 1 : 0);
  }

  /**
   * The first of six places beside a point that covers no earlier name; one that covers no point
   * either, if there is one.
   * @param {string} word
   * @param {number} x
   * @param {number} y
   * @param {{width: number, height: number, taken: number[][], dots: number[][], must: boolean}}
   *     room
   */
  free(word, x, y, { width, height, taken, dots, must }) {
    const wide =
      6 + [...word].reduce((sum, letter) => sum + (letter.charCodeAt(0) > 0x2e7f ? 13.5 : 7.4), 0);
    const spots = [
      [x + 8, y + 4],
      [x - 6 - wide, y + 4],
      [x - wide / 2, y - 9],
      [x - wide / 2, y + 18],
      [x + 6, y - 8],
      [x + 6, y + 16],
    ];
    const boxes = spots.map(([left, base]) => [left, base - 12, left + wide, base + 4]);
    const covers = (box, other) =>
      box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3];
    const isInside = (box) => box[0] >= 0 && box[2] <= width && box[1] >= 0 && box[3] <= height;
    const open = boxes.filter((box) => isInside(box) && !taken.some((other) => covers(box, other)));
    const clear = open.find((box) => !dots.some((dot) => covers(box, dot)));
    // A neighbour's name waits until its point is chosen; what was asked for is always named.
    const found = clear ?? (must ? open[0] : undefined);
    if (found) {
      taken.push(found);
      return { x: found[0], y: found[3] - 4 };
    }
    return must ? { x: Math.max(0, Math.min(x + 8, width - wide)), y: Math.max(12, y + 4) } : null;
  }

  /** @param {PointerEvent} event */
  point(event) {
    if (!this.points) return;
    const frame = this.picture.getBoundingClientRect();
    const far = (place) => {
      const [x, y] = this.at(this.points[place]);
      return (x - event.clientX + frame.x) ** 2 + (y - event.clientY + frame.y) ** 2;
    };
    let best = 0;
    this.points.forEach((_, place) => {
      if (far(place) < far(best)) best = place;
    });
    if (far(best) < 900) this.choose(best);
  }

  /** The nearest point in the direction of the key. @param {KeyboardEvent} event */
  walk(event) {
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
      event.key
    ];
    if (!way || !this.points?.length) return;
    event.preventDefault();
    if (this.place < 0) {
      this.choose(0);
      return;
    }
    const [x, y] = this.at(this.points[this.place]);
    let best = -1;
    let least = Infinity;
    this.points.forEach((point, place) => {
      const [px, py] = this.at(point);
      const along = (px - x) * way[0] + (py - y) * way[1];
      const aside = Math.abs((px - x) * way[1]) + Math.abs((py - y) * way[0]);
      if (along > 0.5 && along + 2 * aside < least) {
        least = along + 2 * aside;
        best = place;
      }
    });
    if (best >= 0) this.choose(best);
  }

  /** @param {number} place */
  choose(place) {
    if (place === this.place) return;
    this.place = place;
    this.picture.replaceChildren(this.toSvg());
    this.onChoice(this.points[place]);
  }
}
