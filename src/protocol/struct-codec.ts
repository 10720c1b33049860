// The one place where code is generated: a struct's decoder as an object literal and its encoder as a row of property
// reads. Written as loops over names, both miss every inline cache (265–540 ns for a struct of nine fields against
// 55, and a request of a thousand partitions has a thousand structs). The text is made of field names, which come
// from our definitions and are checked here; every value goes in by reference.
import { assert } from '../base/assert.ts';
import type { Reader } from './reader.ts';
import type { Writer } from './writer.ts';

/** A field on the wire. */
export interface StructField {
  readonly name: string;
  readonly decode: (reader: Reader) => unknown;
  readonly encode: (writer: Writer, value: never) => void;
  /** Written when the value is undefined. */
  readonly fallback: unknown;
}

const IDENTIFIER = /^[a-z][A-Za-z0-9]*$/;

/**
 * Reads `fields` in their order into an object that also has the other fields of `absent`, a whole struct of
 * values for where nothing is on the wire: `r => ({ a: d0(r), b: d1(r), c: x2 })`.
 */
export function structDecoder(
  absent: Readonly<Record<string, unknown>>,
  fields: readonly StructField[],
): (reader: Reader) => unknown {
  const others = Object.keys(absent).filter((name) => fields.every((field) => field.name !== name));
  const parts = [
    ...fields.map(({ name }, i) => `${checked(name)}: d${i}(r)`),
    ...others.map((name, i) => `${checked(name)}: x${i}`),
  ];
  return generate(`(r) => ({ ${parts.join(', ')} })`, {
    ...numbered(
      'd',
      fields.map((field) => field.decode),
    ),
    ...numbered(
      'x',
      others.map((name) => absent[name]),
    ),
  });
}

/** Writes `fields` in their order: `(w, v) => { e0(w, v.a === undefined ? f0 : v.a); … }`. */
export function structEncoder(
  fields: readonly StructField[],
): (writer: Writer, value: never) => void {
  const parts = fields.map(({ name }, i) => {
    checked(name);
    return `e${i}(w, v.${name} === undefined ? f${i} : v.${name});`;
  });
  return generate(`(w, v) => { ${parts.join(' ')} }`, {
    ...numbered(
      'e',
      fields.map((field) => field.encode),
    ),
    ...numbered(
      'f',
      fields.map((field) => field.fallback),
    ),
  });
}

function checked(name: string): string {
  assert(IDENTIFIER.test(name), `"${name}" is no field name`);
  return name;
}

function numbered(prefix: string, values: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(values.map((value, index) => [`${prefix}${index}`, value]));
}

/** The function of `expression`, in which the names of `bound` stand for their values. */
function generate<T>(expression: string, bound: Readonly<Record<string, unknown>>): T {
  const make = new Function(...Object.keys(bound), `'use strict'; return ${expression};`);
  return make(...Object.values(bound)) as T;
}
