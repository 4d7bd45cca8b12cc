// The page: one row, its classes and keys; the server knows everything and answers with all of it.

const POLL = 700; // milliseconds between looks at a fit under way
const GLANCE = 300; // milliseconds in which nobody sees a row and decides on its class
const byId = (id) => document.getElementById(id);
let state = null;
let timer = 0;
let isSending = false;
let nActions = 0; // begun and ended
let shownAt = 0;
let pressedRow; // id of the row on which the last press of a mouse or a finger began
let drawnClasses = "";

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

async function request(path, options) {
  const response = await fetch(path, options).catch(() => {
    throw new Error("The server has stopped. All answers are saved: start `iclda label` again.");
  });
  const said = await response.json();
  if (!response.ok) throw new Error(said.message);
  return said;
}

// One action at a time: a key that is held down must not answer rows that nobody saw.
async function send(path, sent = {}) {
  if (isSending) return;
  isSending = true;
  nActions += 1;
  try {
    const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(sent) };
    show(await request(path, options));
  } catch (error) {
    warn(error.message);
  }
  isSending = false;
  nActions += 1;
}

async function look() {
  const nActionsBefore = nActions;
  try {
    const next = await request("state");
    // A state from before an answer would bring the answered row back, in place of the one that has come since.
    if (nActions === nActionsBefore) show(next);
    else timer = setTimeout(look, POLL);
  } catch (error) {
    warn(error.message);
  }
}

function warn(text) {
  byId("message").textContent = text;
  byId("message").hidden = !text;
}

const answer = (label) => state?.row && send("answer", { id: state.row.id, label });
const none = () => answer(state?.none);
const skip = () => state?.row && send("skip", { id: state.row.id });
const back = () => state?.can_go_back && send("back");

function show(next) {
  const isNewRow = state?.row?.id !== next.row?.id || state?.label !== next.label;
  state = next;
  warn(next.problem);
  if (isNewRow || !next.row) showRow();
  showClasses();
  showSide();
  const { n_labeled, n_rows, n_skipped, file } = next;
  const skipped = n_skipped ? `, ${n_skipped} skipped` : "";
  byId("progress").textContent =
    `${n_labeled.toLocaleString("en")} of ${n_rows.toLocaleString("en")} rows labeled${skipped}, saved in ${file}`;
  byId("back").disabled = !next.can_go_back;
  byId("none").setAttribute("aria-pressed", String(Boolean(next.row) && next.label === next.none));
  for (const id of ["skip", "none", "name", "add"]) byId(id).disabled = !next.row;
  byId("skip").textContent = next.label ? "Keep" : "Skip";
  byId("last").textContent = next.last ? lastOf(next.last) : "";
  clearTimeout(timer);
  if (next.is_fitting) timer = setTimeout(look, POLL);
}

function lastOf({ title, label, guess }) {
  if (!guess) return `${title} is ${label}.`;
  return guess === label ? `${title} is ${label}, as the model guessed.` : `${title} is ${label}. The model guessed ${guess}.`;
}

function showRow() {
  const { row, label, message } = state;
  const stage = byId("stage");
  shownAt = performance.now();
  // What was typed for another row is no beginning of a name for this one, unless it is typed right now.
  if (document.activeElement !== byId("name")) byId("name").value = "";
  const ofFile = state.numbered_file && ` of ${state.numbered_file}`;
  byId("row-title").textContent = row ? `${row.title}${ofFile}${label ? `, labeled ${label}` : ""}` : "";
  if (row) return stage.replaceChildren(...partsOf(row));
  const parts = [element("p", { className: "note" }, message)];
  if (state.n_skipped) {
    const again = element("button", { type: "button", className: "main" }, "Show them again");
    again.addEventListener("click", () => send("again"));
    parts.push(again);
  }
  stage.replaceChildren(...parts);
}

function partsOf(row) {
  const parts = [];
  const complain = (text) => element("p", { className: "note" }, `${text} Skip the row, or label it anyway.`);
  if (row.problem) parts.push(complain(row.problem));
  else if (row.kind) {
    const isSound = row.kind === "sound";
    const media = element(isSound ? "audio" : "img", { src: `file/${row.position}` });
    Object.assign(media, isSound ? { controls: true, autoplay: true } : { alt: row.name });
    media.addEventListener("error", () => media.replaceWith(complain(`${row.name} does not open.`)));
    parts.push(media);
  }
  if (row.text) parts.push(element("p", { className: "text" }, row.text));
  if (row.fields.length) {
    const lines = row.fields.map(([name, text]) =>
      element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, text)));
    parts.push(element("table", {}, element("tbody", {}, ...lines)));
  }
  return parts;
}

