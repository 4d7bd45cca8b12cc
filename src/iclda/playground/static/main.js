// The page: one scene, changed by controls, pointers and keys; fits and drawing follow.

import { Fitter, getJson } from "./fits.js";
import { Panel, element, findingOf } from "./panel.js";
import { Plane } from "./plane.js";
import { asRequest, decode, emptyScene, encode, fromToy, place } from "./state.js";

const USED = 250; // unlabeled points at the start
const CHOSEN = ["iclda", "em", "supervised"];
const SHAPES = [
  ["circle", { cx: 7, cy: 7, r: 6 }],
  ["rect", { x: 1.5, y: 1.5, width: 11, height: 11 }],
  ["path", { d: "M7 0L14 12.5H0Z" }],
  ["path", { d: "M7 -.5L14.5 7L7 14.5L-.5 7Z" }],
  ["circle", { cx: 7, cy: 7, r: 3.5 }],
];
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const byId = (id) => document.getElementById(id);

const about = await getJson("about.json").catch((error) => {
  byId("headline").textContent = error.message;
  throw error;
});
const reach = about.limits.coordinate;
let scene = emptyScene(CHOSEN, CHOSEN[0]);
let answer = null;
let tool = 0; // class to add; null is unlabeled
let seed = 253; // a draw in which unlabeled points help, or mislead EM where clusters mislead
let past = []; // links of earlier states, for undo
let present = "";
let isDrawn = true;
const afterwards = []; // what waits for the next frame
let notice = ""; // a message that stays until the next change

const plane = new Plane(byId("plane").querySelector("canvas"), reach, { click, drag, drop: rest });
const panel = new Panel(about, { toggle, show, emphasize });
const fitter = new Fitter(showAnswer, warn);

// Changes. `follow` is for every step of a drag, `rest` for a change that is complete.

function follow(isBaseKept = false) {
  notice = "";
  redraw(() => {}, isBaseKept);
  fitter.ask((dragged) => asRequest(scene, dragged), true);
}

function rest() {
  notice = "";
  redraw();
  fitter.ask((dragged) => asRequest(scene, dragged), false);
  keep();
}

// The state goes into the address, and the one before can be had back.
function keep() {
  const link = encode(scene);
  if (link === present) return;
  if (present) past = [...past.slice(-99), present];
  present = link;
  history.replaceState(null, "", `#${link}`);
  byId("undo").disabled = !past.length;
}

function open(link) {
  scene = decode(link, about);
  select(null);
  rest();
}

function undo() {
  keep(); // a movement by keys may not have been kept yet
  const link = past.pop();
  if (!link) return;
  present = "";
  open(link);
  byId("undo").disabled = !past.length;
  say("Undone.");
}

// Drawing: at most once a frame. The base is all but the labeled points and the lines.
function redraw(after = () => {}, isBaseKept = false) {
  plane.scene = scene;
  plane.isStale ||= !isBaseKept;
  afterwards.push(after);
  if (!isDrawn) return;
  isDrawn = false;
  requestAnimationFrame(() => {
    isDrawn = true;
    plane.draw(scene, answer, about.methods);
    showControls();
    const due = afterwards.splice(0);
    setTimeout(() => due.forEach((call) => call())); // after the frame is painted
  });
}

function showControls() {
  const n = scene.labeled.length;
  const used = byId("used");
  used.max = scene.pool.length;
  used.value = scene.used;
  used.disabled = !scene.pool.length;
  byId("used-value").textContent = scene.used.toLocaleString("en");
  byId("shrinkage").value = scene.shrinkage;
  byId("shrinkage-value").textContent = scene.shrinkage ? scene.shrinkage.toFixed(2) : "none";
  byId("shading").checked = scene.shading;
  byId("plane").setAttribute("aria-label", `Plane of ${n} labeled and ${scene.used} unlabeled points`);
  panel.choose(scene);
  showSelected();
}

