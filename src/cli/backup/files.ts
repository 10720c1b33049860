// A backup in an object store or folder: parts of a table's rows or of a file, compressed, each with its checksum in the
// manifest, which is written last: a backup without one is none.
import { createHash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import { FloeError } from '../../base/error.ts';
import type { SnapshotFacts } from '../../metadata/transfer/index.ts';
import type { ObjectStore } from '../../storage/objects/index.ts';

export const MANIFEST_KEY = 'manifest.json';
const FORMAT = 1;

interface BackupPart {
  /** Table, or `metadata.db`. */
  readonly of: string;
  readonly key: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** `postgres`: rows as JSON lines; `sqlite`: the database's file in parts. */
export type BackupManifest = {
  readonly format: number;
  readonly parts: readonly BackupPart[];
} & (
  | { readonly kind: 'postgres'; readonly facts: SnapshotFacts }
  | {
      readonly kind: 'sqlite';
      readonly facts: Pick<SnapshotFacts, 'clusterId' | 'lastCommit' | 'takenMs'>;
    }
);

export class BackupWriter {
  readonly #store: ObjectStore;
  readonly #parts: BackupPart[] = [];

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  async add(of: string, content: Uint8Array): Promise<void> {
    const body = gzipSync(content, { level: 1 });
    const key = `${of}/${String(this.#parts.length).padStart(6, '0')}.gz`;
    await this.#store.put(key, body);
    this.#parts.push({ of, key, bytes: body.length, sha256: sha256(body) });
  }

  /** @throws FloeError `conflict` when there is a backup already. */
  async finish(
    rest:
      | Pick<BackupManifest & { kind: 'postgres' }, 'kind' | 'facts'>
      | Pick<BackupManifest & { kind: 'sqlite' }, 'kind' | 'facts'>,
  ): Promise<number> {
    const manifest = { format: FORMAT, ...rest, parts: this.#parts };
    const body = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
    await this.#store.put(MANIFEST_KEY, body, { ifNoneMatch: true });
    return this.#parts.reduce((sum, { bytes }) => sum + bytes, 0);
  }
}

/** @throws FloeError `not-found` when there is no whole backup. */
export async function readManifest(store: ObjectStore): Promise<BackupManifest> {
  if ((await store.head(MANIFEST_KEY)) === undefined)
    throw new FloeError(
      'not-found',
      `${store.uri} holds no ${MANIFEST_KEY}: no backup, or one that was broken off`,
    );
  const manifest = parseManifest(await store.get(MANIFEST_KEY), store.uri);
  if (manifest.format !== FORMAT)
    throw new FloeError(
      'unsupported',
      `${store.uri} is a backup of format ${manifest.format}, this version knows ${FORMAT}`,
    );
  return manifest;
}

function parseManifest(bytes: Uint8Array, uri: string): BackupManifest {
  let found: BackupManifest | null;
  try {
    found = JSON.parse(Buffer.from(bytes).toString()) as BackupManifest | null;
  } catch (cause) {
    throw new FloeError('corrupt', `${MANIFEST_KEY} in ${uri} is not JSON: use another backup`, {
      cause,
    });
  }
  if (typeof found === 'object' && found !== null && typeof found.format === 'number') return found;
  throw new FloeError(
    'corrupt',
    `${MANIFEST_KEY} in ${uri} is none of a backup: name another place`,
  );
}

/** The contents of a table's or file's parts. @throws FloeError `corrupt` naming the part. */
export async function* partsOf(
  store: ObjectStore,
  { parts }: BackupManifest,
  of: string,
): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    if (part.of !== of) continue;
    const body = await store.get(part.key);
    if (sha256(body) !== part.sha256)
      throw new FloeError(
        'corrupt',
        `${part.key} of the backup in ${store.uri} isn't what was written: use another backup`,
      );
    yield gunzipSync(body);
  }
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
