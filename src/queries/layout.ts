// How columns really lie in a Parquet file, for the cases in which reading by top-level field id is not enough: nested fields that
// were renamed or escaped by their writer, nested defaults, files without ids (name mapping), and identity partition
// columns that a Hive-style writer left out of the file. Each costs a look at the file's footer.
// Source: Iceberg table spec, "Column Projection" and "Name Mapping Serialization".
import type { DuckDBConnection } from '@duckdb/node-api';
import type { FieldRepetitionType, SchemaElement } from 'hyparquet';
import { FloeError } from '../base/error.ts';
import {
  type DataFile,
  type IcebergType,
  indexSchema,
  isList,
  isMap,
  isPrimitive,
  isStruct,
  NAME_MAPPING,
  type NameMapping,
  nameMapping,
  type ScanFile,
  type Schema,
  type TableMetadata,
} from '../formats/iceberg/index.ts';
import { type FileNode, fileTree } from '../formats/parquet/read/tree.ts';
import { pathLiteral } from './sql-text.ts';

/** A column of a file, or a part of one. */
export interface LayoutNode {
  readonly name: string;
  readonly fieldId: number | undefined;
  readonly children: readonly LayoutNode[];
}

/** Columns by position; equal layouts of two files have equal text. */
export interface Layout {
  readonly columns: readonly LayoutNode[];
  readonly text: string;
}

/** Names that every writer puts into Parquet as they are. */
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The files of a plan whose columns can't be trusted to be found by top-level id and nested name. */
export function needLayout(
  metadata: TableMetadata,
  schema: Schema,
  files: readonly ScanFile[],
): readonly ScanFile[] {
  if (metadata.properties?.[NAME_MAPPING] !== undefined) return files;
  if (hasUncertainNested(metadata, schema)) return files;
  const sources = identitySources(metadata);
  if (sources.size === 0) return [];
  // Metrics of migrated tables may speak of columns that their files don't have; our own are written whole.
  const isOurs = Object.keys(metadata.properties ?? {}).some((key) => key.startsWith('floe.'));
  if (!isOurs) return files.filter(({ file }) => sources.has(file.specId));
  return files.filter(({ file }) =>
    (sources.get(file.specId) ?? []).some((fieldId) => mayLack(file, fieldId)),
  );
}

/** Some nested field had another name, has one that writers escape, or has a default that only we can fill in. */
function hasUncertainNested(metadata: TableMetadata, schema: Schema): boolean {
  const nested = [...indexSchema(schema).byId.values()].filter(
    (field) => field.parentId !== undefined && field.field !== undefined,
  );
  return nested.some(
    ({ id, name, field }) =>
      !PLAIN_NAME.test(name) ||
      field?.['initial-default'] != null ||
      metadata.schemas.some((other) => {
        const before = indexSchema(other).byId.get(id);
        return before !== undefined && before.name !== name;
      }),
  );
}

/** Source columns of identity partition fields, by spec. */
function identitySources(metadata: TableMetadata): ReadonlyMap<number, number[]> {
  return new Map(
    metadata['partition-specs']
      .map(
        (spec) =>
          [
            spec['spec-id'],
            spec.fields
              .filter((field) => field.transform === 'identity')
              .map((field) => field['source-id']),
          ] as const,
      )
      .filter(([, sources]) => sources.length > 0),
  );
}

/** Writers list every column of a file in its sizes or counts; one that isn't there may not be in the file either. */
function mayLack(file: DataFile, fieldId: number): boolean {
  const { columnSizes, valueCounts } = file.metrics;
  return !columnSizes.has(fieldId) && !valueCounts.has(fieldId);
}

/** Layouts kept; each is some hundred bytes per column. */
const CACHED_LAYOUTS = 10_000;

/** Reads footers, once per file: data files never change. */
export class LayoutCache {
  readonly #kept = new Map<string, Layout>();

  async get(
    connection: DuckDBConnection,
    files: readonly ScanFile[],
    { pathOf, metadata }: LayoutContext,
  ): Promise<ReadonlyMap<string, Layout>> {
    const uris = files.map(({ file }) => file.filePath);
    const missing = uris.filter((uri) => !this.#kept.has(uri));
    const found = new Map(uris.map((uri) => [uri, this.#kept.get(uri)]));
    if (missing.length > 0) {
      const mapping = nameMapping(metadata) ?? [];
      const read = await readLayouts(connection, missing.map(pathOf), mapping);
      for (const uri of missing) {
        const layout = read.get(pathOf(uri));
        if (layout === undefined) throw new FloeError('corrupt', `${uri} has no readable footer`);
        this.#keep(uri, layout);
        found.set(uri, layout);
      }
    }
    return found as ReadonlyMap<string, Layout>;
  }

  #keep(uri: string, layout: Layout): void {
    if (this.#kept.size >= CACHED_LAYOUTS) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.set(uri, layout);
  }
}

export interface LayoutContext {
  readonly pathOf: (uri: string) => string;
  readonly metadata: TableMetadata;
}

async function readLayouts(
  connection: DuckDBConnection,
  paths: readonly string[],
  mapping: NameMapping,
): Promise<Map<string, Layout>> {
  const reader = await connection.runAndReadAll(
    `SELECT file_name, name, field_id, num_children, repetition_type FROM parquet_schema([${paths.map(pathLiteral).join(', ')}])`,
  );
  const elements = new Map<string, SchemaElement[]>();
  for (const [file, name, fieldId, children, repetition] of reader.getRows()) {
    const ofFile = elements.get(String(file)) ?? [];
    elements.set(String(file), ofFile);
    ofFile.push({
      name: String(name),
      ...(fieldId === null ? {} : { field_id: Number(fieldId) }),
      num_children: Number(children ?? 0),
      ...(repetition === null ? {} : { repetition_type: repetition as FieldRepetitionType }),
    });
  }
  return new Map([...elements].map(([file, flat]) => [file, layoutOf(fileTree(flat, mapping))]));
}

function layoutOf(nodes: readonly FileNode[]): Layout {
  const columns = nodes.map(layoutNode);
  return { columns, text: JSON.stringify(columns) };
}

const layoutNode = ({ element, fieldId, children }: FileNode): LayoutNode => ({
  name: element.name,
  fieldId,
  children: children.map(layoutNode),
});

/** The parts of a column that its Iceberg type speaks of: a struct's fields, a list's element, a map's key and value. */
export function partsOf(type: IcebergType, node: LayoutNode): readonly LayoutNode[] {
  if (isPrimitive(type)) return [];
  if (isStruct(type)) return node.children;
  const repeated = node.children[0];
  if (repeated === undefined) return [];
  if (isMap(type)) return repeated.children;
  // Lists of two levels, as old writers made them: the repeated node is the element itself.
  return isList(type) && repeated.children.length === 1 ? repeated.children : [repeated];
}