function showAnswer(found, { dragged, since, sent }) {
  answer = found;
  showMessage(found.message || notice);
  panel.fill(scene, answer);
  const finding = findingOf(scene, answer, about.methods);
  for (const [id, text] of Object.entries(finding)) byId(id).textContent = text;
  const n = Object.keys(found.fits).length;
  const milliseconds = Math.round(performance.now() - sent);
  byId("timing").textContent = n ? `${n} ${n === 1 ? "fit" : "fits"} in ${milliseconds} ms` : "";
  if (!dragged) announce(Object.values(finding).filter(Boolean).join(". ").replaceAll("..", "."));
  redraw(() => {
    performance.measure(dragged ? "drag frame" : "rest frame", { start: sent });
    performance.measure(dragged ? "drag lag" : "rest lag", { start: since });
  });
}

function showMessage(text) {
  const box = byId("message");
  box.hidden = !text;
  if (box.textContent !== text) box.textContent = text;
}

function warn(text) {
  notice = text;
  showMessage(text);
}

// Screen readers hear what is at rest, and, apart from it, what a key did.
function announce(text) {
  if (byId("live").textContent !== text) byId("live").textContent = text;
}

function say(text) {
  byId("said").textContent = text;
}

// Points.

function click(hit, at) {
  if (hit?.kind === "labeled" || (hit && tool === null)) return select(hit);
  if (hit) relabel(hit, tool);
  else add(at);
  rest();
}

// Adds a point of a class, or an unlabeled one, and selects it.
function add(at, label = tool, truth = null) {
  if (scene.labeled.length + scene.pool.length >= about.limits.points) {
    return warn(`The playground draws at most ${about.limits.points} points: remove some first.`);
  }
  const point = { x: place(at.x, reach), y: place(at.y, reach) };
  if (label === null) {
    scene.pool.splice(scene.used, 0, { ...point, truth });
    scene.used += 1;
    select({ kind: "pool", index: scene.used - 1 });
  } else {
    scene.labeled.push({ ...point, label });
    select({ kind: "labeled", index: scene.labeled.length - 1 });
  }
}

// Makes a point one of a class, or unlabeled.
function relabel(hit, label) {
  const point = take(hit);
  add(point, label, point.truth);
}

function take({ kind, index }) {
  if (kind === "pool") scene.used -= 1;
  return scene[kind].splice(index, 1)[0];
}

function remove() {
  if (!plane.selected) return;
  take(plane.selected);
  select(null);
  rest();
  say("Removed.");
}

function drag(hit, at) {
  if (plane.selected !== hit) {
    select(hit);
    performance.clearMeasures(); // those of one drag are kept
  }
  move(hit, at);
  follow(hit.kind === "labeled");
}

function move({ kind, index }, at) {
  const point = scene[kind][index];
  point.x = place(at.x, reach);
  point.y = place(at.y, reach);
  if (kind === "pool") point.truth = null; // it is no longer where it was drawn
}

function select(hit) {
  plane.selected = hit;
  if (hit) plane.cross = null;
  redraw();
}

function showSelected() {
  const { selected } = plane;
  const point = selected && scene[selected.kind][selected.index];
  byId("selected").hidden = !point;
  byId("hint").hidden = Boolean(point);
  if (!point) return;
  byId("selected-class").value = selected.kind === "labeled" ? point.label : "";
  for (const axis of ["x", "y"]) {
    const input = byId(`selected-${axis}`);
    if (document.activeElement !== input) input.value = point[axis].toFixed(2);
  }
}

function describe({ kind, index }) {
  const point = scene[kind][index];
  const what = kind === "labeled" ? `Class ${about.classes[point.label]}, labeled` : "Unlabeled";
  const n = kind === "labeled" ? scene.labeled.length : scene.used;
  return `${what} point ${index + 1} of ${n}, at ${point.x.toFixed(2)}, ${point.y.toFixed(2)}`;
}

// Keys of the plane.

