/*
 * Functions that make HTML and SVG elements. Text is always set as text: what a user or a
 * vocabulary wrote never becomes markup. No style attribute is written, because the server's
 * content security policy would refuse it; sizes and colours are set through `style` properties.
 */

export const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

/** The fonts of pictures, which can be saved as files; those of the page are in base.css. */
export const FONT_FAMILY = [
  "Inter",
  "'Segoe UI'",
  "system-ui",
  "'Noto Sans'",
  "'PingFang SC'",
  "'Microsoft YaHei'",
  "'Noto Sans CJK SC'",
  "sans-serif",
].join(", ");

/**
 * @param {Element} element
 * @param {Record<string, any>} attributes
 * @param {(Node | string | null)[]} children
 */
function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/**
 * An HTML element; `on…` attributes are listeners.
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null)} children
 * @returns {any}
 */
export function make(name, attributes = {}, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

/**
 * An SVG element.
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null)} children
 * @returns {any}
 */
export function makeSvg(name, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG_NAMESPACE, name), attributes, children);
}

/**
 * The value of a colour variable of the page, for what leaves the page (SVG, canvas).
 * @param {string} name
 */
export function pageColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/**
 * A labelled `<select>`.
 * @param {{label: string, options: [string, string][], value: string, onChange: (value: string) =>
 *     void}} parts
 */
export function makeSelect({ label, options, value, onChange }) {
  const select = make("select", { onchange: () => onChange(select.value) });
  for (const [key, text] of options)
    select.append(make("option", { value: key, selected: key === value }, text));
  return make("label", { class: "field" }, make("span", {}, label), select);
}

/**
 * A labelled check box.
 * @param {{label: string, checked: boolean, onChange: (checked: boolean) => void}} parts
 */
export function makeCheck({ label, checked, onChange }) {
  const box = make("input", { type: "checkbox", onchange: () => onChange(box.checked) });
  box.checked = checked;
  return make("label", { class: "check" }, box, make("span", {}, label));
}

/**
 * A labelled number.
 * @param {{label: string, value: number, min: number, max: number, step: number, onChange: (value:
 *     number) => void}} parts
 */
export function makeNumber({ label, value, min, max, step, onChange }) {
  const input = make("input", { type: "number", min, max, step, value, inputmode: "decimal" });
  input.addEventListener("change", () => {
    const number = Math.min(max, Math.max(min, Number(input.value)));
    input.value = String(number);
    onChange(number);
  });
  return make("label", { class: "field narrow" }, make("span", {}, label), input);
}

/**
 * One of several: a row of buttons of which one is pressed; Tab reaches it, the arrow keys move.
 * @param {{label: string, options: [string, string][], value: string, onChange: (value: string)
 *     => void}} parts
 */
export function makeChoice({ label, options, value, onChange }) {
  const group = make("div", { class: "choice", role: "radiogroup", "aria-label": label });
  const press = (key, focus) => {
    for (const button of group.children) {
      const chosen = button.dataset.key === key;
      button.setAttribute("aria-checked", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      if (chosen && focus) button.focus();
    }
  };
  for (const [key, text] of options) {
    const button = make(
      "button",
      {
        type: "button",
        role: "radio",
        onclick: () => {
          press(key, false);
          onChange(key);
        },
      },
      text,
    );
    button.dataset.key = key;
    group.append(button);
  }
  press(value, false);
  if (![...group.children].some((button) => button.tabIndex === 0))
    group.firstElementChild.tabIndex = 0;
  group.addEventListener("keydown", (event) => {
    const place = [...group.children].indexOf(/** @type {any} */ (document.activeElement));
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (place < 0 || !step) return;
    const next = options[(place + step + options.length) % options.length][0];
    press(next, true);
    onChange(next);
    event.preventDefault();
  });
  return make("div", { class: "field" }, make("span", { "aria-hidden": "true" }, label), group);
}

/**
 * Arrow keys walk among the children of an element; Tab reaches one of them.
 * @param {HTMLElement} row
 * @param {string} [selector]
 */
export function rove(row, selector = "button") {
  const all = () => /** @type {HTMLElement[]} */ ([...row.querySelectorAll(selector)]);
  all().forEach((element, place) => {
    element.tabIndex = place === 0 ? 0 : -1;
  });
  row.addEventListener("focusin", (event) =>
    all().forEach((element) => {
      element.tabIndex = element === event.target ? 0 : -1;
    }),
  );
  row.addEventListener("keydown", (event) => {
    const elements = all();
    const place = elements.indexOf(/** @type {any} */ (document.activeElement));
    const target = {
      ArrowRight: place + 1,
      ArrowDown: place + 1,
      ArrowLeft: place - 1,
      ArrowUp: place - 1,
      Home: 0,
      End: elements.length - 1,
    }[event.key];
    if (place < 0 || target === undefined) return;
    elements[Math.min(Math.max(target, 0), elements.length - 1)].focus();
    event.preventDefault();
  });
}

/**
 * A piece with the mark of its word's beginning paler than the rest.
 * @param {string} piece
 * @returns {(Node | string)[]}
 */
export function pieceParts(piece) {
  return piece.startsWith("▁")
    ? [make("span", { class: "word-start" }, "▁"), piece.slice(1)]
    : [piece];
}

/** The same in a drawing. @param {string} words @returns {(Node | string)[]} */
export function pieceSpans(words) {
  return words
    .split(/(▁)/)
    .filter(Boolean)
    .map((part) => (part === "▁" ? makeSvg("tspan", { "fill-opacity": 0.4 }, part) : part));
}

/**
 * Words in which `backticks` mark what is typed.
 * @param {string} words
 * @returns {(Node | string)[]}
 */
export function codeParts(words) {
  return words.split("`").map((part, place) => (place % 2 ? make("code", {}, part) : part));
}

const ICONS = {
  first: "M6 5v14M19 5 9 12l10 7z",
  back: "M16 5 6 12l10 7z",
  play: "M8 5l11 7-11 7z",
  pause: "M8 5v14M16 5v14",
  forward: "M8 5l10 7-10 7z",
  last: "M18 5v14M5 5l10 7-10 7z",
};

/**
 * A small drawing for a button; the button says in words what it does.
 * @param {keyof typeof ICONS} name
 */
export function makeIcon(name) {
  return makeSvg(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" },
    makeSvg("path", { d: ICONS[name] }),
  );
}

/** Offer a file to be saved. @param {Blob} blob @param {string} name */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = make("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
