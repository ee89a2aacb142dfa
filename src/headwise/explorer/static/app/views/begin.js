/* No model yet: what to do about it. */

import { make } from "../dom.js";

export const name = "begin";
export const needs = () => true;

/** @param {HTMLElement} root @param {any} context */
export function mount(root, { text }) {
  root.append(make("h1", {}, text("begin.title")), make("p", { class: "lead" }, text("begin.lead")), make("pre", { tabindex: "0" }, make("code", {}, "headwise demo\nheadwise explore")));
}
