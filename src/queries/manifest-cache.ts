// Manifests and manifest lists, kept as read: they never change, so planning a query after a commit reads only what
// that commit added. Bounded by the number of file descriptions.
import { SingleFlight } from '../base/queue.ts';
import {
  type BoundPartitionSpec,
  type FileReader,
  type ManifestEntry,
  type ManifestFile,
  type ManifestSource,
  manifestSource,
  type Snapshot,
} from '../formats/iceberg/index.ts';

type Cached = readonly ManifestEntry[] | readonly ManifestFile[];

export class ManifestCache implements ManifestSource {
  readonly #source: ManifestSource;
  readonly #limit: number;
  readonly #kept = new Map<string, Cached>();
  readonly #reads = new SingleFlight<string, Cached>();
  #entries = 0;

  constructor(io: FileReader, maxEntries: number) {
    this.#source = manifestSource(io);
    this.#limit = maxEntries;
  }

  async list(snapshot: Snapshot | undefined): Promise<readonly ManifestFile[]> {
    if (snapshot === undefined) return [];
    const key = `list#${snapshot['snapshot-id']}#${snapshot['manifest-list']}`;
    return (await this.#get(key, () => this.#source.list(snapshot))) as readonly ManifestFile[];
  }

  async entries(
    manifest: ManifestFile,
    spec: BoundPartitionSpec,
  ): Promise<readonly ManifestEntry[]> {
    // Inherited sequence numbers and row ids come from the list, so they are part of the key.
    const key = `${manifest.manifestPath}#${manifest.sequenceNumber}#${manifest.firstRowId ?? ''}`;
    return (await this.#get(key, () =>
      this.#source.entries(manifest, spec),
    )) as readonly ManifestEntry[];
  }

  async #get(key: string, read: () => Promise<Cached>): Promise<Cached> {
    const kept = this.#kept.get(key);
    if (kept === undefined) return this.#reads.run(key, async () => this.#keep(key, await read()));
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    return kept;
  }

  #keep(key: string, value: Cached): Cached {
    if (value.length > this.#limit || this.#kept.has(key)) return value;
    this.#kept.set(key, value);
    this.#entries += value.length + 1;
    for (const [oldest, { length }] of this.#kept) {
      if (this.#entries <= this.#limit) break;
      this.#kept.delete(oldest);
      this.#entries -= length + 1;
    }
    return value;
  }
}
