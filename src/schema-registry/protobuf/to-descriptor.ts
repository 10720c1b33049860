// schema.ts → serialised FileDescriptorProto, for `format=serialized`: what protoc would make of the source, without
// options that are extensions and without source locations.
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { FloeError } from '../../base/error.ts';
import { bufbuild, wkt } from './bufbuild.ts';
import { jsonNameOf } from './from-descriptor.ts';
import { unquote } from './lexer.ts';
import { findType, innerTypes, join, type ProtoSchema } from './resolve.ts';
import {
  isScalar,
  type OptionValue,
  type ProtoEnum,
  type ProtoExtend,
  type ProtoField,
  type ProtoMessage,
  type ProtoOption,
  type ProtoRpc,
  type ProtoType,
  type Reserved,
} from './schema.ts';

/** `name` is what the descriptor calls the file. @throws FloeError `invalid` for option values of the wrong type. */
export function encodeDescriptor(schema: ProtoSchema, name: string): Uint8Array {
  const json = new Describer(schema).file(name);
  const { fromJson, toBinary } = bufbuild();
  const { FileDescriptorProtoSchema } = wkt();
  try {
    const file = fromJson(FileDescriptorProtoSchema, json, { ignoreUnknownFields: true });
    return toBinary(FileDescriptorProtoSchema, file);
  } catch (caught) {
    const reason = FloeError.from(caught).message;
    throw new FloeError('invalid', `the schema has no descriptor: ${reason}`, { cause: caught });
  }
}

class Describer {
  readonly #schema: ProtoSchema;

  constructor(schema: ProtoSchema) {
    this.#schema = schema;
  }

  file(name: string): JsonObject {
    const { file } = this.#schema;
    const at = (kind: string) =>
      file.imports.flatMap((one, index) => (one.kind === kind ? index : []));
    const isEdition = /^\d/.test(file.syntax);
    return {
      name,
      package: file.package,
      dependency: file.imports.map(({ path }) => path),
      publicDependency: at('public'),
      weakDependency: at('weak'),
      ...this.#types(file.types, file.package, 'messageType'),
      extension: this.#extensions(file.extends, file.package),
      service: file.services.map((service) => ({
        name: service.name,
        ...optionsJson(service.options),
        method: service.rpcs.map((rpc) => this.#rpc(rpc)),
      })),
      ...optionsJson(file.options),
      ...(file.syntax === 'proto2' ? {} : { syntax: isEdition ? 'editions' : file.syntax }),
      ...(isEdition ? { edition: `EDITION_${file.syntax}` } : {}),
    };
  }

  #rpc({ name, request, response, options }: ProtoRpc): JsonObject {
    const scope = this.#schema.file.package;
    return {
      name,
      inputType: this.#fullName(request.type, scope),
      outputType: this.#fullName(response.type, scope),
      clientStreaming: request.stream,
      serverStreaming: response.stream,
      ...optionsJson(options),
    };
  }

  #types(types: readonly ProtoType[], scope: string, messages: string): JsonObject {
    return {
      [messages]: types.flatMap((type) =>
        type.kind === 'message' ? this.#message(type, scope) : [],
      ),
      enumType: types.flatMap((type) => (type.kind === 'enum' ? enumJson(type) : [])),
    };
  }

  #message(message: ProtoMessage, outer: string): JsonObject {
    const scope = join(outer, message.name);
    const optional = message.fields.filter((field) => this.#isProto3Optional(field));
    const oneofs = [
      ...message.oneofs.map(({ name, options }) => ({ name, ...optionsJson(options) })),
      ...optional.map(({ name }) => ({ name: `_${name}` })),
    ];
    const nested = this.#types(innerTypes(message), scope, 'nestedType');
    const maps = allOf(message).filter(({ map }) => map !== undefined);
    return {
      name: message.name,
      field: [
        ...message.fields.map((field) => ({
          ...this.#field(field, scope),
          ...(optional.includes(field)
            ? { proto3Optional: true, oneofIndex: message.oneofs.length + optional.indexOf(field) }
            : {}),
        })),
        ...message.oneofs.flatMap(({ fields }, oneofIndex) =>
          fields.map((field) => ({ ...this.#field(field, scope), oneofIndex })),
        ),
      ],
      oneofDecl: oneofs,
      ...nested,
      nestedType: [
        ...(nested['nestedType'] as JsonValue[]),
        ...maps.map((field) => this.#mapEntry(field, scope)),
      ],
      extension: this.#extensions(message.extends, scope),
      extensionRange: message.extensions.flatMap(({ ranges, options }) =>
        ranges.map(({ start, end }) => ({ start, end: end + 1, ...optionsJson(options) })),
      ),
      ...reservedJson(message.reserved, 1),
      ...optionsJson(message.options),
    };
  }

  #isProto3Optional({ label }: ProtoField): boolean {
    return label === 'optional' && this.#schema.file.syntax === 'proto3';
  }

  #mapEntry({ name, map }: ProtoField, scope: string): JsonObject {
    const entry = (field: string, number: number, type: string) => ({
      name: field,
      number,
      label: 'LABEL_OPTIONAL',
      jsonName: field,
      ...this.#type(type, scope),
    });
    return {
      name: entryName(name),
      field: [entry('key', 1, map!.key), entry('value', 2, map!.value)],
      options: { mapEntry: true },
    };
  }

  #field(field: ProtoField, scope: string): JsonObject {
    const { default: byDefault, json_name: jsonName, ...options } = byName(field.options);
    return {
      name: field.name,
      number: field.number,
      label: `LABEL_${(field.map === undefined ? (field.label ?? 'optional') : 'repeated').toUpperCase()}`,
      jsonName: jsonName === undefined ? jsonNameOf(field.name) : String(jsonText(jsonName)),
      ...(field.map === undefined
        ? this.#type(field.type, scope, field.group !== undefined)
        : { type: 'TYPE_MESSAGE', typeName: `.${scope}.${entryName(field.name)}` }),
      ...(byDefault === undefined ? {} : { defaultValue: defaultText(byDefault, field.type) }),
      ...(Object.keys(options).length === 0 ? {} : { options: valuesJson(options) }),
    };
  }

  #type(type: string, scope: string, group = false): JsonObject {
    if (isScalar(type)) return { type: `TYPE_${type.toUpperCase()}` };
    const found = findType(this.#schema, type, scope);
    const kind = found?.type.kind === 'enum' ? 'ENUM' : group ? 'GROUP' : 'MESSAGE';
    return { type: `TYPE_${kind}`, typeName: this.#fullName(type, scope) };
  }

  #fullName(type: string, scope: string): string {
    const found = findType(this.#schema, type, scope);
    return found === undefined ? type : `.${found.fullName}`;
  }

  #extensions(list: readonly ProtoExtend[], scope: string): JsonObject[] {
    return list.flatMap(({ type, fields }) =>
      fields.map((field) => ({
        ...this.#field(field, scope),
        extendee: this.#fullName(type, scope),
      })),
    );
  }
}

