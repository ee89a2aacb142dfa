/*
 * The heat map of the saved page: a table of weights on a canvas, with its words and a colour
 * scale. Pointer and arrow keys choose a cell. The line below the canvas says the cell in words for
 * screen readers, and a table below it holds every number.
 */

/*
 * From low to high. Dark paper: like viridis. Light paper: the same hues from pale to deep, so that
 * nothing is pale.
 */
const RAMPS = {
  dark: ["#1d1233", "#443a83", "#31688e", "#21918c", "#35b779", "#90d743", "#fde725"],
  light: ["#f6f7f2", "#d6e9b9", "#93d0a0", "#45a89b", "#2b768e", "#364f8a", "#3b1a66"],
};
/* Of weights that may be negative: blue below zero, red above, the paper's own tone between. */
const SIGNED_RAMPS = {
  dark: ["#8fc4ff", "#3f7fc8", "#284a74", "#202329", "#743328", "#c8543f", "#ffab8f"],
  light: ["#0b3c73", "#3f7fc8", "#b3cfec", "#f6f6f4", "#f0c0b4", "#c8543f", "#73170b"],
};
const LABEL_FONT =
  '13px system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';
const WIDE_CHARACTER = /[\u2e80-\u2fdf\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]/;
const LONGEST_LABEL = 130;

/** 256 colours of a ramp as red, green, blue. @param {string[]} stops @returns {number[][]} */
function rampColours(stops) {
  const rgb = stops.map((stop) =>
    [1, 3, 5].map((place) => parseInt(stop.slice(place, place + 2), 16)),
  );
  return Array.from({ length: 256 }, (_, step) => {
    const position = (step / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(position), stops.length - 2);
    return rgb[low].map((value, channel) =>
      Math.round(value + (rgb[low + 1][channel] - value) * (position - low)),
    );
  });
}

const COLOURS = [RAMPS, SIGNED_RAMPS].map((ramps) => ({
  dark: rampColours(ramps.dark),
  light: rampColours(ramps.light),
}));

/** The colours for the theme of the moment. @param {boolean} signed */
function themeColours(signed) {
  return COLOURS[signed ? 1 : 0][
    document.documentElement.dataset.theme === "dark" ? "dark" : "light"
  ];
}

/**
 * The colour of a value between the lowest and the largest.
 * @param {number[][]} colours
 * @param {number} value
 * @param {number} lowest
 * @param {number} largest
 */
function colourOf(colours, value, lowest, largest) {
  return colours[
    Math.min(255, Math.max(0, Math.round((255 * (value - lowest)) / (largest - lowest))))
  ];
}

/**
 * The ends of the scale: 0 and the largest weight, or as far below zero as above it.
 * @param {Table} view
 * @param {number} [largest]
 */
function endsOf(view, largest = 1e-9) {
  const most = view.weights.reduce((found, weight) => Math.max(found, Math.abs(weight)), largest);
  return { lowest: view.signed ? -most : 0, largest: most };
}

/**
 * A table as a canvas of one pixel a cell: writing pixels is much faster than drawing squares.
 * @param {HTMLCanvasElement} canvas
 * @param {Table} view
 * @param {{lowest: number, largest: number}} ends
 */
function drawPixels(canvas, view, { lowest, largest }) {
  canvas.width = view.columns.length;
  canvas.height = view.rows.length;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(canvas.width, canvas.height);
  const colours = themeColours(view.signed);
  view.weights.forEach((weight, place) =>
    image.data.set([...colourOf(colours, weight, lowest, largest), 255], 4 * place),
  );
  pen.putImageData(image, 0, 0);
}

