// Avro as the registry sees it.
import { FloeError } from '../../base/error.ts';
import type { Dependency, ParseRules, SchemaFormat } from '../format.ts';
import { differences, type Incompatibility } from './compatibility.ts';
import { badDefault } from './defaults.ts';
import { type ParsedAvro, parseAvro } from './parse.ts';
import type { Names } from './schema.ts';
import { avroText } from './text.ts';

/** With the named schemas that were known before the text was read. */
interface AvroParsed extends ParsedAvro {
  readonly known: Names;
}

export const avroFormat: SchemaFormat<AvroParsed> = {
  type: 'AVRO',
  parse,
  text: ({ schema, known }, { normalize }) => avroText(schema, { known, normalize }),
  formatted: ({ schema }, form) => (form === 'resolved' ? avroText(schema) : undefined),
  differences: (reader, writer, sides) =>
    differences(reader.schema, writer.schema).map((item) =>
      describe(item, sides.reader, sides.writer),
    ),
};

function parse(
  text: string,
  dependencies: readonly Dependency[],
  { validateDefaults }: ParseRules,
): AvroParsed {
  let known: Names = new Map();
  for (const dependency of dependencies) known = parseAvro(dependency.text, known).names;
  const parsed = parseAvro(text, known);
  const bad = validateDefaults ? badDefault(parsed.schema) : undefined;
  if (bad !== undefined)
    throw new FloeError('invalid', `the default of field ${bad} does not fit its type`);
  return { ...parsed, known };
}

function describe(item: Incompatibility, reader: string, writer: string): string {
  return `{errorType:'${item.type}', description:'${sentence(item, reader, writer)}', additionalInfo:'${item.detail}'}`;
}

function sentence({ type, path, detail }: Incompatibility, reader: string, writer: string): string {
  switch (type) {
    case 'NAME_MISMATCH':
      return `The name of the schema has changed (path '${path}')`;
    case 'FIXED_SIZE_MISMATCH':
      return `The size of FIXED type field at path '${path}' in the ${reader} schema does not match with the ${writer} schema`;
    case 'MISSING_ENUM_SYMBOLS':
      return `The ${reader} schema is missing enum symbols '${detail}' at path '${path}' in the ${writer} schema`;
    case 'READER_FIELD_MISSING_DEFAULT_VALUE':
      return `The field '${detail}' at path '${path}' in the ${reader} schema has no default value and is missing in the ${writer} schema`;
    case 'TYPE_MISMATCH':
      return `The type (path '${path}') of a field in the ${reader} schema does not match with the ${writer} schema`;
    case 'MISSING_UNION_BRANCH':
      return `The ${reader} schema is missing a type inside a union field at path '${path}' in the ${writer} schema`;
  }
}
