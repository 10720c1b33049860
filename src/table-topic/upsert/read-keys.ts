// The keys of a data file's rows, read back from its id columns: hash and position of every row that no delete has
// taken. What the index is built and brought up to date from; columns only, no object per row.
// Not for: which files to read (follow.ts).

import { isFloeError } from '../../base/error.ts';
import type { Column } from '../../formats/arrow/column.ts';
import { createColumn, TableColumns } from '../../formats/arrow/table-columns.ts';
import type { FileProjection } from '../../formats/iceberg/projection.ts';
import { findField, onlyFields } from '../../formats/iceberg/schema.ts';
import type { PrimitiveTypeName, Schema } from '../../formats/iceberg/types.ts';
import { singleValueFromJson } from '../../formats/iceberg/value.ts';
import { ParquetReader } from '../../formats/parquet/read/reader.ts';
import { readColumns } from '../../formats/parquet/read-columns.ts';

/** A column that is wanted; it may be inside structs. */
export interface KeyColumn {
  readonly fieldId: number;
  readonly type: PrimitiveTypeName;
}

export interface KeyRequest {
  readonly schema: Schema;
  readonly wanted: readonly KeyColumn[];
  readonly projection: FileProjection;
}

/** One row group's columns, in the order they were asked for. */
export interface KeyGroup {
  readonly firstRow: number;
  readonly rowCount: number;
  readonly columns: readonly Column[];
}

/** A column that the table hasn't: null in every row. */
const NOT_THERE = createColumn('boolean');

/** @throws FloeError `corrupt`, `unsupported`. */
export async function* readKeyColumns(
  bytes: Uint8Array,
  name: string,
  { schema, wanted, projection }: KeyRequest,
): AsyncGenerator<KeyGroup> {
  let firstRow = 0;
  try {
    const reader = new ParquetReader(bytes, projection);
    const part = onlyFields(schema, new Set(wanted.map(({ fieldId }) => fieldId)));
    const columns = new TableColumns(part);
    const found = wanted.map(({ fieldId }) => columns.byId(fieldId) ?? NOT_THERE);
    for (let n = 0; n < reader.rowGroups.length; n += 1) {
      columns.clear();
      reader.readRowGroup(n, columns);
      columns.align();
      const { rowCount } = columns;
      yield { firstRow, rowCount, columns: found };
      firstRow += rowCount;
    }
    return;
  } catch (caught) {
    // Encodings and columns left out that the quick reader leaves alone. A writer may change to such an encoding with
    // any row group (its dictionary has grown too large): those before it were given out.
    if (!isFloeError(caught, 'unsupported')) throw caught;
  }
  const file = {
    name,
    bytes: bytes.length,
    read: async (start: number, end: number) => bytes.subarray(start, end),
    mapping: projection.mapping,
  };
  const columns = wanted.map(({ fieldId, type }) => {
    const value = findField(schema, fieldId)?.field?.['initial-default'] ?? null;
    const otherwise = value === null ? null : singleValueFromJson(type, value);
    return { fieldId, type, missing: projection.partition.get(fieldId) ?? otherwise };
  });
  yield* readColumns(file, columns, firstRow);
}
