// Dashboard and alarms speak of metrics that exist, under labels that they have.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ALARMS, alarms, dashboard, ROWS } from './operations.ts';

const src = join(import.meta.dirname, '..', 'src');
const sources = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => readFileSync(join(src, name), 'utf8'))
  .join('\n');

const expressions = [
  ...ROWS.flatMap(({ panels }) => panels.flatMap(({ series }) => Object.values(series))),
  ...ALARMS.map(({ when }) => when),
];

const metricsIn = (expression: string) =>
  [...expression.matchAll(/\bfloe_[a-z_]+/g)].map(([name]) => name.replace(/_bucket$/, ''));

describe('dashboard and alarms', () => {
  test('name metrics that the program counts', () => {
    const named = new Set(expressions.flatMap(metricsIn));
    expect(named.size).toBeGreaterThan(30);
    expect([...named].filter((name) => !new RegExp(`\\b${name}\\b`).test(sources))).toEqual([]);
  });

  test('show every metric that operators are told to watch', () => {
    const shown = new Set(expressions.flatMap(metricsIn));
    const page = readFileSync(join(src, '..', 'docs', 'cluster.md'), 'utf8');
    const table = page.split('| metric | alarm when |')[1]!.split('\n\n')[0]!;
    const watched = table.split('\n').filter((row) => !/\| – \|$/.test(row));
    const names = watched.flatMap(metricsIn);
    expect(names.length).toBeGreaterThan(8);
    expect(names.filter((name) => !shown.has(name))).toEqual([]);
  });

  test('panels don’t overlap, and lie on the grid', () => {
    const { panels } = JSON.parse(dashboard()) as {
      panels: { gridPos: { x: number; y: number; w: number; h: number } }[];
    };
    const taken = new Set<string>();
    for (const { gridPos } of panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(taken.has(`${x},${y}`)).toBe(false);
          taken.add(`${x},${y}`);
        }
      }
    }
  });

  test('the rule file is YAML with every alarm', () => {
    const { groups } = parse(alarms()) as { groups: { rules: { alert: string }[] }[] };
    expect(groups[0]!.rules.map(({ alert }) => alert)).toEqual(ALARMS.map(({ name }) => name));
  });
});

test('every panel has a source, a unit and a legend, and none lies on another', () => {
  const { panels } = JSON.parse(dashboard()) as {
    panels: readonly {
      readonly id: number;
      readonly type: string;
      readonly title: string;
      readonly datasource?: { readonly type: string; readonly uid: string };
      readonly gridPos: {
        readonly x: number;
        readonly y: number;
        readonly w: number;
        readonly h: number;
      };
      readonly fieldConfig?: { readonly defaults: { readonly unit: string } };
      readonly targets?: readonly { readonly refId: string; readonly legendFormat: string }[];
    }[];
  };
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const taken = new Set<string>();
  for (const { type, title, datasource, gridPos, fieldConfig, targets = [] } of panels) {
    const { x, y, w, h } = gridPos;
    expect(x + w, title).toBeLessThanOrEqual(24);
    for (let at = 0; at < w * h; at += 1) {
      const cell = `${x + (at % w)} ${y + Math.floor(at / w)}`;
      expect(taken.has(cell), `${title} at ${cell}`).toBe(false);
      taken.add(cell);
    }
    if (type === 'row') continue;
    expect(datasource, title).toEqual({ type: 'prometheus', uid: '$source' });
    expect(fieldConfig!.defaults.unit, title).not.toBe('');
    expect(targets.length, title).toBeGreaterThan(0);
    for (const { legendFormat } of targets) expect(legendFormat, title).not.toBe('');
    expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length);
  }
});
