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
    const name = element("strong", {}, capitalize(method.title));
    const label = element("label", { className: "method", title: method.sentence }, chosen, swatch, name);
    const shown = element("input", { type: "radio", name: "shown", id: `show-${method.name}` });
    shown.setAttribute("aria-label", `Show labels and posteriors of ${method.title}`);
    const head = element("th", { scope: "row" }, label);
    const cells = {
      shown: element("td", { className: "center" }, shown),
      wrong: element("td", { className: "number" }),
      likelihood: element("td", { className: "number" }),
      range: element("td", { className: "range" }),
      reason: element("td", { className: "reason", colSpan: 3, hidden: true }),
    };
    cells.likelihood.dataset.title = "likelihood";
    cells.wrong.dataset.title = "wrong";
    line.append(head, ...Object.values(cells));
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
      const isRefused = Boolean(fit?.error ?? fit?.waits);
      reason.hidden = !isRefused;
      for (const cell of [likelihood, range, wrong]) cell.hidden = isRefused;
      reason.textContent = fit?.error ?? fit?.waits ?? "";
      likelihood.textContent = fit?.likelihood == null ? "" : plain(fit.likelihood, 3);
      wrong.textContent = fit?.wrong == null ? "" : percent(fit.wrong);
      const change = fit?.wrong == null ? 0 : fit.wrong - (fits.supervised?.wrong ?? fit.wrong);
      wrong.classList.toggle("fewer", change < 0);
      wrong.classList.toggle("more", change > 0);
      row.line.title = (fit?.notes ?? []).join(" ");
      row.drawBar(fit?.bounds, domain, fit?.no_bounds ?? "");
    }
  }
}

// A bar from worst to best, with zero and what the method expects. It has the color of neither
// good nor bad news: a higher likelihood may come with more wrong points.
function makeBar(cell) {
  const parts = Object.fromEntries(
    ["change", "zero", "expected"].map((name) => [name, element("i", { className: name })]),
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
    parts.change.style.left = `${at(bounds.worst)}%`;
    parts.change.style.width = `${at(bounds.best) - at(bounds.worst)}%`;
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
  const values = [...new Set([low, 0, high])].filter((value) => value === 0 || Math.abs(value) > 0.2 * (high - low));
  const marks = values.map((value) => {
    const mark = element("i", {}, Number(value.toPrecision(3)).toString().replace("-", "\u2212"));
    mark.style.left = `${(100 * (value - low)) / (high - low)}%`;
    return mark;
  });
  scale.replaceChildren(...marks);
}

// Headline, sentence and, for toy problems, that the true classes are known. Mistakes come first.
export function findingOf(scene, answer, methods) {
  const method = methods.find((each) => each.name === scene.shown);
  const fit = answer?.fits[scene.shown];
  if (!method || !fit) return { headline: answer?.message || "Choose a method", sentence: "", truth: "" };
  const title = capitalize(method.title);
  if (fit.error) return { headline: `${title} cannot be fitted`, sentence: fit.error, truth: "" };
  if (fit.waits) return { headline: `${title}: waiting`, sentence: fit.waits, truth: "" };
  const truth = fit.wrong == null ? "" : "The true classes of these points are known here. No method is given them.";
  const finding = (headline, sentence) => ({ headline, sentence: [sentence, ...fit.notes].join(" "), truth });
  const known = fit.wrong == null ? "" : `${title} gets ${percent(fit.wrong)} of these points wrong`;
  if (!method.uses_unlabeled) return finding(known || `${title} looks at the labeled points only`, method.sentence);
  if (!scene.used) return finding("Without unlabeled points it is supervised LDA", "Add some to see what they change.");
  const other = answer.fits.supervised?.wrong;
  const against = other == null ? known : `${known}, supervised LDA ${percent(other)}`;
  if (!fit.bounds) return finding(known ? against : `${title}: no bounds`, fit.no_bounds);
  return finding(known ? against : `${title} ${mistakesOf(fit.bounds)}`, sentenceOf(fit.bounds));
}

function mistakesOf({ disagreement }) {
  if (!disagreement) return "gives these points the classes that supervised LDA gives them";
  const share = percent(disagreement);
  return `may get up to ${share} more of these points wrong than supervised LDA, or up to ${share} fewer`;
}

// What the bounds mean: for mistakes first, and a likelihood never without a word about them.
function sentenceOf({ worst, best, is_safe: isSafe, disagreement }) {
  const share = percent(disagreement);
  const mistakes = disagreement
    ? `It gives ${share} of the unlabeled points another class than supervised LDA does, so that the two ` +
      `differ by at most ${share} in points wrong.`
    : "It gives all unlabeled points the classes that supervised LDA gives them: the same ones are wrong.";
  if (Math.max(-worst, best) < 1e-9) return `${mistakes} Both have the same likelihood.`;
  const likelihood = isSafe
    ? "Over all points its likelihood is higher, whatever the true classes are"
    : best <= 0
      ? "Over all points its likelihood is lower, whatever the true classes are"
      : "Whether its likelihood over all points is higher depends on the true classes";
  const warning = disagreement ? "; a higher likelihood may come with more mistakes" : "";
  return `${mistakes} ${likelihood}${warning}.`;
}

const capitalize = (text) => text[0].toUpperCase() + text.slice(1);

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
