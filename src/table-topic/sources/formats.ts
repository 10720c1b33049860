// Schema type → what serves it. The only place that knows which formats there are.
import { FloeError } from '../../base/error.ts';
import type { SchemaType } from '../../schema-registry/schema-source.ts';
import { avroFormat } from './avro.ts';
import { protobufFormat } from './protobuf.ts';
import type { SourceFormat } from './source.ts';

const FORMATS: Partial<Readonly<Record<SchemaType, SourceFormat>>> = {
  AVRO: avroFormat,
  PROTOBUF: protobufFormat,
};

/** @throws FloeError `invalid` when schemas of that type make no columns. */
export function sourceFormat(type: SchemaType): SourceFormat {
  const format = FORMATS[type];
  if (format !== undefined) return format;
  throw new FloeError(
    'invalid',
    `schemas of type ${type} make no columns: AVRO, PROTOBUF and JSON ones do`,
  );
}
