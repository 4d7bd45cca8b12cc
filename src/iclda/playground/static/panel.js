// The table of methods and the finding: numbers of an answer in words and bars.

const SVG = "http://www.w3.org/2000/svg";

export const signed = (value, digits = 2) => {
  const text = Math.abs(value).toFixed(digits);
  if (!Number(text)) return text;
  return (value < 0 ? "\u2212" : "+") + text;
};
const plain = (value, digits) => signed(value, digits).replace("+", "");
const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;

export class Panel {
  // `on` has: toggle(name, isChosen), show(name), emphasize(name or "").
  constructor(about, on) {
    this.about = about;
    this.body = document.getElementById("methods");
    this.rows = new Map(about.methods.map((method) => [method.name, this.makeRow(method, on)]));
    this.body.append(...[...this.rows.values()].map((row) => row.line));
  }

  makeRow(method, on) {
    const line = element("tr");
    const chosen = element("input", { type: "checkbox", id: `use-${method.name}` });
    const swatch = document.createElementNS(SVG, "svg");
    const stroke = document.createElementNS(SVG, "path");
    stroke.setAttribute("d", "M2 5H24");
    if (method.color) stroke.setAttribute("stroke", method.color);
    if (!method.uses_unlabeled) stroke.setAttribute("stroke-dasharray", "5 5");
    swatch.append(stroke);
    swatch.setAttribute("viewBox", "0 0 26 10");
    swatch.setAttribute("aria-hidden", "true");
    const names = element("span", {}, element("strong", {}, method.short), element("small", {}, method.title));
    const label = element("label", { className: "method", title: method.sentence }, chosen, swatch, names);
    const shown = element("input", { type: "radio", name: "shown", id: `show-${method.name}` });
    shown.setAttribute("aria-label", `Show labels and posteriors of ${method.title}`);
    const head = element("th", { scope: "row" }, label);
    const cells = {
      shown: element("td", { className: "center" }, shown),
      likelihood: element("td", { className: "number" }),
      range: element("td", { className: "range" }),
      wrong: element("td", { className: "number" }),
      reason: element("td", { className: "reason", colSpan: 3, hidden: true }),
    };
    cells.likelihood.dataset.title = "likelihood";
    cells.wrong.dataset.title = "wrong";
    line.append(head, cells.shown, cells.likelihood, cells.range, cells.wrong, cells.reason);
    chosen.addEventListener("change", () => on.toggle(method.name, chosen.checked));
    shown.addEventListener("change", () => on.show(method.name));
    for (const event of ["pointerenter", "focusin"]) line.addEventListener(event, () => on.emphasize(method.name));
    for (const event of ["pointerleave", "focusout"]) line.addEventListener(event, () => on.emphasize(""));
    return { line, chosen, shown, ...makeBar(cells.range), cells };
  }

  // Choices at once; numbers when the answer comes.
  choose(scene) {
    for (const [name, row] of this.rows) {
      const isChosen = scene.methods.includes(name);
      row.chosen.checked = isChosen;
      row.shown.checked = scene.shown === name;
      row.shown.disabled = !isChosen;
      row.line.classList.toggle("off", !isChosen);
      row.line.classList.toggle("shown", scene.shown === name);
    }
  }

  fill(scene, answer) {
    const fits = answer?.fits ?? {};
    const domain = domainOf(Object.values(fits));
    drawScale(document.getElementById("scale"), domain);
    for (const [name, row] of this.rows) {
      const fit = scene.methods.includes(name) ? fits[name] : undefined;
      const { likelihood, range, wrong, reason } = row.cells;
      const isRefused = Boolean(fit?.error);
      reason.hidden = !isRefused;
      for (const cell of [likelihood, range, wrong]) cell.hidden = isRefused;
      reason.textContent = fit?.error ?? "";
      likelihood.textContent = fit?.likelihood == null ? "" : plain(fit.likelihood, 3);
      wrong.textContent = fit?.wrong == null ? "" : percent(fit.wrong);
      row.line.title = (fit?.notes ?? []).join(" ");
      row.drawBar(fit?.bounds, domain, fit?.no_bounds ?? "");
    }
  }
}

