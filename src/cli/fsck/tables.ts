// The files of tables: the metadata file that the catalog points at, of its current snapshot the manifest list, the
// manifests, and every data and delete file that they name, with the sizes that they say. Contents of data files aren't
// read. A commit meanwhile is no finding: what is missing is looked for again in what the table is then.
import { isFloeError } from '../../base/error.ts';
import type { Catalog, LoadedTable, TableIdentifier, Warehouse } from '../../catalog/index.ts';
import {
  currentSnapshot,
  manifestsOf,
  readManifests,
  STATUS_DELETED,
} from '../../formats/iceberg/index.ts';
import { eachOf } from '../migrate/objects.ts';
import { Found } from './found.ts';
import { AT_ONCE } from './objects.ts';

export interface TablesOptions {
  readonly catalog: Catalog;
  readonly warehouse: Warehouse;
  readonly tables: AsyncIterable<TableIdentifier>;
  /** Awaited before what looks wrong is looked at again. */
  readonly pause: () => Promise<void>;
}

export interface CheckedTables {
  readonly tables: number;
  readonly files: number;
  readonly broken: Found;
}

/** Looks at one table while it keeps changing. */
const MOST_LOOKS = 5;

export async function checkTables(options: TablesOptions): Promise<CheckedTables> {
  const broken = new Found();
  let [tables, files] = [0, 0];
  for await (const identifier of options.tables) {
    const checked = await checkTable(options, identifier);
    if (checked === undefined) continue;
    tables += 1;
    files += checked.files;
    for (const [uri, text] of checked.faults) broken.add(`${nameOf(identifier)}: ${uri}: ${text}`);
  }
  return { tables, files, broken };
}

const nameOf = ({ namespace, name }: TableIdentifier): string => [...namespace, name].join('.');

interface Look {
  readonly location: string | undefined;
  readonly files: number;
  /** What is wrong, by the file's URI. */
  readonly faults: ReadonlyMap<string, string>;
}

/** Undefined when there is no such table any more. */
async function checkTable(
  options: TablesOptions,
  identifier: TableIdentifier,
): Promise<Look | undefined> {
  let look = await lookAt(options, identifier);
  const files = look?.files ?? 0;
  for (let n = 1; look !== undefined && look.faults.size > 0; n += 1) {
    const before: Look = look;
    await options.pause();
    look = await lookAt(options, identifier, new Set(before.faults.keys()));
    if (look?.location === before.location || n === MOST_LOOKS) break;
  }
  return look === undefined ? undefined : { ...look, files };
}

/** @param only of data and delete files these. */
async function lookAt(
  { catalog, warehouse }: TablesOptions,
  identifier: TableIdentifier,
  only?: ReadonlySet<string>,
): Promise<Look | undefined> {
  const faults = new Map<string, string>();
  let loaded: LoadedTable;
  try {
    loaded = await catalog.loadTable(identifier);
  } catch (caught) {
    if (isFloeError(caught, 'not-found') && !(await catalog.tableExists(identifier)))
      return undefined;
    if (!isFloeError(caught, 'not-found', 'corrupt', 'invalid')) throw caught;
    faults.set('metadata file', caught.message);
    return { location: undefined, files: 0, faults };
  }
  const { metadataLocation: location } = loaded;
  // Some catalogs of others keep it to themselves.
  if (location !== '') await checkFile(warehouse, faults, { uri: location, bytes: undefined });
  const files = 1 + (await checkSnapshot(warehouse, loaded, { faults, only }));
  return { location, files, faults };
}

/** @returns how many files the current snapshot has, its own included. */
async function checkSnapshot(
  warehouse: Warehouse,
  { metadata }: LoadedTable,
  {
    faults,
    only,
  }: { readonly faults: Map<string, string>; readonly only: ReadonlySet<string> | undefined },
): Promise<number> {
  const snapshot = currentSnapshot(metadata);
  if (snapshot === undefined) return 0;
  const list = snapshot['manifest-list'];
  const manifests = await orFault(faults, list, () => manifestsOf(warehouse, snapshot));
  let files = 1;
  // One manifest's entries at a time: a table may have more files than fit.
  for (const manifest of manifests ?? []) {
    files += 1;
    const { manifestPath: uri, manifestLength: length } = manifest;
    // Early v1 writers left the length out.
    const bytes = length === 0 ? undefined : length;
    if (!(await checkFile(warehouse, faults, { uri, bytes }))) continue;
    const [entries = []] =
      (await orFault(faults, uri, () => readManifests(warehouse, metadata, [manifest]))) ?? [];
    const live = entries.filter(({ status }) => status !== STATUS_DELETED);
    files += live.length;
    const asked = live.filter(({ file }) => only === undefined || only.has(file.filePath));
    await eachOf(asked, AT_ONCE, async ({ file }) => {
      await checkFile(warehouse, faults, { uri: file.filePath, bytes: file.fileSizeInBytes });
    });
  }
  return files;
}

/** Reads a file; what can't be read for what it is is a fault. */
async function orFault<T>(
  faults: Map<string, string>,
  uri: string,
  read: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await read();
  } catch (caught) {
    if (!isFloeError(caught, 'not-found', 'corrupt', 'invalid', 'unsupported')) throw caught;
    faults.set(uri, caught.code === 'not-found' ? 'missing' : caught.message);
    return undefined;
  }
}

/** @returns whether the file is there with its bytes. */
async function checkFile(
  warehouse: Warehouse,
  faults: Map<string, string>,
  { uri, bytes }: { readonly uri: string; readonly bytes: number | undefined },
): Promise<boolean> {
  const size = await orFault(faults, uri, async () => (await warehouse.size(uri)) ?? -1);
  if (size === undefined) return false;
  if (size === -1) faults.set(uri, 'missing');
  else if (bytes !== undefined && size !== bytes) faults.set(uri, `${size} bytes of ${bytes}`);
  return !faults.has(uri);
}