class HeatMap {
  /**
   * @param {HTMLElement} area focusable, holds a canvas
   * @param {(row: number, column: number) => void} onCell told which cell is read (-1: none)
   */
  constructor(area, onCell) {
    this.area = area;
    this.onCell = onCell;
    this.canvas = /** @type {HTMLCanvasElement} */ (area.querySelector("canvas"));
    // The map without the mark, so that moving the mark is cheap.
    this.picture = document.createElement("canvas");
    this.cell = { row: -1, column: -1 };
    this.width = 0;
    this.canvas.addEventListener("pointermove", (event) => this.pointAt(event));
    this.canvas.addEventListener("pointerdown", (event) => this.pointAt(event));
    area.addEventListener("keydown", (event) => this.walk(event));
    area.addEventListener("focus", () => {
      if (this.cell.row < 0) this.choose(0, 0);
    });
    new ResizeObserver(() => {
      if (area.clientWidth !== this.width) this.draw();
    }).observe(area);
  }

  /** @param {Table} view */
  show(view) {
    this.view = view;
    this.cell = { row: -1, column: -1 };
    this.onCell(-1, -1);
    this.draw();
  }

  /**
   * Where things stand: the labels get what they need, the cells share the rest of the width.
   * @param {CanvasRenderingContext2D} pen
   */
  measure(pen) {
    const { rows, columns } = this.view;
    pen.font = LABEL_FONT;
    const widthOf = (item) => Math.min(pen.measureText(item.text).width, LONGEST_LABEL);
    this.upright = columns.some((item) => WIDE_CHARACTER.test(item.text));
    const left = Math.max(...rows.map(widthOf)) + 10;
    const lean = this.upright ? 0 : Math.max(...columns.map(widthOf)) * Math.SQRT1_2;
    const top = this.upright
      ? Math.min(Math.max(...columns.map((item) => this.stack(item.text).length)), 8) * 15 + 8
      : lean + 14;
    const room = this.width - left - Math.max(lean - 20, 8);
    const size = Math.max(Math.min(room / columns.length, 40), columns.length > 64 ? 5 : 15);
    const height = Math.min(size, 34);
    Object.assign(this, { left, top, size, height });
    return {
      width: left + size * columns.length + Math.max(lean, 8),
      height: top + height * rows.length + 40,
    };
  }

  /**
   * Chinese and Japanese characters one below the other, anything else in one line.
   * @param {string} text
   */
  stack(text) {
    return [...text].every((character) => WIDE_CHARACTER.test(character)) ? [...text] : [text];
  }

  /** Draw everything anew. */
  draw() {
    if (!this.view) return;
    this.width = this.area.clientWidth;
    const density = window.devicePixelRatio || 1;
    const { width, height } = this.measure(this.picture.getContext("2d"));
    for (const canvas of [this.picture, this.canvas]) {
      canvas.width = Math.round(width * density);
      canvas.height = Math.round(height * density);
    }
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const pen = this.picture.getContext("2d");
    pen.setTransform(density, 0, 0, density, 0, 0);
    pen.font = LABEL_FONT;
    this.drawCells(pen);
    this.drawLabels(pen);
    this.drawScale(pen, height);
    this.paint();
  }

  /** @param {CanvasRenderingContext2D} pen */
  drawCells(pen) {
    const { rows, columns } = this.view;
    this.ends = endsOf(this.view);
    const pixels = document.createElement("canvas");
    drawPixels(pixels, this.view, this.ends);
    const [width, height] = [this.size * columns.length, this.height * rows.length];
    pen.imageSmoothingEnabled = false;
    pen.drawImage(pixels, this.left, this.top, width, height);
    if (this.size > 8) {
      // seams between the cells, in the colour of the paper
      pen.fillStyle = pageColour("--paper");
      columns.forEach((_, j) =>
        pen.fillRect(this.left + (j + 1) * this.size - 1, this.top, 1, height),
      );
      rows.forEach((_, i) =>
        pen.fillRect(this.left, this.top + (i + 1) * this.height - 1, width, 1),
      );
    }
    pen.strokeStyle = pageColour("--line");
    pen.strokeRect(this.left - 0.5, this.top - 0.5, width, height);
  }

