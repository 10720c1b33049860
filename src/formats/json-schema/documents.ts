// Where a `$ref` leads: the schema's own document, parts of it with ids or anchors of their own, and the documents that
// the registry resolved for it. Nothing is ever fetched.
// Source: JSON Schema drafts 4 to 2020-12, "Base URI and Dereferencing".
import { FloeError } from '../../base/error.ts';

/** A schema is an object, or true (anything) or false (nothing). */
export type JsonSchema = boolean | Readonly<Record<string, unknown>>;

/** A schema and the URI that references in it are relative to. */
export interface Located {
  readonly schema: JsonSchema;
  readonly base: string;
}

/** A document under the name by which it is referred to. */
export interface JsonDocument {
  readonly name: string;
  readonly schema: string;
}

/** Parts looked at for ids, over all documents: beyond, the schema is refused. */
const MAX_PARTS = 200_000;
const MAX_NESTING = 500;

/** Base of documents without an id of their own. */
const NAMELESS = 'floe:/';

export class SchemaDocuments {
  readonly root: Located;
  /** Absolute URI, with fragment for anchors → part. */
  readonly #byUri = new Map<string, Located>();
  /** Name as the registry has it → document. */
  readonly #byName = new Map<string, Located>();
  #parts = 0;

  /** @throws FloeError `invalid` when a document isn't JSON Schema. */
  constructor(schema: string, references: readonly JsonDocument[]) {
    references.forEach(({ name, schema: text }, i) => {
      const located = this.#add(parse(text, name), `${NAMELESS}${i + 1}/`);
      this.#byName.set(name, located);
    });
    this.root = this.#add(parse(schema, 'the schema'), NAMELESS);
  }

  /** What `ref` means at `base`. @throws FloeError `invalid` when it leads nowhere. */
  resolve(ref: string, base: string): Located {
    const [address, fragment] = split(ref);
    const uri = join(base, ref);
    const known = this.#byUri.get(uri);
    if (known !== undefined) return known;
    const document =
      this.#byUri.get(join(base, address === '' ? '#' : address).replace(/#.*$/, '')) ??
      this.#named(address);
    if (document === undefined) throw nowhere(ref);
    return pointer(document, fragment, ref);
  }

  #named(address: string): Located | undefined {
    const found = this.#byName.get(address) ?? this.#byName.get(address.replace(/^\.?\//, ''));
    if (found !== undefined || address === '') return found;
    const last = address.slice(address.lastIndexOf('/') + 1);
    return this.#byName.get(last);
  }

  #add(schema: JsonSchema, fallback: string): Located {
    const base = join(fallback, ownId(schema) ?? '').replace(/#$/, '');
    const located = { schema, base };
    this.#byUri.set(base, located);
    this.#index(schema, base, 0);
    return located;
  }

  /** Notes the parts that can be named: those with an id or anchor. */
  #index(part: unknown, base: string, depth: number): void {
    if (typeof part !== 'object' || part === null) return;
    this.#parts += 1;
    if (this.#parts > MAX_PARTS || depth > MAX_NESTING) {
      throw new FloeError('invalid', 'the JSON schema is too large or nested too deeply');
    }
    let own = base;
    if (!Array.isArray(part)) {
      const schema = part as Record<string, unknown>;
      const id = ownId(schema);
      if (id !== undefined) {
        own = join(base, id).replace(/#$/, '');
        // `#name` is an anchor of draft 4 to 7, anything else a new base.
        this.#byUri.set(own, { schema, base: id.startsWith('#') ? base : own });
        if (id.startsWith('#')) own = base;
      }
      for (const key of ['$anchor', '$dynamicAnchor']) {
        const anchor = schema[key];
        if (typeof anchor === 'string') this.#byUri.set(`${own}#${anchor}`, { schema, base: own });
      }
    }
    for (const inner of Object.values(part)) this.#index(inner, own, depth + 1);
  }
}

function parse(text: string, name: string): JsonSchema {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (caught) {
    throw new FloeError('invalid', `${name} is not JSON: ${(caught as Error).message}`, {
      cause: caught,
    });
  }
  if (isSchema(parsed)) return parsed;
  throw new FloeError('invalid', `${name} is no JSON schema: an object or boolean is one`);
}

export const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === 'boolean' ||
  (typeof value === 'object' && value !== null && !Array.isArray(value));

function ownId(schema: JsonSchema): string | undefined {
  if (typeof schema === 'boolean') return undefined;
  // Draft 4 calls it `id`, which may also be a property's name: a schema there, not text.
  const id = schema['$id'] ?? schema['id'];
  return typeof id === 'string' ? id : undefined;
}

function split(ref: string): readonly [address: string, fragment: string] {
  const at = ref.indexOf('#');
  return at < 0 ? [ref, ''] : [ref.slice(0, at), ref.slice(at + 1)];
}

/** A URI relative to another; both as they are where they make none. */
function join(base: string, relative: string): string {
  try {
    return new URL(relative, base).href;
  } catch {
    return relative;
  }
}

function pointer({ schema, base }: Located, fragment: string, ref: string): Located {
  if (fragment === '') return { schema, base };
  if (!fragment.startsWith('/')) throw nowhere(ref);
  let part: unknown = schema;
  let own = base;
  for (const step of fragment.slice(1).split('/')) {
    const key = decode(step).replaceAll('~1', '/').replaceAll('~0', '~');
    const inside =
      typeof part === 'object' && part !== null && Object.hasOwn(part, key)
        ? (part as Record<string, unknown>)[key]
        : undefined;
    part = inside;
    const id = isSchema(part) ? ownId(part) : undefined;
    if (id !== undefined && !id.startsWith('#')) own = join(own, id).replace(/#$/, '');
  }
  if (isSchema(part)) return { schema: part, base: own };
  throw nowhere(ref);
}

function decode(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

const nowhere = (ref: string) =>
  new FloeError('invalid', `"$ref": "${ref}" leads nowhere: is the reference registered with it?`);
