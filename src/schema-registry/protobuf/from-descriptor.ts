// Serialised FileDescriptorProto → schema.ts: Confluent's Python client registers the base64 of one instead of source,
// and the well-known types come as such. Map entries stay messages, since message indexes count them. Options that
// are extensions are dropped: their types are not known here.
import type { Message } from '@bufbuild/protobuf';
import type { GenMessage } from '@bufbuild/protobuf/codegenv2';
import type { reflect } from '@bufbuild/protobuf/reflect';
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
} from '@bufbuild/protobuf/wkt';
import { FloeError } from '../../base/error.ts';
import { bufbuild, reflection, wkt } from './bufbuild.ts';
import { quote } from './lexer.ts';
import type {
  Label,
  OptionValue,
  ProtoEnum,
  ProtoExtend,
  ProtoField,
  ProtoFile,
  ProtoImport,
  ProtoMessage,
  ProtoOption,
} from './schema.ts';

/** @throws FloeError `invalid` for what is no FileDescriptorProto. */
export function decodeDescriptor(bytes: Uint8Array): ProtoFile {
  let file: FileDescriptorProto;
  try {
    file = bufbuild().fromBinary(wkt().FileDescriptorProtoSchema, bytes);
  } catch (caught) {
    const reason = FloeError.from(caught).message;
    throw new FloeError('invalid', `neither .proto source nor a FileDescriptorProto: ${reason}`);
  }
  if (file.messageType.length + file.enumType.length + file.name.length === 0)
    throw new FloeError('invalid', 'neither .proto source nor a FileDescriptorProto');
  return fileOf(file);
}

/** The same, decoded already. */
export function fileOf(file: FileDescriptorProto): ProtoFile {
  const syntax = syntaxOf(file);
  return {
    syntax,
    syntaxWritten: true,
    package: file.package,
    imports: file.dependency.map((path, at) => ({ path, kind: importKind(file, at) })),
    options: optionsOf(wkt().FileOptionsSchema, file.options),
    types: [
      ...file.messageType.map((type) => messageOf(type, syntax)),
      ...file.enumType.map(enumOf),
    ],
    extends: extendsOf(file.extension, syntax),
    services: file.service.map((service) => ({
      name: service.name,
      options: optionsOf(wkt().ServiceOptionsSchema, service.options),
      rpcs: service.method.map((method) => ({
        name: method.name,
        request: { type: method.inputType, stream: method.clientStreaming },
        response: { type: method.outputType, stream: method.serverStreaming },
        options: optionsOf(wkt().MethodOptionsSchema, method.options),
      })),
    })),
  };
}

function syntaxOf({ syntax, edition }: FileDescriptorProto): string {
  if (syntax !== 'editions' && edition < wkt().Edition.EDITION_2023) return syntax || 'proto2';
  return (wkt().Edition[edition] ?? String(edition)).replace('EDITION_', '');
}

function importKind(file: FileDescriptorProto, at: number): ProtoImport['kind'] {
  if (file.publicDependency.includes(at)) return 'public';
  return file.weakDependency.includes(at) ? 'weak' : 'plain';
}

function messageOf(message: DescriptorProto, syntax: string): ProtoMessage {
  const groups = new Set(
    message.field
      .filter(({ type }) => type === wkt().FieldDescriptorProto_Type.GROUP)
      .map(({ typeName }) => typeName),
  );
  const nested = new Map(message.nestedType.map((type) => [type.name, messageOf(type, syntax)]));
  const toField = (field: FieldDescriptorProto) => fieldOf(field, syntax, nested);
  const isMember = (field: FieldDescriptorProto) =>
    bufbuild().isFieldSet(field, wkt().FieldDescriptorProtoSchema.field.oneofIndex) &&
    !field.proto3Optional;
  return {
    kind: 'message',
    name: message.name,
    visibility: undefined,
    fields: message.field.filter((field) => !isMember(field)).map(toField),
    // Optional fields of proto3 have a oneof each, which the source doesn't show.
    oneofs: message.oneofDecl
      .map(({ name, options }, at) => ({
        name,
        options: optionsOf(wkt().OneofOptionsSchema, options),
        fields: message.field
          .filter((field) => isMember(field) && field.oneofIndex === at)
          .map((field) => ({ ...toField(field), label: undefined })),
      }))
      .filter(({ fields }) => fields.length > 0),
    types: [
      ...[...nested.values()].filter(
        ({ name }) => ![...groups].some((group) => group.endsWith(`.${name}`)),
      ),
      ...message.enumType.map(enumOf),
    ],
    options: optionsOf(wkt().MessageOptionsSchema, message.options),
    reserved: [
      ...message.reservedRange.map(({ start, end }) => [{ start, end: end - 1 }]),
      ...(message.reservedName.length === 0 ? [] : [message.reservedName]),
    ],
    extensions: message.extensionRange.map(({ start, end, options }) => ({
      ranges: [{ start, end: end - 1 }],
      options: optionsOf(wkt().ExtensionRangeOptionsSchema, options),
    })),
    extends: extendsOf(message.extension, syntax),
  };
}

