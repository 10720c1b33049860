// What a converter is, and the two objects it reports in: the fault of the last record, and what records need.
import type { ProposedStruct } from '../formats/arrow/proposed-schema.ts';
import type { TableColumns } from '../formats/arrow/table-columns.ts';
import type { JsonInference } from '../formats/json/infer.ts';
import type { RowChange } from './change.ts';
import type { PlainInference } from './debezium/plain-events.ts';
import type { JobConfig, JobTable } from './job.ts';
import type { HeaderMarks, SourceKey } from './sources/wire.ts';
import type { DeadLetterReason, DeadLetterStage } from './system-columns.ts';

/** `length` −1 is null. */
export type Converter = (bytes: Uint8Array, start: number, length: number) => boolean;

/** What stopped the last record; one object, rewritten. */
export class Fault {
  stage: DeadLetterStage = 'value';
  reason: DeadLetterReason = 'undecodable';
  error = '';
  /** −1 when the record named none. */
  schemaId = -1;

  set(stage: DeadLetterStage, reason: DeadLetterReason, error: string, schemaId = -1): false {
    this.stage = stage;
    this.reason = reason;
    this.error = error;
    this.schemaId = schemaId;
    return false;
  }
}

/** What records of a job turned out to need; the job comes again when it is there. */
export class Needs {
  readonly valueSchemas = new Set<SourceKey>();
  readonly keySchemas = new Set<SourceKey>();
  /** Over the JSON values that found no place. */
  json: JsonInference | undefined;
  /** Likewise over Debezium's events without a schema. */
  events: PlainInference | undefined;
  /** Columns of schemas that values brought along and the table hasn't. */
  readonly sentSchemas = new Set<ProposedStruct>();
  /** The table won't change for them any more: what doesn't fit now is a dead letter. */
  final = false;

  get any(): boolean {
    const schemas = this.valueSchemas.size + this.keySchemas.size + this.sentSchemas.size;
    return schemas > 0 || this.json !== undefined || this.events !== undefined;
  }

  clear(final: boolean): void {
    this.valueSchemas.clear();
    this.keySchemas.clear();
    this.json = undefined;
    this.events = undefined;
    this.sentSchemas.clear();
    this.final = final;
  }
}

export interface ConverterTarget {
  readonly columns: TableColumns;
  readonly table: JobTable;
  readonly config: JobConfig;
  readonly fault: Fault;
  /** Of the record at hand; filled only where schemas are named. */
  readonly marks: HeaderMarks;
  readonly needs: Needs;
  /** What the last record does to the table; set by converters of sources that say so. */
  readonly change: RowChange;
}
