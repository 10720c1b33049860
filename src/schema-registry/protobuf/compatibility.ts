// Which changes of a Protobuf schema break those who read: fields are known by number, messages by name. The rules and
// names of Confluent's registry (its documentation, "Protobuf compatibility rules"), in one direction: `original` was
// written, `update` reads. Pure.
import { FloeError } from '../../base/error.ts';
import { findType, innerTypes, join, mapTypes, type ProtoSchema } from './resolve.ts';
import {
  allFields,
  isMapEntry,
  isScalar,
  optionText,
  type ProtoEnum,
  type ProtoField,
  type ProtoMessage,
  type ProtoType,
} from './schema.ts';

/** Only what breaks is reported; other changes have no name here. */
export type ProtoChange =
  | 'PACKAGE_CHANGED'
  | 'MESSAGE_REMOVED'
  | 'FIELD_KIND_CHANGED'
  | 'FIELD_SCALAR_KIND_CHANGED'
  | 'FIELD_NAMED_TYPE_CHANGED'
  | 'FIELD_NUMERIC_LABEL_CHANGED'
  | 'REQUIRED_FIELD_ADDED'
  | 'REQUIRED_FIELD_REMOVED'
  | 'ONEOF_FIELD_REMOVED'
  | 'MULTIPLE_FIELDS_MOVED_TO_ONEOF'
  | 'FIELD_MOVED_TO_EXISTING_ONEOF';

export interface ProtoDifference {
  readonly type: ProtoChange;
  /** E.g. `#/Order/4`: messages by name, fields by number. */
  readonly path: string;
}

/** Pairs of messages that are compared; real schemas have some thousands at most. */
const MAX_PAIRS = 50_000;

/** What of `original`'s data `update` can't read; empty when all of it. @throws FloeError `invalid` when too large. */
export function protoDifferences(
  update: ProtoSchema,
  original: ProtoSchema,
): readonly ProtoDifference[] {
  return new Comparison(original, update).compare();
}

/** One side's schema and the scope that names are looked up from. */
interface Place {
  readonly schema: ProtoSchema;
  readonly scope: string;
}
type Pair<T> = readonly [original: T, update: T];

class Comparison {
  readonly #original: ProtoSchema;
  readonly #update: ProtoSchema;
  readonly #found: ProtoDifference[] = [];
  /** Messages compared or under comparison: recursion ends here. */
  readonly #seen = new Map<ProtoMessage, Set<ProtoMessage>>();
  #pairs = 0;

  constructor(original: ProtoSchema, update: ProtoSchema) {
    this.#original = original;
    this.#update = update;
  }

  compare(): readonly ProtoDifference[] {
    const [before, after] = [this.#original.file, this.#update.file];
    if (before.package !== after.package) this.#report('PACKAGE_CHANGED', []);
    this.#types(
      [before.types, after.types],
      [
        { schema: this.#original, scope: before.package },
        { schema: this.#update, scope: after.package },
      ],
      [],
    );
    return this.#found;
  }

  #report(type: ProtoChange, path: readonly string[]): void {
    this.#found.push({ type, path: `#/${path.join('/')}` });
  }

  #types(
    [before, after]: Pair<readonly ProtoType[]>,
    places: Pair<Place>,
    path: readonly string[],
  ): void {
    const updates = new Map(messagesOf(after).map((message) => [message.name, message]));
    for (const message of messagesOf(before)) {
      const update = updates.get(message.name);
      const here = [...path, message.name];
      if (update === undefined) this.#report('MESSAGE_REMOVED', here);
      else this.#messages([message, update], inside(places, message.name), here);
    }
  }

  /** `places` are inside the messages. */
  #messages(pair: Pair<ProtoMessage>, places: Pair<Place>, path: readonly string[]): void {
    const [original, update] = pair;
    const seen = this.#seen.get(original) ?? new Set();
    if (seen.has(update)) return;
    this.#seen.set(original, seen.add(update));
    this.#pairs += 1;
    if (this.#pairs > MAX_PAIRS)
      throw new FloeError('invalid', `comparing takes more than ${MAX_PAIRS} steps`);
    this.#oneofs(pair, path);
    this.#fields(pair, places, path);
    this.#types([innerTypes(original), innerTypes(update)], places, path);
  }