// A bar from worst to best, with zero and what the method expects.
function makeBar(cell) {
  const parts = Object.fromEntries(
    ["loses", "gains", "zero", "expected"].map((name) => [name, element("i", { className: name })]),
  );
  const bar = element("span", { className: "bar" }, ...Object.values(parts));
  bar.setAttribute("aria-hidden", "true");
  const words = element("span", { className: "hidden" });
  cell.append(bar, words);
  const drawBar = (bounds, domain, reason) => {
    bar.hidden = !bounds;
    cell.title = words.textContent = bounds
      ? `worst ${signed(bounds.worst)}, best ${signed(bounds.best)}, expected ${signed(bounds.expected)}`
      : reason;
    if (!bounds) return;
    const at = (value) => (100 * (value - domain[0])) / (domain[1] - domain[0]);
    const span = (part, from, to) => {
      part.hidden = !(to > from);
      part.style.left = `${at(from)}%`;
      part.style.width = `${at(to) - at(from)}%`;
    };
    span(parts.loses, bounds.worst, Math.min(bounds.best, 0));
    span(parts.gains, Math.max(bounds.worst, 0), bounds.best);
    parts.zero.style.left = `${at(0)}%`;
    parts.expected.style.left = `${at(bounds.expected)}%`;
  };
  return { drawBar };
}

// Ends of the common scale of all bars: round numbers that hold them and zero.
export function domainOf(fits) {
  const bounds = fits.map((fit) => fit.bounds).filter(Boolean);
  const round = (value) => {
    const unit = 10 ** Math.floor(Math.log10(Math.max(value, 0.01)));
    return unit * [1, 2, 5, 10].find((step) => step * unit >= value * (1 - 1e-9));
  };
  const low = Math.max(0, ...bounds.map((b) => -b.worst));
  const high = Math.max(0.1, ...bounds.map((b) => b.best));
  return [low > 1e-9 ? -round(low) : 0, round(high)];
}

function drawScale(scale, [low, high]) {
  const values = low < 0 ? [low, 0, high] : [0, high];
  const marks = values.map((value) => {
    const mark = element("i", {}, Number(value.toPrecision(3)).toString().replace("-", "\u2212"));
    mark.style.left = `${(100 * (value - low)) / (high - low)}%`;
    return mark;
  });
  scale.replaceChildren(...marks);
}

// Headline, sentence and, for toy problems, how many points are wrong.
export function findingOf(scene, answer, methods) {
  const method = methods.find((each) => each.name === scene.shown);
  const fit = answer?.fits[scene.shown];
  if (!method || !fit) return { headline: answer?.message || "Choose a method", sentence: "", truth: "" };
  const title = method.title[0].toUpperCase() + method.title.slice(1);
  if (fit.error) return { headline: `${title} cannot be fitted`, sentence: fit.error, truth: "" };
  const notes = fit.notes.join(" ");
  const truth = truthOf(method, fit, answer.fits.supervised);
  if (!method.uses_unlabeled) {
    return { headline: "Supervised LDA looks at the labeled points only", sentence: `${notes} ${method.sentence}`.trim(), truth };
  }
  if (!fit.bounds) return { headline: `${title}: no bounds`, sentence: `${fit.no_bounds} ${notes}`.trim(), truth };
  const sentence = `${fit.bounds.sentence} ${notes}`.trim();
  if (!scene.used) return { headline: "Without unlabeled points it is supervised LDA", sentence, truth };
  const verb = fit.bounds.is_safe ? "cannot lose" : "can lose";
  return { headline: `${title} ${verb} likelihood on these points`, sentence, truth };
}

function truthOf(method, fit, supervised) {
  if (fit.wrong == null) return "";
  const other = supervised?.wrong != null && method.uses_unlabeled ? `, and supervised LDA ${percent(supervised.wrong)}` : "";
  return `The true classes of these points are known: it gets ${percent(fit.wrong)} of them wrong${other}.`;
}

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
