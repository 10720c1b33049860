// How a table wants its data files: compression, sizes, bloom filters, column metrics. It is said by the table's own
// properties, under the names that every Iceberg writer knows, so files of ingestion, of compaction and of other
// engines are alike. Plain data: it crosses to the workers.
// Source: Iceberg documentation, "Table properties" (write.*, defaults differ where noted).
import { FloeError } from '../../base/error.ts';
import { indexSchema } from '../iceberg/schema.ts';
import type { Schema, SortOrder } from '../iceberg/types.ts';

export const CODEC_NAMES = ['zstd', 'snappy', 'gzip', 'lz4', 'brotli', 'uncompressed'] as const;
export type CodecName = (typeof CODEC_NAMES)[number];

/** What a manifest says about a column: nothing, counts, or bounds too, cut to so many code points or bytes. */
export type MetricsMode = 'none' | 'counts' | 'full' | number;

export interface MetricsConfig {
  readonly standard: MetricsMode;
  /** Columns, counted in schema order, that have the standard mode; others have none. Infinity: all. */
  readonly maxColumns: number;
  /** By field id, where it isn't the standard. */
  readonly byField: ReadonlyMap<number, MetricsMode>;
}

export interface FileLayout {
  readonly codec: CodecName;
  /** Of zstd, gzip and brotli; undefined is the codec's own default (zstd: 1). */
  readonly level: number | undefined;
  /** A file is closed once it has about so many bytes. */
  readonly targetFileBytes: number;
  /** A row group takes about so many bytes before compression. */
  readonly rowGroupBytes: number;
  readonly pageBytes: number;
  readonly pageRows: number;
  /** Largest dictionary; 0 writes none. */
  readonly dictionaryBytes: number;
  /** Probability of a false positive by field id: the columns that get a bloom filter. */
  readonly bloomFilters: ReadonlyMap<number, number>;
  readonly bloomMaxBytes: number;
  readonly metrics: MetricsConfig;
}

/** Columns with metrics unless properties say else; a wide table's manifests would swell otherwise. */
export const METRICS_COLUMNS = 100;

const MIB = 2 ** 20;
const MAX_BYTES = 2 ** 40;
const DEFAULT_TRUNCATE = 16;
const DEFAULT_FALSE_POSITIVES = 0.01;

export const DEFAULT_LAYOUT: FileLayout = {
  codec: 'zstd',
  level: undefined,
  targetFileBytes: 512 * MIB,
  rowGroupBytes: 128 * MIB,
  pageBytes: MIB,
  // Iceberg's 20,000 makes pages of narrow columns that compress worse.
  pageRows: 65_536,
  dictionaryBytes: MIB,
  bloomFilters: new Map(),
  bloomMaxBytes: MIB,
  metrics: { standard: DEFAULT_TRUNCATE, maxColumns: METRICS_COLUMNS, byField: new Map() },
};

type Parse<T> = (text: string) => T;

/** Throws a sentence that starts at the value. */
const refuse = (text: string, wanted: string): never => {
  throw new FloeError('invalid', `"${text}" is not ${wanted}`);
};

function whole(min: number, max: number): Parse<number> {
  return (text) => {
    const value = Number(text);
    const fits = text.trim() !== '' && Number.isInteger(value) && value >= min && value <= max;
    return fits ? value : refuse(text, `a whole number within ${min}…${max}`);
  };
}

const codec: Parse<CodecName> = (text) => {
  const word = text.trim().toLowerCase();
  if (word === 'none') return 'uncompressed';
  const found = CODEC_NAMES.find((name) => name === word);
  return found ?? refuse(text, `one of ${CODEC_NAMES.join(', ')}`);
};

const flag: Parse<boolean> = (text) => {
  const word = text.trim().toLowerCase();
  return word === 'true' || word === 'false' ? word === 'true' : refuse(text, 'true or false');
};

const probability: Parse<number> = (text) => {
  const value = Number(text);
  return value > 0 && value < 1 ? value : refuse(text, 'a probability between 0 and 1');
};

const metricsMode: Parse<MetricsMode> = (text) => {
  const word = text.trim().toLowerCase();
  if (word === 'none' || word === 'counts' || word === 'full') return word;
  const length = Number(/^truncate\((\d{1,6})\)$/.exec(word)?.[1] ?? 0);
  return length > 0 ? length : refuse(text, 'none, counts, truncate(N) or full');
};

const CODEC = 'write.parquet.compression-codec';
const LEVEL = 'write.parquet.compression-level';
const TARGET = 'write.target-file-size-bytes';
const ROW_GROUP = 'write.parquet.row-group-size-bytes';
const PAGE_BYTES = 'write.parquet.page-size-bytes';
const PAGE_ROWS = 'write.parquet.page-row-limit';
const DICTIONARY = 'write.parquet.dict-size-bytes';
const BLOOM_MAX = 'write.parquet.bloom-filter-max-bytes';
const METRICS = 'write.metadata.metrics.default';
const METRICS_MAX = 'write.metadata.metrics.max-inferred-column-defaults';
/** Followed by a column's full name. */
const BLOOM_PREFIX = 'write.parquet.bloom-filter-enabled.column.';
const FPP_PREFIX = 'write.parquet.bloom-filter-fpp.column.';
const METRICS_PREFIX = 'write.metadata.metrics.column.';

