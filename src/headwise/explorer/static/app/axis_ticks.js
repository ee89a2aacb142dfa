/* The ticks of an axis: where they are, and how their numbers are written. */

/**
 * Round steps between two numbers.
 * @param {number} low
 * @param {number} high
 * @param {number} count about how many
 * @returns {number[]}
 */
export function linearTicks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = [1, 2, 2.5, 5, 10].map((unit) => unit * power);
  const largest = steps.findIndex((step) => step >= rough * 0.999);
  for (let which = largest; ; which -= 1) {
    const ticks = [];
    const step = steps[which];
    for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place += 1)
      ticks.push(Number((place * step).toPrecision(12)));
    if (ticks.length > 1 || which === 0) return ticks; // one number alone tells no distance
  }
}

/**
 * Powers of a base, thinned to at most `count`; of few decades also their double and fivefold.
 * @param {number} low
 * @param {number} high
 * @param {number} count
 * @param {number} [base]
 */
export function logTicks(low, high, count, base = 10) {
  const [first, last] = [
    Math.ceil(Math.log(low) / Math.log(base) - 1e-9),
    Math.floor(Math.log(high) / Math.log(base) + 1e-9),
  ];
  if (base === 10 && last - first < 3) {
    const fine = [];
    for (let power = first - 1; power <= last; power += 1)
      fine.push(...[1, 2, 5].map((unit) => Number((unit * 10 ** power).toPrecision(12))));
    return fine.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  }
  const every = Math.max(1, Math.ceil((last - first + 1) / count));
  const ticks = [];
  for (let power = first; power <= last; power += every)
    ticks.push(Number((base ** power).toPrecision(12)));
  return ticks.length ? ticks : [low, high];
}

/** A number short enough for an axis. @param {number} value @param {string} language */
export function shortNumber(value, language) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3)
    return value.toExponential(Number(value.toPrecision(1)) === value ? 0 : 1).replace("e+", "e");
  return new Intl.NumberFormat(language, { maximumSignificantDigits: 5 }).format(value);
}

/**
 * Four digits that count, for reading aloud and tables.
 * @param {number} value
 * @param {string} language
 */
export function fullNumber(value, language) {
  if (value !== 0 && (Math.abs(value) >= 1e7 || Math.abs(value) < 1e-4))
    return value.toExponential(3).replace("e+", "e");
  return new Intl.NumberFormat(language, { maximumSignificantDigits: 5 }).format(value);
}
