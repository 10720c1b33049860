// Protobuf as the registry sees it.
import { FloeError } from '../../base/error.ts';
import type { Dependency, SchemaFormat } from '../format.ts';
import { protoDifferences, protoSentence } from './compatibility.ts';
import { decodeDescriptor } from './from-descriptor.ts';
import { parseProto } from './parse.ts';
import { type ProtoSchema, resolveProto } from './resolve.ts';
import type { ProtoFile } from './schema.ts';
import { protoText } from './text.ts';
import { encodeDescriptor } from './to-descriptor.ts';
import { wellKnownFile } from './well-known.ts';

const BASE64 = /^[A-Za-z0-9+/\s]+=*\s*$/;

/** True for what can only be a descriptor in base64: source has braces or semicolons. */
export function isDescriptorText(text: string): boolean {
  return BASE64.test(text);
}

export const protobufFormat: SchemaFormat<ProtoSchema> = {
  type: 'PROTOBUF',
  parse: parseProtobuf,
  text: (schema, { normalize }) => protoText(schema, { normalize }),
  formatted(schema, form) {
    if (form === 'serialized')
      return Buffer.from(encodeDescriptor(schema, 'default')).toString('base64');
    return form === 'ignore_extensions' ? protoText(schema, { ignoreExtensions: true }) : undefined;
  },
  differences: (reader, writer, sides) =>
    protoDifferences(reader, writer).map(
      (item) =>
        `{errorType:"${item.type}", description:"${protoSentence(item, sides.reader, sides.writer)}"}`,
    ),
};

/**
 * Parses source, or the base64 of a FileDescriptorProto, with what it imports. @throws FloeError `invalid`.
 */
export function parseProtobuf(text: string, dependencies: readonly Dependency[]): ProtoSchema {
  const imports = new Map<string, ProtoFile>();
  for (const { reference, text: source } of dependencies)
    if (!imports.has(reference.name)) imports.set(reference.name, parseFile(source));
  const file = parseFile(text);
  for (const one of [file, ...imports.values()]) addWellKnown(one, imports);
  return resolveProto(file, imports);
}

function parseFile(text: string): ProtoFile {
  try {
    return parseProto(text);
  } catch (caught) {
    const error = FloeError.from(caught);
    if (error.code !== 'invalid' || !isDescriptorText(text)) throw error;
    return decodeDescriptor(Buffer.from(text, 'base64'));
  }
}

/** Adds the built-in files that a file imports, and those that they import. */
function addWellKnown(file: ProtoFile, imports: Map<string, ProtoFile>): void {
  for (const { path } of file.imports) {
    if (imports.has(path)) continue;
    const known = wellKnownFile(path);
    if (known === undefined) continue;
    imports.set(path, known);
    addWellKnown(known, imports);
  }
}
