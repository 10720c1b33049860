// Every client-facing API is either served or listed as skipped with a reason, never both, never neither.
import { expect, it } from 'vitest';
import { ALL_APIS } from '../../protocol/apis.ts';
import { SKIPPED } from './skipped.ts';
import { HANDLERS } from './table.ts';

/** Served by groups/, which joins the table when the broker starts. */
const GROUP_APIS = new Set([8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47]);

it('covers all APIs that protocol/ knows', () => {
  const served = new Set(HANDLERS.map(({ api }) => api.key));
  for (const { key, name } of ALL_APIS) {
    const places = [served.has(key), GROUP_APIS.has(key), key in SKIPPED].filter(Boolean).length;
    expect(places, `${name} (${key}) is served or skipped`).toBe(1);
  }
});

it('names what it skips and says why', () => {
  const names = new Map(ALL_APIS.map(({ key, name }) => [key, name]));
  for (const [key, { name, reason }] of Object.entries(SKIPPED)) {
    expect(names.get(Number(key))).toBe(name);
    expect(reason.length).toBeGreaterThan(20);
  }
});

it('serves only versions that can be decoded', () => {
  for (const { api, versions } of HANDLERS) {
    expect(versions.min).toBeGreaterThanOrEqual(api.minVersion);
    expect(versions.max, `${api.name} in its newest version`).toBe(api.maxVersion);
  }
});
