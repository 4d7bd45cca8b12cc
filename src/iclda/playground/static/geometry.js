// Lines and colors that follow from linear scores: [slope in x, slope in y, intercept] of each class.

const scoreAt = ([a, b, c], x, y) => a * x + b * y + c;

// Segments on which the two best classes have equal scores, within |x|, |y| <= reach.
export function boundarySegments(scores, reach) {
  const segments = [];
  for (let k = 1; k < scores.length; k++) {
    for (let j = 0; j < k; j++) {
      const others = scores.filter((_, i) => i !== j && i !== k).map((o) => difference(scores[j], o));
      const segment = clippedLine(difference(scores[k], scores[j]), others, reach);
      if (segment) segments.push(segment);
    }
  }
  return segments;
}

const difference = (first, second) => first.map((value, i) => value - second[i]);

// The part of the line a x + b y + c = 0 in the square on which all of `atLeastZero` are so.
function clippedLine([a, b, c], atLeastZero, reach) {
  const length = Math.hypot(a, b);
  if (!(length > 0)) return null;
  const foot = [(-c * a) / length ** 2, (-c * b) / length ** 2];
  const along = [-b / length, a / length];
  const sides = [
    [1, 0, reach],
    [-1, 0, reach],
    [0, 1, reach],
    [0, -1, reach],
  ];
  let [from, to] = [-Infinity, Infinity];
  for (const side of [...sides, ...atLeastZero]) {
    const start = scoreAt(side, ...foot);
    const slope = side[0] * along[0] + side[1] * along[1];
    if (Math.abs(slope) < 1e-12 * (Math.abs(side[0]) + Math.abs(side[1]) || 1)) {
      if (start < 0) return null;
    } else if (slope > 0) {
      from = Math.max(from, -start / slope);
    } else {
      to = Math.min(to, -start / slope);
    }
  }
  const at = (t) => [foot[0] + t * along[0], foot[1] + t * along[1]];
  return from < to ? [at(from), at(to)] : null;
}

// How far each share exceeds the equal one: 1 for a sure class, 0 when undecided.
const excess = (share, n) => Math.min(1, Math.max(0, (share * n - 1) / (n - 1)));

// The color of shares in classes, undecided ones in that of `neutral`; colors are [r, g, b].
export function mix(shares, colors, neutral) {
  const color = [...neutral];
  shares.forEach((share, k) => {
    const weight = excess(share, shares.length);
    for (let i = 0; i < 3; i++) color[i] += weight * (colors[k][i] - neutral[i]);
  });
  return color.map((value) => Math.round(Math.min(255, Math.max(0, value))));
}

// Fills an n x n image with the most probable class, fainter where it is less sure.
export function shade(image, scores, colors, reach, strength) {
  const n = image.width;
  const step = (2 * reach) / n;
  let at = 0;
  for (let row = 0; row < n; row++) {
    const y = reach - step * (row + 0.5);
    for (let column = 0; column < n; column++, at += 4) {
      const x = -reach + step * (column + 0.5);
      let best = 0;
      let highest = -Infinity;
      for (let k = 0; k < scores.length; k++) {
        const value = scores[k][0] * x + scores[k][1] * y + scores[k][2];
        if (value > highest) [best, highest] = [k, value];
      }
      let total = 0;
      for (const [a, b, c] of scores) total += Math.exp(a * x + b * y + c - highest);
      image.data.set(colors[best], at);
      image.data[at + 3] = 255 * strength * excess(1 / total, scores.length);
    }
  }
}

// Segments around the cells of a grid of posteriors where another class becomes the most probable
// one: the zeros of the share of each class less the largest other one (marching squares).
export function gridBoundary(grid, reach) {
  const n = Math.round(Math.sqrt(grid.length));
  const step = (2 * reach) / n;
  const center = (row, column) => [-reach + step * (column + 0.5), reach - step * (row + 0.5)];
  const segments = [];
  // With two classes the boundary of the first is that of the second.
  const classes = grid[0].length === 2 ? [0] : grid[0].map((_, k) => k);
  for (const k of classes) {
    const lead = grid.map((shares) => shares[k] - Math.max(...shares.filter((_, j) => j !== k)));
    for (let row = 0; row + 1 < n; row++) {
      for (let column = 0; column + 1 < n; column++) {
        const corners = [[row, column], [row, column + 1], [row + 1, column + 1], [row + 1, column]];
        const crossings = [];
        corners.forEach((from, i) => {
          const to = corners[(i + 1) % 4];
          const [a, b] = [from, to].map(([r, c]) => lead[r * n + c]);
          if (a < 0 === b < 0) return;
          const [start, end] = [center(...from), center(...to)];
          crossings.push(start.map((value, axis) => value + (a / (a - b)) * (end[axis] - value)));
        });
        for (let i = 0; i + 1 < crossings.length; i += 2) segments.push([crossings[i], crossings[i + 1]]);
      }
    }
  }
  return segments;
}

// As `shade`, from posteriors at the pixels of the image.
export function shadeGrid(image, grid, colors, strength) {
  grid.forEach((shares, i) => {
    const share = Math.max(...shares);
    image.data.set(colors[shares.indexOf(share)], 4 * i);
    image.data[4 * i + 3] = 255 * strength * excess(share, shares.length);
  });
}
