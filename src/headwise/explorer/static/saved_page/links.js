/*
 * The link view: what is looked at above, what looks below, lines between them whose width is the weight.
 * Words are real buttons that wrap like text; the lines are an SVG behind them, drawn from where the boxes stand.
 */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const LINKS_SHOWN = 4; // of each word, while no word is chosen
const SMALLEST_LINK = 0.04;

/** @param {string} name @param {Record<string, string | number>} attributes @param {string} [text] */
function makeSvg(name, attributes, text) {
  const element = document.createElementNS(SVG_NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

/** The value of a colour variable of the page. @param {string} name */
function pageColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

class LinkView {
  /**
   * @param {HTMLElement} area where to draw
   * @param {(side: "query" | "key" | null, place: number) => void} onChoice told when a word is chosen or let go
   * @param {(value: number) => string} format writes a weight
   */
  constructor(area, onChoice, format) {
    this.area = area;
    this.onChoice = onChoice;
    this.format = format;
    /** @type {{side: "query" | "key", place: number} | null} a word clicked on stays chosen */
    this.pinned = null;
    /** @type {{side: "query" | "key", place: number} | null} the word under the pointer or focus, else the pinned one */
    this.active = null;
    new ResizeObserver(() => this.drawLines()).observe(area);
  }

  /** Show another table. @param {Table} view @param {{query: string, key: string}} names of the two rows of words */
  show(view, names) {
    this.view = view;
    this.pinned = this.active = null;
    this.svg = makeSvg("svg", { "aria-hidden": "true" });
    this.keys = this.makeRow(view.columns, "key", names.key);
    this.queries = this.makeRow(view.rows, "query", names.query);
    const name = (text) => makeElement("p", { class: "row_name" }, text);
    this.area.replaceChildren(
      this.svg, name(names.key), this.keys, makeElement("div", { class: "gap" }), this.queries, name(names.query),
    );
    this.refresh();
  }

  /** A row of word buttons, of which Tab reaches one and the arrow keys the others. @param {Item[]} items @param {"query" | "key"} side @param {string} name */
  makeRow(items, side, name) {
    const row = makeElement("div", { class: "words", role: "group", "aria-label": name });
    items.forEach((item, place) => {
      const button = makeElement("button", { type: "button", tabindex: place === 0 ? "0" : "-1", "aria-pressed": "false" });
      button.append(makeElement("span", { lang: item.language, dir: "auto" }, item.text), makeElement("small", {}));
      button.addEventListener("pointerenter", () => this.activate({ side, place }));
      button.addEventListener("pointerleave", () => this.activate(this.pinned));
      button.addEventListener("focus", () => this.activate({ side, place }));
      button.addEventListener("blur", () => this.activate(this.pinned));
      button.addEventListener("click", () => {
        const same = this.pinned && this.pinned.side === side && this.pinned.place === place;
        this.pinned = same ? null : { side, place };
        this.activate(this.pinned);
      });
      row.append(button);
    });
    row.addEventListener("keydown", (event) => this.moveFocus(event, row));
    return row;
  }

  /** @param {KeyboardEvent} event @param {HTMLElement} row */
  moveFocus(event, row) {
    const buttons = /** @type {HTMLElement[]} */ ([...row.children]);
    const place = buttons.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const steps = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: buttons.length - 1 };
    if (event.key === "Escape") {
      this.pinned = null;
      this.activate(null);
    } else if (event.key in steps) {
      const next = Math.min(Math.max(steps[event.key], 0), buttons.length - 1);
      buttons.forEach((button, number) => { button.tabIndex = number === next ? 0 : -1; });
      buttons[next].focus();
      event.preventDefault();
    }
  }

  /** @param {{side: "query" | "key", place: number} | null} word */
  activate(word) {
    this.active = word;
    this.refresh();
    this.onChoice(word ? word.side : null, word ? word.place : -1);
  }

  /** Weights and marks on the boxes, then the lines. */
  refresh() {
    for (const [side, row] of /** @type {const} */ ([["key", this.keys], ["query", this.queries]])) {
      [...row.children].forEach((button, place) => {
        const chosen = this.active !== null && this.active.side === side && this.active.place === place;
        const other = this.active !== null && this.active.side !== side;
        const weight = other ? this.weightFromActive(place) : 0;
        button.classList.toggle("chosen", chosen);
        button.classList.toggle("linked", other && Math.abs(weight) >= SMALLEST_LINK);
        button.setAttribute("aria-pressed", String(this.pinned !== null && this.pinned.side === side && this.pinned.place === place));
        button.lastChild.textContent = other ? this.format(weight) : "";
      });
    }
    this.drawLines();
  }

  /** The weight between the active word and a word of the other row. @param {number} place */
  weightFromActive(place) {
    return this.active.side === "query" ? weightAt(this.view, this.active.place, place) : weightAt(this.view, place, this.active.place);
  }

  /** The links to draw: all of the active word, else the strongest of every word that looks. @returns {{i: number, j: number, weight: number}[]} */
  links() {
    const { rows, columns } = this.view;
    const result = [];
    for (let i = 0; i < rows.length; i += 1) {
      let row = columns.map((_, j) => ({ i, j, weight: weightAt(this.view, i, j) }));
      if (this.active) row = row.filter((link) => (this.active.side === "query" ? i : link.j) === this.active.place && Math.abs(link.weight) >= 0.005);
      else row = row.filter((link) => Math.abs(link.weight) >= SMALLEST_LINK).sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight)).slice(0, LINKS_SHOWN);
      result.push(...row);
    }
    return result;
  }

  /** Draw the lines where the boxes stand now. */
  drawLines() {
    if (!this.svg) return;
    this.svg.replaceChildren(...this.linePaths());
  }

  /** @returns {SVGElement[]} */
  linePaths() {
    const frame = this.area.getBoundingClientRect();
    const colour = pageColour("--accent");
    const keyBoxes = [...this.keys.children].map((button) => button.getBoundingClientRect());
    const queryBoxes = [...this.queries.children].map((button) => button.getBoundingClientRect());
    return this.links().map(({ i, j, weight: signed }) => {
      const weight = Math.min(Math.abs(signed), 1);
      const [key, query] = [keyBoxes[j], queryBoxes[i]];
      const [x1, y1] = [key.x + key.width / 2 - frame.x, key.bottom - frame.y];
      const [x2, y2] = [query.x + query.width / 2 - frame.x, query.top - frame.y];
      const bend = (y2 - y1) * 0.45;
      return makeSvg("path", {
        d: `M${x1.toFixed(1)} ${y1.toFixed(1)}C${x1.toFixed(1)} ${(y1 + bend).toFixed(1)} ${x2.toFixed(1)} ${(y2 - bend).toFixed(1)} ${x2.toFixed(1)} ${y2.toFixed(1)}`,
        fill: "none", stroke: colour, "stroke-linecap": "round", "stroke-dasharray": signed < 0 ? "6 5" : "none",
        "stroke-width": (0.6 + 7 * weight).toFixed(2),
        "stroke-opacity": (this.active ? Math.min(0.25 + weight, 1) : Math.min(0.08 + 0.7 * weight, 1)).toFixed(2),
      });
    });
  }

  /** The view as an SVG file of its own: lines, boxes, words, weights, in the colours of the moment. @returns {string} */
  toSvgText() {
    const frame = this.area.getBoundingClientRect();
    const [width, height] = [Math.ceil(frame.width), Math.ceil(frame.height)];
    const svg = makeSvg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" });
    svg.append(makeSvg("rect", { width, height, fill: pageColour("--paper") }), ...this.linePaths());
    for (const button of this.area.querySelectorAll("button")) {
      const box = button.getBoundingClientRect();
      const style = getComputedStyle(button);
      const middle = box.x - frame.x + box.width / 2;
      svg.append(
        makeSvg("rect", { x: box.x - frame.x, y: box.y - frame.y, width: box.width, height: box.height, rx: 6, fill: style.backgroundColor, stroke: style.borderTopColor }),
        makeSvg("text", { x: middle, y: box.y - frame.y + 19, "font-size": 15, "text-anchor": "middle", fill: style.color }, button.firstChild.textContent),
        makeSvg("text", { x: middle, y: box.bottom - frame.y - 5, "font-size": 11, "text-anchor": "middle", fill: pageColour("--accent_text") }, button.lastChild.textContent),
      );
    }
    for (const name of this.area.querySelectorAll(".row_name")) {
      const box = name.getBoundingClientRect();
      svg.append(makeSvg("text", { x: width / 2, y: box.bottom - frame.y - 5, "font-size": 13, "text-anchor": "middle", fill: pageColour("--muted") }, name.textContent));
    }
    return new XMLSerializer().serializeToString(svg);
  }
}
