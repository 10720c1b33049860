// Which type a name means, over a file and the files it imports; refuses what no Protobuf compiler would take because
// records of it could not be decoded. Imports that nothing is taken from may be missing, as with Confluent (they often
// hold only options). Protobuf language specification, "Name resolution".
import { FloeError } from '../../base/error.ts';
import {
  allFields,
  isMapEntry,
  isScalar,
  type ProtoEnum,
  type ProtoExtend,
  type ProtoField,
  type ProtoFile,
  type ProtoMessage,
  type ProtoType,
} from './schema.ts';

interface TypeInfo {
  /** Without leading dot. */
  readonly fullName: string;
  readonly file: ProtoFile;
  readonly type: ProtoType;
}

export interface ProtoSchema {
  readonly file: ProtoFile;
  /** Files that are imported, also through others, by import path. */
  readonly imports: ReadonlyMap<string, ProtoFile>;
  /** By full name. */
  readonly types: ReadonlyMap<string, TypeInfo>;
  /** Extension fields by full name. */
  readonly extensions: ReadonlyMap<string, ProtoField>;
}

const MAP_KEYS = new Set(
  'int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool string'.split(
    ' ',
  ),
);

const invalid = (message: string) => new FloeError('invalid', message);

/** @throws FloeError `invalid` for names that mean nothing, or the same thing twice. */
export function resolveProto(
  file: ProtoFile,
  imports: ReadonlyMap<string, ProtoFile>,
): ProtoSchema {
  const types = new Map<string, TypeInfo>();
  const extensions = new Map<string, ProtoField>();
  for (const one of [...imports.values(), file]) {
    addExtensions(extensions, one.extends, one.package);
    for (const type of one.types) addType({ types, extensions }, one, { type, scope: one.package });
  }
  const schema = { file, imports, types, extensions };
  for (const type of file.types) checkType(schema, type, file.package);
  for (const { type, fields } of file.extends) {
    // The extended message is looked up leniently: descriptor.proto may not be among the imports.
    for (const field of fields) checkField(schema, field, `extend ${type}`, file.package);
  }
  return schema;
}

interface Index {
  readonly types: Map<string, TypeInfo>;
  readonly extensions: Map<string, ProtoField>;
}

function addType(
  index: Index,
  file: ProtoFile,
  { type, scope }: { type: ProtoType; scope: string },
): void {
  const fullName = join(scope, type.name);
  const known = index.types.get(fullName);
  // One file may come under two import paths; the same file twice is no clash.
  if (known !== undefined && known.file === file)
    throw invalid(`${fullName} is defined more than once`);
  index.types.set(fullName, { fullName, file, type });
  if (type.kind === 'enum') return;
  addExtensions(index.extensions, type.extends, fullName);
  for (const inner of innerTypes(type)) addType(index, file, { type: inner, scope: fullName });
}

function addExtensions(
  index: Map<string, ProtoField>,
  list: readonly ProtoExtend[],
  scope: string,
): void {
  for (const field of list.flatMap(({ fields }) => fields))
    index.set(join(scope, field.name), field);
}

/** Nested types, with the bodies of groups. */
export function innerTypes(message: ProtoMessage): readonly ProtoType[] {
  const groups = allFields(message).flatMap(({ field: { group } }) => group ?? []);
  return groups.length === 0 ? message.types : [...message.types, ...groups];
}

/** The type that `name`, written inside `scope` (a full name), means; undefined when none. */
export function findType(schema: ProtoSchema, name: string, scope: string): TypeInfo | undefined {
  return find(schema.types, name, scope)?.[1];
}

/** The full name and field of the extension that `name` means. */
export function findExtension(
  schema: ProtoSchema,
  name: string,
  scope: string,
): readonly [string, ProtoField] | undefined {
  return find(schema.extensions, name, scope);
}

/** Innermost scope first. A leading dot means a full name. */
function find<T>(
  index: ReadonlyMap<string, T>,
  name: string,
  scope: string,
): readonly [string, T] | undefined {
  if (name.startsWith('.')) return entry(index, name.slice(1));
  for (
    let space = scope;
    space !== '';
    space = space.slice(0, Math.max(space.lastIndexOf('.'), 0))
  ) {
    const found = entry(index, `${space}.${name}`);
    if (found !== undefined) return found;
  }
  return entry(index, name);
}

function entry<T>(index: ReadonlyMap<string, T>, name: string): readonly [string, T] | undefined {
  const found = index.get(name);
  return found === undefined ? undefined : [name, found];
}

function checkType(schema: ProtoSchema, type: ProtoType, scope: string): void {
  const fullName = join(scope, type.name);
  if (type.kind === 'enum') {
    checkEnum(type, fullName, schema.file.syntax);
    return;
  }
  const numbers = new Map<number, string>();
  const names = new Set<string>();
  for (const { field } of allFields(type)) {
    const other = numbers.get(field.number);
    if (other !== undefined)
      throw invalid(`fields ${other} and ${field.name} of ${fullName} have number ${field.number}`);
    if (names.has(field.name)) throw invalid(`field ${field.name} of ${fullName} is defined twice`);
    numbers.set(field.number, field.name);
    names.add(field.name);
    checkField(schema, field, fullName, fullName);
  }
  for (const inner of innerTypes(type)) checkType(schema, inner, fullName);
}

function checkField(schema: ProtoSchema, field: ProtoField, owner: string, scope: string): void {
  const where = `field ${field.name} of ${owner}`;
  if (field.map !== undefined && !MAP_KEYS.has(field.map.key))
    throw invalid(`${where}: ${field.map.key} can't be the key of a map`);
  const type = field.map?.value ?? field.type;
  if (!isScalar(type) && findType(schema, type, scope) === undefined)
    throw invalid(`${where}: type "${type}" is defined neither here nor in what is imported`);
}

function checkEnum({ values }: ProtoEnum, fullName: string, syntax: string): void {
  const [first] = values;
  if (first === undefined) throw invalid(`enum ${fullName} has no values`);
  if (syntax === 'proto3' && first.number !== 0)
    throw invalid(`the first value of enum ${fullName} is not 0, as proto3 wants`);
}

/** Key and value fields of a map, written as such or as a descriptor's entry message; undefined for other fields. */
export function mapTypes(
  schema: ProtoSchema,
  field: ProtoField,
  scope: string,
): ProtoField['map'] | undefined {
  if (field.map !== undefined || isScalar(field.type)) return field.map;
  const found = findType(schema, field.type, scope);
  if (found === undefined || found.type.kind === 'enum' || !isMapEntry(found.type))
    return undefined;
  const named = (name: string) =>
    (found.type as ProtoMessage).fields.find((one) => one.name === name)?.type;
  const [key, value] = [named('key'), named('value')];
  return key === undefined || value === undefined ? undefined : { key, value };
}

/** `scope.name`, or `name` outside all. */
export function join(scope: string, name: string): string {
  return scope === '' ? name : `${scope}.${name}`;
}
