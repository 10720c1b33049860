// Settings of SQL over tables.
import { int, long, text } from '../base/settings.ts';

export const querySettings = {
  'sql.default.namespace': text({
    default: 'kafka',
    doc: 'Namespace in which a bare table name is looked up, after the topics themselves. The one table topics use by default.',
  }),
  'sql.max.concurrent': int({
    default: 4,
    min: 1,
    max: 64,
    doc: 'Queries that run at once; DuckDB shares its threads among them.',
  }),
  'sql.max.waiting': int({
    default: 32,
    min: 0,
    max: 10_000,
    doc: 'Queries that wait for one of those; a further one is refused with 503.',
  }),
  'sql.timeout.ms': long({
    default: 60_000,
    min: 1,
    max: 86_400_000,
    doc: 'Longest run of a query, planning and sending the result included.',
  }),
  'sql.threads': int({
    default: 0,
    min: 0,
    max: 1_024,
    doc: 'Threads of DuckDB. 0: as many as the machine has cores.',
  }),
  'sql.memory.bytes': long({
    default: 512 * 1024 * 1024,
    min: 32 * 1024 * 1024,
    doc: 'Memory of DuckDB for all queries; past it, it spills into `sql.temp.bytes` of the data folder.',
  }),
  'sql.temp.bytes': long({
    default: 4 * 1024 * 1024 * 1024,
    min: 0,
    doc: 'Disk space for spilled intermediate results.',
  }),
  'sql.cache.bytes': long({
    default: 4 * 1024 * 1024 * 1024,
    min: 0,
    doc: 'Disk space for copies of remote data files. A query that needs more at once is refused.',
  }),
  'sql.manifest.cache.entries': int({
    default: 200_000,
    min: 0,
    doc: 'File descriptions kept from manifests, about 1 KiB each. Manifests never change, so none is ever stale.',
  }),
  'sql.max.result.rows': long({
    default: 1_000_000,
    min: 1,
    doc: 'Rows of an answer in one JSON document. NDJSON, CSV and Arrow are sent as they come and have no such limit.',
  }),
  'sql.max.query.bytes': long({
    default: 1024 * 1024,
    min: 16,
    doc: "Longest query text, as UTF-8. DuckDB's parser takes some hundred times as much memory.",
  }),
};
