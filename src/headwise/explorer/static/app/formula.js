/*
 * A formula typed in one line, set as mathematics (MathML, which browsers draw and screen readers
 * read). `10000^(2i/dim)` is a power, `slope_head` a subscript, `√dim` a root, `|q − k|` a norm;
 * two spaces begin a new line, and everything else stays as it is typed.
 */

const NAMESPACE = "http://www.w3.org/1998/Math/MathML";
const TOKEN = /\s+|[0-9.]+|[\p{L}]+|[²³]|./gu;

/** @param {string} name @param {...(Node | string)} children @returns {any} */
function make(name, ...children) {
  const element = document.createElementNS(NAMESPACE, name);
  element.append(...children);
  return element;
}

/** @param {string} text @returns {HTMLElement} lines of mathematics */
export function makeFormula(text) {
  const box = document.createElement("div");
  box.className = "formula";
  // A long line scrolls, and what scrolls must be reached with the keyboard.
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", text);
  for (const line of text.split(/\s{2,}/)) {
    const part = document.createElement("div");
    part.append(makeLine(line));
    box.append(part);
  }
  return box;
}

/** @param {string} text */
function makeLine(text) {
  const tokens = text.match(TOKEN) ?? [];
  let place = 0;

  /**
   * One thing: a name, a number, a sign, or what stands in brackets.
   * @param {boolean} bare without its brackets
   */
  const readOne = (bare) => {
    const token = tokens[place];
    place += 1;
    if (token === "(" || token === "[") {
      const inner = readRow(token === "(" ? ")" : "]");
      place += 1; // the closing bracket
      return bare
        ? make("mrow", ...inner)
        : make("mrow", make("mo", token), ...inner, make("mo", token === "(" ? ")" : "]"));
    }
    if (token === "|" && tokens.indexOf("|", place) >= 0) {
      const inner = readRow("|");
      place += 1;
      return make("mrow", make("mo", "|"), ...inner, make("mo", "|"));
    }
    if (token === "√") return make("msqrt", readOne(true));
    if (/^[0-9.]+$/.test(token)) return make("mn", token);
    if (/^\p{L}+$/u.test(token)) return make("mi", token);
    return make("mo", token);
  };

  /** @param {string} end @returns {Node[]} */
  const readRow = (end) => {
    const row = [];
    while (place < tokens.length && tokens[place] !== end) {
      if (/^\s+$/.test(tokens[place])) {
        // Two names beside each other are a product, and must not run into one.
        if (/^[\p{L}]/u.test(tokens[place + 1] ?? "") && row.at(-1)?.localName !== "mo") {
          const gap = make("mspace");
          gap.setAttribute("width", "0.25em");
          row.push(gap);
        }
        place += 1;
        continue;
      }
      let one = readOne(false);
      while (place < tokens.length && /^[\^_²³]$/.test(tokens[place])) {
        const mark = tokens[place];
        place += 1;
        if (mark === "²" || mark === "³")
          one = make("msup", one, make("mn", mark === "²" ? "2" : "3"));
        else one = make(mark === "^" ? "msup" : "msub", one, readOne(true));
      }
      row.push(one);
    }
    return row;
  };

  return make("math", ...readRow(""));
}
