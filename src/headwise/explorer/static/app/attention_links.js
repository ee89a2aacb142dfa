/*
 * Attention as links: the words that are attended to above, the words that attend below, and a line
 * for each weight, wider the larger it is. Words are buttons that wrap like text; the lines are an
 * SVG behind them. Pointing at, focusing or tapping a word shows its links alone, with their
 * weights.
 * The live page and the saved page both use this file. Table and Item: see trace.js.
 */

import { FONT_FAMILY, make, makeSvg, pageColour, pieceParts, rove, SVG_NAMESPACE } from "./dom.js";
import { weightAt } from "./trace.js";

const LINKS_SHOWN = 4; // of each word, while no word is chosen
const SMALLEST_LINK = 0.04;
// With more than these, lines are drawn for the chosen word only: a thousand lines say nothing.
const MOST_WORDS = 160;

/** A point of an SVG path. @param {number} x @param {number} y */
const writePoint = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;

/** @typedef {{side: "query" | "key", place: number}} Word */

export class LinkPicture {
  /**
   * @param {HTMLElement} area
   * @param {{format: (weight: number) => string, onChoice: (word: Word | null) => void}} options
   */
  constructor(area, { format, onChoice }) {
    this.area = area;
    this.format = format;
    this.onChoice = onChoice;
    /** @type {Word | null} a word that was clicked stays chosen */
    this.pinned = null;
    /** @type {Word | null} the word under the pointer or the focus, else the pinned one */
    this.active = null;
    this.lines = () => this.drawLines();
    this.observer = new ResizeObserver(this.lines);
    this.observer.observe(area);
    document.addEventListener("themechange", this.lines);
  }

  end() {
    this.observer.disconnect();
    document.removeEventListener("themechange", this.lines);
  }

  /**
   * @param {Table} table
   * @param {{query: string, key: string}} names of the two rows
   * @param {Word | null} [pinned]
   */
  show(table, names, pinned = null) {
    this.table = table;
    this.pinned = this.active = pinned;
    this.svg = makeSvg("svg", { "aria-hidden": "true" });
    this.keys = this.makeRow(table.columns, "key", names.key);
    this.queries = this.makeRow(table.rows, "query", names.query);
    this.area.classList.add("links");
    this.area.replaceChildren(
      this.svg,
      make("p", { class: "row-name" }, names.key),
      this.keys,
      make("div", { class: "gap" }),
      this.queries,
      make("p", { class: "row-name" }, names.query),
    );
    this.refresh();
  }

