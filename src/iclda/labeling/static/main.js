// The page: one row, its classes and keys; the server knows everything and answers with all of it.

const POLL = 700; // milliseconds between looks at a fit under way
const SKIP = "s";
const byId = (id) => document.getElementById(id);
let state = null;
let timer = 0;
let isSending = false;

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

async function request(path, options) {
  const response = await fetch(path, options).catch(() => {
    throw new Error("The server has been ended. All answers are in the file: start `iclda label` again.");
  });
  const said = await response.json();
  if (!response.ok) throw new Error(said.message);
  return said;
}

// One action at a time: a key that is held down must not answer rows that nobody saw.
async function send(path, sent = {}) {
  if (isSending) return;
  isSending = true;
  try {
    const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(sent) };
    show(await request(path, options));
  } catch (error) {
    warn(error.message);
  }
  isSending = false;
}

async function look() {
  try {
    show(await request("state"));
  } catch (error) {
    warn(error.message);
  }
}

function warn(text) {
  byId("message").textContent = text;
  byId("message").hidden = !text;
}

const answer = (label) => state?.row && send("answer", { id: state.row.id, label });
const skip = () => state?.row && send("skip", { id: state.row.id });
const back = () => state?.can_go_back && send("back");

// Every class has a digit, as long as there are some, and a letter: the first free one of its name.
function keysOf(names) {
  const taken = new Set([SKIP]);
  return names.map((name, k) => {
    const letters = [...name.toLowerCase(), ..."abcdefghijklmnopqrstuvwxyz"];
    const letter = letters.find((each) => /^[a-z]$/.test(each) && !taken.has(each));
    taken.add(letter);
    return [k < 9 ? String(k + 1) : null, letter].filter(Boolean);
  });
}

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
    `${n_labeled.toLocaleString("en")} of ${n_rows.toLocaleString("en")} rows labeled${skipped}, written to ${file}`;
  byId("back").disabled = !next.can_go_back;
  byId("skip").disabled = !next.row;
  byId("last").textContent = next.last ? lastOf(next.last) : "";
  clearTimeout(timer);
  if (next.is_fitting) timer = setTimeout(look, POLL);
}

function lastOf({ id, label, guess }) {
  const judged = guess ? `, and the model had guessed ${guess === label ? "so too" : guess}` : "";
  return `Row ${id} is ${label}${judged}.`;
}

function showRow() {
  const { row, label, message } = state;
  const stage = byId("stage");
  byId("row-title").textContent = row ? `Row ${row.id}${label ? `, labeled ${label}` : ""}` : "";
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
  const complain = (text) => element("p", { className: "note" }, `${text} Skip the row, or label it by what you know.`);
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
  const names = state.classes.map((each) => each.name);
  const keys = keysOf(names);
  const made = names.map((name, k) => {
    const shown = keys[k].map((key) => element("kbd", {}, key.toUpperCase()));
    const button = element("button", { type: "button", disabled: !state.row }, ...shown, element("span", {}, name));
    button.setAttribute("aria-pressed", String(name === state.label));
    button.addEventListener("click", () => answer(name));
    return button;
  });
  byId("classes").replaceChildren(...made);
  byId("new").hidden = !state.row;
  if (!names.length && state.row) byId("name").focus();
}

function showSide() {
  byId("headline").textContent = state.error.headline;
  byId("sentence").textContent = state.error.text;
  byId("fitting").textContent = state.is_fitting ? "The model is learning from your answers." : "";
  const most = Math.max(1, ...state.classes.map((each) => each.count));
  const counts = state.classes.map(({ name, count }) => {
    const bar = element("i");
    bar.style.width = `${(100 * count) / most}%`;
    return element("li", {}, element("span", {}, name), element("b", {}, bar), element("em", {}, String(count)));
  });
  byId("counts").replaceChildren(...(counts.length ? counts : [element("li", { className: "soft" }, "None yet")]));
  byId("unsure-box").hidden = !state.unsure.length;
  byId("unsure").replaceChildren(...state.unsure.map(unsureRow));
}

function unsureRow(row) {
  const shares = row.shares.map(([name, share]) => `${name} ${Math.round(100 * share)}\u00a0%`).join(" · ");
  const label = row.text || (row.kind ? row.name : `Row ${row.id}`);
  const words = element("span", {}, element("strong", {}, label), element("small", {}, shares));
  const isImage = row.kind === "image" && !row.problem;
  const picture = isImage ? [element("img", { src: `file/${row.position}`, alt: "" })] : [];
  const button = element("button", { type: "button", title: `Label row ${row.id} now` }, ...picture, words);
  button.addEventListener("click", () => send("jump", { id: row.id }).then(() => button.blur()));
  return element("li", {}, button);
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || byId("keys-box").open) return;
  if (event.target === byId("name")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const isOnButton = event.target.closest("button, audio");
  const key = event.key.toLowerCase();
  const position = state ? keysOf(state.classes.map((each) => each.name)).findIndex((keys) => keys.includes(key)) : -1;
  const audio = byId("stage").querySelector("audio");
  if (key === "backspace") back();
  else if (key === SKIP) skip();
  else if (position >= 0) answer(state.classes[position].name);
  else if (key === "enter" && !isOnButton) byId("name").focus();
  else if (key === " " && audio && !isOnButton) audio.paused ? audio.play() : audio.pause();
  else return;
  event.preventDefault();
}

document.addEventListener("keydown", press);
byId("new").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = byId("name").value.trim();
  if (!name) return; // the field keeps the focus
  byId("name").value = "";
  byId("name").blur();
  answer(name);
});
byId("back").addEventListener("click", back);
byId("skip").addEventListener("click", skip);
byId("keys").addEventListener("click", () => byId("keys-box").showModal());
byId("keys-box").querySelector(".close").addEventListener("click", () => byId("keys-box").close());
await look();
