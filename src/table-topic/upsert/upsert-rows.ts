// One record of an upsert table: decoded as any record is, then told apart by what it does. A row to be written stays
// in the columns; what deletes leaves nothing there but a noted change; what names no row is the error policy's.
// Not for: decoding (../rows.ts), what becomes of the changes (changes.ts).

import type { TableColumns } from '../../formats/arrow/table-columns.ts';
import type { RecordCursor } from '../../protocol/record-cursor.ts';
import { CHANGE, type ChangeKind, type RowChange } from '../change.ts';
import type { Fault } from '../converter.ts';
import type { JobSlice } from '../job.ts';
import { JobChanges } from './changes.ts';
import type { UpsertTable } from './id-columns.ts';

/** What decodes a record (../rows.ts). */
export interface RowTarget {
  readonly columns: TableColumns;
  readonly change: RowChange;
  readonly fault: Fault;
  append(cursor: RecordCursor, partition: number, offset: number): boolean;
  appendKey(cursor: RecordCursor): boolean;
}

export interface UpsertRowsOptions {
  readonly upsert: UpsertTable;
  /** `_kafka_key` is JSON text. */
  readonly isJsonKey: boolean;
  /** A null value follows a deletion that was a record itself (Debezium): one that names no row says nothing more. */
  readonly tombstonesRepeat: boolean;
}

export class UpsertRows {
  readonly changes: JobChanges;
  readonly #rows: RowTarget;
  readonly #tombstonesRepeat: boolean;

  constructor(rows: RowTarget, { upsert, isJsonKey, tombstonesRepeat }: UpsertRowsOptions) {
    this.#rows = rows;
    this.changes = new JobChanges(rows.columns, upsert, isJsonKey);
    this.#tombstonesRepeat = tombstonesRepeat;
  }

  /** The record at `offset` of slice `number`. False: it changes nothing, see the builder's fault and needs. */
  append(
    cursor: RecordCursor,
    slice: JobSlice,
    { number, offset }: { readonly number: number; readonly offset: number },
  ): boolean {
    const rows = this.#rows;
    if (cursor.valueLength < 0) return this.#tombstone(cursor, number, offset);
    rows.change.reset();
    if (!rows.append(cursor, slice.partition, offset)) return false;
    const row = rows.columns.rowCount - 1;
    const kind = this.changes.operationAt(row, rows.change.kind);
    switch (kind) {
      case CHANGE.insert:
      case CHANGE.update:
        return this.#put(row, number, offset);
      case CHANGE.delete:
        return this.#delete(row, number, offset);
      case CHANGE.truncate:
        this.#undo();
        this.changes.truncate(slice, number, offset);
        return true;
      case undefined:
        return this.#refuse(
          'unknown_operation',
          'the column of table.topic.cdc.field names no operation: insert, update, delete or truncate by their first letter',
        );
    }
    return unknownKind(kind);
  }

  #put(row: number, number: number, offset: number): boolean {
    if (this.changes.hasNoKey(row)) {
      const text = 'an id column is null and table.topic.id.null is error';
      return this.#refuse('null_id', text);
    }
    this.changes.put(row, { slice: number, offset }, this.#rows.change.unavailable);
    return true;
  }

  /** By the id columns of the former row where the source sent it, else by the record's key. */
  #delete(row: number, number: number, offset: number): boolean {
    const { changes } = this;
    const { key } = changes;
    if (this.#rows.change.hasImage && !changes.hasNoKey(row)) {
      changes.deleteRow(row, number, offset);
    } else if (key?.hash(row) === true) changes.deleteKey(key, number, offset);
    else return this.#refuse('no_key', `a deletion names no row: ${key?.why ?? NO_KEYS}`);
    this.#undo();
    return true;
  }

  #tombstone(cursor: RecordCursor, number: number, offset: number): boolean {
    const rows = this.#rows;
    const { key } = this.changes;
    if (!rows.appendKey(cursor)) return false;
    const named = key?.hash(rows.columns.rowCount) === true;
    rows.columns.rollback();
    if (named) {
      this.changes.deleteKey(key, number, offset);
      return true;
    }
    if (this.#tombstonesRepeat)
      return rows.fault.set('value', 'no_row', 'a tombstone after a delete');
    return rows.fault.set('key', 'no_key', `a null value names no row: ${key?.why ?? NO_KEYS}`);
  }

  #refuse(reason: 'unknown_operation' | 'null_id' | 'no_key', text: string): false {
    this.#undo();
    return this.#rows.fault.set('value', reason, text);
  }

  /** Takes the row back that was appended last. */
  #undo(): void {
    const { columns } = this.#rows;
    columns.rowCount -= 1;
    columns.rollback();
  }
}

const NO_KEYS = 'the table keeps no record keys (table.topic.system.columns)';

/** Unreachable: kinds are told apart above. */
function unknownKind(kind: ChangeKind): never {
  throw new TypeError(`change kind ${kind}`);
}