  /** @param {Item[]} items @param {"query" | "key"} side @param {string} name */
  makeRow(items, side, name) {
    const row = make("div", { class: `words ${side}`, role: "group", "aria-label": name });
    items.forEach((item, place) => {
      const button = make(
        "button",
        { type: "button", "aria-pressed": "false" },
        make("span", { lang: item.language, dir: "auto" }, ...pieceParts(item.text)),
        make("small", {}),
      );
      const here = { side, place };
      button.addEventListener("pointerenter", (event) => {
        if (event.pointerType === "mouse") this.activate(here);
      });
      button.addEventListener("pointerleave", (event) => {
        if (event.pointerType === "mouse") this.activate(this.pinned);
      });
      button.addEventListener("focus", () => {
        if (button.matches(":focus-visible")) this.activate(here);
      });
      button.addEventListener("blur", () => this.activate(this.pinned));
      button.addEventListener("click", () => {
        this.pinned = this.isWord(this.pinned, side, place) ? null : here;
        this.activate(this.pinned, { again: true });
      });
      row.append(button);
    });
    row.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.pinned = null;
      this.activate(null);
    });
    rove(row);
    return row;
  }

  /** @param {Word | null} word @param {string} side @param {number} place */
  isWord(word, side, place) {
    return word !== null && word.side === side && word.place === place;
  }

  /**
   * @param {Word | null} word
   * @param {{again?: boolean}} [options] again: though it is active already
   */
  activate(word, { again = false } = {}) {
    if (this.active === word && !again) return;
    this.active = word;
    this.refresh();
    this.onChoice(word);
  }

  /** The weights between the active word and each word of the other row. @param {number} place */
  weightFromActive(place) {
    return this.active.side === "query"
      ? weightAt(this.table, this.active.place, place)
      : weightAt(this.table, place, this.active.place);
  }

  /** Weights and marks on the boxes, then the lines. */
  refresh() {
    for (const [side, row] of /** @type {["key" | "query", HTMLElement][]} */ ([
      ["key", this.keys],
      ["query", this.queries],
    ])) {
      [...row.children].forEach((button, place) => {
        const other = this.active !== null && this.active.side !== side;
        const weight = other ? this.weightFromActive(place) : 0;
        button.classList.toggle("chosen", this.isWord(this.active, side, place));
        button.classList.toggle("linked", other && Math.abs(weight) >= SMALLEST_LINK);
        button.setAttribute("aria-pressed", String(this.isWord(this.pinned, side, place)));
        button.lastChild.textContent =
          other && Math.abs(weight) >= 0.005 ? this.format(weight) : "";
      });
    }
    this.drawLines();
  }

  /**
   * The links to draw: all of the active word, or the strongest of each.
   * @returns {{row: number, column: number, weight: number}[]}
   */
  chosenLinks() {
    const { rows, columns } = this.table;
    if (!this.active && rows.length + columns.length > MOST_WORDS) return [];
    const links = [];
    rows.forEach((_, row) => {
      if (this.active && this.active.side === "query" && this.active.place !== row) return;
      const all = columns
        .map((__, column) => ({ row, column, weight: weightAt(this.table, row, column) }))
        .filter(
          (link) =>
            Math.abs(link.weight) >= SMALLEST_LINK &&
            (!this.active || this.active.side === "query" || this.active.place === link.column),
        );
      links.push(
        ...(this.active
          ? all
          : all
              .sort((one, other) => Math.abs(other.weight) - Math.abs(one.weight))
              .slice(0, LINKS_SHOWN)),
      );
    });
    return links;
  }

  drawLines() {
    if (!this.svg || !this.area.isConnected) return;
    const frame = this.area.getBoundingClientRect();
    const box = (row, place) => row.children[place].getBoundingClientRect();
    this.svg.replaceChildren(
      ...this.chosenLinks().map((link) => {
        const [key, query] = [box(this.keys, link.column), box(this.queries, link.row)];
        return this.makeLine(
          key.x + key.width / 2 - frame.x,
          key.bottom - frame.y,
          query.x + query.width / 2 - frame.x,
          query.y - frame.y,
          link.weight,
          "currentColor",
        );
      }),
    );
  }

  /**
   * A line that leaves and arrives upright.
   * @param {number} x
   * @param {number} y
   * @param {number} endX
   * @param {number} endY
   * @param {number} weight
   * @param {string} colour
   */
  makeLine(x, y, endX, endY, weight, colour) {
    const strength = Math.min(1, Math.abs(weight)); // a weight below zero is a broken line
    const bend = (endY - y) * 0.45;
    const [start, end] = [writePoint(x, y), writePoint(endX, endY)];
    const controls = [writePoint(x, y + bend), writePoint(endX, endY - bend)];
    return makeSvg("path", {
      d: `M${start} C${controls.join(" ")} ${end}`,
      fill: "none",
      stroke: colour,
      "stroke-width": (0.6 + 6 * strength).toFixed(2),
      "stroke-opacity": (0.18 + 0.82 * strength).toFixed(3),
      "stroke-linecap": "round",
      "stroke-dasharray": weight < 0 ? "6 6" : null,
    });
  }

  /** The picture by itself, as the page shows it. @returns {SVGElement} */
  toSvg() {
    const frame = this.area.getBoundingClientRect();
    const [width, height] = [Math.ceil(frame.width), Math.ceil(frame.height)];
    const svg = makeSvg("svg", {
      xmlns: SVG_NAMESPACE,
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
    });
    svg.append(makeSvg("rect", { width, height, fill: pageColour("--surface") }));
    const accent = pageColour("--accent");
    for (const path of this.svg.children) {
      const copy = /** @type {Element} */ (path.cloneNode());
      copy.setAttribute("stroke", accent);
      svg.append(copy);
    }
    for (const row of [this.keys, this.queries]) {
      for (const button of row.children)
        svg.append(...this.boxAsSvg(/** @type {HTMLElement} */ (button), frame));
    }
    return svg;
  }

  /** @param {HTMLElement} button @param {DOMRect} frame */
  boxAsSvg(button, frame) {
    const box = button.getBoundingClientRect();
    const chosen = button.classList.contains("chosen");
    const [x, y] = [box.x - frame.x, box.y - frame.y];
    const parts = [
      makeSvg("rect", {
        x,
        y,
        width: box.width,
        height: box.height,
        rx: 6,
        fill: pageColour(chosen ? "--chosen" : "--surface"),
        stroke: pageColour("--line"),
      }),
      makeSvg(
        "text",
        {
          x: x + box.width / 2,
          y: y + 19,
          "text-anchor": "middle",
          "font-family": FONT_FAMILY,
          "font-size": 15,
          fill: pageColour("--ink"),
        },
        button.firstChild.textContent,
      ),
    ];
    const weight = button.lastChild.textContent;
    if (weight)
      parts.push(
        makeSvg(
          "text",
          {
            x: x + box.width / 2,
            y: y + 33,
            "text-anchor": "middle",
            "font-family": FONT_FAMILY,
            "font-size": 11,
            fill: pageColour("--muted"),
          },
          weight,
        ),
      );
    return parts;
  }
}