/** Properties that are obeyed, and how they are read. */
const PARSERS = {
  [CODEC]: codec,
  [LEVEL]: whole(-7, 22),
  [TARGET]: whole(1, MAX_BYTES),
  [ROW_GROUP]: whole(1, MAX_BYTES),
  [PAGE_BYTES]: whole(1, 2 ** 30),
  [PAGE_ROWS]: whole(1, 2 ** 30),
  [DICTIONARY]: whole(0, 2 ** 30),
  [BLOOM_MAX]: whole(32, 2 ** 30),
  [METRICS]: metricsMode,
  [METRICS_MAX]: whole(0, 1_000_000),
} as const;

const PREFIX_PARSERS = [
  [BLOOM_PREFIX, flag],
  [FPP_PREFIX, probability],
  [METRICS_PREFIX, metricsMode],
] as const;

/**
 * Refuses a property of a table that Floe would obey if it could be read.
 * @throws FloeError `invalid`, its text starting at the value.
 */
export function checkLayoutProperty(name: string, value: string): void {
  if (Object.hasOwn(PARSERS, name)) PARSERS[name as keyof typeof PARSERS](value);
  for (const [prefix, parse] of PREFIX_PARSERS) if (name.startsWith(prefix)) parse(value);
}

/**
 * The layout that a table asks for. What can't be read falls back to the default: a property that somebody else set
 * stops no topic. Columns that `sortOrder` starts with keep their bounds whatever the metrics say.
 */
export function fileLayout(
  properties: Readonly<Record<string, string>>,
  schema: Schema,
  sortOrder?: SortOrder,
): FileLayout {
  const read = <T>(name: string, parse: Parse<T>, standard: T): T => {
    const text = properties[name];
    if (text === undefined) return standard;
    try {
      return parse(text);
    } catch {
      return standard;
    }
  };
  const d = DEFAULT_LAYOUT;
  const byPrefix = columnProperties(properties, schema);
  const chosenCodec = read(CODEC, PARSERS[CODEC], d.codec);
  const bloomFilters = new Map<number, number>();
  for (const [id, name] of byPrefix(BLOOM_PREFIX)) {
    if (!read(BLOOM_PREFIX + name, flag, false)) continue;
    bloomFilters.set(id, read(FPP_PREFIX + name, probability, DEFAULT_FALSE_POSITIVES));
  }
  const byField = new Map<number, MetricsMode>();
  for (const [id, name] of byPrefix(METRICS_PREFIX)) {
    byField.set(id, read(METRICS_PREFIX + name, metricsMode, DEFAULT_TRUNCATE));
  }
  for (const { 'source-id': id } of sortOrder?.fields ?? []) {
    const mode = byField.get(id);
    if (mode === undefined || mode === 'none' || mode === 'counts')
      byField.set(id, DEFAULT_TRUNCATE);
  }
  return {
    codec: chosenCodec,
    level: read<number | undefined>(LEVEL, PARSERS[LEVEL], d.level),
    targetFileBytes: read(TARGET, PARSERS[TARGET], d.targetFileBytes),
    rowGroupBytes: read(ROW_GROUP, PARSERS[ROW_GROUP], d.rowGroupBytes),
    pageBytes: read(PAGE_BYTES, PARSERS[PAGE_BYTES], d.pageBytes),
    pageRows: read(PAGE_ROWS, PARSERS[PAGE_ROWS], d.pageRows),
    dictionaryBytes: read(DICTIONARY, PARSERS[DICTIONARY], d.dictionaryBytes),
    bloomFilters,
    bloomMaxBytes: read(BLOOM_MAX, PARSERS[BLOOM_MAX], d.bloomMaxBytes),
    metrics: {
      standard: read(METRICS, metricsMode, DEFAULT_TRUNCATE),
      // A stated default is for all columns, as the reference implementation has it.
      maxColumns:
        properties[METRICS] === undefined
          ? read(METRICS_MAX, PARSERS[METRICS_MAX], METRICS_COLUMNS)
          : Number.POSITIVE_INFINITY,
      byField,
    },
  };
}

/** For a prefix: the columns that properties name after it, as field id and name. Unknown names are passed over. */
function columnProperties(properties: Readonly<Record<string, string>>, schema: Schema) {
  let byName: ReadonlyMap<string, { readonly id: number }> | undefined;
  return (prefix: string): [id: number, name: string][] => {
    const found: [number, string][] = [];
    for (const property of Object.keys(properties)) {
      if (!property.startsWith(prefix)) continue;
      byName ??= indexSchema(schema).byName;
      const name = property.slice(prefix.length);
      const id = byName.get(name)?.id;
      if (id !== undefined) found.push([id, name]);
    }
    return found;
  };
}
