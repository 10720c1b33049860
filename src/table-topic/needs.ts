// What a table that doesn't exist yet would need, from a look at the records: the schemas they were written with, or
// the columns that JSON values would like.
// (A job for an existing table finds out while it decodes.)
import type { RecordCursor } from '../protocol/record-cursor.ts';
import { walkSlice } from './batches.ts';
import { wireSchemaId } from './converters.ts';
import { EventInference } from './debezium/json-events.ts';
import type { JobNeeds, TableJob } from './job.ts';
import { newInference } from './json-source.ts';

/** Schema ids asked for at once; further ones are found when the job comes again. */
const MAX_SCHEMAS = 256;

export function collectNeeds(job: TableJob, cursor: RecordCursor): JobNeeds {
  const { config, slices, maxBatchBytes } = job;
  const values = new Set<number>();
  const keys = new Set<number>();
  const valueById = config['table.topic.convert.value.type'] === 'by_schema_id';
  const keyById = config['table.topic.convert.key.type'] === 'by_schema_id';
  const note = (ids: Set<number>, id: number) => {
    if (id >= 0) ids.add(id);
  };
  const inferred = infersJson(job);
  const json = inferred === 'values' ? newInference(config) : undefined;
  const events = inferred === 'events' ? new EventInference(config) : undefined;
  const visitor = {
    record: (at: RecordCursor) => {
      if (at.valueLength >= 0) {
        json?.add(at.bytes, at.valueStart, at.valueStart + at.valueLength);
        events?.add(at.bytes, at.valueStart, at.valueStart + at.valueLength);
      }
      if (valueById) note(values, wireSchemaId(at.bytes, at.valueStart, at.valueLength));
      if (keyById) note(keys, wireSchemaId(at.bytes, at.keyStart, at.keyLength));
      return values.size + keys.size < MAX_SCHEMAS;
    },
    batchDone: () => true,
    unreadable: () => true,
  };
  if (valueById || keyById || inferred !== undefined) {
    for (const slice of slices) walkSlice(slice, cursor, { visitor, maxBatchBytes });
  }
  return {
    kind: 'needs',
    valueSchemas: [...values],
    keySchemas: [...keys],
    deadLetterTable: false,
    ...(json === undefined || json.records === 0 ? {} : { columns: json.proposed() }),
    ...events?.needs(),
  };
}

/** Columns of JSON are inferred from the values themselves, or from the images in Debezium's events. */
function infersJson({ config }: TableJob): 'values' | 'events' | undefined {
  if (config['table.topic.convert.value.type'] !== 'json') return undefined;
  const transform = config['table.topic.transform.value.type'];
  if (transform === 'none') return undefined;
  return transform === 'flatten' ? 'values' : 'events';
}
