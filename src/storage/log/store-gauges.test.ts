import { expect, test } from 'vitest';
import type { LogObject } from '../../metadata/objects.ts';
import { gaugeStores } from './store-gauges.ts';

test('what could not be deleted when it was due is told, by the clock of the store', async () => {
  const gauges = new Map<string, number>();
  const metrics = {
    gauge: (name: string, _help: string, value: number) => gauges.set(name, value),
  };
  let waiting = [{ changedMs: 30_000 }] as LogObject[];
  const metadata = {
    cluster: { bytes: async () => 4_096, nowMs: async () => 100_000 },
    objects: {
      deletable: async (beforeMs: number) => waiting.filter((one) => one.changedMs <= beforeMs),
    },
  };
  const look = () => gaugeStores({ metadata, metrics: metrics as never, graceMs: 60_000 });
  await look();
  expect(gauges.get('floe_metadata_bytes')).toBe(4_096);
  expect(gauges.get('floe_log_deletion_overdue_seconds')).toBe(10);
  waiting = [{ changedMs: 40_001 } as LogObject];
  await look();
  expect(gauges.get('floe_log_deletion_overdue_seconds')).toBe(0);
});
