/*
 * The theme: light, dark or the system's. Code that draws on a canvas listens for the event
 * "themechange" of the document.
 */

import { recall, remember } from "./browser_storage.js";

const STORED = "headwise-theme";
let choice = recall(STORED) ?? "auto";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

export function chosenTheme() {
  return choice;
}

/** @param {string} next auto, light or dark */
export function useTheme(next) {
  choice = next;
  remember(STORED, next);
  apply();
}

function apply() {
  document.documentElement.dataset.theme =
    choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
  document.dispatchEvent(new Event("themechange"));
}

dark.addEventListener("change", apply);
apply();
