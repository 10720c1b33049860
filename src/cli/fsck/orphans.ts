// Keys of the log that no row refers to: what writers that died left behind, what was written after a backup. Young ones are
// work under way: bytes come before rows. Not for: files of tables, which their own upkeep looks after.
import type { ObjectInfo, ObjectStore } from '../../storage/objects/index.ts';
import { filePrefix, parseKey, streamPrefix, timeOfKey, walPrefix } from '../../storage/paths.ts';
import { eachOf } from '../migrate/objects.ts';
import type { Ask } from './metadata.ts';
import { AT_ONCE } from './objects.ts';

export interface Orphans {
  readonly count: number;
  readonly bytes: number;
  readonly first: readonly string[];
  /** Of these, those above the age of orphans, which a sweep should have taken. */
  readonly old: {
    readonly count: number;
    readonly bytes: number;
    readonly first: readonly string[];
  };
  /** Milliseconds; undefined without any. */
  readonly oldestMs: number | undefined;
}

export interface OrphansOptions {
  readonly ask: Ask;
  readonly store: ObjectStore;
  readonly clusterId: string;
  /** By the clock that keys are named by. */
  readonly nowMs: number;
  readonly orphanAgeMs: number;
  /** Write-ahead files of a node alone lie in the store's folder. */
  readonly withFiles: boolean;
}

const PAGE = 1_000;
const MOST_LISTED = 10;

export async function findOrphans(options: OrphansOptions): Promise<Orphans> {
  const { store, clusterId, nowMs, orphanAgeMs, withFiles } = options;
  const all = { count: 0, bytes: 0, first: [] as string[] };
  const old = { count: 0, bytes: 0, first: [] as string[] };
  let oldestMs: number | undefined;
  const prefixes = [walPrefix(clusterId), streamPrefix(clusterId)];
  if (withFiles) prefixes.push(filePrefix(clusterId));
  for (const prefix of prefixes) {
    for await (const page of pagesOf(store.list(prefix))) {
      for (const info of await unknown(options, page)) {
        const ageMs = nowMs - (timeOfKey(info.key) ?? info.modifiedMs);
        oldestMs = Math.max(oldestMs ?? 0, ageMs);
        note(all, info);
        if (ageMs > orphanAgeMs) note(old, info);
      }
    }
  }
  return { ...all, old, oldestMs };
}

function note(
  sum: { count: number; bytes: number; readonly first: string[] },
  { key, size }: ObjectInfo,
): void {
  sum.count += 1;
  sum.bytes += size;
  if (sum.first.length < MOST_LISTED) sum.first.push(key);
}

async function* pagesOf(listed: AsyncIterable<ObjectInfo>): AsyncGenerator<ObjectInfo[]> {
  let page: ObjectInfo[] = [];
  for await (const info of listed) {
    if (page.push(info) < PAGE) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

/** Those of a page that have no row, looked at twice: a row may go, with its bytes, or come after they were listed. */
async function unknown(
  { ask, store, clusterId }: OrphansOptions,
  page: readonly ObjectInfo[],
): Promise<readonly ObjectInfo[]> {
  const known = await keysBetween(ask, page[0]!.key, page.at(-1)!.key);
  const suspects = page.filter(
    ({ key }) => !known.has(key) && parseKey(clusterId, key) !== undefined,
  );
  const explained = new Set<ObjectInfo>();
  await eachOf(suspects, AT_ONCE, async (info) => {
    const there = (await store.head(info.key)) !== undefined;
    if (!there || (await keysBetween(ask, info.key, info.key)).size > 0) explained.add(info);
  });
  return suspects.filter((info) => !explained.has(info));
}

/** Keys are listed in the order in which the database compares them. */
async function keysBetween(ask: Ask, first: string, last: string): Promise<ReadonlySet<string>> {
  const rows = await ask<{ key: string }>(
    'SELECT key FROM log_objects WHERE key >= $1 AND key <= $2',
    [first, last],
  );
  return new Set(rows.map(({ key }) => key));
}
