// Reads JSON from UTF-8 bytes: tokens, numbers, strings, and skipping of whole values, without making JavaScript
// values. Strict by RFC 8259; a record that isn't JSON throws the preallocated RowFailure.
// Lone surrogates in escapes become U+FFFD, as UTF-8 has no form for them.
// Not for: deciding where values go (decoder.ts) or what types they are (infer.ts).
import { RowFailure } from '../arrow/row-failure.ts';
import { isUtf8Range } from '../arrow/utf8.ts';

export const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;

/** Levels of arrays and objects in a record, at most; more is refused rather than overflowing the stack. */
export const MAX_NESTING = 512;

/** What a number is, decided by how it is written: `5.0` is a double. */
export type NumberKind = 'long' | 'double' | 'number';

const TWO_32 = 4_294_967_296;
const BILLION = 1_000_000_000;
/** Powers of ten that a double holds exactly. */
const POWERS = Array.from({ length: 23 }, (_, i) => 10 ** i);

export class JsonCursor {
  bytes: Uint8Array = new Uint8Array(0);
  /** Over `bytes`, for whoever takes four at a time. */
  view = new DataView(this.bytes.buffer);
  pos = 0;
  end = 0;

  /** After `readNumber` of kind long: its halves. */
  low = 0;
  high = 0;
  /** After `readNumber`: its value as a double (rounded for large longs, infinite for some of kind number). */
  double = 0;

  /** After `skipValue`: at how many levels below it the shallowest content was; infinite without any. */
  contentDepth = Infinity;

  /** After `readString`: where its UTF-8 is; in `bytes`, or in a scratch buffer when it had escapes. */
  text: Uint8Array = this.bytes;
  textStart = 0;
  textEnd = 0;
  #scratch = new Uint8Array(256);

  reset(bytes: Uint8Array, start: number, end: number): void {
    if (this.bytes !== bytes) {
      this.bytes = bytes;
      this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    this.pos = start;
    this.end = end;
    // A byte order mark says nothing in UTF-8, and some producers write it.
    if (bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf) {
      if (start + 3 <= end) this.pos += 3;
    }
  }

  fail(what: string): never {
    return RowFailure.raise(`invalid JSON: ${what}`);
  }

  /** Moves past white space and returns the byte there without taking it; −1 at the end. */
  peek(): number {
    const { bytes, end } = this;
    let pos = this.pos;
    while (pos < end) {
      const byte = bytes[pos]!;
      if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) {
        this.pos = pos;
        return byte;
      }
      pos++;
    }
    this.pos = pos;
    return -1;
  }

  /** Takes `byte`, which must come next. */
  expect(byte: number): void {
    if (this.peek() !== byte) this.fail(`"${String.fromCharCode(byte)}" expected`);
    this.pos++;
  }

  /** After an element: true when a comma followed (taken), false when `close` did (taken). */
  more(close: number): boolean {
    const byte = this.peek();
    if (byte === COMMA) {
      this.pos++;
      return true;
    }
    if (byte !== close) this.fail(`"," or "${String.fromCharCode(close)}" expected`);
    this.pos++;
    return false;
  }

  /** Takes true, false or null, whose first byte is next. */
  literal(): boolean | null {
    const { bytes, pos } = this;
    const first = bytes[pos];
    const word = first === 0x74 ? TRUE : first === 0x66 ? FALSE : NULL;
    if (pos + word.length > this.end) this.fail('a value expected');
    for (let i = 0; i < word.length; i++) {
      if (bytes[pos + i] !== word[i]) this.fail('a value expected');
    }
    this.pos = pos + word.length;
    return word === NULL ? null : word === TRUE;
  }

