// Protobuf source → tokens, comments and white space dropped. The language of protobuf.dev/reference/protobuf/*-spec.
import { FloeError } from '../../base/error.ts';

/** `end` is the end of the source. */
export interface Token {
  readonly kind: 'word' | 'number' | 'string' | 'symbol' | 'end';
  /** As written; of strings what is between the quotes, as it stands between double quotes. */
  readonly text: string;
  readonly offset: number;
}

const TOKEN =
  /\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/|([A-Za-z_]\w*)|(0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|([{}[\]()<>=;,.:/+-])/gy;

/** @throws FloeError `invalid` with the line of what is no token. */
export function tokens(source: string): readonly Token[] {
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < source.length) {
    const offset = TOKEN.lastIndex;
    const match = TOKEN.exec(source);
    if (match === null)
      throw syntaxError(source, offset, `unexpected ${JSON.stringify(source[offset])}`);
    const token = toToken(match, offset);
    if (token !== undefined) found.push(token);
  }
  found.push({ kind: 'end', text: 'the end', offset: source.length });
  return found;
}

function toToken(match: RegExpExecArray, offset: number): Token | undefined {
  const [, word, number, double, single, symbol] = match;
  if (word !== undefined) return { kind: 'word', text: word, offset };
  if (number !== undefined) return { kind: 'number', text: number, offset };
  if (double !== undefined) return { kind: 'string', text: double, offset };
  if (single !== undefined) return { kind: 'string', text: requote(single), offset };
  return symbol === undefined ? undefined : { kind: 'symbol', text: symbol, offset };
}

/** What stood between single quotes, for double ones. */
function requote(text: string): string {
  return text.replaceAll(/\\.|"/gs, (part) => (part === "\\'" ? "'" : part === '"' ? '\\"' : part));
}

/** An error at a place of the source. */
export function syntaxError(source: string, offset: number, message: string): FloeError {
  const line = source.slice(0, offset).split('\n').length;
  return new FloeError('invalid', `line ${line}: ${message}`);
}

const ESCAPES: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
};

/** The bytes that a quoted text stands for. */
export function unquote(text: string): Buffer {
  const parts: Buffer[] = [];
  const pattern =
    /\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|[^\\]+/gsu;
  for (const [whole, hex, octal, short, long, letter] of text.matchAll(pattern)) {
    const byte = hex !== undefined ? Number.parseInt(hex, 16) : Number.parseInt(octal ?? '', 8);
    const point = short ?? long;
    if (!Number.isNaN(byte)) parts.push(Buffer.from([byte & 0xff]));
    else if (point !== undefined) parts.push(Buffer.from(codePoint(Number.parseInt(point, 16))));
    else if (letter === undefined) parts.push(Buffer.from(whole));
    else {
      const control = ESCAPES[letter];
      parts.push(control === undefined ? Buffer.from(letter) : Buffer.from([control]));
    }
  }
  return Buffer.concat(parts);
}

const codePoint = (point: number) => String.fromCodePoint(Math.min(point, 0x10ffff));

/** Bytes → what stands between double quotes for them; text that is UTF-8 stays readable. */
export function quote(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('utf8');
  if (Buffer.from(text).equals(Buffer.from(bytes)))
    return text.replaceAll(/["\\\n\r\t]/g, (one) => QUOTED[one] ?? one);
  return [...bytes].map(octalOrPlain).join('');
}

const QUOTED: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

function octalOrPlain(byte: number): string {
  const plain = byte >= 32 && byte < 127 && byte !== 34 && byte !== 92;
  return plain ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, '0')}`;
}