const allOf = (message: ProtoMessage) => [
  ...message.fields,
  ...message.oneofs.flatMap(({ fields }) => fields),
];

/** The name protoc gives to the message of a map's entries. */
function entryName(field: string): string {
  const camel = jsonNameOf(field);
  return `${camel.slice(0, 1).toUpperCase()}${camel.slice(1)}Entry`;
}

function enumJson(type: ProtoEnum): JsonObject {
  return {
    name: type.name,
    value: type.values.map(({ name, number, options }) => ({
      name,
      number,
      ...optionsJson(options),
    })),
    ...reservedJson(type.reserved, 0),
    ...optionsJson(type.options),
  };
}

/** Ranges of messages exclude their end, those of enums include it. */
function reservedJson(reserved: readonly Reserved[], beyond: number): JsonObject {
  const all = reserved.flat();
  return {
    reservedRange: all.flatMap((one) =>
      typeof one === 'string' ? [] : { start: one.start, end: one.end + beyond },
    ),
    reservedName: all.filter((one) => typeof one === 'string'),
  };
}

type Values = Record<string, OptionValue>;

/** Standard options that repeat: a list even when set once. */
const REPEATED = new Set(['targets', 'edition_defaults', 'declaration']);

function byName(options: readonly ProtoOption[]): Values {
  const values: Values = {};
  for (const { name, value } of options) {
    const items = (one: OptionValue | undefined) =>
      one === undefined ? [] : one.kind === 'list' ? one.items : [one];
    values[name] = REPEATED.has(name)
      ? { kind: 'list', items: [...items(values[name]), ...items(value)] }
      : value;
  }
  return values;
}

function optionsJson(options: readonly ProtoOption[]): { options?: JsonObject } {
  const json = valuesJson(byName(options));
  return Object.keys(json).length === 0 ? {} : { options: json };
}

/** Paths (`features.x`) become objects; extensions are left out. */
function valuesJson(values: Values): JsonObject {
  const json: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(values)) {
    if (name.includes('(')) continue;
    const path = name.split('.');
    let at = json;
    for (const part of path.slice(0, -1)) {
      at[part] ??= {};
      at = at[part] as Record<string, JsonValue>;
    }
    at[path.at(-1)!] = toJson(value);
  }
  return json;
}

function toJson(value: OptionValue): JsonValue {
  switch (value.kind) {
    case 'list':
      return value.items.map(toJson);
    case 'message':
      return Object.fromEntries(
        value.fields
          .filter(([name]) => !name.startsWith('['))
          .map(([name, one]) => [name, toJson(one)]),
      );
    default:
      return jsonText(value);
  }
}

function jsonText(value: OptionValue): JsonValue {
  if (!('text' in value)) return null;
  if (value.kind === 'quoted') return unquote(value.text).toString('utf8');
  if (value.text === 'true' || value.text === 'false') return value.text === 'true';
  return /^-?[\d.]/.test(value.text) ? Number(value.text) : value.text;
}

/** Defaults of bytes keep their escapes. */
function defaultText(value: OptionValue, type: string): string {
  if (!('text' in value)) return '';
  return type === 'string' ? unquote(value.text).toString('utf8') : value.text;
}
