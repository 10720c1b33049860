// What a table that doesn't exist yet would need, from a look at the records: the schemas they were written with, or
// the columns that JSON values would like.
// (A job for an existing table finds out while it decodes.)
import type { RecordCursor } from '../protocol/record-cursor.ts';
import { walkSlice } from './batches.ts';
import { EventInference } from './debezium/json-events.ts';
import type { JobNeeds, TableJob } from './job.ts';
import { newInference } from './json-source.ts';
import { MAX_NEEDED, SchemaLook } from './sources/look.ts';

export function collectNeeds(job: TableJob, cursor: RecordCursor): JobNeeds {
  const { config, slices, maxBatchBytes } = job;
  const look = new SchemaLook(config);
  const inferred = infersJson(job);
  const json = inferred === 'values' ? newInference(config) : undefined;
  const events = inferred === 'events' ? new EventInference(config) : undefined;
  const visitor = {
    record: (at: RecordCursor) => {
      if (at.valueLength >= 0) {
        json?.add(at.bytes, at.valueStart, at.valueStart + at.valueLength);
        events?.add(at.bytes, at.valueStart, at.valueStart + at.valueLength);
      }
      look.at(at);
      return look.size < MAX_NEEDED;
    },
    batchDone: () => true,
    unreadable: () => true,
  };
  if (look.looks || inferred !== undefined) {
    for (const slice of slices) walkSlice(slice, cursor, { visitor, maxBatchBytes });
  }
  return {
    kind: 'needs',
    valueSchemas: [...look.values],
    keySchemas: [...look.keys],
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
