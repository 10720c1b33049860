// The files of tables on their way to another store. Keys stay; locations in metadata, manifest lists, manifests and
// position deletes are absolute, so those files are written anew, from the inside out: sizes of what was rewritten go into
// what names it. Afterwards every table is planned in both stores, and each of its files has its length.
import { gunzipSync, gzipSync } from 'node:zlib';
import { FloeError } from '../../base/error.ts';
import { Warehouse } from '../../catalog/warehouse.ts';
import { manifestSource, parseTableMetadata, planScan } from '../../formats/iceberg/index.ts';
import { writePositionDeletes } from '../../formats/iceberg/position-deletes.ts';
import {
  avroKind,
  type Moved,
  positionDeleteFiles,
  type Rewritten,
  relocateJson,
  relocateManifest,
  relocateManifestList,
  relocatePuffin,
} from '../../formats/iceberg/relocate.ts';
import { keyOfUri, type ObjectStore, objectUri } from '../../storage/objects/index.ts';
import { warehousePrefix } from '../../storage/paths.ts';
import { readPositionDeletes } from '../../table-topic/upsert/read-deletes.ts';
import { eachOf } from './objects.ts';

export interface WarehouseOptions {
  readonly clusterId: string;
  readonly from: ObjectStore;
  readonly to: ObjectStore;
}

/** Files on their way at once: each is held in memory whole. */
const AT_ONCE = 4;

/** How locations of one store become those of the other, in any text: alone or within JSON. */
export function relocation(from: ObjectStore, to: ObjectStore): Moved {
  const root = (store: ObjectStore) => objectUri(store, '').replace(/\/$/, '');
  const [old, now] = [root(from), root(to)];
  if (old === now) return (text) => text;
  const variants = [old];
  if (old.startsWith('file:///')) variants.push(old.replace('file:///', 'file:/'));
  if (old.startsWith('s3://')) variants.push(old.replace('s3://', 's3a://'));
  const escaped = (text: string) => JSON.stringify(text).slice(1, -1);
  return (text) => {
    let moved = text;
    for (const variant of variants) {
      if (text === variant) return now;
      moved = moved.replaceAll(`${variant}/`, `${now}/`);
      const inJson = escaped(variant);
      if (inJson !== variant) moved = moved.replaceAll(`${inJson}/`, `${escaped(now)}/`);
    }
    return moved;
  };
}

export interface CopiedFiles {
  readonly files: number;
  readonly bytes: number;
  readonly rewritten: number;
}

/** Copies all, rewriting what names locations. Doing it again does the same. @throws FloeError. */
export async function copyWarehouse(options: WarehouseOptions): Promise<CopiedFiles> {
  const { from, to, clusterId } = options;
  if (from.uri === to.uri) return { files: 0, bytes: 0, rewritten: 0 };
  const keys: { key: string; size: number }[] = [];
  for await (const { key, size } of from.list(warehousePrefix(clusterId))) keys.push({ key, size });
  return new Mover(options, relocation(from, to), keys).run(to);
}

class Mover {
  readonly #from: ObjectStore;
  readonly #moved: Moved;
  readonly #keys: readonly { readonly key: string; readonly size: number }[];
  readonly #manifests: string[] = [];
  readonly #lists: string[] = [];
  readonly #positionDeletes = new Set<string>();
  readonly #rewritten = new Map<string, Rewritten>();
  readonly #lengths = new Map<string, number>();
  #count = { files: 0, bytes: 0, rewritten: 0 };
  #to!: ObjectStore;

  constructor(
    { from }: WarehouseOptions,
    moved: Moved,
    keys: readonly { readonly key: string; readonly size: number }[],
  ) {
    this.#from = from;
    this.#moved = moved;
    this.#keys = keys;
  }

