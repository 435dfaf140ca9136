// The page's script: small helpers first. Text out of files and addresses is only ever set as text.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const ANY = -1;
const UNKNOWN = 255;
const RELAXED = 400; // milliseconds without a move after which a screen reader is told where the pointer is
const byId = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)");

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function makeButton(text, action, attributes = {}) {
  const button = make("button", { type: "button", ...attributes }, text);
  button.addEventListener("click", action);
  return button;
}

const bytes = (text) => (text === null ? null : Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));

// Runs `action` in the next frame, once for all calls until then.
function oncePerFrame(action) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      action();
    });
  };
}

// Readings of a judge, codes of all attributes, in words.
const words = data.attributes;
const told = data.judge ? data.judge.told : [];
const everyWord = words ? words.values.flat() : [];
// A value in words: with its attribute where others have values of the same name, such as yes and no.
function valueOf(a, code) {
  const word = words.values[a][code];
  return everyWord.indexOf(word) === everyWord.lastIndexOf(word) ? word : `${words.names[a]}=${word}`;
}
// Pictures stand as far apart as the longest word under them is wide, so that none is broken.
if (words) {
  const every = words.values.flatMap((values, a) => values.map((_, code) => valueOf(a, code)));
  const pen = make("canvas").getContext("2d");
  pen.font = "600 100px system-ui, -apple-system, 'Segoe UI', sans-serif";
  const widest = Math.max(...every.flatMap((text) => text.split(/[\s-]+/)).map((word) => pen.measureText(`${word},`).width));
  document.documentElement.style.setProperty("--word", widest / 100); // of the letters' size
}
// Words with commas, each of which goes on the next line as a whole.
const unbroken = (texts) =>
  texts.flatMap((text, n) => [n ? " " : "", make("span", { class: "word" }, text + (n < texts.length - 1 ? "," : ""))]);
function reading(codes) {
  return [...codes.keys()].filter((a) => !told.includes(a)).map((a) => valueOf(a, codes[a])).join(", ");
}
