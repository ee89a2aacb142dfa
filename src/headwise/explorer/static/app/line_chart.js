/*
 * Lines over a common axis: loss over steps, bias over distance, time over length. The chart is an
 * SVG as wide as its area. Pointer and arrow keys move along the x axis, and the values of all
 * lines there are read out.
 *
 *     const chart = new LineChart(figure.body, {context, onRead: figure.read, label});
 *     chart.show({series: [{name, points: [[x, y], …]}], x: {name, log?, base?},
 *                 y: {name, log?, format?}, marks: true});
 *
 * @typedef {{name: string, points: [number, number][], number?: number}} Series number: of its
 *     style
 * @typedef {{name: string, log?: boolean, base?: number, format?: (value: number) => string, low?:
 *     number, high?: number}} Axis
 * @typedef {{series: Series[], x: Axis, y: Axis, marks?: boolean, height?: number, extra?: (to: (x:
 *     number, y: number) => [number, number]) => SVGElement[]}} Chart
 */

import { FONT_FAMILY, make, makeSvg, pageColour } from "./dom.js";
import { markPath, styleOf } from "./line_styles.js";
import { fullNumber, linearTicks, logTicks, shortNumber } from "./axis_ticks.js";

const ROOM = { left: 68, right: 26, top: 12, bottom: 42 };

export class LineChart {
  /**
   * @param {HTMLElement} area
   * @param {{context: any, onRead: (words: string) => void, label: string}} options
   */
  constructor(area, { context, onRead, label }) {
    this.context = context;
    this.onRead = onRead;
    this.picture = make("div", { class: "chart", role: "img", tabindex: "0", "aria-label": label });
    this.legend = make("ul", { class: "series-names" });
    area.append(this.legend, this.picture);
    this.place = -1;
    this.again = () => this.draw();
    this.observer = new ResizeObserver(this.again);
    this.observer.observe(this.picture);
    document.addEventListener("themechange", this.again);
    this.picture.addEventListener("pointermove", (event) => this.point(event));
    this.picture.addEventListener("pointerleave", () => this.leave());
    this.picture.addEventListener("blur", () => this.leave());
    this.picture.addEventListener("keydown", (event) => this.walk(event));
  }

  end() {
    this.observer.disconnect();
    document.removeEventListener("themechange", this.again);
  }

  /** @param {Chart} chart */
  show(chart) {
    const fits = (axis, value) => Number.isFinite(value) && (!axis.log || value > 0);
    const series = chart.series.map((one, place) => ({
      number: place,
      ...one,
      points: one.points.filter(([x, y]) => fits(chart.x, x) && fits(chart.y, y)),
    }));
    this.chart = { ...chart, series };
    this.places = [...new Set(series.flatMap((one) => one.points.map(([x]) => x)))].sort(
      (one, other) => one - other,
    );
    if (this.place >= this.places.length) this.place = -1;
    this.draw();
  }

  /**
   * @param {Axis} axis
   * @param {number[]} values
   * @param {number} start
   * @param {number} end in pixels
   */
  scale(axis, values, start, end) {
    let low = axis.low ?? values.reduce((one, other) => Math.min(one, other), Infinity);
    let high = axis.high ?? values.reduce((one, other) => Math.max(one, other), -Infinity);
    if (!Number.isFinite(low)) [low, high] = axis.log ? [1, 10] : [0, 1];
    const as = axis.log ? Math.log : (value) => value;
    let [first, last] = [as(low), as(high)];
    if (last - first < 1e-12) {
      first -= axis.log ? 0.5 : Math.max(Math.abs(first), 1) * 0.05;
      last += axis.log ? 0.5 : Math.max(Math.abs(last), 1) * 0.05;
    }
    const margin = start > end ? (last - first) * 0.06 : 0; // the y axis keeps lines off the frame
    if (axis.low === undefined) first -= margin;
    if (axis.high === undefined) last += margin;
    const back = axis.log ? Math.exp : (value) => value;
    return {
      to: (value) => start + ((as(value) - first) / (last - first)) * (end - start),
      low: back(first),
      high: back(last),
    };
  }

  draw() {
    const width = Math.floor(this.picture.clientWidth);
    if (!this.chart || width < 40) return;
    this.size = {
      width,
      height: this.chart.height ?? Math.round(Math.min(340, Math.max(230, width * 0.5))),
    };
    this.picture.replaceChildren(this.makeSvg(false));
    this.drawLegend();
    this.drawCursor();
  }

