// The scene of the page: points, choices, and the text of a link that holds all of it.

export const THOUSANDTHS = 1000; // coordinates are whole thousandths, which a link holds exactly
const VERSION = "1";

export function emptyScene(methods, shown) {
  return {
    labeled: [], // {x, y, label}
    pool: [], // {x, y, truth}: unlabeled points, of which the first `used` count; truth may be null
    used: 0,
    methods: [...methods],
    shown,
    shrinkage: 0,
    shading: true,
  };
}

export const unlabeledOf = (scene) => scene.pool.slice(0, scene.used);

export function place(value, largest) {
  const inside = Math.min(largest, Math.max(-largest, value));
  return Math.round(inside * THOUSANDTHS) / THOUSANDTHS;
}

// What the server reads.
export function asRequest(scene, dragged) {
  return {
    labeled: scene.labeled.map((p) => [p.x, p.y, p.label]),
    unlabeled: unlabeledOf(scene).map((p) => [p.x, p.y, p.truth]),
    methods: scene.methods,
    shown: scene.shown,
    shrinkage: scene.shrinkage,
    dragged,
  };
}

// Points of a toy problem, as the server sends them.
export function fromToy(scene, sent, used) {
  const labeled = sent.labeled.map(([x, y, label]) => ({ x, y, label }));
  const pool = sent.unlabeled.map(([x, y, truth]) => ({ x, y, truth }));
  return { ...scene, labeled, pool, used: Math.min(used, pool.length) };
}

export function encode(scene) {
  const fields = {
    v: VERSION,
    m: scene.methods.join("."),
    s: scene.shown,
    n: scene.used,
    k: scene.shrinkage,
    d: scene.shading ? 1 : 0,
    lc: scene.labeled.map((p) => p.label).join(""),
    l: pack(scene.labeled),
    uc: scene.pool.map((p) => p.truth ?? "x").join(""),
    u: pack(scene.pool),
  };
  return Object.entries(fields).map(([name, value]) => `${name}=${value}`).join("&");
}

// A scene from the text of a link; an Error says what is wrong with it.
export function decode(text, about) {
  const fields = Object.fromEntries(text.split("&").map((part) => part.split(/=(.*)/s)));
  if (fields.v !== VERSION) {
    throw new Error(`This link is not one of the playground, or of another version (${fields.v ?? "none"}).`);
  }
  const known = about.methods.map((method) => method.name);
  const methods = (fields.m ?? "")
    .split(".")
    .map((name) => (name === "confident" ? "self-training" : name)) // its name before 0.2
    .filter((name) => known.includes(name));
  const labeled = unpack(fields.l, fields.lc, about, false);
  const pool = unpack(fields.u, fields.uc, about, true);
  if (labeled.length + pool.length > about.limits.points) {
    throw new Error(
      `This link holds ${labeled.length + pool.length} points, and the playground draws at most ` +
        `${about.limits.points}.`,
    );
  }
  const shrinkage = Number(fields.k ?? 0);
  return {
    labeled: labeled.map(({ x, y, code }) => ({ x, y, label: code })),
    pool: pool.map(({ x, y, code }) => ({ x, y, truth: code })),
    used: Math.min(Math.max(Math.trunc(Number(fields.n)) || 0, 0), pool.length),
    methods,
    shown: methods.includes(fields.s) ? fields.s : (methods[0] ?? ""),
    shrinkage: shrinkage >= 0 && shrinkage <= 0.9 ? shrinkage : 0,
    shading: fields.d !== "0",
  };
}

// Coordinates as 16-bit thousandths in the alphabet of URLs.
function pack(points) {
  const view = new DataView(new ArrayBuffer(4 * points.length));
  points.forEach((p, i) => {
    view.setInt16(4 * i, Math.round(p.x * THOUSANDTHS));
    view.setInt16(4 * i + 2, Math.round(p.y * THOUSANDTHS));
  });
  const bytes = new Uint8Array(view.buffer);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function unpack(packed = "", codes = "", about, mayBeUnknown) {
  let bytes;
  try {
    const text = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
    bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
  } catch {
    throw new Error("This link is damaged: it has characters that no link of the playground has.");
  }
  if (bytes.length !== 4 * codes.length) {
    throw new Error(`This link is damaged: ${codes.length} classes, ${bytes.length / 4} points.`);
  }
  const view = new DataView(bytes.buffer);
  return [...codes].map((character, i) => {
    const code = mayBeUnknown && character === "x" ? null : Number(character);
    if (code !== null && !(code in about.classes)) {
      throw new Error(`This link is damaged: there is no class ${character}.`);
    }
    const x = view.getInt16(4 * i) / THOUSANDTHS;
    const y = view.getInt16(4 * i + 2) / THOUSANDTHS;
    return { x: place(x, about.limits.coordinate), y: place(y, about.limits.coordinate), code };
  });
}
