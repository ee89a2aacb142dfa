/*
 * What the browser stores for the page: choices permanently, an API key until the tab is closed. If
 * the browser stores nothing, the page works without it.
 */

/** @param {string} name @param {() => Storage} [where] @returns {string | null} */
export function recall(name, where = () => localStorage) {
  try {
    return where().getItem(name);
  } catch {
    return null;
  }
}

/** @param {string} name @param {string} value @param {() => Storage} [where] */
export function remember(name, value, where = () => localStorage) {
  try {
    where().setItem(name, value);
  } catch {
    // It is then chosen anew next time.
  }
}
