/*
 * Draws a table of numbers as a heat map. The names of rows and columns stay visible while one
 * scrolls, the value under the pointer or the arrow keys is written below, and colours are linear
 * or logarithmic. The picture is hidden from screen readers (`aria-hidden`); the arrow keys read
 * the cells one by one, and a table below the figure holds all numbers. The live page and the saved
 * page both use this file; heat_map_svg.js writes the picture as a file.
 *
 *     const map = new HeatMap(area, {label: "…", onCell: (row, column, value) => …});
 *     map.show({rows, columns, values}, {scale: "log"});   // items: {text, language}; row by row
 */

import { colourName, drawPixels, largestOf, rampBytes, scaleEnds } from "./colour_scales.js";
import { FONT_FAMILY, make, pageColour } from "./dom.js";

/** Leaning names of narrow columns stand close. @param {number} size of a cell */
const labelFont = (size) => `${size < 20 ? 12 : 13}px ${FONT_FAMILY}`;
const WIDE = /^[\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]+$/;
const LONGEST_LABEL = 120;
const SEAMED = 12; // cells from this size on are drawn apart
const PALE = 0.35; // the mark of a word's beginning
const SMALLEST = { few: 16, many: 6, all: 1 };
const FITTING_HEIGHT = 460;

/**
 * @typedef {{text: string, language?: string}} Item
 * @typedef {{rows: Item[], columns: Item[], values: ArrayLike<number>}} Numbers
 */

export class HeatMap {
  /**
   * @param {HTMLElement} area
   * @param {{label: string, onCell?: (row: number, column: number, value: number) => void, format?:
   *     (value: number) => string, kind?: "sequence" | "diverging", fits?: boolean}} options fits:
   *     the whole table in sight, however small its cells
   */
  constructor(
    area,
    {
      label,
      onCell = () => {},
      format = (value) => value.toFixed(2),
      kind = "sequence",
      fits = false,
    },
  ) {
    Object.assign(this, {
      area,
      onCell,
      format,
      kind,
      fits,
      cell: { row: -1, column: -1 },
      how: {},
    });
    const quiet = { "aria-hidden": "true" };
    this.corner = make("div", { class: "matrix-corner" });
    this.top = make("canvas", { class: "matrix-top", ...quiet });
    this.left = make("canvas", { class: "matrix-left", ...quiet });
    this.pixels = make("canvas", { class: "matrix-pixels", ...quiet });
    this.mark = make("div", { class: "matrix-mark", hidden: true });
    this.body = make("div", { class: "matrix-body" }, this.pixels, this.mark);
    this.frame = make(
      "div",
      { class: "matrix", tabindex: "0", role: "application", "aria-label": label },
      this.corner,
      this.top,
      this.left,
      this.body,
    );
    this.ramp = make("canvas", { class: "matrix-ramp", width: 128, height: 1, ...quiet });
    this.low = make("span", {});
    this.high = make("span", {});
    area.append(
      this.frame,
      make("div", { class: "matrix-scale", ...quiet }, this.low, this.ramp, this.high),
    );
    this.body.addEventListener("pointermove", (event) => this.pointAt(event));
    this.body.addEventListener("pointerdown", (event) => this.pointAt(event));
    this.frame.addEventListener("keydown", (event) => this.walk(event));
    this.frame.addEventListener("focus", () => {
      if (this.cell.row < 0 && this.numbers && this.frame.matches(":focus-visible"))
        this.choose(0, 0);
    });
    this.redraw = () => this.draw();
    document.addEventListener("themechange", this.redraw);
    this.observer = new ResizeObserver(() => {
      if (this.frame.clientWidth !== this.width) this.draw();
    });
    this.observer.observe(this.frame);
  }

  end() {
    this.observer.disconnect();
    document.removeEventListener("themechange", this.redraw);
  }

  /**
   * @param {Numbers} numbers
   * @param {{scale?: "linear" | "log", largest?: number, kind?: "sequence" | "diverging"}} [how]
   */
  show(numbers, { scale = "linear", largest = 0, kind = this.kind } = {}) {
    this.numbers = numbers;
    this.kind = kind;
    this.how = { scale, kind: this.kind, largest: largest || largestOf(numbers.values) };
    this.cell = { row: -1, column: -1 };
    this.mark.hidden = true;
    this.draw();
  }

