// schema.ts → .proto text in the canonical form of Confluent's registry: one spelling whatever white space and comments
// the source had. `normalize` also drops order where it means nothing and writes every name in full. Messages keep
// their order: message indexes in records count by it.

import { normalOptions } from './options.ts';
import { findType, join, mapTypes, type ProtoSchema } from './resolve.ts';
import {
  isMapEntry,
  isScalar,
  MAX_ENUM_NUMBER,
  MAX_FIELD_NUMBER,
  type NumberRange,
  type OptionValue,
  type ProtoEnum,
  type ProtoExtend,
  type ProtoField,
  type ProtoMessage,
  type ProtoOption,
  type ProtoRpc,
  type ProtoService,
  type ProtoType,
} from './schema.ts';

export interface TextOptions {
  readonly normalize?: boolean;
  /** Leaves out extensions, and options that are extensions. */
  readonly ignoreExtensions?: boolean;
}

/** The canonical text. */
export function protoText(schema: ProtoSchema, options: TextOptions = {}): string {
  return new Writer(schema, options).file();
}

/** Lines without line ends. */
type Lines = readonly string[];

const indent = (lines: Lines): Lines => lines.map((line) => (line === '' ? '' : `  ${line}`));
/** Sections one empty line apart, the empty ones left out. */
const sections = (...parts: readonly Lines[]): Lines =>
  parts.filter((part) => part.length > 0).flatMap((part, at) => (at === 0 ? part : ['', ...part]));
const braces = (head: string, body: Lines): Lines =>
  body.length === 0 ? [`${head} {}`] : [`${head} {`, ...indent(body), '}'];

class Writer {
  readonly #schema: ProtoSchema;
  readonly #normalize: boolean;
  readonly #ignoreExtensions: boolean;

  constructor(schema: ProtoSchema, { normalize, ignoreExtensions }: TextOptions) {
    this.#schema = schema;
    this.#normalize = normalize ?? false;
    this.#ignoreExtensions = ignoreExtensions ?? false;
  }

