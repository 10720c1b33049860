// What a comparison of two JSON Schemas says, and how bounds are compared.
import type { JsonChange } from './messages.ts';
import type { JsonSchemaNode } from './schema.ts';

export interface JsonDifference {
  readonly type: JsonChange;
  /** Keywords and names that lead there. */
  readonly path: readonly string[];
}

export type Differences = readonly JsonDifference[];
export const COMPATIBLE: Differences = [];

export interface Comparer {
  /** Differences with `path` in front; absent schemas restrict nothing. */
  compare(
    original: JsonSchemaNode | undefined,
    update: JsonSchemaNode | undefined,
    path: readonly string[],
  ): Differences;
}

/** Names of the changes of an upper (or, reversed, lower) bound that break. */
interface BoundChanges {
  readonly added: JsonChange;
  readonly tightened: JsonChange;
  /** True for lower bounds: more is less room. */
  readonly lower?: boolean;
}

/** A bound that came or got narrower. */
export function bound(
  keyword: string,
  [original, update]: readonly [number | undefined, number | undefined],
  { added, tightened, lower }: BoundChanges,
): Differences {
  if (update === undefined || original === update) return COMPATIBLE;
  if (original === undefined) return [{ type: added, path: [keyword] }];
  const narrower = lower === true ? update > original : update < original;
  return narrower ? [{ type: tightened, path: [keyword] }] : COMPATIBLE;
}
