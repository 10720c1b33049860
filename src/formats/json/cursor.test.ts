import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RowFailure } from '../arrow/row-failure.ts';
import { JsonCursor } from './cursor.ts';

const utf8 = (text: string) => new TextEncoder().encode(text);

function at(text: string | Uint8Array): JsonCursor {
  const bytes = typeof text === 'string' ? utf8(text) : text;
  const cursor = new JsonCursor();
  cursor.reset(bytes, 0, bytes.length);
  return cursor;
}

/** Undefined when the whole text is a JSON value, else the reason. */
function check(text: string | Uint8Array): string | undefined {
  const cursor = at(text);
  try {
    cursor.skipValue();
    cursor.finish();
    return undefined;
  } catch (failure) {
    if (failure instanceof RowFailure) return failure.reason;
    throw failure;
  }
}

/** The string that a cursor reads and where it stands then, or why it reads none. */
function outcome(cursor: JsonCursor): unknown {
  try {
    cursor.readString();
    return [cursor.stringText(), cursor.pos];
  } catch (failure) {
    if (failure instanceof RowFailure) return failure.reason;
    throw failure;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('JsonCursor', () => {
  it('accepts what JSON.parse accepts and refuses what it refuses', () => {
    const characters = fc.constantFrom(...'{}[]",:\\tfnu01-.eE+ \n\u00e9a'.split(''));
    const near = fc
      .tuple(fc.json({ maxDepth: 4 }), fc.nat(), characters)
      .map(([json, place, character]) => {
        const cut = place % (json.length + 1);
        return json.slice(0, cut) + character + json.slice(cut + 1);
      });
    const any = fc.oneof(
      fc.json(),
      near,
      fc.array(characters).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(any, (text) => (check(text) === undefined) === isJson(text)),
      { numRuns: 3000, seed: 11 },
    );
  });

  it('reads strings as JSON.parse does, lone surrogates as U+FFFD', () => {
    const unit = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 3 }),
      fc.integer({ min: 0, max: 0xffff }).map((code) => `\\u${code.toString(16).padStart(4, '0')}`),
      fc.constantFrom('\\n', '\\"', '\\\\', '\\/', '\\b', '\\ud83d\\ude00', '\\uD83D'),
    );
    fc.assert(
      fc.property(fc.array(unit), (parts) => {
        const text = `"${parts.join('')}"`;
        fc.pre(isJson(text));
        const cursor = at(text);
        cursor.readString();
        expect(cursor.stringText()).toBe(JSON.parse(text).toWellFormed());
        cursor.finish();
      }),
      { numRuns: 1000, seed: 12 },
    );
  });

  it('sees nothing of what follows the record', () => {
    const character = fc.constantFrom(...'"\\u0aé\u0001 }'.split(''));
    fc.assert(
      fc.property(fc.array(character, { maxLength: 12 }), fc.nat(16), (characters, cut) => {
        const bytes = utf8(`"${characters.join('')}","more":1}`);
        const alone = bytes.slice(0, Math.min(cut, bytes.length));
        const cursor = new JsonCursor();
        cursor.reset(bytes, 0, alone.length);
        expect(outcome(cursor)).toEqual(outcome(at(alone)));
      }),
      { numRuns: 3000, seed: 13 },
    );
  });

  it('reads numbers exactly', () => {
    const integer = fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String);
    const fraction = fc
      .double({ noNaN: true, noDefaultInfinity: true })
      .map((n) => JSON.stringify(n));
    const digits = fc.stringMatching(/^-?(0|[1-9]\d{0,20})(\.\d{1,20})?([eE][+-]?\d{1,3})?$/);
    fc.assert(
      fc.property(fc.oneof(integer, fraction, digits), (text) => {
        const cursor = at(text);
        const kind = cursor.readNumber();
        cursor.finish();
        expect(cursor.double).toBe(Number(text));
        const isInteger = /^-?\d+$/.test(text);
        if (!isInteger) {
          expect(kind).toBe(Number.isFinite(Number(text)) ? 'double' : 'number');
          return;
        }
        const value = BigInt(text);
        const isLong = BigInt.asIntN(64, value) === value;
        expect(kind).toBe(isLong ? 'long' : 'number');
        if (isLong) expect((BigInt(cursor.high) << 32n) | BigInt(cursor.low >>> 0)).toBe(value);
      }),
      { numRuns: 3000, seed: 13 },
    );
  });

  it.each([
    ['{"a":1,}', 'a key expected'],
    ['[1,]', 'a value expected'],
    ['01', 'leading zero'],
    ['1.', 'digit after the decimal point'],
    ['1e', 'digit in the exponent'],
    ['-', 'a value expected'],
    ['"\t"', 'control character'],
    ['"\\x"', 'unknown escape'],
    ['"\\u12g4"', 'four hexadecimal digits'],
    ['"abc', 'without end'],
    ['{} {}', 'something follows'],
    ['nul', 'a value expected'],
    ['', 'a value expected'],
    ['{"a" 1}', '":" expected'],
    ['[1 2]', '"," or "]" expected'],
  ])('says what is wrong with %s', (text, reason) => {
    expect(check(text)).toContain(reason);
  });

  it('refuses UTF-8 that is not well formed, in keys too', () => {
    for (const bad of [
      [0xff],
      [0xc0, 0x80],
      [0xed, 0xa0, 0x80],
      [0xf5, 0x80, 0x80, 0x80],
      [0xe2, 0x82],
    ]) {
      expect(check(Uint8Array.of(0x22, ...bad, 0x22))).toBe('invalid UTF-8');
      const key = [0x7b, 0x22, ...bad, 0x22, 0x3a, 0x31, 0x7d];
      expect(check(Uint8Array.of(...key))).toBe('invalid UTF-8');
    }
  });

  it('refuses hostile nesting instead of overflowing the stack', () => {
    expect(check('['.repeat(100_000))).toContain('nested deeper than 512');
    expect(check(`${'['.repeat(400)}${']'.repeat(400)}`)).toBeUndefined();
  });
});
