// .proto source → schema.ts. Takes proto2, proto3 and editions 2023 and 2024, as Confluent's parser does: what can't be
// parsed is refused here; what has no type, or two fields of one number, by resolve.ts. Comments are not kept.
import { syntaxError, type Token, tokens, unquote } from './lexer.ts';
import {
  type Label,
  MAX_ENUM_NUMBER,
  MAX_FIELD_NUMBER,
  type NumberRange,
  type OptionEntry,
  type OptionValue,
  type ProtoEnum,
  type ProtoExtend,
  type ProtoField,
  type ProtoFile,
  type ProtoImport,
  type ProtoMessage,
  type ProtoOption,
  type ProtoRpc,
  type ProtoService,
  type ProtoType,
  type Reserved,
} from './schema.ts';

const EDITIONS = ['2023', '2024'];
/** Messages in messages, and option values in option values; deeper text would overflow the stack. */
const MAX_DEPTH = 200;

/** @throws FloeError `invalid` with line and reason. */
export function parseProto(source: string): ProtoFile {
  return new Parser(source).file();
}

/** A record whose lists are still being filled. */
type Filling<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer E)[] ? E[] : T[K] };

class Parser {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;
  #syntax = 'proto2';

  constructor(source: string) {
    this.#source = source;
    this.#tokens = tokens(source);
  }

  file(): ProtoFile {
    const syntaxWritten = this.#syntaxLine();
    const file: Filling<ProtoFile> = {
      syntax: this.#syntax,
      syntaxWritten,
      package: '',
      imports: [],
      options: [],
      types: [],
      extends: [],
      services: [],
    };
    while (this.#peek().kind !== 'end') this.#fileStatement(file);
    return file;
  }

  #syntaxLine(): boolean {
    const word = this.#takeWord('syntax') ? 'syntax' : this.#takeWord('edition') ? 'edition' : '';
    if (word === '') return false;
    this.#expect('=');
    const value = this.#string();
    const known = word === 'syntax' ? ['proto2', 'proto3'] : EDITIONS;
    if (!known.includes(value))
      throw this.#error(`${word} "${value}" is not known: ${known.join(' or ')}`);
    this.#syntax = value;
    this.#expect(';');
    return true;
  }

