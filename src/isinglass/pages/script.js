"use strict";
const root = document.documentElement;
root.classList.add("js");

function made(tag, classes, text) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  if (text !== undefined) element.textContent = text;
  return element;
}

// Light and dark: as the system has it, until the button is pressed.
function dark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
for (const button of document.querySelectorAll(".theme"))
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; });

// Tables: a click on a head sorts, a second one the other way round, a third one as it was. What is missing comes last.
const NUMBER = /^[<>~ ]*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?![\w.-])/i;
function key(cell) {
  const text = cell.dataset.value ?? cell.textContent.trim();
  const found = NUMBER.exec(text);
  return { text, missing: text === "-" || text === "", number: found ? Number(found[1]) : NaN };
}
function sortBy(table, column, direction) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, key: key(row.cells[column]) }));
  const numbers = rows.every(({ key }) => key.missing || !Number.isNaN(key.number));
  const compare = (a, b) => (numbers ? a.number - b.number : a.text.localeCompare(b.text, undefined, { numeric: true }));
  if (direction === "none") rows.sort((a, b) => a.row.dataset.place - b.row.dataset.place);
  else rows.sort(({ key: a }, { key: b }) => a.missing - b.missing || (a.missing ? 0 : (direction === "ascending" ? 1 : -1) * compare(a, b)));
  body.append(...rows.map(({ row }) => row));
}
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tBodies[0].rows].forEach((row, i) => { row.dataset.place = i; });
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const next = { ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")] ?? "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    if (next !== "none") head.setAttribute("aria-sort", next);
    sortBy(table, column, next);
  }));
}

// Steps: a slider shows what belongs to one step, of everything that is marked with one.
for (const steps of document.querySelectorAll(".steps")) {
  const slider = steps.querySelector("input"), play = steps.querySelector(".play"), last = Number(slider.max);
  const parts = [...steps.querySelectorAll("[data-step]")].filter((part) => part.closest(".steps") === steps);
  let timer = null;
  const show = (step) => {
    slider.value = step;
    for (const part of parts) part.classList.toggle("now", Number(part.dataset.step) === step);
  };
  const stop = () => { clearInterval(timer); timer = null; if (play) play.textContent = "play"; };
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  play?.addEventListener("click", () => {
    if (timer) return stop();
    play.textContent = "pause";
    if (Number(slider.value) === last) show(0);
    timer = setInterval(() => (Number(slider.value) >= last ? stop() : show(Number(slider.value) + 1)), 700);
  });
  show(Number(slider.value));
}

// Values under the pointer: of a mark, or of the nearest point of a chart.
const tip = made("div", "tip");
tip.hidden = true;
document.body.append(tip);
function say(text, x, y) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`;
}
function nearest(chart, event) {
  const box = chart.getBoundingClientRect(), scale = chart.viewBox.baseVal.width / box.width;
  const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
  const far = (point, a, b) => (point.cx.baseVal.value - a) ** 2 + (point.cy.baseVal.value - b) ** 2;
  const points = [...chart.querySelectorAll("g:not(.off) > circle[data-tip]")].filter((point) => far(point, x, y) < 50 * 50);
  if (!points.length) return [null, ""];
  const best = points.reduce((a, b) => (far(b, x, y) < far(a, x, y) ? b : a));
  const same = points.filter((point) => far(point, best.cx.baseVal.value, best.cy.baseVal.value) < 4);
  return [best, same.map((point) => point.dataset.tip).join("\n")];  // of curves that meet there, all
}
let marked = null;
function mark(element) {
  marked?.classList.remove("near");
  marked = element;
  marked?.classList.add("near");
}
function point(event) {
  const chart = event.target.closest?.("svg.chart");
  const target = event.target.closest?.("[data-tip]");
  const [found, text] = chart?.dataset.near !== undefined ? nearest(chart, event) : [target, target?.dataset.tip];
  mark(chart ? found : null);
  say(text, event.clientX, event.clientY);
}
document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", point);
document.addEventListener("scroll", () => say(""), true);

// Legends: a press hides a curve, or shows it again.
for (const button of document.querySelectorAll(".legend button"))
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", String(on));
    button.closest("figure").querySelector(`svg g[data-series="${button.dataset.series}"]`).classList.toggle("off", !on);
  });

// Pictures: a press enlarges one; the slider goes through the rows, the buttons through the columns.
function valueAt(image, event) {
  const box = image.getBoundingClientRect(), w = image.naturalWidth, h = image.naturalHeight;
  const scale = Math.min(box.width / w, box.height / h);
  const x = Math.floor((event.clientX - box.left - (box.width - w * scale) / 2) / scale);
  const y = Math.floor((event.clientY - box.top - (box.height - h * scale) / 2) / scale);
  if (x < 0 || y < 0 || x >= w || y >= h) return "";
  const canvas = made("canvas");
  canvas.width = w;
  canvas.height = h;
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const [r, g, b] = context.getImageData(x, y, 1, 1).data;
  const low = Number(image.dataset.low), high = Number(image.dataset.high);
  const colour = "#" + [r, g, b].map((part) => part.toString(16).padStart(2, "0")).join("");
  const label = JSON.parse(panel.dataset.labels).find(([one]) => one === colour)?.[1];
  const grey = r === g && g === b && image.dataset.low ? (low + (high - low) * (1 - r / 255)).toPrecision(3) : "";
  const found = grey || label;
  return `row ${y + 1}, column ${x + 1}${found ? `: ${found}` : ""}`;
}
const zoom = made("dialog"), zoomed = made("img"), caption = made("p"), value = made("p", "note value");
const slider = made("input"), before = made("button", "", "\u2190"), after = made("button", "", "\u2192"), close = made("button", "", "close");
let panel = null, at = 0;
slider.type = "range";
slider.min = 0;
slider.setAttribute("aria-label", "method");
before.setAttribute("aria-label", "picture before");
after.setAttribute("aria-label", "next picture");
const shown = made("div", "shown"), controls = made("div", "controls");
shown.append(zoomed);
controls.append(slider, before, after, close);
zoom.append(caption, shown, value, controls);
document.body.append(zoom);
function enlarge() {
  const strips = panel.querySelectorAll(".strip"), strip = strips[Number(slider.value)];
  const pictures = strip.querySelectorAll("img");
  at = (at + pictures.length) % pictures.length;
  const picture = pictures[at];
  zoomed.src = picture.src;
  zoomed.alt = picture.alt;
  zoomed.dataset.low = picture.dataset.low ?? "";
  zoomed.dataset.high = picture.dataset.high ?? "";
  caption.textContent = picture.alt;
  before.hidden = after.hidden = pictures.length < 2;
}
for (const group of document.querySelectorAll(".pictures"))
  group.addEventListener("click", (event) => {
    const button = event.target.closest(".strip button");
    if (!button) return;
    const strip = button.parentElement, strips = [...group.querySelectorAll(".strip")];
    panel = group;
    at = [...strip.children].indexOf(button);
    slider.max = strips.length - 1;
    slider.value = strips.indexOf(strip);
    value.textContent = "";
    enlarge();
    zoom.showModal();
  });
slider.addEventListener("input", enlarge);
before.addEventListener("click", () => { at -= 1; enlarge(); });
after.addEventListener("click", () => { at += 1; enlarge(); });
close.addEventListener("click", () => zoom.close());
zoom.addEventListener("click", (event) => { if (event.target === zoom) zoom.close(); });
zoomed.addEventListener("pointermove", (event) => { value.textContent = valueAt(zoomed, event); });
