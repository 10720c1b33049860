// Key indexes in the object store (rule K3), so that a node without one starts from there instead of reading the table.
// A checkpoint is a state file that names the runs it consists of; runs never change, so only those that the store hasn't
// yet are written. The newest state counts; what no state names goes after the next one is there.
// Not for: when (key-index.ts), following the table from there on (follow.ts).
import { FloeError, isFloeError } from '../../base/error.ts';
import type { FileReader } from '../../formats/iceberg/index.ts';
import type { IndexState, KeyStore } from './key-store.ts';

/** The warehouse as key indexes and their checkpoints use it. */
export interface CheckpointFiles extends FileReader {
  /** Bytes `[start, end)` of a file. */
  readRange(uri: string, start: number, end: number): Promise<Uint8Array>;
  write(uri: string, parts: readonly Uint8Array[]): Promise<void>;
  list(prefix: string): AsyncIterable<{ readonly uri: string }>;
  delete(uris: Iterable<string>): Promise<void>;
}

/** Under the table's metadata folder; maintenance leaves it alone. */
export const CHECKPOINT_FOLDER = 'floe-keys';

interface StoredState {
  readonly state: IndexState;
  /** URI of each run, newest first, as the state has them. */
  readonly runs: readonly string[];
}

const STATE = /\/(\d{12})-[^/]*\.json$/;

async function statesIn(io: CheckpointFiles, folder: string) {
  const uris: string[] = [];
  for await (const { uri } of io.list(`${folder}/`)) uris.push(uri);
  const states = uris.filter((uri) => STATE.test(uri)).toSorted();
  return { uris, states };
}

/** @throws FloeError as the store does; the checkpoint of before is then still whole. */
export async function writeCheckpoint(
  store: KeyStore,
  io: CheckpointFiles,
  folder: string,
): Promise<void> {
  const { uris, states } = await statesIn(io, folder);
  const state = store.exportState();
  const runs = store.runs.map((run) => `${folder}/${state.origin}-${run.name}`);
  for (const [n, run] of store.runs.entries()) {
    if (uris.includes(runs[n]!)) continue;
    await io.write(runs[n]!, [store.runBytes(run)]);
  }
  const number = Number(STATE.exec(states.at(-1) ?? '')?.[1] ?? 0) + 1;
  const path = `${folder}/${String(number).padStart(12, '0')}-${state.origin}.json`;
  const stored: StoredState = { state, runs };
  await io.write(path, [new TextEncoder().encode(JSON.stringify(stored))]);
  const kept = new Set([path, ...runs]);
  await io.delete(uris.filter((uri) => !kept.has(uri)));
}

/** Fills an empty index from the newest checkpoint of the same key. False: there is none that can be used. */
export async function restoreCheckpoint(
  store: KeyStore,
  io: CheckpointFiles,
  folder: string,
): Promise<boolean> {
  const { states } = await statesIn(io, folder);
  const newest = states.at(-1);
  if (newest === undefined) return false;
  try {
    const { state, runs } = JSON.parse(
      new TextDecoder().decode(await io.read(newest)),
    ) as StoredState;
    if (state.identity !== store.identity) return false;
    const bodies: Uint8Array[] = [];
    for (const uri of runs) bodies.push(await io.read(uri));
    store.importState(state, bodies);
    return true;
  } catch (caught) {
    // A damaged one, or one replaced meanwhile: the table itself is always there to be read.
    if (caught instanceof SyntaxError) return false;
    if (isFloeError(FloeError.from(caught), 'not-found', 'corrupt')) {
      store.reset();
      return false;
    }
    throw caught;
  }
}
