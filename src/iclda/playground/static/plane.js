// The plane: draws points, boundaries and posteriors on a canvas, and turns pointers into changes.

import { boundarySegments, gridBoundary, mix, shade, shadeGrid } from "./geometry.js";
import { unlabeledOf } from "./state.js";

const GRAIN = 72; // cells of the shading along a side, as many as the server sends posteriors for
const CLICK = { mouse: 4, pen: 6, touch: 12 }; // pixels within which a press is no drag

export class Plane {
  // `on` has click(hit, at), drag(hit, at) and drop(); hit is {kind, index} of a point, or null.
  constructor(canvas, reach, on) {
    Object.assign(this, { canvas, reach, on, press: null, emphasis: "", cross: null, selected: null });
    this.tile = document.createElement("canvas");
    this.tile.width = this.tile.height = GRAIN;
    this.image = new ImageData(GRAIN, GRAIN);
    this.base = document.createElement("canvas"); // shading and unlabeled points
    this.isStale = true; // whether the base has to be drawn again
    canvas.addEventListener("pointerdown", (event) => this.onDown(event));
    canvas.addEventListener("pointermove", (event) => this.onMove(event));
    canvas.addEventListener("pointerup", (event) => this.onUp(event));
    canvas.addEventListener("pointercancel", () => (this.press = null));
  }

  get size() {
    return this.canvas.clientWidth;
  }

  toPixels({ x, y }) {
    const half = this.size / 2;
    return [half + (x / this.reach) * half, half - (y / this.reach) * half];
  }

  toPlane(event) {
    const box = this.canvas.getBoundingClientRect();
    const half = box.width / 2;
    return {
      x: ((event.clientX - box.left - half) / half) * this.reach,
      y: ((half - (event.clientY - box.top)) / half) * this.reach,
    };
  }

  // The point under the pointer, labeled ones first: {kind, index} or null.
  hit(event, scene) {
    const isTouch = event.pointerType === "touch";
    const box = this.canvas.getBoundingClientRect();
    const at = [event.clientX - box.left, event.clientY - box.top];
    const lists = { labeled: [scene.labeled, isTouch ? 22 : 12], pool: [unlabeledOf(scene), isTouch ? 12 : 6] };
    for (const [kind, [points, within]] of Object.entries(lists)) {
      let [index, nearest] = [-1, within];
      points.forEach((point, i) => {
        const [px, py] = this.toPixels(point);
        const distance = Math.hypot(px - at[0], py - at[1]);
        if (distance <= nearest) [index, nearest] = [i, distance];
      });
      if (index >= 0) return { kind, index };
    }
    return null;
  }

  onDown(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.press = { hit: this.hit(event, this.scene), from: [event.clientX, event.clientY], moved: false };
  }

  onMove(event) {
    if (!this.press) {
      this.canvas.classList.toggle("over-point", this.hit(event, this.scene) !== null);
      return;
    }
    const [x, y] = this.press.from;
    const distance = Math.hypot(event.clientX - x, event.clientY - y);
    if (!this.press.moved && distance < (CLICK[event.pointerType] ?? CLICK.mouse)) return;
    this.press.moved = true;
    if (this.press.hit) this.on.drag(this.press.hit, this.toPlane(event));
  }

  onUp(event) {
    const press = this.press;
    this.press = null;
    if (press && !press.moved) this.on.click(press.hit, this.toPlane(event));
    else if (press?.hit) this.on.drop();
  }

