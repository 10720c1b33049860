import { expect, test } from 'vitest';
import { TestTable } from '../../formats/iceberg/test-table.ts';
import { COMMIT_ID_SUMMARY, WATERMARK_TAG } from '../watermark.ts';
import { chooseExpired } from './expiry.ts';

const HOUR = 3_600_000;
const POLICY = { maxAgeMs: 24 * HOUR, minSnapshots: 1, maxCount: 1_000 };

/** One snapshot an hour; `own` of them are ours. */
async function table(snapshots: number, own: readonly number[] = []) {
  const made = new TestTable();
  const ids: bigint[] = [];
  for (let n = 0; n < snapshots; n += 1) {
    made.nowMs += HOUR - 1_000;
    const summary: Record<string, string> = own.includes(n) ? { [COMMIT_ID_SUMMARY]: `c${n}` } : {};
    await made.commit({ added: [made.file()], summary });
    ids.push(made.metadata['current-snapshot-id']!);
  }
  return { made, ids };
}

test('what is older than a day goes, the newest never', async () => {
  const { made, ids } = await table(30);
  const { snapshots } = chooseExpired(made.metadata, POLICY, made.nowMs);
  expect(snapshots).toEqual(ids.slice(0, 5));
  const later = chooseExpired(made.metadata, POLICY, made.nowMs + 1_000 * HOUR);
  expect(later.snapshots).toEqual(ids.slice(0, 29));
  expect(
    chooseExpired(made.metadata, { ...POLICY, minSnapshots: 7 }, made.nowMs + 1_000 * HOUR)
      .snapshots,
  ).toEqual(ids.slice(0, 23));
});

test('past the most that are kept the oldest go, however young', async () => {
  const { made, ids } = await table(12);
  const { snapshots } = chooseExpired(made.metadata, { ...POLICY, maxCount: 4 }, made.nowMs);
  expect(snapshots).toEqual(ids.slice(0, 8));
});

test('our newest own snapshot stays, for the watermark is read back by it', async () => {
  const { made, ids } = await table(10, [1, 3]);
  const { snapshots } = chooseExpired(made.metadata, POLICY, made.nowMs + 1_000 * HOUR);
  expect(snapshots).toEqual(ids.filter((_, n) => n !== 3 && n !== 9));
});

test('branches and tags of others keep what they need, by their own retention', async () => {
  const { made, ids } = await table(10);
  const ref = (name: string, snapshot: number, rest: Record<string, unknown>) =>
    made.update({
      action: 'set-snapshot-ref',
      'ref-name': name,
      'snapshot-id': ids[snapshot],
      ...rest,
    });
  ref('audit', 2, { type: 'tag' });
  ref('old', 4, { type: 'tag', 'max-ref-age-ms': 1 });
  ref('work', 6, { type: 'branch', 'min-snapshots-to-keep': 2, 'max-snapshot-age-ms': 1 });
  ref(WATERMARK_TAG, 5, { type: 'tag' });
  const { snapshots, refs } = chooseExpired(made.metadata, POLICY, made.nowMs + 1_000 * HOUR);
  expect(refs).toEqual(['old']);
  expect(snapshots).toEqual(ids.filter((_, n) => ![2, 5, 6, 9].includes(n)));
});

test('what lies off every branch goes by age alone', async () => {
  const { made, ids } = await table(6);
  made.update({
    action: 'set-snapshot-ref',
    'ref-name': 'main',
    type: 'branch',
    'snapshot-id': ids[2],
  });
  expect(chooseExpired(made.metadata, POLICY, made.nowMs).snapshots).toEqual([]);
  expect(chooseExpired(made.metadata, { ...POLICY, maxCount: 1 }, made.nowMs).snapshots).toEqual(
    ids.slice(0, 2),
  );
});

test('the table’s own properties go first', async () => {
  const { made, ids } = await table(10);
  made.update({
    action: 'set-properties',
    updates: { 'history.expire.max-snapshot-age-ms': String(2 * HOUR + 1) },
  });
  expect(chooseExpired(made.metadata, POLICY, made.nowMs).snapshots).toEqual(ids.slice(0, 7));
});