  /** @param {number} row @param {number} column */
  valueAt(row, column) {
    return this.numbers.values[row * this.numbers.columns.length + column];
  }

  /** Names get what they need, the cells share the rest of the width. */
  measure() {
    const pen = this.top.getContext("2d");
    pen.font = labelFont(Infinity);
    const { rows, columns } = this.numbers;
    const widest = (items) =>
      Math.ceil(
        Math.min(
          LONGEST_LABEL,
          items.reduce((most, item) => Math.max(most, pen.measureText(item.text).width), 0),
        ),
      );
    this.width = this.frame.clientWidth;
    this.isUpright = columns.every(
      (item) => WIDE.test(item.text) || /^.?$|^<\/?s>$/.test(item.text),
    );
    this.leftWidth = widest(rows) + 12;
    const longest = widest(columns);
    this.lean = this.isUpright ? 0 : Math.ceil(longest * Math.SQRT1_2);
    this.topHeight = this.isUpright
      ? 15 *
          Math.min(
            6,
            Math.max(
              1,
              ...columns.map((item) => (WIDE.test(item.text) ? [...item.text].length : 1)),
            ),
          ) +
        10
      : this.lean + 18;
    const room = this.width - this.leftWidth - Math.max(this.lean, 8) - 4;
    const smallest = this.fits ? SMALLEST.all : columns.length > 64 ? SMALLEST.many : SMALLEST.few;
    this.size = Math.max(smallest, Math.min(38, Math.floor(room / columns.length)));
    this.height = this.fits
      ? Math.max(SMALLEST.all, Math.min(this.size, 30, Math.floor(FITTING_HEIGHT / rows.length)))
      : Math.max(rows.length > 64 ? SMALLEST.many : SMALLEST.few, Math.min(this.size, 30));
  }

  /**
   * Every n-th name is written: leaning ones need 14 pixels, and many numbers in a row are
   * easier to read further apart.
   */
  get everyColumn() {
    return Math.ceil((this.fits ? 28 : 14) / this.size);
  }

  get everyRow() {
    return Math.ceil((this.fits ? 18 : 14) / this.height);
  }

  /** Whether the cells are drawn apart. */
  get isSeamed() {
    return this.size >= SEAMED;
  }

  draw() {
    if (!this.numbers || !this.frame.isConnected) return;
    const { rows, columns, values } = this.numbers;
    this.measure();
    drawPixels(this.pixels, values, rows.length, columns.length, this.how);
    const [width, height] = [this.size * columns.length, this.height * rows.length];
    const style = (element, changes) => Object.assign(element.style, changes);
    style(this.frame, {
      gridTemplateColumns: `${this.leftWidth}px ${width + Math.max(this.lean, 8)}px`,
    });
    style(this.pixels, { width: `${width}px`, height: `${height}px` });
    style(this.body, {
      width: `${width}px`,
      height: `${height}px`,
      backgroundSize: `${this.size}px ${this.height}px`,
    });
    this.body.classList.toggle("seams", this.isSeamed);
    this.body.style.setProperty("--cell-width", `${this.size}px`);
    this.body.style.setProperty("--cell-height", `${this.height}px`);
    this.drawLeft(this.prepare(this.left, this.leftWidth, height));
    this.drawTop(this.prepare(this.top, width + Math.max(this.lean, 8), this.topHeight));
    const bytes = rampBytes(this.kind);
    const steps = Array.from({ length: 128 }, (_, step) => 2 * step);
    const pen = this.ramp.getContext("2d");
    steps.forEach((step, x) => {
      pen.fillStyle = colourName(bytes, step);
      pen.fillRect(x, 0, 1, 1);
    });
    [this.low.textContent, this.high.textContent] = scaleEnds(
      this.how.largest,
      this.how,
      this.format,
    );
    this.placeMark();
  }

