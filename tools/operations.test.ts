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