  async run(to: ObjectStore): Promise<CopiedFiles> {
    this.#to = to;
    const all = this.#keys.map(({ key }) => key);
    const avro = all.filter((key) => key.endsWith('.avro'));
    const metadata = all.filter((key) => /\.metadata\.json(\.gz)?$/.test(key));
    await eachOf(avro, AT_ONCE, (key) => this.#classify(key));
    const special = new Set([...this.#manifests, ...this.#lists, ...metadata]);
    const data = this.#keys.filter(({ key }) => !special.has(key));
    await eachOf(data, AT_ONCE, ({ key, size }) => this.#file(key, size));
    await eachOf(this.#manifests, AT_ONCE, (key) => this.#manifest(key));
    await eachOf(this.#lists, AT_ONCE, async (key) => {
      const bytes = await this.#from.get(key);
      await this.#put(key, relocateManifestList(bytes, this.#moved, this.#lengths), true);
    });
    await eachOf(metadata, AT_ONCE, (key) => this.#metadata(key));
    return this.#count;
  }

  async #classify(key: string): Promise<void> {
    const bytes = await this.#from.get(key);
    const kind = avroKind(bytes);
    if (kind === 'manifest-list') this.#lists.push(key);
    if (kind !== 'manifest') return;
    this.#manifests.push(key);
    for (const [location, format] of positionDeleteFiles(bytes)) {
      const named = keyOfUri(this.#from, location);
      if (named !== undefined && format === 'PARQUET') this.#positionDeletes.add(named);
    }
  }

  async #file(key: string, size: number): Promise<void> {
    const name = key.slice(key.lastIndexOf('/') + 1);
    const location = objectUri(this.#from, key);
    if (this.#positionDeletes.has(key)) return this.#deletes(key, location);
    if (!name.endsWith('.puffin')) {
      if ((await this.#to.head(key))?.size !== size)
        await this.#put(key, await this.#from.get(key));
      else this.#tell(size);
      return;
    }
    const bytes = relocatePuffin(await this.#from.get(key), this.#moved);
    this.#rewritten.set(location, { fileSizeInBytes: bytes.length });
    await this.#put(key, bytes, true);
  }

  async #deletes(key: string, location: string): Promise<void> {
    const found = await readPositionDeletes(await this.#from.get(key), key);
    const rows = [...found].map(([path, positions]) => ({
      filePath: this.#moved(path),
      positions: Float64Array.from(new Set(positions)),
    }));
    const path = this.#moved(location);
    const { file, parts } = writePositionDeletes({ path, specId: 0, partition: [], rows });
    this.#rewritten.set(location, file);
    await this.#put(key, Buffer.concat(parts), true);
  }

  async #manifest(key: string): Promise<void> {
    const bytes = relocateManifest(await this.#from.get(key), this.#moved, this.#rewritten);
    this.#lengths.set(objectUri(this.#from, key), bytes.length);
    await this.#put(key, bytes, true);
  }

  async #metadata(key: string): Promise<void> {
    const bytes = await this.#from.get(key);
    const zipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
    const text = Buffer.from(zipped ? gunzipSync(bytes) : bytes).toString();
    const moved = Buffer.from(relocateJson(text, this.#moved));
    await this.#put(key, zipped ? gzipSync(moved) : moved, true);
  }

  async #put(key: string, bytes: Uint8Array, rewritten = false): Promise<void> {
    await this.#to.put(key, bytes);
    const head = await this.#to.head(key);
    if (head?.size !== bytes.length)
      throw new FloeError(
        'corrupt',
        `${key} has ${head?.size} bytes in ${this.#to.uri}, not ${bytes.length}`,
      );
    this.#tell(bytes.length);
    if (rewritten) this.#count.rewritten += 1;
  }

  #tell(bytes: number): void {
    this.#count.files += 1;
    this.#count.bytes += bytes;
  }
}

/** A table's metadata file in both stores. */
export interface TablePair {
  readonly name: string;
  readonly from: string;
  readonly to: string;
}

export interface ComparedPlan {
  readonly table: string;
  readonly files: number;
  readonly rows: number;
  readonly deletes: number;
}

/** Plans every table in both stores. @throws FloeError `corrupt` naming table and file where they differ. */
export async function compareTables(
  tables: readonly TablePair[],
  { from, to }: Pick<WarehouseOptions, 'from' | 'to'>,
): Promise<readonly ComparedPlan[]> {
  const [source, target] = [new Warehouse(from), new Warehouse(to)];
  const compared: ComparedPlan[] = [];
  for (const { name, from: old, to: now } of tables) {
    const [expected, found] = [await planOf(source, old), await planOf(target, now)];
    if (JSON.stringify(expected.summary) !== JSON.stringify(found.summary)) {
      const text = `${JSON.stringify(found.summary)} instead of ${JSON.stringify(expected.summary)}`;
      throw new FloeError('corrupt', `table ${name} reads differently after the move: ${text}`);
    }
    await eachOf(found.sizes, AT_ONCE, async ([uri, size]) => {
      const head = await to.head(target.keyOf(uri));
      if (head?.size !== size)
        throw new FloeError(
          'corrupt',
          `table ${name}: ${uri} has ${head?.size} bytes, not ${size}`,
        );
    });
    compared.push({ table: name, ...found.summary });
  }
  return compared;
}

async function planOf(warehouse: Warehouse, location: string) {
  const bytes = await warehouse.read(location);
  const text = Buffer.from(bytes[0] === 0x1f ? gunzipSync(bytes) : bytes).toString();
  const metadata = parseTableMetadata(text);
  const { files } = await planScan({ metadata, source: manifestSource(warehouse) });
  const deletes = files.flatMap((one) => [...one.positionDeletes, ...one.equalityDeletes]);
  const named = [...files, ...deletes].map(
    ({ file }) => [file.filePath, file.fileSizeInBytes] as const,
  );
  return {
    sizes: [...new Map(named)],
    summary: {
      files: files.length,
      rows: files.reduce((sum, { file }) => sum + file.recordCount, 0),
      deletes: deletes.reduce((sum, { file }) => sum + file.recordCount, 0),
    },
  };
}
