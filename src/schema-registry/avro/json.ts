// JSON whose numbers keep the digits they were written with, so that a default of 2^63−1 survives the registry.
// Not for: hot paths; a schema is parsed once.

/** A number kept as its source text because a double can't hold it or would print it otherwise. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Json = null | boolean | number | string | JsonNumber | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Levels of nesting that are read; a deeper text would overflow the stack of whoever walks it. */
export const MAX_DEPTH = 500;

type Reviver = (
  this: unknown,
  key: string,
  value: unknown,
  context?: { source?: string },
) => unknown;

/** @throws SyntaxError on anything but JSON, or on more than {@link MAX_DEPTH} levels. */
export function parseJson(text: string): Json {
  assertDepth(text);
  const keepDigits: Reviver = (_key, value, context) =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? new JsonNumber(context.source)
      : value;
  return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown) as Json;
}

/** Compact JSON; the inverse of {@link parseJson} up to white space and escapes. */
export function formatJson(value: Json): string {
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(formatJson).join(',')}]`;
  if (isObject(value)) {
    const entries = Object.entries(value).map(
      ([key, item]) => `${JSON.stringify(key)}:${formatJson(item)}`,
    );
    return `{${entries.join(',')}}`;
  }
  return JSON.stringify(value);
}

export function isObject(value: Json | undefined): value is JsonObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof JsonNumber)
  );
}

/** The number, whatever its spelling; undefined for everything else. */
export function toNumber(value: Json | undefined): number | undefined {
  if (typeof value === 'number') return value;
  return value instanceof JsonNumber ? Number(value.text) : undefined;
}

function assertDepth(text: string): void {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (inString) {
      if (char === 0x5c) at += 1;
      else if (char === 0x22) inString = false;
    } else if (char === 0x22) inString = true;
    else if (char === 0x5b || char === 0x7b) {
      depth += 1;
      if (depth > MAX_DEPTH) throw new SyntaxError(`nested deeper than ${MAX_DEPTH} levels`);
    } else if (char === 0x5d || char === 0x7d) depth -= 1;
  }
}