  readColors() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    this.colors = {
      classes: [0, 1, 2, 3].map((k) => get(`--class-${k}`)),
      rgb: [0, 1, 2, 3].map((k) => toRgb(get(`--class-${k}`))),
      neutral: toRgb(get("--neutral")),
      ink: get("--ink"),
      ground: get("--plane"),
      line: get("--plane-line"),
      shading: Number(get("--shading")),
    };
  }

  draw(scene, answer, methods) {
    this.scene = scene;
    const ratio = window.devicePixelRatio || 1;
    const pixels = Math.round(this.size * ratio);
    if (this.canvas.width !== pixels || this.isStale) this.drawBase(scene, answer, pixels, ratio);
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(1, 0, 0, 1, 0, 0);
    this.context.drawImage(this.base, 0, 0);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawBoundaries(scene, answer, methods);
    scene.labeled.forEach((point) => this.drawLabeled(point));
    this.drawSelection(scene);
  }

  // What stays as it is from one movement of a labeled point to the next answer.
  drawBase(scene, answer, pixels, ratio) {
    if (this.canvas.width !== pixels) this.canvas.width = this.canvas.height = pixels;
    this.base.width = this.base.height = pixels;
    const c = (this.context = this.base.getContext("2d"));
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = this.colors.ground;
    c.fillRect(0, 0, this.size, this.size);
    const codes = answer?.classes ?? [];
    const shown = answer?.fits[scene.shown];
    if (scene.shading && (shown?.scores || shown?.grid)) this.drawShading(shown, codes);
    this.drawGrid();
    this.drawUnlabeled(scene, shown?.shares ?? [], codes);
    this.isStale = false;
  }

  drawShading({ scores, grid }, codes) {
    const colors = codes.map((code) => this.colors.rgb[code]);
    if (grid) shadeGrid(this.image, grid, colors, this.colors.shading);
    else shade(this.image, scores, colors, this.reach, this.colors.shading);
    this.tile.getContext("2d").putImageData(this.image, 0, 0);
    this.context.drawImage(this.tile, 0, 0, this.size, this.size);
  }

  drawGrid() {
    const c = this.context;
    c.strokeStyle = this.colors.line;
    c.lineWidth = 1;
    c.beginPath();
    for (let at = -Math.floor(this.reach); at <= this.reach; at++) {
      const [x, y] = this.toPixels({ x: at, y: at }).map((v) => Math.round(v) + 0.5);
      c.moveTo(x, 0);
      c.lineTo(x, this.size);
      c.moveTo(0, y);
      c.lineTo(this.size, y);
    }
    c.stroke();
  }

  drawUnlabeled(scene, shares, codes) {
    const c = this.context;
    const radius = this.size < 450 ? 2.2 : 2.8;
    const colors = codes.map((code) => this.colors.rgb[code]);
    c.globalAlpha = 0.85;
    unlabeledOf(scene).forEach((point, i) => {
      const known = shares[i]?.length === colors.length;
      const color = known ? mix(shares[i], colors, this.colors.neutral) : this.colors.neutral;
      const [x, y] = this.toPixels(point);
      c.fillStyle = `rgb(${color.join(",")})`;
      c.beginPath();
      c.arc(x, y, radius, 0, 2 * Math.PI);
      c.fill();
    });
    c.globalAlpha = 1;
  }

  // The supervised fit last and dashed, so that a line below it shows through.
  drawBoundaries(scene, answer, methods) {
    const c = this.context;
    c.lineCap = "round";
    for (const method of methods) {
      const fit = answer?.fits[method.name];
      if (!(fit?.scores || fit?.grid) || !scene.methods.includes(method.name)) continue;
      const isFaint = this.emphasis && this.emphasis !== method.name;
      c.globalAlpha = isFaint ? 0.18 : 1;
      c.strokeStyle = method.color || this.colors.ink;
      c.lineWidth = method.name === (this.emphasis || scene.shown) ? 3.4 : 2;
      c.setLineDash(method.uses_unlabeled ? [] : [8, 6]);
      c.beginPath();
      fit.segments ??= fit.grid ? gridBoundary(fit.grid, this.reach) : boundarySegments(fit.scores, this.reach);
      for (const [from, to] of fit.segments) {
        c.moveTo(...this.toPixels({ x: from[0], y: from[1] }));
        c.lineTo(...this.toPixels({ x: to[0], y: to[1] }));
      }
      c.stroke();
    }
    c.setLineDash([]);
    c.globalAlpha = 1;
  }

  drawLabeled(point) {
    const c = this.context;
    const [x, y] = this.toPixels(point);
    const r = this.size < 450 ? 6 : 7.5;
    c.beginPath();
    outline(c, point.label, x, y, r);
    c.fillStyle = this.colors.classes[point.label];
    c.fill();
    c.lineJoin = "round";
    c.lineWidth = 2;
    c.strokeStyle = this.colors.ground;
    c.stroke();
    c.lineWidth = 1.2;
    c.strokeStyle = this.colors.ink;
    c.stroke();
  }

  drawSelection(scene) {
    const c = this.context;
    c.strokeStyle = this.colors.ink;
    const chosen = this.selected && scene[this.selected.kind][this.selected.index];
    if (chosen) {
      const [x, y] = this.toPixels(chosen);
      c.lineWidth = 2;
      c.beginPath();
      c.arc(x, y, this.selected.kind === "labeled" ? 14 : 9, 0, 2 * Math.PI);
      c.stroke();
    } else if (this.cross) {
      const [x, y] = this.toPixels(this.cross);
      c.lineWidth = 1.5;
      c.beginPath();
      for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
        c.moveTo(x + 4 * dx, y + 4 * dy);
        c.lineTo(x + 14 * dx, y + 14 * dy);
      }
      c.stroke();
    }
  }
}

// A shape for every class, so that color is not needed to tell them apart.
function outline(c, label, x, y, r) {
  if (label === 0) return c.arc(x, y, r, 0, 2 * Math.PI);
  if (label === 1) return c.rect(x - 0.88 * r, y - 0.88 * r, 1.76 * r, 1.76 * r);
  const corners = label === 2 ? 3 : 4;
  const size = label === 2 ? 1.3 * r : 1.2 * r;
  for (let i = 0; i < corners; i++) {
    const angle = -Math.PI / 2 + (2 * Math.PI * i) / corners;
    const shift = label === 2 ? 0.2 * r : 0;
    c[i ? "lineTo" : "moveTo"](x + size * Math.cos(angle), y + shift + size * Math.sin(angle));
  }
  c.closePath();
}

const toRgb = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