  /** Fields that could be set together must not exclude each other afterwards. */
  #oneofs([original, update]: Pair<ProtoMessage>, path: readonly string[]): void {
    const before = byNumber(original);
    for (const { name, fields } of update.oneofs) {
      const known = fields.flatMap(({ number }) => before.get(number) ?? []);
      const groups = new Set(known.map(({ field, oneof }) => oneof ?? field.number));
      if (groups.size < 2) continue;
      const loose = known.filter(({ oneof }) => oneof === undefined).length;
      const change = loose > 1 ? 'MULTIPLE_FIELDS_MOVED_TO_ONEOF' : 'FIELD_MOVED_TO_EXISTING_ONEOF';
      this.#report(change, [...path, name]);
    }
  }

  #fields(pair: Pair<ProtoMessage>, places: Pair<Place>, path: readonly string[]): void {
    const [before, after] = [byNumber(pair[0]), byNumber(pair[1])];
    for (const number of [...new Set([...before.keys(), ...after.keys()])].sort((a, b) => a - b)) {
      const [old, now] = [before.get(number), after.get(number)];
      const oneof = now === undefined ? old?.oneof : now.oneof;
      const here = [...path, ...(oneof === undefined ? [] : [oneof]), String(number)];
      if (old === undefined) {
        if (isRequired(now!.field)) this.#report('REQUIRED_FIELD_ADDED', here);
      } else if (now === undefined) {
        if (isRequired(old.field)) this.#report('REQUIRED_FIELD_REMOVED', here);
        else if (old.oneof !== undefined) this.#report('ONEOF_FIELD_REMOVED', here);
      } else this.#field([old.field, now.field], places, here);
    }
  }

  #field([original, update]: Pair<ProtoField>, places: Pair<Place>, path: readonly string[]): void {
    const maps = [
      mapTypes(places[0].schema, original, places[0].scope),
      mapTypes(places[1].schema, update, places[1].scope),
    ] as const;
    if (maps[0] !== undefined && maps[1] !== undefined) {
      this.#valueTypes([maps[0].key, maps[1].key], places, path);
      this.#valueTypes([maps[0].value, maps[1].value], places, path);
    } else if (maps[0] !== undefined || maps[1] !== undefined)
      this.#report('FIELD_KIND_CHANGED', path);
    else if (this.#valueTypes([original.type, update.type], places, path) === 'number')
      if (cardinality(original) !== cardinality(update))
        this.#report('FIELD_NUMERIC_LABEL_CHANGED', path);
  }

  /** Compares types; says which kind both are, if they are scalars of one kind. */
  #valueTypes(
    types: Pair<string>,
    places: Pair<Place>,
    path: readonly string[],
  ): 'number' | 'text' | undefined {
    const kinds = [kindOf(types[0], places[0]), kindOf(types[1], places[1])] as const;
    const messages = kinds.filter((kind) => kind === 'message').length;
    if (messages === 1) this.#report('FIELD_KIND_CHANGED', path);
    else if (messages === 2) this.#messageTypes(types, places, path);
    else if (kinds[0] !== kinds[1]) this.#report('FIELD_SCALAR_KIND_CHANGED', path);
    else return kinds[0] === 'text' ? 'text' : 'number';
    return undefined;
  }

  /** Types of other files are compared where they are used; those of the file itself are anyhow. */
  #messageTypes(types: Pair<string>, places: Pair<Place>, path: readonly string[]): void {
    const [before, after] = [
      findType(places[0].schema, types[0], places[0].scope),
      findType(places[1].schema, types[1], places[1].scope),
    ];
    if (before === undefined || after === undefined) {
      if (types[0] !== types[1]) this.#report('FIELD_NAMED_TYPE_CHANGED', path);
      return;
    }
    const local = (one: typeof before) => withoutPackage(one.fullName, one.file.package);
    if (local(before) !== local(after)) {
      this.#report('FIELD_NAMED_TYPE_CHANGED', path);
      return;
    }
    const own = before.file === this.#original.file && after.file === this.#update.file;
    if (own || before.type.kind === 'enum' || after.type.kind === 'enum') return;
    const inner = [
      { schema: places[0].schema, scope: before.fullName },
      { schema: places[1].schema, scope: after.fullName },
    ] as const;
    const count = this.#found.length;
    this.#messages([before.type, after.type], inner, path);
    if (this.#found.length > count) this.#report('FIELD_NAMED_TYPE_CHANGED', path);
  }
}

