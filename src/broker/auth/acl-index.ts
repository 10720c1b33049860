// ACLs arranged so that those which concern a resource are found without looking at the others: by name, by prefix
// (one look-up per length of prefix in use) and for all names. Pure. Not for: what they decide (acl-authorizer.ts).

import type { AclBinding } from '../../metadata/security.ts';
import { ACL_PATTERN, WILDCARD } from '../../protocol/acls.ts';

/** Rules of one type of resource. */
interface TypeIndex {
  readonly literal: Map<string, AclBinding[]>;
  readonly prefixed: Map<string, AclBinding[]>;
  /** Lengths of the prefixes, ascending. */
  lengths: readonly number[];
}

export class AclIndex {
  /** Every rule once, by its text. */
  readonly #all = new Map<string, AclBinding>();
  readonly #types = new Map<number, TypeIndex>();

  get size(): number {
    return this.#all.size;
  }

  all(): Iterable<AclBinding> {
    return this.#all.values();
  }

  has(acl: AclBinding): boolean {
    return this.#all.has(textOf(acl));
  }

  /** Makes `acls` all the rules there are. @returns whether that was a change. */
  replace(acls: readonly AclBinding[]): boolean {
    const wanted = new Set(acls.map(textOf));
    const gone = [...this.#all].filter(([text]) => !wanted.has(text));
    for (const [, acl] of gone) this.remove(acl);
    const before = this.size;
    for (const acl of acls) this.add(acl);
    return gone.length > 0 || this.size > before;
  }

  add(acl: AclBinding): void {
    const text = textOf(acl);
    if (this.#all.has(text)) return;
    this.#all.set(text, acl);
    const { type, names } = this.#place(acl);
    const rules = names.get(acl.resourceName);
    if (rules !== undefined) {
      rules.push(acl);
      return;
    }
    names.set(acl.resourceName, [acl]);
    type.lengths = lengthsOf(type.prefixed);
  }

  remove(acl: AclBinding): void {
    const text = textOf(acl);
    if (!this.#all.delete(text)) return;
    const { type, names } = this.#place(acl);
    const left = names.get(acl.resourceName)!.filter((other) => textOf(other) !== text);
    if (left.length > 0) {
      names.set(acl.resourceName, left);
      return;
    }
    names.delete(acl.resourceName);
    type.lengths = lengthsOf(type.prefixed);
  }

  /** All rules of a type of resource. */
  *ofType(resourceType: number): Iterable<AclBinding> {
    const type = this.#types.get(resourceType);
    if (type === undefined) return;
    for (const rules of type.literal.values()) yield* rules;
    for (const rules of type.prefixed.values()) yield* rules;
  }

  /** The rules that concern one resource, whoever they are about. */
  *about(resourceType: number, name: string): Iterable<AclBinding> {
    const type = this.#types.get(resourceType);
    if (type === undefined) return;
    yield* type.literal.get(name) ?? [];
    if (name !== WILDCARD) yield* type.literal.get(WILDCARD) ?? [];
    for (const length of type.lengths) {
      if (length > name.length) return;
      yield* type.prefixed.get(name.slice(0, length)) ?? [];
    }
  }

  #place({ resourceType, patternType }: AclBinding) {
    let type = this.#types.get(resourceType);
    if (type === undefined) {
      type = { literal: new Map(), prefixed: new Map(), lengths: [] };
      this.#types.set(resourceType, type);
    }
    return { type, names: patternType === ACL_PATTERN.prefixed ? type.prefixed : type.literal };
  }
}

function lengthsOf(prefixed: ReadonlyMap<string, unknown>): readonly number[] {
  return [...new Set([...prefixed.keys()].map((prefix) => prefix.length))].sort((a, b) => a - b);
}

/** Equal for equal rules. */
function textOf(acl: AclBinding): string {
  const { resourceType, patternType, operation, permission } = acl;
  const { resourceName, principal, host } = acl;
  return JSON.stringify([
    resourceType,
    patternType,
    operation,
    permission,
    resourceName,
    principal,
    host,
  ]);
}
