// What a JSON Schema comes down to: shapes of values as plain data, each with the way its text is read.
import type { PrimitiveTypeName } from '../iceberg/types.ts';

/** How a scalar's text is read, where its column's type alone doesn't say. */
export type Reading =
  | 'plain'
  /** Numbers with an integral value, `1.0` too. */
  | 'integer'
  /** Any number, rounded as doubles are. */
  | 'number'
  | 'base64'
  /** Milliseconds since the epoch. */
  | 'epoch-millis'
  /** Days since the epoch. */
  | 'epoch-days'
  /** Milliseconds of the day. */
  | 'day-millis'
  /** A number, or the unscaled value's bytes in base64. */
  | 'decimal'
  | 'time';

export type Shape =
  /** Nothing but null: no column. */
  | { readonly kind: 'none' }
  /** Anything: its JSON text. */
  | { readonly kind: 'json'; readonly doc?: string }
  | {
      readonly kind: 'scalar';
      readonly type: PrimitiveTypeName;
      readonly reading: Reading;
      readonly doc?: string;
    }
  | { readonly kind: 'list'; readonly element: Shape; readonly doc?: string }
  | { readonly kind: 'map'; readonly value: Shape; readonly doc?: string }
  | {
      readonly kind: 'struct';
      readonly fields: ReadonlyMap<string, Shape>;
      /** Properties that aren't declared may come. */
      readonly open: boolean;
      readonly doc?: string;
    };

export interface ShapeOptions {
  /** How a time of day is stored. */
  readonly time: 'string' | 'long' | 'time';
}