  /** Takes a number. Sets `double`, and `low` and `high` for kind long. */
  readNumber(): NumberKind {
    const { bytes, end } = this;
    const start = this.pos;
    let pos = start;
    const negative = bytes[pos] === MINUS;
    if (negative) pos++;
    const firstDigit = pos;
    let value = 0;
    while (pos < end) {
      const digit = bytes[pos]! - ZERO;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
      pos++;
    }
    const digits = pos - firstDigit;
    if (digits === 0) this.fail('a value expected');
    if (digits > 1 && bytes[firstDigit] === ZERO) this.fail('a number with a leading zero');
    const next = pos < end ? bytes[pos]! : 0;
    if (next === DOT || (next | 0x20) === 0x65) {
      return this.#readFraction(pos, { start, negative, value, digits });
    }
    this.pos = pos;
    if (digits > 15) return this.#readLongInteger(start, firstDigit);
    const signed = negative ? -value : value;
    this.double = signed;
    this.low = signed | 0;
    this.high = Math.floor(signed / TWO_32);
    return 'long';
  }

  #textFrom(start: number): string {
    return Buffer.from(this.bytes.buffer, this.bytes.byteOffset + start, this.pos - start).toString(
      'latin1',
    );
  }

  /**
   * More than 15 digits: as their first ones times 10^9 plus the last nine, in 32-bit halves. Times in microseconds and
   * nanoseconds are such numbers, so they make neither text nor BigInt.
   */
  #readLongInteger(start: number, firstDigit: number): NumberKind {
    const { bytes, pos } = this;
    if (pos - firstDigit > 19) {
      this.double = Number(this.#textFrom(start));
      return 'number';
    }
    let first = 0;
    for (let i = firstDigit; i < pos - 9; i++) first = first * 10 + bytes[i]! - ZERO;
    let last = 0;
    for (let i = pos - 9; i < pos; i++) last = last * 10 + bytes[i]! - ZERO;
    const top = Math.floor(first / 65_536) * BILLION;
    const rest = (top % 65_536) * 65_536 + (first % 65_536) * BILLION + last;
    const low = rest % TWO_32;
    const high = Math.floor(top / 65_536) + Math.floor(rest / TWO_32);
    const negative = firstDigit > start;
    const size = high * TWO_32 + low;
    this.double = negative ? -size : size;
    if (high > 0x7fffffff && !(negative && high === 0x80000000 && low === 0)) return 'number';
    this.low = negative ? -low | 0 : low | 0;
    this.high = negative ? -high - (low === 0 ? 0 : 1) : high;
    return 'long';
  }

  #readFraction(
    at: number,
    integer: { start: number; negative: boolean; value: number; digits: number },
  ): NumberKind {
    const { bytes, end } = this;
    let pos = at;
    let { value, digits } = integer;
    let scale = 0;
    if (bytes[pos] === DOT) {
      const first = ++pos;
      while (pos < end && bytes[pos]! >= ZERO && bytes[pos]! <= NINE) {
        value = value * 10 + (bytes[pos]! - ZERO);
        pos++;
      }
      scale = pos - first;
      if (scale === 0) this.fail('a digit after the decimal point expected');
      digits += scale;
    }
    const hasExponent = pos < end && (bytes[pos]! | 0x20) === 0x65;
    if (hasExponent) pos = this.#skipExponent(pos + 1);
    this.pos = pos;
    // At most 15 digits and an exact power of ten: one correctly rounded division.
    if (!hasExponent && digits <= 15 && scale < POWERS.length) {
      const positive = value / POWERS[scale]!;
      this.double = integer.negative ? -positive : positive;
      return 'double';
    }
    this.double = Number(this.#textFrom(integer.start));
    return Number.isFinite(this.double) ? 'double' : 'number';
  }

  #skipExponent(at: number): number {
    const { bytes, end } = this;
    let pos = at;
    if (pos < end && (bytes[pos] === MINUS || bytes[pos] === PLUS)) pos++;
    const first = pos;
    while (pos < end && bytes[pos]! >= ZERO && bytes[pos]! <= NINE) pos++;
    if (pos === first) this.fail('a digit in the exponent expected');
    return pos;
  }

  /**
   * Takes a string, whose quote is next, and points `text`, `textStart`, `textEnd` at its UTF-8. Looks at four bytes at a
   * time, past the record's end too where the bytes go on.
   */
  readString(): void {
    const { bytes, view, end } = this;
    const start = this.pos + 1;
    const last = bytes.length - 4;
    let pos = start;
    let seen = 0;
    while (pos <= last) {
      const word = view.getInt32(pos, true);
      const ends = endsIn(word);
      if (ends !== 0) {
        const bits = 24 - Math.clz32(ends & -ends);
        seen |= word & ~(-1 << bits);
        pos += bits >>> 3;
        break;
      }
      seen |= word;
      pos += 4;
    }
    for (; pos > last && pos < end; pos++) {
      const byte = bytes[pos]!;
      if (byte === QUOTE || byte === BACKSLASH || byte < 0x20) break;
      seen |= byte;
    }
    if (pos >= end) this.fail('a string without end');
    const byte = bytes[pos];
    if (byte === BACKSLASH) {
      this.#readEscaped(start, pos);
      return;
    }
    if (byte !== QUOTE) this.fail('a control character in a string');
    if ((seen & HIGH_BITS) !== 0 && !isUtf8Range(bytes, start, pos))
      RowFailure.raise('invalid UTF-8');
    this.text = bytes;
    this.textStart = start;
    this.textEnd = pos;
    this.pos = pos + 1;
  }

  /** The rest of a string from its first escape on. */
  #readEscaped(start: number, firstEscape: number): void {
    const { bytes, end } = this;
    if (this.#scratch.length < end - start) this.#scratch = new Uint8Array((end - start) * 2);
    const out = this.#scratch;
    let to = 0;
    for (let i = start; i < firstEscape; i++) out[to++] = bytes[i]!;
    this.pos = firstEscape;
    for (;;) {
      if (this.pos >= end) this.fail('a string without end');
      const byte = bytes[this.pos++]!;
      if (byte === QUOTE) break;
      if (byte < 0x20) this.fail('a control character in a string');
      if (byte === BACKSLASH) to = this.#unescape(out, to);
      else out[to++] = byte;
    }
    if (!isUtf8Range(out, 0, to)) RowFailure.raise('invalid UTF-8');
    this.text = out;
    this.textStart = 0;
    this.textEnd = to;
  }

  /** Decodes the escape after a backslash into `out` at `to`; returns the new end. */
  #unescape(out: Uint8Array, to: number): number {
    const byte = this.pos < this.end ? this.bytes[this.pos++]! : 0;
    const plain = ESCAPES[byte]!;
    if (plain !== 0) {
      out[to] = plain;
      return to + 1;
    }
    if (byte !== 0x75) this.fail('an unknown escape');
    let point = this.#hex4();
    if (point >= 0xd800 && point <= 0xdbff) {
      const { bytes, pos } = this;
      const followed = bytes[pos] === BACKSLASH && bytes[pos + 1] === 0x75 && pos + 6 <= this.end;
      let low = 0;
      if (followed) {
        this.pos += 2;
        low = this.#hex4();
      }
      if (low >= 0xdc00 && low <= 0xdfff) {
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
      } else {
        if (followed) this.pos = pos; // the second escape stands for itself
        point = 0xfffd;
      }
    } else if (point >= 0xdc00 && point <= 0xdfff) {
      point = 0xfffd;
    }
    return writeUtf8(out, to, point);
  }

  #hex4(): number {
    if (this.pos + 4 > this.end) this.fail('four hexadecimal digits expected');
    let point = 0;
    for (let i = 0; i < 4; i++) {
      const byte = this.bytes[this.pos++]!;
      const lower = byte | 0x20;
      if (byte >= ZERO && byte <= NINE) point = point * 16 + byte - ZERO;
      else if (lower >= 0x61 && lower <= 0x66) point = point * 16 + lower - 87;
      else this.fail('four hexadecimal digits expected');
    }
    return point;
  }

  /** The string read last, as text. */
  stringText(): string {
    return Buffer.from(
      this.text.buffer,
      this.text.byteOffset + this.textStart,
      this.textEnd - this.textStart,
    ).toString();
  }

  /**
   * Takes any value, checking it. True when it holds something: a value other than null, `{}`, `[]` and what
   * consists of those only. Sets `contentDepth`.
   */
  skipValue(): boolean {
    this.contentDepth = Infinity;
    this.#skip(0);
    return this.contentDepth < Infinity;
  }

  #skip(depth: number): void {
    if (depth > MAX_NESTING) RowFailure.raise(`JSON nested deeper than ${MAX_NESTING} levels`);
    let content = true;
    switch (this.peek()) {
      case QUOTE:
        this.readString();
        break;
      case OPEN_BRACE:
        this.#skipMembers(CLOSE_BRACE, depth);
        return;
      case OPEN_BRACKET:
        this.#skipMembers(CLOSE_BRACKET, depth);
        return;
      case 0x74:
      case 0x66:
      case 0x6e:
        content = this.literal() !== null;
        break;
      default:
        this.readNumber();
    }
    if (content && depth < this.contentDepth) this.contentDepth = depth;
  }

  #skipMembers(close: number, depth: number): void {
    this.pos++;
    if (this.peek() === close) {
      this.pos++;
      return;
    }
    do {
      if (close === CLOSE_BRACE) this.key();
      this.#skip(depth + 1);
    } while (this.more(close));
  }

  /** Takes an object's key and the colon after it; the key is in `text`. */
  key(): void {
    if (this.peek() !== QUOTE) this.fail('a key expected');
    this.readString();
    this.expect(COLON);
  }

  /** Checks that only white space is left. */
  finish(): void {
    if (this.peek() !== -1) this.fail('something follows the value');
  }
}

