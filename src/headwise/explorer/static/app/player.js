/*
 * Buttons and a slider that go through the frames of something that happens in steps. Playing shows
 * one frame after the other; nothing else moves, so it is the same with reduced motion.
 *
 *     const player = makePlayer(context, {where: (frame, all) => …, onShow: (frame) => …});
 *     player.begin(7, 0);
 */

import { make, makeIcon } from "./dom.js";

/**
 * @param {any} context
 * @param {{pause?: number, label: string, where: (frame: number, all: number) => string, onShow:
 *     (frame: number) => void}} parts pause: milliseconds a frame is shown while playing
 */
export function makePlayer({ text }, { pause = 1100, label, where, onShow }) {
  let [count, frame, timer] = [1, 0, 0];
  const slider = make("input", { type: "range", min: 1, max: 1, value: 1, "aria-label": label });
  const told = make("output", { class: "where" });
  const play = make("button", { type: "button", class: "play" });

  const drawPlay = () => {
    play.replaceChildren(makeIcon(timer ? "pause" : "play"));
    play.setAttribute("aria-label", text(timer ? "steps.pause" : "steps.play"));
  };
  const stop = () => {
    window.clearInterval(timer);
    timer = 0;
    drawPlay();
  };
  const show = (/** @type {number} */ next) => {
    frame = Math.min(Math.max(Math.round(next) || 0, 0), count - 1);
    slider.value = String(frame + 1);
    told.textContent = where(frame, count);
    onShow(frame);
  };
  const start = () => {
    if (frame >= count - 1) show(0);
    timer = window.setInterval(() => {
      if (frame >= count - 1) stop();
      else show(frame + 1);
    }, pause);
    drawPlay();
  };
  /** @param {any} icon @param {string} words @param {() => number} target */
  const jump = (icon, words, target) =>
    make(
      "button",
      {
        type: "button",
        "aria-label": words,
        title: words,
        onclick: () => {
          stop();
          show(target());
        },
      },
      makeIcon(icon),
    );
  play.addEventListener("click", () => (timer ? stop() : start()));
  slider.addEventListener("input", () => {
    stop();
    show(Number(slider.value) - 1);
  });
  drawPlay();
  return {
    root: make(
      "div",
      { class: "player", role: "group", "aria-label": label },
      jump("first", text("steps.first"), () => 0),
      jump("back", text("steps.back"), () => frame - 1),
      play,
      jump("forward", text("steps.forward"), () => frame + 1),
      jump("last", text("steps.last"), () => count - 1),
      slider,
      told,
    ),
    /** @param {number} frames @param {number} at */
    begin(frames, at) {
      stop();
      count = frames;
      slider.max = String(frames);
      show(at);
    },
    show,
    end: stop,
  };
}
