/*
 * The frame around every figure: title, caption, the picture, one line that screen readers read,
 * and tools below it: the numbers as a table, the request that gave them, a link to this state, and
 * files to save.
 *
 *     const figure = makeFigure(context, {name: "alignment", title, caption});
 *     figure.body.append(picture);                      // draw here
 *     figure.read("it attends to animal: 0.62");          // the line for screen readers
 *     figure.offer({table: () => ({columns, rows}), svg: () => element, data: () => anything,
 *                   request: ["v1/trace", body]});
 */

import { describeRequest } from "./api.js";
import { make, saveFile } from "./dom.js";

const MOST_ROWS = 400;

/**
 * @typedef {{columns: string[], rows: (string | number)[][]}} Sheet the first column names the rows
 * @typedef {{table?: () => Sheet, svg?: () => SVGElement, data?: () => any, request?: [string,
 *     any?]}} Offer
 * @param {any} context
 * @param {{name: string, title: string, caption?: string, level?: number}} parts name: of saved
 *     files
 */
export function makeFigure(context, { name, title, caption = "", level = 2 }) {
  const { text } = context;
  const body = make("div", { class: "figure-body" });
  const reading = make("p", { class: "reading", "aria-live": "polite" });
  const legend = make("p", { class: "caption" }, caption);
  const drawer = make("div", { class: "drawer", hidden: true });
  const tools = make("div", {
    class: "tools",
    role: "toolbar",
    "aria-label": text("figure.tools", { title }),
  });
  const root = make(
    "figure",
    { class: "figure", "aria-label": title },
    make("figcaption", {}, make(`h${level}`, {}, title), legend),
    body,
    reading,
    tools,
    drawer,
  );
  /** @type {Offer} */
  let offer = {};
  let open = "";

  const fill = () => {
    drawer.hidden = open === "";
    drawer.replaceChildren();
    if (open === "table") drawer.append(drawTable(context, offer.table(), title));
    if (open === "request") drawer.append(...drawRequest(context, offer.request));
    for (const button of tools.querySelectorAll("[aria-expanded]")) {
      button.setAttribute("aria-expanded", String(button.dataset.drawer === open));
    }
  };
  const toggler = (key) => {
    const button = make(
      "button",
      {
        type: "button",
        "aria-expanded": String(open === key),
        onclick: () => {
          open = open === key ? "" : key;
          fill();
        },
      },
      text(`figure.${key}`),
    );
    button.dataset.drawer = key;
    return button;
  };
  const saver = (label, save) =>
    make(
      "button",
      { type: "button", "aria-label": text("figure.save_as", { format: label }), onclick: save },
      label,
    );

  const draw = () => {
    const savers = [];
    if (offer.svg) {
      savers.push(
        saver("SVG", () =>
          saveFile(new Blob([svgText(offer.svg())], { type: "image/svg+xml" }), `${name}.svg`),
        ),
      );
      savers.push(saver("PNG", async () => saveFile(await rasterize(offer.svg()), `${name}.png`)));
    }
    if (offer.table)
      savers.push(
        saver("CSV", () =>
          saveFile(
            new Blob(["\ufeff", csvText(offer.table())], { type: "text/csv" }),
            `${name}.csv`,
          ),
        ),
      );
    if (offer.data)
      savers.push(
        saver("JSON", () =>
          saveFile(
            new Blob([JSON.stringify(offer.data(), null, 2)], { type: "application/json" }),
            `${name}.json`,
          ),
        ),
      );
    const link = make(
      "button",
      {
        type: "button",
        onclick: async () =>
          context.announce((await copy(location.href)) ? text("figure.copied") : location.href),
      },
      text("figure.link"),
    );
    tools.replaceChildren(
      ...(offer.table ? [toggler("table")] : []),
      ...(offer.request ? [toggler("request")] : []),
      link,
      ...(savers.length
        ? [
            make("span", { class: "tools-name", "aria-hidden": "true" }, text("figure.save")),
            ...savers,
          ]
        : []),
    );
    fill();
  };

  draw();
  return {
    root,
    body,
    /** @param {string} words */
    read(words) {
      reading.textContent = words;
    },
    /** @param {string} words */
    explain(words) {
      legend.textContent = words;
    },
    /** @param {Offer} next */
    offer(next) {
      offer = next;
      draw();
    },
  };
}

/** @param {any} context @param {Sheet} sheet @param {string} title */
function drawTable(context, { columns, rows }, title) {
  const shown = rows.slice(0, MOST_ROWS);
  const head = make("tr", {}, ...columns.map((column) => make("th", { scope: "col" }, column)));
  const lines = shown.map((row) =>
    make(
      "tr",
      {},
      ...row.map((cell, place) =>
        place === 0
          ? make("th", { scope: "row" }, String(cell))
          : make("td", {}, typeof cell === "number" ? formatCell(cell) : cell),
      ),
    ),
  );
  const table = make(
    "table",
    {},
    make("caption", { class: "unseen" }, title),
    make("thead", {}, head),
    make("tbody", {}, ...lines),
  );
  const scroll = make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
    table,
  );
  if (shown.length === rows.length) return scroll;
  return make(
    "div",
    {},
    scroll,
    make(
      "p",
      { class: "quiet" },
      context.text("figure.more_rows", { shown: shown.length, all: rows.length }),
    ),
  );
}

/** @param {number} value */
const formatCell = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(4));

/** @param {any} context @param {[string, any?]} request */
function drawRequest(context, [path, body]) {
  const { curl, python } = describeRequest(path, body);
  return [
    ["curl", curl],
    ["Python", python],
  ].map(([label, code]) => {
    const done = context.text("figure.copied");
    const button = make(
      "button",
      { type: "button", onclick: async () => context.announce((await copy(code)) ? done : "") },
      context.text("figure.copy"),
    );
    return make(
      "div",
      { class: "code" },
      make("div", { class: "code-name" }, make("strong", {}, label), button),
      make("pre", { tabindex: "0" }, make("code", {}, code)),
    );
  });
}

/** @param {string} words */
async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    return false; // a page without permission: the words stand there to be marked
  }
}

/** @param {SVGElement} svg */
function svgText(svg) {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}`;
}

/** A picture of twice the size, on the page's paper. @param {any} svg @returns {Promise<Blob>} */
async function rasterize(svg) {
  const [width, height] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  const scale = Math.min(2, 8000 / Math.max(width, height));
  const image = new Image();
  const address = URL.createObjectURL(new Blob([svgText(svg)], { type: "image/svg+xml" }));
  image.src = address;
  await image.decode();
  const canvas = make("canvas", {
    width: Math.round(width * scale),
    height: Math.round(height * scale),
  });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(address);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** @param {Sheet} sheet */
export function csvText({ columns, rows }) {
  // A cell that a spreadsheet would take for a formula is written as text.
  const cell = (value) => {
    const words =
      typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
  };
  return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n");
}
