// Schema type → what serves it. The only place that knows which formats there are.
import { FloeError } from '../../base/error.ts';
import type { SchemaType } from '../../schema-registry/schema-source.ts';
import { avroFormat } from './avro.ts';
import { jsonSchemaFormat } from './json-schema.ts';
import { protobufFormat } from './protobuf.ts';
import type { SourceFormat } from './source.ts';

const FORMATS: Readonly<Record<SchemaType, SourceFormat>> = {
  AVRO: avroFormat,
  PROTOBUF: protobufFormat,
  JSON: jsonSchemaFormat,
};

/** @throws FloeError `invalid` for a type that a registry knows and this version doesn't. */
export function sourceFormat(type: SchemaType): SourceFormat {
  if (Object.hasOwn(FORMATS, type)) return FORMATS[type];
  throw new FloeError('invalid', `schemas of type ${type} make no columns`);
}