  /**
   * Angled words above for Latin, upright characters for Chinese; names that would overlap are left
   * out.
   * @param {CanvasRenderingContext2D} pen
   */
  drawLabels(pen) {
    const { rows, columns } = this.view;
    pen.fillStyle = pageColour("--ink");
    pen.textBaseline = "middle";
    const everyRow = Math.ceil(13 / this.height);
    const everyColumn = Math.ceil(13 / this.size);
    pen.textAlign = "right";
    rows.forEach((item, i) => {
      if (i % everyRow === 0)
        pen.fillText(item.text, this.left - 6, this.top + (i + 0.5) * this.height, LONGEST_LABEL);
    });
    columns.forEach((item, j) => {
      if (j % everyColumn !== 0) return;
      const x = this.left + (j + 0.5) * this.size;
      if (this.upright) {
        pen.textAlign = "center";
        const lines = this.stack(item.text).slice(0, 8);
        lines.forEach((line, k) =>
          pen.fillText(
            line,
            x,
            this.top - 10 - (lines.length - 1 - k) * 15,
            lines.length > 1 ? 20 : this.size * 1.4,
          ),
        );
        return;
      }
      pen.save();
      pen.textAlign = "left";
      pen.translate(x, this.top - 8);
      pen.rotate(-Math.PI / 4);
      pen.fillText(item.text, 0, 0, LONGEST_LABEL);
      pen.restore();
    });
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} height */
  drawScale(pen, height) {
    const [x, y, length] = [
      this.left,
      height - 22,
      Math.min(160, this.size * this.view.columns.length),
    ];
    const colours = themeColours(this.view.signed);
    for (let step = 0; step < length; step += 1) {
      pen.fillStyle = `rgb(${colourOf(colours, step, 0, length).join(",")})`;
      pen.fillRect(x + step, y, 1.5, 9);
    }
    pen.fillStyle = pageColour("--muted");
    pen.textAlign = "right";
    pen.fillText(this.view.signed ? this.ends.lowest.toFixed(2) : "0", x - 5, y + 5);
    pen.textAlign = "left";
    pen.fillText(this.ends.largest.toFixed(2), x + length + 6, y + 5);
  }

  /** The picture and the mark around the cell that is read. */
  paint() {
    const pen = this.canvas.getContext("2d");
    const density = window.devicePixelRatio || 1;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.picture, 0, 0);
    if (this.cell.row < 0) return;
    pen.setTransform(density, 0, 0, density, 0, 0);
    const [x, y] = [
      this.left + this.cell.column * this.size,
      this.top + this.cell.row * this.height,
    ];
    for (const [colour, inset] of /** @type {[string, number][]} */ ([
      [pageColour("--paper"), 1],
      [pageColour("--ink"), -1],
    ])) {
      pen.strokeStyle = colour;
      pen.lineWidth = 2;
      pen.strokeRect(x + inset, y + inset, this.size - 1 - 2 * inset, this.height - 1 - 2 * inset);
    }
  }

  /** @param {PointerEvent} event */
  pointAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.x - this.left) / this.size);
    const row = Math.floor((event.clientY - box.y - this.top) / this.height);
    const inside =
      row >= 0 && column >= 0 && row < this.view.rows.length && column < this.view.columns.length;
    if (inside) this.choose(row, column);
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const steps = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      Home: [0, -Infinity],
      End: [0, Infinity],
    };
    const step = steps[event.key];
    if (!step) return;
    const within = (value, length) => Math.min(Math.max(value, 0), length - 1);
    this.choose(
      within(this.cell.row + step[0], this.view.rows.length),
      within(this.cell.column + step[1], this.view.columns.length),
    );
    event.preventDefault();
  }

  /** @param {number} row @param {number} column */
  choose(row, column) {
    if (row === this.cell.row && column === this.cell.column) return;
    this.cell = { row, column };
    this.onCell(row, column);
    this.paint();
  }
}
