// The formats that are served, by the name that clients give them.
import { avroFormat } from './avro/format.ts';
import type { SchemaFormat } from './format.ts';
import { jsonSchemaFormat } from './json-schema/format.ts';
import { protobufFormat } from './protobuf/format.ts';
import type { SchemaType } from './schema-source.ts';

/** A format whose parsed schemas are only handed back to it. */
export type AnyFormat = SchemaFormat<unknown>;

const formats: Readonly<Record<SchemaType, AnyFormat>> = {
  AVRO: avroFormat as AnyFormat,
  JSON: jsonSchemaFormat as AnyFormat,
  PROTOBUF: protobufFormat as AnyFormat,
};

/** In Confluent's order. */
export const SCHEMA_TYPES = ['JSON', 'PROTOBUF', 'AVRO'] as const satisfies readonly SchemaType[];

/** The format of that name; undefined when there is none. */
export function formatOf(type: string): AnyFormat | undefined {
  const known = SCHEMA_TYPES.find((one) => one === type);
  return known === undefined ? undefined : formats[known];
}