  /** The whole picture. @param {boolean} alone to be saved: with paper and legend */
  makeSvg(alone) {
    const { series, x, y } = this.chart;
    const { width } = this.size;
    const names = alone && series.length > 1 ? series : [];
    const height = this.size.height + names.length * 18;
    const colour = {
      ink: pageColour("--ink"),
      muted: pageColour("--muted"),
      line: pageColour("--line"),
    };
    const [left, right, top, bottom] = [
      ROOM.left,
      width - ROOM.right,
      ROOM.top,
      this.size.height - ROOM.bottom,
    ];
    const across = this.scale(
      x,
      series.flatMap((one) => one.points.map((point) => point[0])),
      left,
      right,
    );
    const up = this.scale(
      y,
      series.flatMap((one) => one.points.map((point) => point[1])),
      bottom,
      top,
    );
    this.to = (px, py) => /** @type {[number, number]} */ ([across.to(px), up.to(py)]);
    const svg = makeSvg("svg", {
      xmlns: "http://www.w3.org/2000/svg",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      "font-family": FONT_FAMILY,
      "font-size": 12,
      "aria-hidden": "true",
    });
    if (alone) svg.append(makeSvg("rect", { width, height, fill: pageColour("--surface") }));
    svg.append(...this.makeAxes(across, up, colour));
    if (this.chart.extra) svg.append(...this.chart.extra(this.to));
    for (const one of series) svg.append(...this.makeSeries(one));
    names.forEach((one, place) => {
      const line = this.size.height + 8 + place * 18;
      const style = styleOf(one.number, Boolean(this.chart.marks));
      svg.append(
        makeSvg("path", {
          d: `M${left} ${line}H${left + 26}`,
          stroke: style.colour,
          "stroke-width": 2,
          "stroke-dasharray": style.dashes || null,
        }),
        ...(this.chart.marks ? [makeMark(style, left + 13, line)] : []),
        makeSvg("text", { x: left + 34, y: line + 4, fill: colour.ink }, one.name),
      );
    });
    return svg;
  }

  /** @param {any} across @param {any} up @param {Record<string, string>} colour */
  makeAxes(across, up, colour) {
    const { x, y } = this.chart;
    const { language } = this.context;
    const { width, height } = this.size;
    const [bottom, right] = [height - ROOM.bottom, width - ROOM.right];
    const parts = [];
    const ticksOf = (axis, scale, count) =>
      axis.log
        ? logTicks(scale.low, scale.high, count, axis.base)
        : linearTicks(scale.low, scale.high, count);
    for (const tick of ticksOf(y, up, 6)) {
      const at = up.to(tick).toFixed(1);
      parts.push(
        makeSvg("path", { d: `M${ROOM.left} ${at}H${right}`, stroke: colour.line }),
        makeSvg(
          "text",
          { x: ROOM.left - 7, y: Number(at) + 4, "text-anchor": "end", fill: colour.muted },
          (y.format ?? shortNumber)(tick, language),
        ),
      );
    }
    for (const tick of ticksOf(x, across, Math.max(2, Math.floor(width / 95)))) {
      const at = across.to(tick).toFixed(1);
      parts.push(
        makeSvg("path", { d: `M${at} ${bottom}v5`, stroke: colour.muted }),
        makeSvg(
          "text",
          { x: at, y: bottom + 18, "text-anchor": "middle", fill: colour.muted },
          (x.format ?? shortNumber)(tick, language),
        ),
      );
    }
    parts.push(
      makeSvg("path", { d: `M${ROOM.left} ${bottom}H${right}`, stroke: colour.muted }),
      makeSvg(
        "text",
        { x: (ROOM.left + right) / 2, y: height - 7, "text-anchor": "middle", fill: colour.muted },
        x.name,
      ),
      makeSvg(
        "text",
        {
          x: 13,
          y: (ROOM.top + bottom) / 2,
          "text-anchor": "middle",
          fill: colour.muted,
          transform: `rotate(-90 13 ${(ROOM.top + bottom) / 2})`,
        },
        y.name,
      ),
    );
    return parts;
  }

