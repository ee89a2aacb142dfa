/* Light, dark or as the system says; whoever draws on a canvas listens for "themechange" on the document. */

const STORED = "headwise-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

export function chosenTheme() {
  return localStorage.getItem(STORED) ?? "auto";
}

/** @param {string} choice auto, light or dark */
export function useTheme(choice) {
  localStorage.setItem(STORED, choice);
  apply();
}

function apply() {
  const choice = chosenTheme();
  document.documentElement.dataset.theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
  document.dispatchEvent(new Event("themechange"));
}

dark.addEventListener("change", apply);
apply();