  /**
   * A sharp canvas of this size on the screen.
   * @param {HTMLCanvasElement} canvas
   * @param {number} width
   * @param {number} height
   */
  prepare(canvas, width, height) {
    const density = Math.min(window.devicePixelRatio || 1, 2);
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(height * density);
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    const pen = canvas.getContext("2d");
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.font = labelFont(this.size);
    pen.fillStyle = pageColour("--ink");
    pen.textBaseline = "middle";
    return pen;
  }

  /**
   * Names that would overlap are left out: every k-th stays.
   * @param {CanvasRenderingContext2D} pen
   */
  drawLeft(pen) {
    const every = this.everyRow;
    const last = this.height * this.numbers.rows.length;
    this.numbers.rows.forEach((item, row) => {
      if (row % every === 0)
        write(
          pen,
          item.text,
          this.leftWidth - 7,
          Math.min(Math.max(8, (row + 0.5) * this.height), last - 7),
          "right",
        );
    });
  }

  /** Latin names lean, Chinese ones stand upright. @param {CanvasRenderingContext2D} pen */
  drawTop(pen) {
    const every = this.everyColumn;
    this.numbers.columns.forEach((item, column) => {
      if (column % every !== 0) return;
      const x = (column + 0.5) * this.size;
      if (this.isUpright) {
        pen.textAlign = "center";
        const lines = WIDE.test(item.text) ? [...item.text].slice(0, 6) : [item.text];
        pen.globalAlpha = item.text === "▁" ? PALE : 1;
        lines.forEach((line, k) =>
          pen.fillText(line, x, this.topHeight - 11 - (lines.length - 1 - k) * 15, 30),
        );
        pen.globalAlpha = 1;
        return;
      }
      pen.save();
      pen.translate(x, this.topHeight - 7);
      pen.rotate(-Math.PI / 4);
      write(pen, item.text, 0, 0, "left");
      pen.restore();
    });
  }

  /** @param {PointerEvent} event */
  pointAt(event) {
    const box = this.body.getBoundingClientRect();
    const [row, column] = [
      Math.floor((event.clientY - box.y) / this.height),
      Math.floor((event.clientX - box.x) / this.size),
    ];
    if (
      row >= 0 &&
      column >= 0 &&
      row < this.numbers.rows.length &&
      column < this.numbers.columns.length
    )
      this.choose(row, column);
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const step = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      Home: [0, -1e6],
      End: [0, 1e6],
      PageUp: [-10, 0],
      PageDown: [10, 0],
    }[event.key];
    if (!step || !this.numbers) return;
    const within = (value, length) => Math.min(Math.max(value, 0), length - 1);
    this.choose(
      within(this.cell.row + step[0], this.numbers.rows.length),
      within(this.cell.column + step[1], this.numbers.columns.length),
    );
    this.mark.scrollIntoView({ block: "nearest", inline: "nearest" });
    event.preventDefault();
  }

  /** @param {number} row @param {number} column */
  choose(row, column) {
    if (row === this.cell.row && column === this.cell.column) return;
    this.cell = { row, column };
    this.placeMark();
    this.onCell(row, column, this.valueAt(row, column));
  }

  placeMark() {
    const { row, column } = this.cell;
    this.mark.hidden = row < 0;
    if (row < 0) return;
    Object.assign(this.mark.style, {
      left: `${column * this.size}px`,
      top: `${row * this.height}px`,
      width: `${this.size}px`,
      height: `${this.height}px`,
    });
  }
}

/**
 * A name, the marks of words' beginnings paler than the rest.
 * @param {CanvasRenderingContext2D} pen
 * @param {string} words
 * @param {number} x
 * @param {number} y
 * @param {"left" | "right"} align
 */
function write(pen, words, x, y, align) {
  const whole = pen.measureText(words).width;
  pen.textAlign = align;
  if (!words.includes("▁") || whole > LONGEST_LABEL) {
    pen.fillText(words, x, y, LONGEST_LABEL);
    return;
  }
  pen.textAlign = "left";
  let at = align === "right" ? x - whole : x;
  for (const part of words.split(/(▁)/)) {
    pen.globalAlpha = part === "▁" ? PALE : 1;
    pen.fillText(part, at, y);
    at += pen.measureText(part).width;
  }
  pen.globalAlpha = 1;
}
