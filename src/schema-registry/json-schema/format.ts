// JSON Schema as the registry sees it.
import type { SchemaFormat } from '../format.ts';
import { jsonDifferences } from './compatibility.ts';
import { jsonSentence } from './messages.ts';
import { type ParsedJsonSchema, parseJsonSchema } from './parse.ts';
import { jsonSchemaText } from './text.ts';

export const jsonSchemaFormat: SchemaFormat<ParsedJsonSchema> = {
  type: 'JSON',
  parse: (text, dependencies) =>
    parseJsonSchema(
      text,
      new Map(dependencies.map(({ reference, text: other }) => [reference.name, other])),
    ),
  text: (schema, { normalize }) => jsonSchemaText(schema, normalize),
  formatted: () => undefined,
  differences: (reader, writer, sides) =>
    jsonDifferences(reader.root, writer.root).map(
      (item) =>
        `{errorType:"${item.type}", description:"${jsonSentence(item, sides.reader, sides.writer)}"}`,
    ),
};