/** The highest bit of each of four bytes. */
const HIGH_BITS = 0x80808080;

/**
 * Of the four bytes of `word`: the highest bit of each that plain text of a string doesn't have (a quote, a backslash, a
 * control character). Exact for the lowest such byte, which is the first; above it others may be marked too.
 */
function endsIn(word: number): number {
  const quotes = word ^ 0x22222222;
  const slashes = word ^ 0x5c5c5c5c;
  const isQuote = (quotes - 0x01010101) & ~quotes;
  const isSlash = (slashes - 0x01010101) & ~slashes;
  const isControl = (word - 0x20202020) & ~word;
  return (isQuote | isSlash | isControl) & HIGH_BITS;
}

const TRUE = new TextEncoder().encode('true');
const FALSE = new TextEncoder().encode('false');
const NULL = new TextEncoder().encode('null');

/** By the byte after a backslash: the byte it stands for, 0 for none. */
const ESCAPES = new Uint8Array(256);
for (const [letter, byte] of [
  ['"', 0x22],
  ['\\', 0x5c],
  ['/', 0x2f],
  ['b', 0x08],
  ['f', 0x0c],
  ['n', 0x0a],
  ['r', 0x0d],
  ['t', 0x09],
] as const) {
  ESCAPES[letter.charCodeAt(0)] = byte;
}

function writeUtf8(out: Uint8Array, to: number, point: number): number {
  if (point < 0x80) {
    out[to++] = point;
  } else if (point < 0x800) {
    out[to++] = 0xc0 | (point >> 6);
    out[to++] = 0x80 | (point & 0x3f);
  } else if (point < 0x10000) {
    out[to++] = 0xe0 | (point >> 12);
    out[to++] = 0x80 | ((point >> 6) & 0x3f);
    out[to++] = 0x80 | (point & 0x3f);
  } else {
    out[to++] = 0xf0 | (point >> 18);
    out[to++] = 0x80 | ((point >> 12) & 0x3f);
    out[to++] = 0x80 | ((point >> 6) & 0x3f);
    out[to++] = 0x80 | (point & 0x3f);
  }
  return to;
}