function step(forward) {
  const all = [
    ...scene.labeled.map((_, index) => ({ kind: "labeled", index })),
    ...scene.pool.slice(0, scene.used).map((_, index) => ({ kind: "pool", index })),
  ];
  if (!all.length) return say("There are no points.");
  const now = all.findIndex(({ kind, index }) => kind === plane.selected?.kind && index === plane.selected.index);
  const next = now < 0 ? (forward ? 0 : all.length - 1) : (now + (forward ? 1 : -1) + all.length) % all.length;
  select(all[next]);
  say(describe(all[next]));
}

function arrow([dx, dy], isLarge) {
  const size = isLarge ? 0.5 : 0.1;
  const { selected } = plane;
  const from = selected ? scene[selected.kind][selected.index] : (plane.cross ?? { x: 0, y: 0 });
  const to = { x: from.x + size * dx, y: from.y + size * dy };
  if (selected) {
    move(selected, to);
    follow();
    keepSoon();
    return;
  }
  plane.cross = { x: place(to.x, reach), y: place(to.y, reach) };
  redraw();
  say(`Cross at ${plane.cross.x.toFixed(1)}, ${plane.cross.y.toFixed(1)}`);
}

let keepTimer = 0;
function keepSoon() {
  clearTimeout(keepTimer);
  keepTimer = setTimeout(keep, 400);
}

const KEYS = {
  n: () => step(true),
  p: () => step(false),
  z: undo,
  l: () => plane.selected && (relabel(plane.selected, tool), rest(), say(describe(plane.selected))),
  enter: () => {
    if (plane.selected) select(null);
    add(plane.cross ?? { x: 0, y: 0 });
    const added = plane.selected;
    rest();
    if (added) say(`Added. ${describe(added)}`);
  },
  delete: remove,
  backspace: remove,
  escape: () => select(null),
};

byId("plane").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key.toLowerCase();
  const digit = "01234".indexOf(key);
  if (event.key in ARROWS) arrow(ARROWS[event.key], event.shiftKey);
  else if (key.length === 1 && digit >= 0) choose(digit ? digit - 1 : null);
  else if (key in KEYS) KEYS[key]();
  else return;
  event.preventDefault();
});
byId("plane").addEventListener("focus", () => {
  if (!plane.selected && byId("plane").matches(":focus-visible")) plane.cross ??= { x: 0, y: 0 };
  redraw();
});
byId("plane").addEventListener("blur", () => {
  plane.cross = null;
  redraw();
});

// Controls.

function choose(label) {
  tool = label;
  byId(`tool-${label ?? "x"}`).checked = true;
  say(label === null ? "Adding unlabeled points." : `Adding points of class ${about.classes[label]}.`);
}

function makeTools() {
  const names = [...about.classes, "unlabeled"];
  names.forEach((name, k) => {
    const code = k < about.classes.length ? k : null;
    const input = element("input", { type: "radio", name: "tool", id: `tool-${code ?? "x"}`, checked: k === 0 });
    input.addEventListener("change", () => (tool = code));
    const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const [shape, attributes] = SHAPES[k];
    const drawn = document.createElementNS("http://www.w3.org/2000/svg", shape);
    for (const [attribute, value] of Object.entries(attributes)) drawn.setAttribute(attribute, value);
    drawn.setAttribute("class", `class-${code ?? "x"}`);
    icon.setAttribute("viewBox", "0 0 14 14");
    icon.setAttribute("aria-hidden", "true");
    icon.append(drawn);
    byId("tools").append(element("label", {}, input, element("span", {}, icon, name)));
    byId("selected-class").append(element("option", { value: code ?? "" }, name));
  });
}

function toggle(name, isChosen) {
  const wanted = new Set(scene.methods);
  wanted[isChosen ? "add" : "delete"](name);
  scene.methods = about.methods.map((method) => method.name).filter((each) => wanted.has(each));
  if (!wanted.has(scene.shown)) scene.shown = scene.methods[0] ?? "";
  rest();
}