const messagesOf = (types: readonly ProtoType[]) =>
  types.filter((type) => type.kind === 'message').filter((type) => !isMapEntry(type));

const byNumber = (message: ProtoMessage) =>
  new Map(allFields(message).map((entry) => [entry.field.number, entry]));

const inside = ([before, after]: Pair<Place>, name: string): Pair<Place> => [
  { ...before, scope: join(before.scope, name) },
  { ...after, scope: join(after.scope, name) },
];

function isRequired({ label, options }: ProtoField): boolean {
  return (
    label === 'required' || optionText(options, 'features.field_presence') === 'LEGACY_REQUIRED'
  );
}

function cardinality(field: ProtoField): 'one' | 'required' | 'many' {
  if (field.label === 'repeated') return 'many';
  return isRequired(field) ? 'required' : 'one';
}

type Kind = 'number' | 'signed' | 'fixed32' | 'fixed64' | 'float' | 'double' | 'text' | 'message';

/** Scalars of one kind read each other's bytes (protobuf.dev, "Updating a message type"). */
const KINDS: Readonly<Record<string, Kind>> = {
  int32: 'number',
  int64: 'number',
  uint32: 'number',
  uint64: 'number',
  bool: 'number',
  sint32: 'signed',
  sint64: 'signed',
  string: 'text',
  bytes: 'text',
  fixed32: 'fixed32',
  sfixed32: 'fixed32',
  fixed64: 'fixed64',
  sfixed64: 'fixed64',
  float: 'float',
  double: 'double',
};

function kindOf(type: string, { schema, scope }: Place): Kind {
  if (isScalar(type)) return KINDS[type]!;
  const found: ProtoMessage | ProtoEnum | undefined = findType(schema, type, scope)?.type;
  return found?.kind === 'enum' ? 'number' : 'message';
}

function withoutPackage(fullName: string, space: string): string {
  return space !== '' && fullName.startsWith(`${space}.`)
    ? fullName.slice(space.length + 1)
    : fullName;
}

/** The registry's sentence for a difference; `reader` and `writer` are `new` and `old`, or the other way. */
export function protoSentence(
  { type, path }: ProtoDifference,
  reader: string,
  writer: string,
): string {
  const [r, w] = [`the ${reader} schema`, `the ${writer} schema`];
  switch (type) {
    case 'PACKAGE_CHANGED':
      return `The package at '${path}' in ${r} does not match the package in ${w}`;
    case 'MESSAGE_REMOVED':
      return `The ${reader} schema is missing a MESSAGE type at path '${path}' in ${w}`;
    case 'FIELD_KIND_CHANGED':
      return `The type of a field at path '${path}' in ${r} does not match ${w}`;
    case 'FIELD_SCALAR_KIND_CHANGED':
      return `The kind of a SCALAR field at path '${path}' in ${r} does not match its kind in ${w}`;
    case 'FIELD_NAMED_TYPE_CHANGED':
      return `The type of a MESSAGE field at path '${path}' in ${r} does not match its type in ${w}`;
    case 'FIELD_NUMERIC_LABEL_CHANGED':
      return `The label for a NUMERIC field at path '${path}' in ${r} does not match its label in ${w}`;
    case 'REQUIRED_FIELD_ADDED':
      return `A required field at path '${path}' in ${r} is missing in ${w}`;
    case 'REQUIRED_FIELD_REMOVED':
      return `The ${reader} schema is missing a required field at path: '${path}' in ${w}`;
    case 'ONEOF_FIELD_REMOVED':
      return `The ${reader} schema is missing a oneof field at path '${path}' in ${w}`;
    case 'MULTIPLE_FIELDS_MOVED_TO_ONEOF':
      return `Multiple fields in the oneof at path '${path}' in ${r} are outside a oneof in ${w}`;
    case 'FIELD_MOVED_TO_EXISTING_ONEOF':
      return `A field in the oneof at path '${path}' in ${r} is outside an existing oneof in ${w}`;
  }
}
