// Where a `$ref` leads: URIs, `$id`s, anchors and JSON pointers over a schema and those it refers to. JSON Schema core
// 2020-12, §8.2 and §9.2, with draft 4's `id` and fragments as ids. Nothing is ever fetched.
import { FloeError } from '../../base/error.ts';
import { isObject, type Json, type JsonObject } from '../json.ts';

/** The base of a schema that has no `$id`, as in Confluent's registry. */
const INPUT = 'mem://input';
/** Keywords whose values are data, not schemas. */
const DATA = new Set(['enum', 'const', 'default', 'examples']);
/** The drafts' own schemas: whoever refers to them means "any schema", which restricts nothing that is compared. */
const META_SCHEMA = /^https?:\/\/json-schema\.org\/draft[-/]/;

export class Documents {
  /** Resources by absolute URI without fragment. */
  readonly #resources = new Map<string, Json>();
  /** Anchors by absolute URI with fragment. */
  readonly #anchors = new Map<string, Json>();
  /** The base URI inside each object. */
  readonly #bases = new Map<JsonObject, string>();

  /** `dependencies` by the names that references have. */
  constructor(root: Json, dependencies: ReadonlyMap<string, Json>) {
    const base = isObject(root) ? absolute(idOf(root) ?? '', INPUT) : INPUT;
    for (const [name, document] of dependencies) {
      const uri = withoutFragment(absolute(name, base));
      this.#resources.set(uri, document);
      this.#index(document, uri);
    }
    this.#resources.set(INPUT, root);
    this.#index(root, INPUT);
  }

  /** What `ref`, written in `owner`, refers to; `true` for the drafts' own schemas. @throws FloeError `invalid`. */
  find(ref: string, owner: JsonObject): Json {
    const base = this.#bases.get(owner) ?? INPUT;
    const uri = absolute(ref, base);
    const found = this.#anchors.get(uri) ?? this.#inResource(uri);
    if (found !== undefined) return found;
    if (META_SCHEMA.test(uri)) return true;
    throw new FloeError('invalid', `$ref "${ref}" leads nowhere: add a reference of that name`);
  }

  #inResource(uri: string): Json | undefined {
    const [address, fragment = ''] = split(uri);
    const resource = this.#resources.get(address);
    if (resource === undefined || fragment === '') return resource;
    return fragment.startsWith('/') ? pointed(resource, fragment) : undefined;
  }

  #index(json: Json, base: string): void {
    if (Array.isArray(json)) for (const item of json as readonly Json[]) this.#index(item, base);
    if (!isObject(json)) return;
    const id = idOf(json);
    let here = base;
    if (id?.startsWith('#')) this.#anchors.set(absolute(id, base), json);
    else if (id !== undefined) {
      here = withoutFragment(absolute(id, base));
      this.#resources.set(here, json);
    }
    this.#bases.set(json, here);
    for (const name of ['$anchor', '$dynamicAnchor']) {
      const anchor = json[name];
      if (typeof anchor === 'string') this.#anchors.set(`${here}#${anchor}`, json);
    }
    for (const [key, value] of Object.entries(json)) if (!DATA.has(key)) this.#index(value, here);
  }
}

/** `$id`, or draft 4's `id`; one of `properties` is an object and doesn't count. */
function idOf(json: JsonObject): string | undefined {
  const id = json['$id'] ?? json['id'];
  return typeof id === 'string' && id !== '' ? id : undefined;
}

/** RFC 3986 resolution; names that are no URI stay what they are. */
function absolute(reference: string, base: string): string {
  if (reference === '') return base;
  if (reference.startsWith('#')) return withoutFragment(base) + reference;
  try {
    return new URL(reference, base).href;
  } catch {
    return reference;
  }
}

function split(uri: string): readonly [address: string, fragment?: string] {
  const at = uri.indexOf('#');
  return at < 0 ? [uri] : [uri.slice(0, at), uri.slice(at + 1)];
}

const withoutFragment = (uri: string) => split(uri)[0];

/** RFC 6901, in the form for URI fragments. */
function pointed(document: Json, pointer: string): Json | undefined {
  let at: Json | undefined = document;
  for (const part of pointer.slice(1).split('/')) {
    const key = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(at)) at = (at as readonly Json[])[Number(key)];
    else at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
