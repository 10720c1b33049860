// Table topics in threads of their own over a local folder, for benchmarks of what happens to tables. Not for: brokers.
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import { type Prng, seededIds } from '../src/base/prng.ts';
import { resolveSettings } from '../src/base/settings.ts';
import { LocalObjectStore, objectSettings } from '../src/storage/objects/index.ts';
import { Bench } from '../src/table-topic/testing/bench.ts';

/** In `folder`: files of tables in `store`, key indexes in `keys`. */
export async function openTableBench(
  folder: string,
  prng: Prng,
  settings: Readonly<Record<string, string>>,
): Promise<Bench> {
  const ids = seededIds(prng);
  const store = await LocalObjectStore.open(join(folder, 'store'), { clock: systemClock, ids });
  return Bench.open({
    store,
    threads: {
      storeUri: store.uri,
      storeSettings: resolveSettings(objectSettings, {}),
      keyFolder: join(folder, 'keys'),
    },
    settings,
  });
}