function fieldOf(
  field: FieldDescriptorProto,
  syntax: string,
  nested: ReadonlyMap<string, ProtoMessage>,
): ProtoField {
  const options = [...optionsOf(wkt().FieldOptionsSchema, field.options)];
  if (field.defaultValue !== '' && syntax !== 'proto3') options.push(defaultOf(field));
  if (field.jsonName !== '' && field.jsonName !== jsonNameOf(field.name))
    options.push({ name: 'json_name', value: { kind: 'quoted', text: field.jsonName } });
  const shortName = field.typeName.slice(field.typeName.lastIndexOf('.') + 1);
  const isGroup = field.type === wkt().FieldDescriptorProto_Type.GROUP;
  return {
    label: labelOf(field, syntax),
    type: isGroup
      ? shortName
      : field.typeName || wkt().FieldDescriptorProto_Type[field.type]!.toLowerCase(),
    map: undefined,
    name: field.name,
    number: field.number,
    options,
    group: isGroup ? nested.get(shortName) : undefined,
  };
}

function labelOf(field: FieldDescriptorProto, syntax: string): Label | undefined {
  if (field.label === wkt().FieldDescriptorProto_Label.REPEATED) return 'repeated';
  if (field.proto3Optional) return 'optional';
  if (syntax !== 'proto2') return undefined;
  return field.label === wkt().FieldDescriptorProto_Label.REQUIRED ? 'required' : 'optional';
}

function defaultOf({ type, defaultValue }: FieldDescriptorProto): ProtoOption {
  // Defaults of bytes come with their escapes, those of strings without.
  const text =
    type === wkt().FieldDescriptorProto_Type.STRING
      ? quote(Buffer.from(defaultValue))
      : defaultValue;
  const kind =
    type === wkt().FieldDescriptorProto_Type.STRING ||
    type === wkt().FieldDescriptorProto_Type.BYTES
      ? 'quoted'
      : 'bare';
  return { name: 'default', value: { kind, text } };
}

/** The JSON name that a field has when none is set: underscores dropped, what follows them in capitals. */
export function jsonNameOf(name: string): string {
  return name.replaceAll(/_+(.?)/g, (_match, letter: string) => letter.toUpperCase());
}

function enumOf(type: EnumDescriptorProto): ProtoEnum {
  return {
    kind: 'enum',
    name: type.name,
    visibility: undefined,
    values: type.value.map(({ name, number, options }) => ({
      name,
      number,
      options: optionsOf(wkt().EnumValueOptionsSchema, options),
    })),
    options: optionsOf(wkt().EnumOptionsSchema, type.options),
    reserved: [
      ...type.reservedRange.map(({ start, end }) => [{ start, end }]),
      ...(type.reservedName.length === 0 ? [] : [type.reservedName]),
    ],
  };
}

function extendsOf(fields: readonly FieldDescriptorProto[], syntax: string): ProtoExtend[] {
  const byType = new Map<string, ProtoField[]>();
  for (const field of fields) {
    const list = byType.get(field.extendee) ?? [];
    byType.set(field.extendee, [...list, fieldOf(field, syntax, new Map())]);
  }
  return [...byType].map(([type, list]) => ({ type, fields: list }));
}

/** What is set in a message of options. */
function optionsOf<T extends Message>(
  schema: GenMessage<T>,
  options: T | undefined,
): readonly ProtoOption[] {
  return options === undefined ? [] : entriesOf(schema, options).flatMap(flat);
}

/** Features are set one by one, as sources mostly do. */
function flat([name, value]: readonly [string, OptionValue]): ProtoOption[] {
  if (name === 'features' && value.kind === 'message')
    return value.fields.map(([inner, one]) => ({ name: `features.${inner}`, value: one }));
  return value.kind === 'list'
    ? value.items.map((one) => ({ name, value: one }))
    : [{ name, value }];
}

type Reflected = ReturnType<typeof reflect>;

function entriesOf<T extends Message>(schema: GenMessage<T>, message: T) {
  return reflectedEntries(reflection().reflect(schema, message));
}

function reflectedEntries(message: Reflected): (readonly [string, OptionValue])[] {
  return message.sortedFields
    .filter((field) => field.name !== 'uninterpreted_option' && message.isSet(field))
    .map((field) => [field.name, optionValue(field, message.get(field))] as const);
}

type FieldShape = Reflected['fields'][number];

function optionValue(field: FieldShape, value: unknown): OptionValue {
  if (field.fieldKind === 'list')
    return {
      kind: 'list',
      items: [...(value as Iterable<unknown>)].map((item) => single(field, field.listKind, item)),
    };
  return single(field, field.fieldKind, value);
}

function single(field: FieldShape, kind: string, value: unknown): OptionValue {
  if (kind === 'message') return { kind: 'message', fields: reflectedEntries(value as Reflected) };
  if (kind === 'enum')
    return { kind: 'bare', text: field.enum?.value[value as number]?.name ?? String(value) };
  if (typeof value === 'string') return { kind: 'quoted', text: quote(Buffer.from(value)) };
  if (value instanceof Uint8Array) return { kind: 'quoted', text: quote(value) };
  return { kind: 'bare', text: String(value) };
}
