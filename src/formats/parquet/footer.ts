// The footer of a Parquet file as Thrift: schema with field ids, row groups, raw statistics, sorting columns.
// Source: parquet.thrift, FileMetaData.
import type { SchemaElement } from 'hyparquet';
import { ConvertedTypes, FieldRepetitionTypes, ParquetTypes } from 'hyparquet/src/constants.js';
import { logicalType } from 'hyparquet-writer/src/metadata.js';
import { truncateLower, truncateUpper } from './bounds.ts';
import type { Chunk } from './chunk.ts';
import type { Leaf } from './leaves.ts';
import type { LeafStatistics } from './statistics.ts';
import { ENCODING, PAGE_TYPE, serializeThrift, type ThriftStruct } from './thrift.ts';

/** Statistics in the footer longer than this are cut, and marked as inexact. */
const STATISTICS_LENGTH = 64;

/** A chunk with its place in the file. */
export interface PlacedChunk {
  readonly chunk: Chunk;
  readonly offset: number;
  /** Where its bloom filter is, when it has one. */
  readonly bloomOffset?: number;
}

export interface RowGroup {
  readonly chunks: readonly PlacedChunk[];
  readonly rowCount: number;
}

export interface SortingColumn {
  /** Position among the leaves. */
  readonly column: number;
  readonly descending: boolean;
  readonly nullsFirst: boolean;
}

export interface FooterContent {
  readonly elements: readonly SchemaElement[];
  readonly rowGroups: readonly RowGroup[];
  readonly sorting: readonly SortingColumn[];
  readonly keyValues: Readonly<Record<string, string>>;
  readonly createdBy: string;
}

/** The serialised FileMetaData, without the length and magic that follow it. */
export function serializeFooter(content: FooterContent): Uint8Array {
  const { elements, rowGroups, keyValues, createdBy } = content;
  const rows = rowGroups.reduce((total, group) => total + group.rowCount, 0);
  const pairs = Object.entries(keyValues);
  const leaves = elements.filter((element) => element.type !== undefined).length;
  return serializeThrift({
    field_1: 1,
    field_2: elements.map(schemaElement),
    field_3: BigInt(rows),
    field_4: rowGroups.map((group) => rowGroup(group, content.sorting)),
    field_5: pairs.length === 0 ? undefined : pairs.map(([k, v]) => ({ field_1: k, field_2: v })),
    field_6: createdBy,
    // TypeDefinedOrder for every column: min_value and max_value mean what the logical type says.
    field_7: Array.from({ length: leaves }, () => ({ field_1: {} })),
  });
}

/** The position of a name in one of hyparquet's enum tables; undefined stays undefined. */
function numberIn(table: readonly (string | undefined)[], name: string | undefined) {
  return name === undefined ? undefined : table.indexOf(name);
}

function schemaElement(element: SchemaElement): ThriftStruct {
  return {
    field_1: numberIn(ParquetTypes, element.type),
    field_2: element.type_length,
    field_3: numberIn(FieldRepetitionTypes, element.repetition_type),
    field_4: element.name,
    field_5: element.num_children,
    field_6: numberIn(ConvertedTypes, element.converted_type),
    field_7: element.scale,
    field_8: element.precision,
    field_9: element.field_id,
    // hyparquet-writer brings its own copy of hyparquet's (equal) types.
    field_10: logicalType(element.logical_type as never),
  };
}

const sum = (chunks: readonly PlacedChunk[], size: (chunk: Chunk) => number) =>
  chunks.reduce((total, { chunk }) => total + size(chunk), 0);

function rowGroup({ chunks, rowCount }: RowGroup, sorting: readonly SortingColumn[]): ThriftStruct {
  return {
    field_1: chunks.map(columnChunk),
    field_2: BigInt(sum(chunks, (chunk) => chunk.pages.uncompressedSize)),
    field_3: BigInt(rowCount),
    field_4:
      sorting.length === 0
        ? undefined
        : sorting.map(({ column, descending, nullsFirst }) => ({
            field_1: column,
            field_2: descending,
            field_3: nullsFirst,
          })),
    field_5: BigInt(chunks[0]!.offset),
    field_6: BigInt(sum(chunks, (chunk) => chunk.pages.compressedSize)),
  };
}

function columnChunk({ chunk, offset, bloomOffset }: PlacedChunk): ThriftStruct {
  const { leaf, statistics } = chunk;
  const { codec, dictionarySize, dataPages, compressedSize, uncompressedSize } = chunk.pages;
  const dictionary = dictionarySize > 0;
  const dataEncoding = dictionary ? ENCODING.RLE_DICTIONARY : ENCODING.PLAIN;
  const encodings: number[] = [ENCODING.PLAIN, ENCODING.RLE];
  if (dictionary) encodings.push(ENCODING.RLE_DICTIONARY);
  const pageStatistics: ThriftStruct[] = [
    { field_1: PAGE_TYPE.DATA, field_2: dataEncoding, field_3: dataPages },
  ];
  if (dictionary) {
    pageStatistics.unshift({
      field_1: PAGE_TYPE.DICTIONARY,
      field_2: ENCODING.PLAIN,
      field_3: 1,
    });
  }
  return {
    field_2: BigInt(offset),
    field_3: {
      field_1: ParquetTypes.indexOf(leaf.physical),
      field_2: encodings,
      field_3: leaf.path,
      field_4: codec,
      field_5: BigInt(statistics.valueCount),
      field_6: BigInt(uncompressedSize),
      field_7: BigInt(compressedSize),
      field_9: BigInt(offset + dictionarySize),
      field_11: dictionary ? BigInt(offset) : undefined,
      field_12: footerStatistics(leaf, statistics),
      field_13: pageStatistics,
      field_14: bloomOffset === undefined ? undefined : BigInt(bloomOffset),
      field_15: bloomOffset === undefined ? undefined : chunk.bloom?.length,
    },
  };
}

function footerStatistics(leaf: Leaf, { nullCount, min, max }: LeafStatistics): ThriftStruct {
  if (min === undefined || max === undefined) return { field_3: BigInt(nullCount) };
  const text = leaf.physical === 'BYTE_ARRAY';
  const lower = text ? truncateLower(leaf, min, STATISTICS_LENGTH) : min;
  const upper = text ? truncateUpper(leaf, max, STATISTICS_LENGTH) : max;
  return {
    field_3: BigInt(nullCount),
    field_5: upper,
    field_6: lower,
    field_7: upper === undefined ? undefined : upper.length === max.length,
    field_8: lower.length === min.length,
  };
}
