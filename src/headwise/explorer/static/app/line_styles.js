/*
 * Styles of lines: colours that colour-blind readers can tell apart (after Okabe & Ito 2008), one
 * set for each theme, each with its own dashes and mark, so that no line is known by its colour
 * alone.
 */

const LIGHT = [
  "#0068a8",
  "#c34f00",
  "#00795a",
  "#a8467f",
  "#7a6200",
  "#2e86c1",
  "#4a4f57",
  "#6b4fb3",
  "#8a5a2b",
];
const DARK = [
  "#6cb8f2",
  "#ff9a52",
  "#3fcf9f",
  "#f0a3cf",
  "#e8d44d",
  "#a9d4ff",
  "#d4d8de",
  "#b9a5ff",
  "#d9b38c",
];
const STROKES = ["", "7 4", "2 3", "9 3 2 3"];
const MARKS = ["circle", "square", "triangle", "diamond", "cross"];

/**
 * Lines without marks need strokes to be told apart.
 * @param {number} number of a series
 * @param {boolean} [marked]
 * @returns {{colour: string, dashes: string, mark: string}}
 */
export function styleOf(number, marked = true) {
  const colours = document.documentElement.dataset.theme === "dark" ? DARK : LIGHT;
  return {
    colour: colours[number % colours.length],
    dashes: STROKES[(marked ? Math.floor(number / MARKS.length) : number) % STROKES.length],
    mark: MARKS[number % MARKS.length],
  };
}

/**
 * A mark around a point, as the `d` of a path.
 * @param {string} mark
 * @param {number} x
 * @param {number} y
 * @param {number} r
 */
export function markPath(mark, x, y, r) {
  const at = (dx, dy) => `${(x + dx * r).toFixed(2)} ${(y + dy * r).toFixed(2)}`;
  switch (mark) {
    case "square":
      return `M${at(-0.85, -0.85)}L${at(0.85, -0.85)}L${at(0.85, 0.85)}L${at(-0.85, 0.85)}Z`;
    case "triangle":
      return `M${at(0, -1.1)}L${at(1, 0.8)}L${at(-1, 0.8)}Z`;
    case "diamond":
      return `M${at(0, -1.2)}L${at(1.2, 0)}L${at(0, 1.2)}L${at(-1.2, 0)}Z`;
    case "cross":
      return `M${at(-1, -1)}L${at(1, 1)}M${at(1, -1)}L${at(-1, 1)}`;
    default:
      return `M${at(-1, 0)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
  }
}
