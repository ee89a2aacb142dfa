/*
 * The texts of the page: one object for each view in en.json and zh.json, with the same keys in
 * both (a test compares them). The language is the one chosen here before, else the browser's.
 */

import { recall, remember } from "./browser_storage.js";

const STORED = "headwise-language";
let language = "en";
/** @type {Record<string, any>} */
let texts = {};

export function currentLanguage() {
  return language;
}

/** The language to begin with. */
export function preferredLanguage() {
  const stored = recall(STORED);
  if (stored === "en" || stored === "zh") return stored;
  return navigator.languages.some((tag) => tag.toLowerCase().startsWith("zh")) ? "zh" : "en";
}

/**
 * Load a language and put its texts where the page's own markup asks for them.
 * @param {string} next
 */
export async function useLanguage(next) {
  const response = await fetch(`static/${next}.json`);
  texts = await response.json();
  language = next;
  remember(STORED, next);
  document.documentElement.lang = next === "zh" ? "zh-CN" : "en";
  for (const element of document.querySelectorAll("[data-text]")) {
    element.textContent = text(/** @type {HTMLElement} */ (element).dataset.text);
  }
}

/**
 * The text of a key such as "align.title", with {places} filled.
 * @param {string} key
 * @param {Record<string, any>} [values]
 * @returns {string}
 */
export function text(key, values = {}) {
  const found = key.split(".").reduce((part, name) => part?.[name], texts);
  if (typeof found !== "string") throw new Error(`no text for ${key}`);
  return found.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/**
 * A number as people of this language write it.
 * @param {number} value
 * @param {number} [digits] after the point
 */
export function number(value, digits = 0) {
  return new Intl.NumberFormat(language, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(value);
}

/** A share of one as a percentage. @param {number} value @param {number} [digits] */
export function percent(value, digits = 1) {
  return `${number(100 * value, digits)} %`;
}
