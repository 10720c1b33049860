// A plot as SVG, by hand: lines over days in panels above one another, and bars of dollars. Pure, and no more than the month
// needs. Colours hold on light and dark pages.

export interface Series {
  readonly name: string;
  readonly values: readonly (readonly [x: number, y: number])[];
}

export interface Panel {
  readonly title: string;
  readonly series: readonly Series[];
}

export interface Bars {
  readonly title: string;
  /** What a bar is made of, from below, in one order for all bars. */
  readonly bars: readonly {
    readonly name: string;
    readonly parts: Readonly<Record<string, number>>;
  }[];
}

const WIDTH = 880;
const PANEL_HEIGHT = 190;
const BARS_HEIGHT = 330;
const MARGIN = { left: 70, right: 190, top: 34, bottom: 26 };
const COLOURS = ['#2a78b8', '#d9822b', '#3a9a5b', '#b5487a', '#8a63c9', '#8a8a35', '#777777'];
const INK = '#888888';

/** One picture of all panels and bars. */
export function plot(panels: readonly Panel[], bars: Bars): string {
  const height = panels.length * PANEL_HEIGHT + BARS_HEIGHT;
  const body = [
    ...panels.map(
      (panel, n) => `<g transform="translate(0 ${n * PANEL_HEIGHT})">${lines(panel)}</g>`,
    ),
    `<g transform="translate(0 ${panels.length * PANEL_HEIGHT})">${stacks(bars)}</g>`,
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12" fill="${INK}">
${body.join('\n')}
</svg>
`;
}

/** The smallest of 1, 2, 5 times a power of ten that isn't below `value`. */
export function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((step) => step * power >= value)!;
}

const text = (x: number, y: number, what: string, more = '') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escaped(what)}</text>`;

const escaped = (what: string) =>
  what.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const short = (value: number) => Number(value.toPrecision(3)).toLocaleString('en-US');

interface Frame {
  readonly height: number;
  readonly top: number;
}

/** Lines across with their values at the left; `y` says where a value lies. */
function grid(frame: Frame): { readonly svg: string; readonly y: (value: number) => number } {
  const bottom = frame.height - MARGIN.bottom;
  const y = (value: number) => bottom - (value / frame.top) * (bottom - MARGIN.top);
  const right = WIDTH - MARGIN.right;
  const svg = [0, 0.25, 0.5, 0.75, 1]
    .map((part) => {
      const at = y(part * frame.top);
      const line = `<path d="M${MARGIN.left} ${at.toFixed(1)}H${right}" stroke="${INK}" stroke-opacity="0.3"/>`;
      return line + text(MARGIN.left - 6, at + 4, short(part * frame.top), 'text-anchor="end"');
    })
    .join('');
  return { svg, y };
}

function lines({ title, series }: Panel): string {
  const all = series.flatMap(({ values }) => values);
  const days = Math.max(...all.map(([x]) => x));
  const frame = { height: PANEL_HEIGHT, top: roundUp(Math.max(...all.map(([, y]) => y))) };
  const { svg, y } = grid(frame);
  const x = (day: number) => MARGIN.left + (day / days) * (WIDTH - MARGIN.left - MARGIN.right);
  const step = Math.max(1, Math.round(days / 10));
  const ticks = Array.from({ length: Math.floor(days / step) + 1 }, (_, n) =>
    text(x(n * step), PANEL_HEIGHT - 10, String(n * step), 'text-anchor="middle"'),
  );
  const drawn = series.map(({ name, values }, n) => {
    const colour = COLOURS[n % COLOURS.length];
    const d = values.map(
      ([day, value], i) => `${i === 0 ? 'M' : 'L'}${x(day).toFixed(1)} ${y(value).toFixed(1)}`,
    );
    const label = text(
      WIDTH - MARGIN.right + 12,
      MARGIN.top + 12 + n * 17,
      name,
      `fill="${colour}"`,
    );
    return `<path d="${d.join('')}" fill="none" stroke="${colour}" stroke-width="1.5"/>${label}`;
  });
  return `${text(MARGIN.left, 18, title, 'font-weight="bold"')}${svg}${ticks.join('')}${drawn.join('')}`;
}

function stacks({ title, bars }: Bars): string {
  const names = [...new Set(bars.flatMap(({ parts }) => Object.keys(parts)))];
  const sum = (parts: Readonly<Record<string, number>>) =>
    Object.values(parts).reduce((a, b) => a + b, 0);
  const frame = {
    height: BARS_HEIGHT,
    top: roundUp(Math.max(...bars.map(({ parts }) => sum(parts)))),
  };
  const { svg, y } = grid(frame);
  const slot = (WIDTH - MARGIN.left - MARGIN.right) / bars.length;
  const drawn = bars.map(({ name, parts }, n) => {
    const left = MARGIN.left + slot * (n + 0.2);
    let from = 0;
    const pieces = names.map((part, i) => {
      const value = parts[part] ?? 0;
      const [above, below] = [y(from + value), y(from)];
      from += value;
      return `<rect x="${left.toFixed(1)}" y="${above.toFixed(1)}" width="${(slot * 0.6).toFixed(1)}" height="${(below - above).toFixed(1)}" fill="${COLOURS[i % COLOURS.length]}"/>`;
    });
    const middle = left + slot * 0.3;
    const label = text(middle, BARS_HEIGHT - 8, name, 'text-anchor="middle"');
    const total = text(middle, y(from) - 5, `$${short(from)}`, 'text-anchor="middle"');
    return pieces.join('') + label + total;
  });
  const key = names.map((name, i) =>
    text(
      WIDTH - MARGIN.right + 12,
      MARGIN.top + 12 + i * 17,
      name,
      `fill="${COLOURS[i % COLOURS.length]}"`,
    ),
  );
  return `${text(MARGIN.left, 18, title, 'font-weight="bold"')}${svg}${drawn.join('')}${key.join('')}`;
}
