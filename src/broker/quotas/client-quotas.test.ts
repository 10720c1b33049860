// Whose quota holds, who shares it, and how many meters are kept.
import { beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { resolveSettings } from '../../base/settings.ts';
import type { QuotaEntity, QuotasMetadata } from '../../metadata/quotas.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { ClientQuotas } from './client-quotas.ts';
import { quotaSettings } from './settings.ts';

const clock = new ManualClock();
let metadata: QuotasMetadata;
let quotas: ClientQuotas;

const load = () =>
  ClientQuotas.load({ metadata, settings: resolveSettings(quotaSettings, {}), clock });

beforeEach(async () => {
  metadata = openSqliteMetadata(':memory:').quotas;
  quotas = await load();
});

const set = (entity: QuotaEntity, value: number | null, key = 'producer_byte_rate') =>
  quotas.alter([{ entity, values: { [key]: value } }]);

const limit = (user = 'u', client = 'c') => quotas.limits(user, client)?.produce?.limit;

describe('precedence', () => {
  it('is Kafka’s: from the pair to the default client id', async () => {
    const widening: QuotaEntity[] = [
      { 'client-id': null },
      { 'client-id': 'c' },
      { user: null },
      { user: null, 'client-id': null },
      { user: null, 'client-id': 'c' },
      { user: 'u' },
      { user: 'u', 'client-id': null },
      { user: 'u', 'client-id': 'c' },
    ];
    expect(quotas.active).toBe(false);
    for (const [at, entity] of widening.entries()) {
      await set(entity, at + 1);
      expect(limit()).toBe(at + 1);
    }
    for (const [at, entity] of [...widening.entries()].reverse()) {
      expect(limit()).toBe(at + 1);
      await set(entity, null);
    }
    expect(quotas.active).toBe(false);
    expect(quotas.limits('u', 'c')).toBeUndefined();
  });

  it('is looked up for each key', async () => {
    await set({ user: 'u' }, 5, 'consumer_byte_rate');
    await set({ 'client-id': 'c' }, 7);
    const { produce, fetch, request } = quotas.limits('u', 'c')!;
    expect([produce?.limit, fetch?.limit, request]).toEqual([7, 5, undefined]);
  });
});

describe('sharing', () => {
  it('is by what the quota names', async () => {
    await set({ user: null }, 5);
    expect(quotas.limits('u', 'a')!.produce).toBe(quotas.limits('u', 'b')!.produce);
    expect(quotas.limits('v', 'a')!.produce).not.toBe(quotas.limits('u', 'a')!.produce);
    await set({ user: null }, null);
    await set({ 'client-id': null }, 5);
    expect(quotas.limits('u', 'a')!.produce).toBe(quotas.limits('v', 'a')!.produce);
    expect(quotas.limits('u', 'b')!.produce).not.toBe(quotas.limits('u', 'a')!.produce);
  });

  it('keeps what was used when the limit changes, and starts afresh after a restart', async () => {
    await set({ user: 'u' }, 10);
    const waitMs = quotas.limits('u', 'a')!.produce!.charge(200, clock.monotonic());
    expect(waitMs).toBeGreaterThan(0);
    await set({ user: 'u' }, 1_000);
    const { produce } = quotas.limits('u', 'a')!;
    expect(produce!.throttleMs(clock.monotonic())).toBe(0);
    expect(produce!.rate(clock.monotonic())).toBeGreaterThan(0);
    quotas = await load();
    expect(limit()).toBe(1_000);
    expect(quotas.limits('u', 'a')!.produce!.rate(clock.monotonic())).toBe(0);
  });
});

it('keeps a bounded number of meters: idle ones go first', async () => {
  await set({ 'client-id': null }, 10);
  const busy = quotas.limits('u', 'busy')!.produce!;
  for (let n = 0; n < 9_990; n += 1) quotas.limits('u', `c${n}`);
  await clock.advance(60_000);
  busy.charge(1_000, clock.monotonic());
  for (let n = 0; n < 5_000; n += 1) quotas.limits('u', `d${n}`);
  expect(quotas.limits('u', 'busy')!.produce).toBe(busy);
});