function show(name) {
  scene.shown = name;
  rest();
}

function emphasize(name) {
  const fit = name && answer?.fits[name];
  plane.emphasis = fit?.scores || fit?.grid ? name : "";
  redraw();
}

async function loadToy(name) {
  try {
    const used = scene.used || USED;
    scene = fromToy(scene, await getJson(`toys/${name}/${seed}`), used);
    select(null);
    rest();
  } catch (error) {
    warn(error.message);
  }
}

function connect() {
  const toy = byId("toy");
  toy.append(...about.toys.map(({ name, title, sentence }) => element("option", { value: name, title: sentence }, title)));
  toy.addEventListener("change", () => loadToy(toy.value));
  byId("redraw").addEventListener("click", () => {
    seed += 1;
    loadToy(toy.value);
  });
  byId("clear").addEventListener("click", () => {
    scene = { ...scene, labeled: [], pool: [], used: 0 };
    select(null);
    rest();
  });
  byId("undo").addEventListener("click", undo);
  byId("remove").addEventListener("click", remove);
  for (const id of ["used", "shrinkage"]) {
    byId(id).addEventListener("input", () => {
      scene[id] = Number(byId(id).value);
      if (plane.selected?.kind === "pool") plane.selected = null;
      follow();
    });
    byId(id).addEventListener("change", rest);
  }
  byId("shading").addEventListener("change", () => {
    scene.shading = byId("shading").checked;
    redraw();
    keep();
  });
  byId("selected").addEventListener("submit", (event) => event.preventDefault());
  byId("selected-class").addEventListener("change", (event) => {
    relabel(plane.selected, event.target.value === "" ? null : Number(event.target.value));
    rest();
  });
  for (const axis of ["x", "y"]) {
    byId(`selected-${axis}`).addEventListener("change", (event) => {
      const value = event.target.valueAsNumber;
      const point = scene[plane.selected.kind][plane.selected.index];
      if (!Number.isFinite(value)) return warn(`The coordinate ${axis} must be a number.`);
      move(plane.selected, { ...point, [axis]: value });
      rest();
    });
  }
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("plane").focus();
  });
  connectDialogs();
  window.addEventListener("hashchange", () => openLink(location.hash.slice(1)));
  new ResizeObserver(() => redraw()).observe(byId("plane"));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    plane.readColors();
    redraw();
  });
}

function connectDialogs() {
  const share = byId("share-box");
  byId("share").addEventListener("click", () => {
    keep();
    byId("link").value = location.href;
    byId("pasted").value = byId("copied").textContent = byId("share-message").textContent = "";
    share.showModal();
    byId("link").select();
  });
  byId("copy").addEventListener("click", async () => {
    byId("link").select();
    const isCopied = await navigator.clipboard.writeText(byId("link").value).then(() => true, () => false);
    byId("copied").textContent = isCopied ? "Copied." : "Press Ctrl-C to copy.";
  });
  byId("open").addEventListener("click", () => {
    const text = byId("pasted").value.trim();
    const problem = openLink(text.slice(text.indexOf("#") + 1));
    byId("share-message").textContent = problem;
    if (!problem) share.close();
  });
  byId("pasted").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // it would press the button that gets the focus back
    byId("open").click();
  });
  byId("keys").addEventListener("click", () => byId("keys-box").showModal());
  for (const button of document.querySelectorAll("dialog .close")) {
    button.addEventListener("click", () => button.closest("dialog").close());
  }
}

// Opens a link; what is wrong with it is shown, and returned.
function openLink(link) {
  if (link === present) return "";
  try {
    open(link);
    return "";
  } catch (error) {
    warn(error.message);
    return error.message;
  }
}

makeTools();
connect();
plane.readColors();
redraw();
const link = location.hash.slice(1);
const problem = link ? openLink(link) : "";
if (!link || problem) await loadToy(about.toys[0].name);
if (problem) warn(problem);
