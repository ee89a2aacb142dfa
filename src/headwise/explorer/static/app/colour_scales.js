/*
 * Colour scales for numbers, for each theme. Weights run from the paper's colour to a dark one;
 * numbers with a sign run from one hue through the paper's colour to another. `shade` maps a value
 * to a position on the scale, either linearly or by its order of magnitude.
 */

const RAMPS = {
  light: {
    sequence: ["#faf9f5", "#dcebc4", "#9dd3a5", "#4bab9f", "#2c7890", "#35508b", "#3a1c66"],
    diverging: ["#8a3a06", "#d9823b", "#f3d3b0", "#fbfaf7", "#bcd5ee", "#5592cf", "#123e77"],
  },
  dark: {
    sequence: ["#171c24", "#2b2a57", "#31588a", "#23878d", "#35b07a", "#93d446", "#fbe62a"],
    diverging: ["#f6a04f", "#a95f1f", "#4c3420", "#1a1f27", "#23405f", "#3f7fbf", "#9dcbff"],
  },
};
const DECADES = 3; // of a logarithmic scale

/**
 * 256 colours of a ramp as bytes, red green blue alpha.
 * @param {string[]} stops
 * @returns {Uint8ClampedArray}
 */
function fill(stops) {
  const rgb = stops.map((stop) =>
    [1, 3, 5].map((place) => parseInt(stop.slice(place, place + 2), 16)),
  );
  const bytes = new Uint8ClampedArray(4 * 256);
  for (let step = 0; step < 256; step += 1) {
    const position = (step / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(position), stops.length - 2);
    rgb[low].forEach((value, channel) => {
      bytes[4 * step + channel] = Math.round(
        value + (rgb[low + 1][channel] - value) * (position - low),
      );
    });
    bytes[4 * step + 3] = 255;
  }
  return bytes;
}

/** @type {Map<string, Uint8ClampedArray>} */
const filled = new Map();

/** The bytes of a ramp in the theme of the moment. @param {"sequence" | "diverging"} kind */
export function rampBytes(kind) {
  const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
  const key = `${theme} ${kind}`;
  if (!filled.has(key)) filled.set(key, fill(RAMPS[theme][kind]));
  return filled.get(key);
}

/**
 * Where a value stands on a ramp, 0 to 255.
 * @param {number} value
 * @param {number} largest
 * @param {{scale?: string, kind?: string}} how
 */
export function shade(value, largest, how) {
  if (how.kind === "diverging")
    return Math.max(0, Math.min(255, Math.round(127.5 * (1 + value / largest))));
  if (how.scale === "log")
    return value <= 0
      ? 0
      : Math.max(0, Math.round(255 * Math.min(1, 1 + Math.log10(value / largest) / DECADES)));
  return Math.max(0, Math.min(255, Math.round((255 * value) / largest)));
}

/** A colour as SVG and CSS write it. @param {Uint8ClampedArray} bytes @param {number} step */
export function colourName(bytes, step) {
  return `rgb(${bytes[4 * step]},${bytes[4 * step + 1]},${bytes[4 * step + 2]})`;
}

/**
 * What the two ends of a scale stand for.
 * @param {number} largest
 * @param {{scale?: string, kind?: string}} how
 * @param {(value: number) => string} format
 */
export function scaleEnds(largest, { scale = "linear", kind = "sequence" }, format) {
  if (kind === "diverging") return [format(-largest), format(largest)];
  const least = scale === "log" ? `≤ ${(largest / 10 ** DECADES).toPrecision(1)}` : "0";
  return [least, format(largest)];
}

/**
 * A table of numbers as a canvas of one pixel a cell; the page stretches it. Pixels are much faster
 * than squares.
 * @param {HTMLCanvasElement} canvas
 * @param {ArrayLike<number>} values row by row
 * @param {number} numRows
 * @param {number} numColumns
 * @param {{largest: number, scale?: string, kind?: "sequence" | "diverging"}} how
 */
export function drawPixels(canvas, values, numRows, numColumns, how) {
  canvas.width = numColumns;
  canvas.height = numRows;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(numColumns, numRows);
  const target = new Uint32Array(image.data.buffer);
  const source = new Uint32Array(rampBytes(how.kind ?? "sequence").buffer);
  if ((how.scale || "linear") === "linear" && (how.kind ?? "sequence") === "sequence") {
    // the usual case, without a call for each cell
    const factor = 255 / how.largest;
    for (let place = 0; place < target.length; place += 1)
      target[place] = source[Math.max(0, Math.min(255, (values[place] * factor + 0.5) | 0))];
  } else {
    for (let place = 0; place < target.length; place += 1)
      target[place] = source[shade(values[place], how.largest, how)];
  }
  pen.putImageData(image, 0, 0);
}

/** The largest of some numbers, never 0. @param {ArrayLike<number>} values */
export function largestOf(values) {
  let largest = 1e-9;
  for (let place = 0; place < values.length; place += 1)
    largest = Math.max(largest, Math.abs(values[place]));
  return largest;
}