  /** @param {Series & {number: number}} one */
  makeSeries(one) {
    if (!one.points.length) return [];
    const style = styleOf(one.number, Boolean(this.chart.marks));
    const at = one.points.map(([x, y]) => this.to(x, y));
    const line = makeSvg("path", {
      d: at.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""),
      fill: "none",
      stroke: style.colour,
      "stroke-width": 2,
      "stroke-dasharray": style.dashes || null,
      "stroke-linejoin": "round",
    });
    if (!this.chart.marks && one.points.length > 1) return [line];
    return [line, ...at.map(([x, y]) => makeMark(style, x, y))];
  }

  drawLegend() {
    const { series, marks } = this.chart;
    this.legend.hidden = series.length < 2;
    this.legend.replaceChildren(
      ...series.map((one) => {
        const style = styleOf(one.number, Boolean(this.chart.marks));
        const sample = makeSvg(
          "svg",
          { width: 28, height: 12, "aria-hidden": "true" },
          makeSvg("path", {
            d: "M1 6H27",
            stroke: style.colour,
            "stroke-width": 2,
            "stroke-dasharray": style.dashes || null,
          }),
          marks ? makeMark(style, 14, 6) : null,
        );
        return make("li", {}, sample, make("span", {}, one.name));
      }),
    );
  }

  /** @param {PointerEvent} event */
  point(event) {
    if (!this.to || !this.places.length) return;
    const x = event.clientX - this.picture.getBoundingClientRect().x;
    let best = 0;
    this.places.forEach((place, number) => {
      if (Math.abs(this.to(place, 1)[0] - x) < Math.abs(this.to(this.places[best], 1)[0] - x))
        best = number;
    });
    this.moveTo(best);
  }

  /** @param {KeyboardEvent} event */
  walk(event) {
    const last = this.places.length - 1;
    const far = Math.max(1, Math.round(last / 10));
    const target = {
      ArrowRight: this.place + 1,
      ArrowLeft: this.place - 1,
      Home: 0,
      End: last,
      PageDown: this.place + far,
      PageUp: this.place - far,
    }[event.key];
    if (target === undefined || last < 0) return;
    event.preventDefault();
    this.moveTo(Math.min(Math.max(target, 0), last));
  }

  /** @param {number} place */
  moveTo(place) {
    if (place === this.place) return;
    this.place = place;
    this.drawCursor();
    const { x, y, series } = this.chart;
    const { language } = this.context;
    const here = this.places[place];
    const values = series
      .map((one) => [one.name, this.valueAt(one, here)])
      .filter(([, value]) => value !== undefined);
    const write = (axis, value) => (axis.format ?? fullNumber)(value, language);
    const parts = values.map(
      ([name, value]) =>
        `${series.length > 1 ? `${name} ` : ""}${write(y, /** @type {number} */ (value))}`,
    );
    this.onRead(`${x.name} ${write(x, here)}: ${parts.join(" · ")}`);
  }

  /** The value of a line at a place where it has one. @param {Series} one @param {number} x */
  valueAt(one, x) {
    return one.points.find((point) => point[0] === x)?.[1];
  }

  leave() {
    this.place = -1;
    this.drawCursor();
  }

  drawCursor() {
    const svg = this.picture.querySelector("svg");
    if (!svg) return;
    svg.querySelector(".cursor")?.remove();
    if (this.place < 0) return;
    const here = this.places[this.place];
    const group = makeSvg("g", { class: "cursor" });
    const across = this.to(here, 1)[0].toFixed(1);
    group.append(
      makeSvg("path", {
        d: `M${across} ${ROOM.top}V${this.size.height - ROOM.bottom}`,
        stroke: pageColour("--line-strong"),
        "stroke-dasharray": "3 3",
      }),
    );
    for (const one of this.chart.series) {
      const value = this.valueAt(one, here);
      if (value === undefined) continue;
      const [x, y] = this.to(here, value);
      group.append(
        makeSvg("circle", {
          cx: x,
          cy: y,
          r: 4.5,
          fill: styleOf(one.number).colour,
          stroke: pageColour("--surface"),
          "stroke-width": 1.5,
        }),
      );
    }
    svg.append(group);
  }

  /** The picture by itself. @returns {SVGElement} */
  toSvg() {
    return this.makeSvg(true);
  }

  /** All points as a sheet: x, then one column a line. */
  sheet() {
    const { series, x, y } = this.chart;
    return {
      columns: [x.name, ...series.map((one) => (series.length > 1 ? one.name : y.name))],
      rows: this.places.map((place) => [
        String(place),
        ...series.map((one) => this.valueAt(one, place) ?? ""),
      ]),
    };
  }
}

/**
 * The mark of a line at a point; a cross is drawn, the others are filled.
 * @param {{colour: string, mark: string}} style
 * @param {number} x
 * @param {number} y
 */
function makeMark({ colour, mark }, x, y) {
  const isFilled = mark !== "cross";
  return makeSvg("path", {
    d: markPath(mark, x, y, 3.6),
    fill: isFilled ? colour : "none",
    stroke: colour,
    "stroke-width": isFilled ? 0 : 1.6,
  });
}
