// floe doctor: asks store, database, clocks and catalog the questions whose answers an operator would want before
// trouble comes. Each part is asked although another failed. Writes nothing but probes that it deletes at once.
import { systemClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { systemIds } from '../../base/prng.ts';
import type { Catalog } from '../../catalog/index.ts';
import type { ObjectStore } from '../../storage/objects/index.ts';
import { type AskedMetadata, askPostgres, askSqlite } from '../fsck/metadata.ts';
import { openPostgres, openSqlite, openStore, openTables, type StorePlace } from '../stores.ts';
import { type Finding, findingsOf } from './finding.ts';
import { checkDatabase } from './postgres.ts';
import { checkSqlite } from './sqlite.ts';
import { checkStore } from './store.ts';

export interface DoctorOptions extends StorePlace {
  /** A restore was looked at and is well: deletion may go on. */
  readonly confirm: boolean;
}

/** The metadata store, as far as the doctor asks it. */
interface Metadata extends Pick<AskedMetadata, 'cluster' | 'catalog' | 'close'> {
  check(): Promise<readonly Finding[]>;
}

const cluster = findingsOf('cluster');

/** @throws FloeError only for what the options say wrong. */
export async function examine(options: DoctorOptions): Promise<readonly Finding[]> {
  const { metadata: url } = options;
  const metadata = url === undefined ? sqlite(options) : postgres(options, url);
  try {
    const findings = [...(await metadata.check())];
    const there = !findings.some(({ what }) => what === 'reachable');
    const clusterId = there ? await orUndefined(metadata.cluster.clusterId()) : null;
    if (there) findings.push(...(await incarnation(metadata, options.confirm)));
    const store = await openSoon(options);
    if (store instanceof FloeError) {
      const remedy = 'name it by --storage file:///folder or s3://bucket/prefix';
      return [...findings, findingsOf('store').wrong('reachable', store.message, remedy)];
    }
    const uploadAgeMs = options.settings['log.orphan.age.ms'];
    const parts = { store, clock: systemClock, ids: systemIds, clusterId, uploadAgeMs };
    const stored = await checkStore(parts);
    findings.push(...stored);
    const readable = !stored.some(
      ({ what, severity }) => what === 'reachable' && severity !== 'ok',
    );
    if (readable && typeof clusterId === 'string')
      findings.push(await checkCatalog(options, { metadata, store, clusterId }));
    return findings;
  } finally {
    await metadata.close();
  }
}

function sqlite({ dataDir }: DoctorOptions): Metadata {
  const database = openSqlite(dataDir);
  return { ...askSqlite(database), check: async () => checkSqlite(database, dataDir) };
}

function postgres({ settings }: DoctorOptions, url: string): Metadata {
  const database = openPostgres(url, { settings, applicationName: 'floe doctor' });
  const check = () => checkDatabase({ database, settings, clock: systemClock });
  return { ...askPostgres(database), check };
}

async function openSoon({
  storage,
  dataDir,
  settings,
}: DoctorOptions): Promise<ObjectStore | FloeError> {
  // An operator waits: what doesn't answer is told soon.
  const once = { ...settings, 'objects.retry.attempts': 1 };
  try {
    return await openStore({ storage, dataDir, settings: once });
  } catch (caught) {
    return FloeError.from(caught);
  }
}

/** Tables that a first start has yet to make. */
async function orUndefined<T>(asked: Promise<T | undefined>): Promise<T | undefined> {
  return asked.catch(() => undefined);
}

async function incarnation(
  { cluster: asked }: Metadata,
  confirm: boolean,
): Promise<readonly Finding[]> {
  const found = await orUndefined(asked.incarnation());
  if (found === undefined || found.restores === 0) return [];
  if (confirm && !found.confirmed) await asked.confirmIncarnation();
  if (confirm || found.confirmed)
    return [cluster.ok('restored', `${found.restores} times, confirmed`)];
  return [
    cluster.wrong(
      'restored',
      'from a backup, not confirmed',
      'nothing is swept or deleted meanwhile: see what floe restore listed, then say floe doctor --confirm',
    ),
  ];
}

interface CatalogParts {
  readonly metadata: Metadata;
  readonly store: ObjectStore;
  readonly clusterId: string;
}

/** Reachable, and one of its tables can be read. */
async function checkCatalog(
  { settings }: DoctorOptions,
  { metadata, store, clusterId }: CatalogParts,
): Promise<Finding> {
  const { ok, wrong } = findingsOf('catalog');
  const kind = settings['catalog.type'];
  try {
    const opened = await openTables({ settings, metadata: metadata.catalog, store, clusterId });
    try {
      const loaded = await loadOne(opened.catalog);
      return ok(kind, loaded === undefined ? 'reachable, no tables' : `reachable, ${loaded} loads`);
    } finally {
      await opened.stop();
    }
  } catch (caught) {
    const remedy =
      'see catalog.* in docs/settings.md; of a file that is gone, restore its version in the bucket';
    return wrong(kind, FloeError.from(caught).message, remedy);
  }
}

async function loadOne(catalog: Catalog): Promise<string | undefined> {
  for (const namespace of await catalog.listNamespaces([])) {
    const [first] = await catalog.listTables(namespace);
    if (first === undefined) continue;
    await catalog.loadTable(first);
    return `${[...first.namespace, first.name].join('.')}`;
  }
  return undefined;
}