function showClasses() {
  // A button that is replaced while it is pressed would not be clicked.
  const toDraw = JSON.stringify([state.classes.map(({ name, key }) => [name, key]), state.label, !state.row]);
  if (toDraw === drawnClasses) return;
  drawnClasses = toDraw;
  const made = state.classes.map(({ name, key }) => {
    const shown = key ? [element("kbd", {}, /^[a-z]$/.test(key) ? key.toUpperCase() : key)] : [];
    const properties = { type: "button", tabIndex: -1, disabled: !state.row };
    const button = element("button", properties, ...shown, element("span", {}, name));
    button.setAttribute("aria-pressed", String(name === state.label));
    button.addEventListener("click", () => answer(name));
    return button;
  });
  byId("classes").replaceChildren(...made);
  if (!state.classes.length && state.row) byId("name").focus();
}

function showSide() {
  byId("headline").textContent = state.error.headline;
  byId("sentence").textContent = state.error.text;
  byId("fitting").textContent = state.is_fitting ? "The model is learning from your answers." : "";
  const counted = [...state.classes];
  if (state.n_none) counted.push({ name: state.none, count: state.n_none });
  const most = Math.max(1, ...counted.map((each) => each.count));
  const counts = counted.map(({ name, count }) => {
    const bar = element("i");
    bar.style.width = `${(100 * count) / most}%`;
    return element("li", {}, element("span", {}, name), element("b", {}, bar), element("em", {}, String(count)));
  });
  byId("counts").replaceChildren(...(counts.length ? counts : [element("li", { className: "soft" }, "None yet")]));
  const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
  byId("unsure-box").hidden = !state.unsure.length;
  byId("unsure").replaceChildren(...state.unsure.map((row) =>
    listed(row, row.shares.map(([name, share]) => `${name} ${percent(share)}`).join(" · "))));
  byId("suspicious-box").hidden = !state.suspicious.length;
  byId("suspicious").replaceChildren(...state.suspicious.map((row) =>
    listed(row, `labeled ${row.label} · the model says ${row.predicted}, ${percent(row.share)}`)));
}

// A button that leads to a row.
function listed(row, remark) {
  const label = row.text || (row.kind ? row.name : row.title);
  const words = element("span", {}, element("strong", {}, label), element("small", {}, remark));
  const isImage = row.kind === "image" && !row.problem;
  const picture = isImage ? [element("img", { src: `file/${row.position}`, alt: "" })] : [];
  const button = element("button", { type: "button", title: `Show ${row.title}` }, ...picture, words);
  button.addEventListener("click", async () => {
    await send("jump", { id: row.id });
    scrollTo(0, 0); // on a phone the row is far above
  });
  return element("li", {}, button);
}

function press(event) {
  // Enter that is held down would send a name, or press a button, again and again.
  if (event.repeat && event.key === "Enter") event.preventDefault();
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || byId("keys-box").open) return;
  if (event.target === byId("name")) {
    if (event.key !== "Escape") return;
    event.target.value = "";
    event.target.blur();
    return;
  }
  const isOnButton = event.target.closest("button");
  const isOnAudio = event.target.closest("audio");
  // All characters are keys of classes.
  const key = event.key.toLowerCase();
  const pressed = state?.classes.find((each) => each.key === key);
  const audio = byId("stage").querySelector("audio");
  if (pressed) answer(pressed.name);
  else if (key === "backspace" || (key === "arrowleft" && !isOnAudio)) back();
  else if (key === "delete") none();
  else if (key === "arrowright" && !isOnAudio) skip();
  else if (key === "enter" && !isOnButton) byId("name").focus();
  else if (key === " " && audio && !isOnButton && !isOnAudio) audio.paused ? audio.play() : audio.pause();
  else return;
  event.preventDefault();
}

document.addEventListener("keydown", press);
// Enter and Space press the button that has the focus: a mouse or a finger leaves none there ...
document.addEventListener("mousedown", (event) => {
  if (!event.target.closest("button")) return;
  event.preventDefault();
  document.activeElement.blur();
});
// ... and one that gives an answer never has it: a screen reader focuses a button before it clicks.
byId("bar").addEventListener("focusin", (event) => {
  if (event.target.closest("#classes, #none")) event.target.blur();
});
document.addEventListener("pointerdown", () => { pressedRow = state?.row?.id; }, true);
// The second click of a double click is not meant for the row that the first one brought, and no click is meant for
// a row that a key brought while the button was down. A click by the keyboard has the detail 0, and begins on no row.
document.addEventListener("click", (event) => {
  const isSecond = event.detail > 1 && performance.now() <= shownAt + GLANCE;
  const isOfOtherRow = event.detail > 0 && pressedRow !== state?.row?.id;
  if (!isSecond && !isOfOtherRow) return;
  event.preventDefault();
  event.stopPropagation();
}, true);
byId("new").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = byId("name").value.trim();
  if (!name) return byId("name").focus();
  if (isSending) return; // the name stays, for the row that comes
  byId("name").value = "";
  document.activeElement.blur();
  answer(name);
});
byId("back").addEventListener("click", back);
byId("none").addEventListener("click", none);
byId("skip").addEventListener("click", skip);
byId("keys").addEventListener("click", () => byId("keys-box").showModal());
byId("keys-box").querySelector(".close").addEventListener("click", () => byId("keys-box").close());
await look();
