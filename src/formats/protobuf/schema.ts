// Protobuf schemas as plain data: messages with their fields, ready for columns and decoders. The text is parsed by
// protobufjs (proto2, proto3 and editions); everything else of that library is left alone.
// Not for: compatibility and canonical text (the registry's business).
import type protobuf from 'protobufjs';
import { FloeError } from '../../base/error.ts';
import { knownFile } from './known-files.ts';
import { parseFile } from './parse.ts';
import { protobufjs } from './protobufjs.ts';

export type ProtoScalar =
  | 'double'
  | 'float'
  | 'int32'
  | 'uint32'
  | 'sint32'
  | 'fixed32'
  | 'sfixed32'
  | 'int64'
  | 'uint64'
  | 'sint64'
  | 'fixed64'
  | 'sfixed64'
  | 'bool'
  | 'string'
  | 'bytes';

export interface ProtoEnum {
  readonly kind: 'enum';
  readonly name: string;
  /** Of several names for a number the first. */
  readonly symbols: ReadonlyMap<number, string>;
}

export interface ProtoMessage {
  readonly kind: 'message';
  /** Full name, without a leading dot. */
  readonly name: string;
  /** By number. Filled after the object is made, since messages may contain themselves. */
  readonly fields: ProtoField[];
}

export interface ProtoScalarType {
  readonly kind: 'scalar';
  readonly scalar: ProtoScalar;
}

export type ProtoType = ProtoScalarType | ProtoEnum | ProtoMessage;

/** A value of a scalar or enum: 64-bit integers are bigint, enums numbers. */
export type ProtoDefault = number | bigint | boolean | string | Uint8Array;

/** `implicit`: no presence, so that absence is the default. `map`: `key` is set and `type` is the value's. */
export type Cardinality = 'implicit' | 'optional' | 'required' | 'repeated' | 'map';

export interface ProtoField {
  readonly name: string;
  readonly number: number;
  readonly cardinality: Cardinality;
  readonly type: ProtoType;
  readonly key?: ProtoScalar;
  /** What absence stands for: declared, or the type's where presence isn't tracked. */
  readonly default?: ProtoDefault;
  /** Fields of equal names exclude each other. */
  readonly oneof?: string;
  readonly doc?: string;
}

export interface ProtoSchema {
  /** Messages of the file itself in order, as Confluent's message indexes count them. */
  readonly messages: readonly IndexedMessage[];
  /** A message of the file or of what it imports; undefined when there is none of that full name. */
  find(name: string): ProtoMessage | undefined;
}

export interface IndexedMessage {
  readonly message: ProtoMessage;
  readonly nested: readonly IndexedMessage[];
}

/** A file that a schema imports. */
export interface ProtoFile {
  /** The path by which it is imported. */
  readonly name: string;
  readonly schema: string;
}

/**
 * Parses a .proto text (or a FileDescriptorProto in base64) with the files it imports; those of google/protobuf and
 * other well-known ones need not be given.
 * @throws FloeError `invalid` with the reason: not Protobuf, an unknown type, a group.
 */
export function parseProtobuf(schema: string, imports: readonly ProtoFile[] = []): ProtoSchema {
  try {
    const root = new (protobufjs().Root)();
    const main = parseFile(schema, root);
    const order = namesOf(main.messages);
    addImports(root, main.imports, new Map(imports.map((file) => [file.name, file.schema])));
    root.resolveAll();
    const model = new Model(root);
    return {
      messages: order.map((entry) => model.indexed(entry)),
      find: (name) => model.find(name),
    };
  } catch (caught) {
    if (caught instanceof FloeError) throw caught;
    throw new FloeError('invalid', `Protobuf schema: ${(caught as Error).message}`, {
      cause: caught,
    });
  }
}

/** Full names of a file's messages, noted before other files join the same packages. */
interface NameTree {
  readonly name: string;
  readonly nested: readonly NameTree[];
}

function namesOf(types: readonly protobuf.Type[]): NameTree[] {
  return types.map((type) => ({
    name: type.fullName,
    nested: namesOf(type.nestedArray.filter((inner) => inner instanceof protobufjs().Type)),
  }));
}

/** Parses what is imported, directly or not: given files first, then the well-known ones. */
function addImports(
  root: protobuf.Root,
  wanted: readonly string[],
  given: ReadonlyMap<string, string>,
): void {
  const seen = new Set<string>();
  const queue = [...wanted];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const text = given.get(name);
    if (text !== undefined) {
      queue.push(...parseFile(text, root).imports);
      continue;
    }
    const nested = protobufjs().common.get(name)?.nested;
    if (nested !== undefined && nested !== null) root.addJSON(nested);
    else {
      const known = knownFile(name);
      if (known !== undefined) queue.push(...parseFile(known, root).imports);
    }
  }
}

