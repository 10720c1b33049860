// Where an object of the log lies and who knows of it: a plain path, or a key in a store; the metadata that the options name,
// or that of the data directory which a file lies in. Not for: what is in the object (dump.ts).
import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { FloeError, isFloeError } from '../../base/error.ts';
import { METADATA_FILE } from '../../storage/log/sequencer-backend.ts';
import { generationOf, isFileKey } from '../../storage/paths.ts';
import { type AskedMetadata, openAsked } from '../fsck/metadata.ts';
import { flushesOf } from '../fsck/rows.ts';
import { openStoreToRead, type StorePlace } from '../stores.ts';
import type { DumpMetadata, PartitionName } from './dump.ts';
import { type ObjectBytes, openFile, openObject } from './object-bytes.ts';

export interface FoundObject {
  readonly bytes: ObjectBytes;
  /** Undefined: its name says nothing. */
  readonly generation: number | undefined;
  readonly isFile: boolean;
  readonly metadata: DumpMetadata | undefined;
  close(): Promise<void>;
}

export interface FindOptions extends StorePlace {
  /** A path, or a key. */
  readonly object: string;
  /** The options name metadata: it has to answer. */
  readonly metadataNamed: boolean;
}

/** The last three parts of a path: how a local store lays a key out. */
const KEY = /(?:^|\/)([A-Za-z0-9_-]{1,64}\/(?:file|wal|stream)\/[^/]+\.(?:wal|log))$/;

/** @throws FloeError naming what isn't there. */
export async function findObject(options: FindOptions): Promise<FoundObject> {
  const path = resolve(options.object);
  const isPath = existsSync(path);
  const key = KEY.exec(isPath ? path : options.object)?.[1];
  const asked = openMetadata(options, isPath ? path : undefined);
  const bytes = isPath ? await openFile(path) : await openKey(options);
  const isFile = key === undefined ? isPath : isFileKey(key);
  return {
    bytes,
    generation: key === undefined || !isFileKey(key) ? undefined : generationOf(key),
    isFile,
    metadata: asked === undefined ? undefined : metadataOf(asked, key),
    async close() {
      await bytes.close();
      await asked?.close();
    },
  };
}

/** @throws FloeError `not-found` when there is no such key, or no store that it could lie in. */
async function openKey(options: FindOptions): Promise<ObjectBytes> {
  const store = await openStoreToRead(options).catch((caught: unknown) => {
    if (!isFloeError(caught, 'not-found')) throw caught;
    throw new FloeError(
      'not-found',
      `there is neither a file ${options.object} here nor an object of that key: ${caught.message}`,
    );
  });
  return openObject(store, options.object);
}

function openMetadata(options: FindOptions, path: string | undefined): AskedMetadata | undefined {
  const applicationName = 'floe log dump';
  if (options.metadataNamed) return openAsked({ ...options, applicationName });
  const dataDir = path === undefined ? options.dataDir : dataDirOf(path);
  if (dataDir === undefined || !existsSync(join(dataDir, METADATA_FILE))) return undefined;
  return openAsked({ ...options, dataDir, metadata: undefined, applicationName });
}

/** `DIR/storage/<cluster>/file/<name>`. */
function dataDirOf(path: string): string | undefined {
  const storage = dirname(dirname(dirname(path)));
  return basename(storage) === 'storage' ? dirname(storage) : undefined;
}

/** What an open metadata store knows of a key. */
export function metadataOf({ ask }: AskedMetadata, key: string | undefined): DumpMetadata {
  return {
    async object() {
      if (key === undefined) return undefined;
      const [row] = await ask<{ object_id: number; state: string }>(
        'SELECT object_id, state FROM log_objects WHERE key = $1',
        [key],
      );
      return row === undefined ? undefined : { objectId: row.object_id, state: row.state };
    },
    async addFlushes(places, { objectId }) {
      for await (const { index } of flushesOf(ask, objectId)) places.add(index);
    },
    async partition(partitionId): Promise<PartitionName | undefined> {
      const [row] = await ask<PartitionName>(
        `SELECT t.name AS topic, q.partition_index AS partition FROM partitions q
         JOIN topics t ON t.topic_id = q.topic_id WHERE q.partition_id = $1`,
        [partitionId],
      );
      return row === undefined ? undefined : { topic: row.topic, partition: row.partition };
    },
  };
}

/** @throws FloeError `invalid` for what is no number of bytes. */
export function byteCount(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new FloeError('invalid', `--max-bytes: "${text}" is no number of bytes`);
}