  file(): string {
    const { file } = this.#schema;
    const head = [...this.#syntax(), ...(file.package === '' ? [] : [`package ${file.package};`])];
    const lines = sections(
      head,
      this.#imports(),
      this.#optionLines(file.options, file.package),
      this.#types(file.types, file.package),
      this.#extends(file.extends, file.package),
      file.services.flatMap((service) => this.#service(service, file.package)),
    );
    return lines.map((line) => `${line}\n`).join('');
  }

  #syntax(): Lines {
    const { syntax, syntaxWritten } = this.#schema.file;
    if (/^\d/.test(syntax)) return [`edition = "${syntax}";`];
    return syntaxWritten && !(this.#normalize && syntax === 'proto2')
      ? [`syntax = "${syntax}";`]
      : [];
  }

  #imports(): Lines {
    const of = (kind: string) => {
      const paths = this.#schema.file.imports
        .filter((one) => one.kind === kind)
        .map((one) => one.path);
      return this.#normalize ? [...new Set(paths)].sort() : paths;
    };
    return [
      ...of('plain').map((path) => `import "${path}";`),
      ...['public', 'weak', 'option'].flatMap((kind) =>
        of(kind).map((path) => `import ${kind} "${path}";`),
      ),
    ];
  }

  /** Messages before enums. */
  #types(types: readonly ProtoType[], scope: string): Lines {
    const shown = this.#normalize ? types.filter((type) => !isMapEntry(type)) : types;
    return [
      ...shown.flatMap((type) => (type.kind === 'message' ? this.#message(type, scope) : [])),
      ...shown.flatMap((type) => (type.kind === 'enum' ? this.#enum(type, scope) : [])),
    ];
  }

  #message(message: ProtoMessage, outer: string): Lines {
    const head = `${message.visibility === undefined ? '' : `${message.visibility} `}message ${message.name}`;
    return braces(head, this.#messageBody(message, join(outer, message.name)));
  }

  #messageBody(message: ProtoMessage, scope: string): Lines {
    const fields = this.#byNumber(message.fields);
    const field = (one: ProtoField) => this.#field(one, scope);
    return sections(
      this.#reserved(message.reserved, MAX_FIELD_NUMBER),
      this.#optionLines(message.options, scope),
      fields.filter(({ group }) => group === undefined).flatMap(field),
      this.#oneofs(message, scope),
      fields.filter(({ group }) => group !== undefined).flatMap(field),
      this.#extensions(message, scope),
      this.#extends(message.extends, scope),
      this.#types(message.types, scope),
    );
  }

  #byNumber<T extends { readonly number: number }>(items: readonly T[]): readonly T[] {
    return this.#normalize ? items.toSorted((a, b) => a.number - b.number) : items;
  }

  #oneofs({ oneofs }: ProtoMessage, scope: string): Lines {
    const sorted = oneofs.map((oneof) => ({ ...oneof, fields: this.#byNumber(oneof.fields) }));
    const shown = this.#normalize
      ? sorted
          .filter(({ fields }) => fields.length > 0)
          .sort((a, b) => a.fields[0]!.number - b.fields[0]!.number)
      : sorted;
    return shown.flatMap(({ name, fields, options }) =>
      braces(
        `oneof ${name}`,
        sections(
          this.#optionLines(options, scope),
          fields.flatMap((field) => this.#field(field, scope)),
        ),
      ),
    );
  }

  #field(field: ProtoField, scope: string): Lines {
    const map = this.#normalize ? mapTypes(this.#schema, field, scope) : field.map;
    const label = map !== undefined || field.label === undefined ? '' : `${field.label} `;
    const options = this.#fieldOptions(field.options, scope);
    if (field.group !== undefined) {
      const body = this.#messageBody(field.group, join(scope, field.group.name));
      const [first, ...rest] = withTail(`${label}group ${field.type} = ${field.number}`, options);
      const tail = rest.at(-1) ?? first!;
      const block = braces(tail, body);
      return rest.length === 0 ? block : [first!, ...rest.slice(0, -1), ...block];
    }
    const type =
      map === undefined
        ? this.#name(field.type, scope)
        : `map<${map.key}, ${this.#name(map.value, scope)}>`;
    return closed(withTail(`${label}${type} ${field.name} = ${field.number}`, options));
  }

  /** A type's name: as written, or in full. */
  #name(type: string, scope: string): string {
    if (!this.#normalize || isScalar(type)) return type;
    const found = findType(this.#schema, type, scope);
    return found === undefined ? type : `.${found.fullName}`;
  }

  #enum(type: ProtoEnum, outer: string): Lines {
    // The first value is the default, so it stays the first.
    const [first, ...rest] = type.values;
    const values = this.#normalize
      ? [first!, ...rest.sort((a, b) => a.number - b.number || (a.name < b.name ? -1 : 1))]
      : type.values;
    const head = `${type.visibility === undefined ? '' : `${type.visibility} `}enum ${type.name}`;
    return braces(head, [
      ...this.#reserved(type.reserved, MAX_ENUM_NUMBER),
      ...this.#optionLines(type.options, outer),
      ...values.flatMap(({ name, number, options }) =>
        closed(withTail(`${name} = ${number}`, this.#fieldOptions(options, outer))),
      ),
    ]);
  }

  #reserved(statements: ProtoMessage['reserved'], max: number): Lines {
    const lists = this.#normalize
      ? statements
          .flat()
          .sort(byRange)
          .map((one) => [one])
      : statements;
    return lists.map((items) => {
      const words = items.map((one) =>
        typeof one === 'string' ? this.#reservedName(one) : this.#range(one, max),
      );
      return `reserved ${words.join(', ')};`;
    });
  }

  /** Editions write reserved names bare. */
  #reservedName(name: string): string {
    return /^\d/.test(this.#schema.file.syntax) ? name : `"${name}"`;
  }

  #range({ start, end }: NumberRange, max: number): string {
    if (start === end) return String(start);
    return `${start} to ${end >= max ? 'max' : end}`;
  }

  #extensions({ extensions }: ProtoMessage, scope: string): Lines {
    if (this.#ignoreExtensions) return [];
    const lists = this.#normalize
      ? extensions
          .flatMap(({ ranges, options }) => ranges.map((range) => ({ ranges: [range], options })))
          .sort((a, b) => a.ranges[0]!.start - b.ranges[0]!.start)
      : extensions;
    return lists.flatMap(({ ranges, options }) => {
      const text = ranges.map((range) => this.#range(range, MAX_FIELD_NUMBER)).join(', ');
      return closed(withTail(`extensions ${text}`, this.#fieldOptions(options, scope)));
    });
  }

  /** Normalised: one block for each extended message. */
  #extends(list: readonly ProtoExtend[], scope: string): Lines {
    if (this.#ignoreExtensions) return [];
    const byType = new Map<string, ProtoField[]>();
    for (const [at, { type, fields }] of list.entries()) {
      const key = this.#normalize ? this.#name(type, scope) : `${at} ${type}`;
      byType.set(key, [...(byType.get(key) ?? []), ...fields]);
    }
    return [...byType].flatMap(([key, fields]) =>
      braces(
        `extend ${this.#normalize ? key : key.slice(key.indexOf(' ') + 1)}`,
        this.#byNumber(fields).flatMap((field) => this.#field(field, scope)),
      ),
    );
  }

  #service({ name, rpcs, options }: ProtoService, scope: string): Lines {
    return braces(
      `service ${name}`,
      sections(
        this.#optionLines(options, scope),
        rpcs.flatMap((rpc) => this.#rpc(rpc, scope)),
      ),
    );
  }

  #rpc({ name, request, response, options }: ProtoRpc, scope: string): Lines {
    const type = (one: ProtoRpc['request']) =>
      `${one.stream ? 'stream ' : ''}${this.#name(one.type, scope)}`;
    const head = `rpc ${name} (${type(request)}) returns (${type(response)})`;
    const lines = this.#optionLines(options, scope);
    return lines.length === 0 ? [`${head};`] : closed(braces(head, lines));
  }

  #shown(options: readonly ProtoOption[], scope: string): readonly ProtoOption[] {
    const kept = this.#ignoreExtensions
      ? options.filter(({ name }) => !name.startsWith('(') || name.startsWith('(confluent.'))
      : options;
    return this.#normalize ? normalOptions(this.#schema, kept, scope) : kept;
  }

  #optionLines(options: readonly ProtoOption[], scope: string): Lines {
    return this.#shown(options, scope).flatMap(({ name, value }) =>
      closed(withTail(`option ${name} = `, valueLines(value))),
    );
  }

  /** `[a = 1]`, or one option a line. */
  #fieldOptions(options: readonly ProtoOption[], scope: string): Lines {
    const items = this.#shown(options, scope).map(({ name, value }) =>
      withTail(`${name} = `, valueLines(value)),
    );
    if (items.length === 0) return [];
    if (items.length === 1)
      return bracketed(items[0]!).map((line, at) => (at === 0 ? ` ${line}` : line));
    return [' [', ...indent(commas(items)), ']'];
  }
}

function byRange(a: NumberRange | string, b: NumberRange | string): number {
  const start = (one: NumberRange | string) =>
    typeof one === 'string' ? MAX_ENUM_NUMBER : one.start;
  return start(a) - start(b) || (String(a) < String(b) ? -1 : 1);
}

/** Appends lines to a line: the first of them on it. */
function withTail(line: string, tail: Lines): Lines {
  const [first = '', ...rest] = tail;
  return [line + first, ...rest];
}

const closed = (lines: Lines): Lines => lines.with(-1, `${lines.at(-1)!};`);
const bracketed = (lines: Lines): Lines => {
  const opened = lines.with(0, `[${lines[0]!}`);
  return opened.with(-1, `${opened.at(-1)!}]`);
};
/** Joins items by commas, each item keeping its lines. */
const commas = (items: readonly Lines[]): Lines =>
  items.flatMap((lines, at) =>
    at === items.length - 1 ? lines : lines.with(-1, `${lines.at(-1)!},`),
  );

function valueLines(value: OptionValue): Lines {
  switch (value.kind) {
    case 'bare':
      return [value.text];
    case 'quoted':
      return [`"${value.text}"`];
    case 'list':
      return value.items.length === 0
        ? ['[]']
        : ['[', ...indent(commas(value.items.map(valueLines))), ']'];
    case 'message': {
      const entries = value.fields.map(([name, one]) => withTail(`${name}: `, valueLines(one)));
      return entries.length === 0 ? ['{}'] : ['{', ...indent(commas(entries)), '}'];
    }
  }
}