  #fileStatement(file: Filling<ProtoFile>): void {
    if (this.#take(';')) return;
    if (this.#takeWord('import')) file.imports.push(this.#import());
    else if (this.#takeWord('package')) {
      if (file.package !== '') throw this.#error('a second package');
      file.package = this.#name();
      this.#expect(';');
    } else if (this.#takeWord('option')) file.options.push(this.#optionStatement());
    else if (this.#takeWord('extend')) file.extends.push(this.#extend());
    else if (this.#takeWord('service')) file.services.push(this.#service());
    else {
      const type = this.#type();
      if (type === undefined) throw this.#unexpected('message, enum, extend, service or option');
      file.types.push(type);
    }
  }

  #import(): ProtoImport {
    const kinds = ['public', 'weak', 'option'] as const;
    const kind = kinds.find((word) => this.#takeWord(word)) ?? 'plain';
    const path = this.#string();
    this.#expect(';');
    return { path, kind };
  }

  /** A message or enum, if one begins here. */
  #type(): ProtoType | undefined {
    const visibility = this.#visibility();
    if (this.#takeWord('message')) {
      const name = this.#identifier();
      return { ...this.#messageBody(), kind: 'message', name, visibility };
    }
    return this.#takeWord('enum') ? this.#enum(visibility) : undefined;
  }

  /** `export` and `local` before message or enum; elsewhere they are names. */
  #visibility(): ProtoMessage['visibility'] {
    const [word, next] = [this.#peek().text, this.#peek(1).text];
    if (word !== 'export' && word !== 'local') return undefined;
    if (next !== 'message' && next !== 'enum') return undefined;
    this.#at += 1;
    return word;
  }

  #messageBody(): Omit<ProtoMessage, 'kind' | 'name' | 'visibility'> {
    const body: Filling<Omit<ProtoMessage, 'kind' | 'name' | 'visibility'>> = {
      fields: [],
      oneofs: [],
      types: [],
      options: [],
      reserved: [],
      extensions: [],
      extends: [],
    };
    this.#block(() => this.#messageStatement(body));
    return body;
  }

  #messageStatement(body: Filling<Omit<ProtoMessage, 'kind' | 'name' | 'visibility'>>): void {
    if (this.#startsField()) body.fields.push(this.#field());
    else if (this.#takeWord('option')) body.options.push(this.#optionStatement());
    else if (this.#takeWord('reserved')) body.reserved.push(this.#reserved(MAX_FIELD_NUMBER));
    else if (this.#takeWord('extensions')) {
      const ranges = this.#ranges(MAX_FIELD_NUMBER);
      body.extensions.push({ ranges, options: this.#fieldOptions() });
      this.#expect(';');
    } else if (this.#takeWord('extend')) body.extends.push(this.#extend());
    else if (this.#takeWord('oneof')) body.oneofs.push(this.#oneof());
    else {
      const type = this.#type();
      if (type === undefined) throw this.#unexpected('a field or type');
      body.types.push(type);
    }
  }

  /** Keywords begin a statement only in its shape; a field may have a type or name like them. */
  #startsField(): boolean {
    const [first, second, third] = [this.#peek(), this.#peek(1), this.#peek(2)];
    if (first.text === '.') return true;
    if (first.kind !== 'word' || first.text === 'option') return false;
    if (second.text === '<' || (second.text === '.' && first.text !== 'extend')) return true;
    return second.kind === 'word' && (third.text === '=' || isLabel(first.text));
  }

  #oneof(): ProtoMessage['oneofs'][number] {
    const name = this.#identifier();
    const [fields, options]: [ProtoField[], ProtoOption[]] = [[], []];
    this.#block(() => {
      if (!this.#startsField() && this.#takeWord('option')) options.push(this.#optionStatement());
      else fields.push(this.#field());
    });
    return { name, fields, options };
  }

  #extend(): ProtoExtend {
    const type = this.#name(true);
    const fields: ProtoField[] = [];
    this.#block(() => fields.push(this.#field()));
    return { type, fields };
  }

  #field(): ProtoField {
    const { text: word } = this.#peek();
    const label = isLabel(word) && !this.#dotFollows() ? word : undefined;
    if (label !== undefined) this.#at += 1;
    if (label === 'required' && this.#syntax === 'proto3')
      throw this.#error('required fields are not allowed in proto3');
    if (this.#peek().text === 'group' && this.#peek(2).text === '=') return this.#group(label);
    const map = this.#map();
    const type = map === undefined ? this.#name(true) : '';
    const name = this.#identifier();
    this.#expect('=');
    const number = this.#fieldNumber();
    const options = this.#fieldOptions();
    this.#expect(';');
    return { label, type, map, name, number, options, group: undefined };
  }

  #map(): ProtoField['map'] {
    if (this.#peek().text !== 'map' || this.#peek(1).text !== '<') return undefined;
    this.#at += 2;
    const key = this.#identifier();
    this.#expect(',');
    const value = this.#name(true);
    this.#expect('>');
    return { key, value };
  }

  #group(label: Label | undefined): ProtoField {
    if (this.#syntax !== 'proto2') throw this.#error('groups are of proto2 only');
    this.#at += 1;
    const type = this.#identifier();
    this.#expect('=');
    const number = this.#fieldNumber();
    const options = this.#fieldOptions();
    const body = this.#messageBody();
    const group = { ...body, kind: 'message', name: type, visibility: undefined } as const;
    return { label, type, map: undefined, name: type.toLowerCase(), number, options, group };
  }

  #enum(visibility: ProtoEnum['visibility']): ProtoEnum {
    const name = this.#identifier();
    const lists: Filling<Pick<ProtoEnum, 'values' | 'options' | 'reserved'>> = {
      values: [],
      options: [],
      reserved: [],
    };
    this.#block(() => {
      const isValue = this.#peek(1).text === '=';
      if (!isValue && this.#takeWord('option')) lists.options.push(this.#optionStatement());
      else if (!isValue && this.#takeWord('reserved'))
        lists.reserved.push(this.#reserved(MAX_ENUM_NUMBER));
      else {
        const value = this.#identifier();
        this.#expect('=');
        const number = this.#integer();
        lists.values.push({ name: value, number, options: this.#fieldOptions() });
        this.#expect(';');
      }
    });
    return { kind: 'enum', name, visibility, ...lists };
  }

  #service(): ProtoService {
    const name = this.#identifier();
    const [rpcs, options]: [ProtoRpc[], ProtoOption[]] = [[], []];
    this.#block(() => {
      if (this.#takeWord('option')) options.push(this.#optionStatement());
      else if (this.#takeWord('rpc')) rpcs.push(this.#rpc());
      else throw this.#unexpected('rpc or option');
    });
    return { name, rpcs, options };
  }

  #rpc(): ProtoRpc {
    const name = this.#identifier();
    const request = this.#rpcType();
    if (!this.#takeWord('returns')) throw this.#unexpected('returns');
    const response = this.#rpcType();
    const options: ProtoOption[] = [];
    if (this.#peek().text === '{')
      this.#block(() => {
        if (!this.#takeWord('option')) throw this.#unexpected('option');
        options.push(this.#optionStatement());
      });
    else this.#expect(';');
    return { name, request, response, options };
  }

  #rpcType(): ProtoRpc['request'] {
    this.#expect('(');
    // `stream .a.B` streams, `stream.B` is a type.
    const ofName = this.#peek(1).text === ')' || this.#dotFollows();
    const stream = !ofName && this.#takeWord('stream');
    const type = this.#name(true);
    this.#expect(')');
    return { type, stream };
  }

  #reserved(max: number): Reserved {
    const { kind, text } = this.#peek();
    const named = kind === 'string' || (kind === 'word' && text !== 'max');
    if (!named) {
      const ranges = this.#ranges(max);
      this.#expect(';');
      return ranges;
    }
    const names: string[] = [];
    do names.push(kind === 'string' ? this.#string() : this.#identifier());
    while (this.#take(','));
    this.#expect(';');
    return names;
  }

  #ranges(max: number): NumberRange[] {
    const ranges: NumberRange[] = [];
    do {
      const start = this.#integer();
      const end = this.#takeWord('to') ? (this.#takeWord('max') ? max : this.#integer()) : start;
      if (end < start) throw this.#error(`range ${start} to ${end} is empty`);
      ranges.push({ start, end });
    } while (this.#take(','));
    return ranges;
  }

  #optionStatement(): ProtoOption {
    const option = this.#option();
    this.#expect(';');
    return option;
  }

  #fieldOptions(): readonly ProtoOption[] {
    if (!this.#take('[')) return [];
    const options: ProtoOption[] = [];
    do options.push(this.#option());
    while (this.#take(','));
    this.#expect(']');
    return options;
  }

  #option(): ProtoOption {
    let name = '';
    do {
      if (name !== '') name += '.';
      if (this.#take('(')) {
        name += `(${this.#name(true)})`;
        this.#expect(')');
      } else name += this.#identifier();
    } while (this.#take('.'));
    this.#expect('=');
    return { name, value: this.#value() };
  }

  #value(): OptionValue {
    const { kind } = this.#peek();
    if (kind === 'string') return { kind: 'quoted', text: this.#rawString() };
    if (this.#take('{')) return this.#message('}');
    if (this.#take('<')) return this.#message('>');
    if (this.#take('[')) return this.#list();
    const sign = this.#take('-') ? '-' : this.#take('+') ? '' : '';
    const word = this.#next();
    if (word.kind !== 'word' && word.kind !== 'number') throw this.#unexpected('a value', word);
    return { kind: 'bare', text: sign + word.text };
  }

  /** The text format of messages: separators are optional, so is the colon before a message. */
  #message(end: string): OptionValue {
    const fields: OptionEntry[] = [];
    this.#nest(() => {
      while (!this.#take(end)) {
        const name = this.#entryName();
        const next = this.#peek().text;
        if (!this.#take(':') && next !== '{' && next !== '<') throw this.#unexpected('":"');
        fields.push([name, this.#value()]);
        if (!this.#take(',')) this.#take(';');
      }
    });
    return { kind: 'message', fields };
  }

  /** `name`, `[an.extension]` or `[host/an.Any]`. */
  #entryName(): string {
    if (!this.#take('[')) return this.#identifier();
    let name = this.#name();
    if (this.#take('/')) name += `/${this.#name()}`;
    this.#expect(']');
    return `[${name}]`;
  }

  #list(): OptionValue {
    const items: OptionValue[] = [];
    this.#nest(() => {
      while (!this.#take(']')) {
        items.push(this.#value());
        if (this.#peek().text !== ']') this.#expect(',');
      }
    });
    return { kind: 'list', items };
  }

  /** Statements between braces; empty ones are skipped. */
  #block(statement: () => void): void {
    this.#expect('{');
    this.#nest(() => {
      while (!this.#take('}')) {
        if (this.#take(';')) continue;
        if (this.#peek().kind === 'end') throw this.#unexpected('"}"');
        statement();
      }
    });
  }

  #nest(work: () => void): void {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw this.#error(`nested deeper than ${MAX_DEPTH} levels`);
    work();
    this.#depth -= 1;
  }

  #fieldNumber(): number {
    const number = this.#integer();
    if (number < 1 || number > MAX_FIELD_NUMBER || (number >= 19_000 && number < 20_000))
      throw this.#error(`${number} is no field number: 1 to 2^29-1, without 19000 to 19999`);
    return number;
  }

  #integer(): number {
    const minus = this.#take('-');
    const token = this.#next();
    const digits = /^0[0-7]+$/.test(token.text) ? `0o${token.text.slice(1)}` : token.text;
    const value = token.kind === 'number' ? Number(digits) : Number.NaN;
    if (!Number.isInteger(value) || value > MAX_ENUM_NUMBER + 1)
      throw this.#unexpected('a whole number', token);
    return minus ? -value : value;
  }

  /** A name with dots; `leading` allows one in front. */
  #name(leading = false): string {
    let name = leading && this.#take('.') ? '.' : '';
    name += this.#identifier();
    while (this.#take('.')) name += `.${this.#identifier()}`;
    return name;
  }

  #identifier(): string {
    const token = this.#next();
    if (token.kind !== 'word') throw this.#unexpected('a name', token);
    return token.text;
  }

  #string(): string {
    return unquote(this.#rawString()).toString('utf8');
  }

  /** Neighbouring strings are one. */
  #rawString(): string {
    let text = '';
    if (this.#peek().kind !== 'string') throw this.#unexpected('a string');
    while (this.#peek().kind === 'string') text += this.#next().text;
    return text;
  }

  #peek(ahead = 0): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)]!;
  }

  /** `repeated.B` is a name, `repeated .B` a label and a name. */
  #dotFollows(): boolean {
    const [token, next] = [this.#peek(), this.#peek(1)];
    return next.text === '.' && next.offset === token.offset + token.text.length;
  }

  #next(): Token {
    const token = this.#peek();
    if (token.kind !== 'end') this.#at += 1;
    return token;
  }

  #take(symbol: string): boolean {
    const { kind, text } = this.#peek();
    if (kind !== 'symbol' || text !== symbol) return false;
    this.#at += 1;
    return true;
  }

  #takeWord(word: string): boolean {
    const { kind, text } = this.#peek();
    if (kind !== 'word' || text !== word) return false;
    this.#at += 1;
    return true;
  }

  #expect(symbol: string): void {
    if (!this.#take(symbol)) throw this.#unexpected(`"${symbol}"`);
  }

  #unexpected(wanted: string, token = this.#peek()) {
    const found = token.kind === 'end' ? token.text : `"${token.text}"`;
    return syntaxError(this.#source, token.offset, `expected ${wanted}, found ${found}`);
  }

  #error(message: string) {
    return syntaxError(this.#source, this.#peek().offset, message);
  }
}

function isLabel(text: string): text is Label {
  return text === 'optional' || text === 'required' || text === 'repeated';
}
