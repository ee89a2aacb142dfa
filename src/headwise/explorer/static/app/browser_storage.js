/* What a browser keeps for the page: choices for ever, a key until the tab is closed. A browser that keeps nothing is no error. */

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