/** Turns reflection objects into plain ones, each once. */
class Model {
  readonly #root: protobuf.Root;
  readonly #messages = new Map<protobuf.Type, ProtoMessage>();
  readonly #enums = new Map<protobuf.Enum, ProtoEnum>();

  constructor(root: protobuf.Root) {
    this.#root = root;
  }

  indexed({ name, nested }: NameTree): IndexedMessage {
    return {
      message: this.message(this.#root.lookupType(name)),
      nested: nested.map((entry) => this.indexed(entry)),
    };
  }

  find(name: string): ProtoMessage | undefined {
    const found = this.#root.lookup(`.${name}`, [protobufjs().Type]);
    return found instanceof protobufjs().Type ? this.message(found) : undefined;
  }

  message(type: protobuf.Type): ProtoMessage {
    const known = this.#messages.get(type);
    if (known !== undefined) return known;
    const fields: ProtoField[] = [];
    const message: ProtoMessage = { kind: 'message', name: type.fullName.slice(1), fields };
    this.#messages.set(type, message);
    const given = [...type.fieldsArray].sort((a, b) => a.id - b.id);
    for (const field of given) fields.push(this.#field(field, message));
    return message;
  }

  #field(field: protobuf.Field, owner: ProtoMessage): ProtoField {
    field.resolve();
    if (field.delimited && !field.map) {
      throw new FloeError(
        'invalid',
        `field "${field.name}" of ${owner.name} is a group (delimited encoding), which makes no column: use a message field`,
      );
    }
    const type = this.#type(field);
    const cardinality = cardinalityOf(field, type);
    const implied = defaultOf(field, type, cardinality);
    const oneof = field.partOf;
    return {
      // An extension's name is its full one.
      name: field.name.replace(/^.*\./, ''),
      number: field.id,
      cardinality,
      type,
      ...(field instanceof protobufjs().MapField ? { key: field.keyType as ProtoScalar } : {}),
      ...(implied === undefined ? {} : { default: implied }),
      ...(oneof === null || oneof.isProto3Optional ? {} : { oneof: oneof.name }),
      ...(field.comment ? { doc: field.comment } : {}),
    };
  }

  #type(field: protobuf.Field): ProtoType {
    const { resolvedType } = field;
    if (resolvedType === null) return { kind: 'scalar', scalar: field.type as ProtoScalar };
    if (resolvedType instanceof protobufjs().Type) return this.message(resolvedType);
    const known = this.#enums.get(resolvedType);
    if (known !== undefined) return known;
    const symbols = new Map<number, string>();
    for (const [symbol, number] of Object.entries(resolvedType.values)) {
      if (!symbols.has(number)) symbols.set(number, symbol);
    }
    const made: ProtoEnum = { kind: 'enum', name: resolvedType.fullName.slice(1), symbols };
    this.#enums.set(resolvedType, made);
    return made;
  }
}

function cardinalityOf(field: protobuf.Field, type: ProtoType): Cardinality {
  if (field.map) return 'map';
  if (field.repeated) return 'repeated';
  if (field.required) return 'required';
  return type.kind === 'message' || field.hasPresence ? 'optional' : 'implicit';
}

function defaultOf(
  field: protobuf.Field,
  type: ProtoType,
  cardinality: Cardinality,
): ProtoDefault | undefined {
  if (type.kind === 'message' || cardinality === 'repeated' || cardinality === 'map') {
    return undefined;
  }
  const declared = (field.options as Record<string, unknown> | undefined)?.['default'];
  // Members of a oneof never stand for one another.
  if (declared === undefined || field.partOf !== null) {
    return cardinality === 'implicit' ? zeroOf(type) : undefined;
  }
  if (type.kind === 'enum') {
    return [...type.symbols].find(([, symbol]) => symbol === declared)?.[0] ?? Number(declared);
  }
  const value: unknown = field.defaultValue;
  switch (type.scalar) {
    case 'int64':
    case 'uint64':
    case 'sint64':
    case 'fixed64':
    case 'sfixed64':
      return BigInt(String(value));
    case 'string':
      return String(value);
    case 'bytes':
      return typeof value === 'string' ? Buffer.from(value) : Uint8Array.from(value as Uint8Array);
    case 'bool':
      return Boolean(value);
    default:
      return Number(value);
  }
}

/** What a scalar is when nothing was written; of an enum its first symbol. */
export function zeroOf(type: ProtoScalarType | ProtoEnum): ProtoDefault {
  if (type.kind === 'enum') return type.symbols.keys().next().value ?? 0;
  switch (type.scalar) {
    case 'bool':
      return false;
    case 'string':
      return '';
    case 'bytes':
      return new Uint8Array(0);
    case 'int64':
    case 'uint64':
    case 'sint64':
    case 'fixed64':
    case 'sfixed64':
      return 0n;
    default:
      return 0;
  }
}
