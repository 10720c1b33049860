// Every client-facing API is either served or listed as skipped with a reason, never both, never neither.
import { expect, it } from 'vitest';
import { ALL_APIS } from '../../protocol/apis.ts';
import { servedApis } from '../index.ts';
import { SKIPPED, SKIPPED_FIELDS } from './skipped.ts';

it('covers all APIs that protocol/ knows', () => {
  const served = new Set(servedApis().map(({ key }) => key));
  for (const { key, name } of ALL_APIS) {
    const places = [served.has(key), key in SKIPPED].filter(Boolean).length;
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
  const known = new Map(ALL_APIS.map((api) => [api.key, api]));
  for (const { key, name, min, max } of servedApis()) {
    expect(min).toBeGreaterThanOrEqual(known.get(key)!.minVersion);
    expect(max, `${name} in its newest version`).toBe(known.get(key)!.maxVersion);
  }
});

it('says why fields are left at their defaults', () => {
  for (const { reason } of SKIPPED_FIELDS) expect(reason.length).toBeGreaterThan(20);
});
