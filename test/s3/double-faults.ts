// What goes wrong with requests to the S3 double, and when: rules as data, so that a script in another process can send
// them. Not for: how a fault looks on the wire (double.ts).
import type { Prng } from '../../src/base/prng.ts';

/** What a request is, as S3 bills it; `multipart`: starting, completing or aborting an upload in parts. */
export const verbs = ['get', 'put', 'head', 'list', 'delete', 'multipart', 'part'] as const;
export type Verb = (typeof verbs)[number];

/**
 * - `slow-down`      503 SlowDown, nothing done
 * - `error-before`   500 InternalError, nothing done
 * - `error-after`    500 InternalError, done
 * - `reset-before`   connection reset, nothing done
 * - `reset-after`    connection reset, done
 * - `late`           connection reset, done `ms` later
 * - `never`          no answer until the double stops, nothing done
 * - `never-after`    no answer, done
 * - `slow`           `ms` more than it takes anyway
 * - `truncate`       a body that ends half way through (get)
 * - `corrupt`        a body with one bit turned (get)
 * - `missing`        as if the key, or every key of the listing, were not there (get, head, list)
 * - `stale`          as if the last change of the key had not happened (get, head)
 * - `checksum`       400 BadDigest: the body arrived damaged (put, part)
 * - `skew`           403 RequestTimeTooSkewed
 * - `denied`         403 AccessDenied
 * - `unconditional`  If-Match and If-None-Match are not looked at
 * - `conflict`       409 ConditionalRequestConflict, nothing done
 */
export const faultKinds = [
  'slow-down',
  'error-before',
  'error-after',
  'reset-before',
  'reset-after',
  'late',
  'never',
  'never-after',
  'slow',
  'truncate',
  'corrupt',
  'missing',
  'stale',
  'checksum',
  'skew',
  'denied',
  'unconditional',
  'conflict',
] as const;
export type FaultKind = (typeof faultKinds)[number];

export interface FaultRule {
  readonly kind: FaultKind;
  /** Requests it meets; all verbs if left out. */
  readonly verbs?: readonly Verb[];
  /** A regular expression that the key (the prefix of a listing) must match. */
  readonly key?: string;
  /** Matching requests that it lets pass first. Default 0. */
  readonly after?: number;
  /** Requests that it meets at most. Default: no end. */
  readonly times?: number;
  /** Share of matching requests that it meets, in (0, 1]. Default 1. */
  readonly share?: number;
  /** For `late` and `slow`. Default 1,000. */
  readonly ms?: number;
  /** Rules that end together. */
  readonly tag?: string;
}

interface Active {
  readonly rule: FaultRule;
  readonly pattern: RegExp | undefined;
  seen: number;
  met: number;
}

/** The rules in force, in order of arrival; the first that meets a request has it. */
export class Faults {
  readonly #prng: Prng;
  #active: Active[] = [];

  constructor(prng: Prng) {
    this.#prng = prng;
  }

  /** Returns how to end the rule. */
  add(rule: FaultRule): () => void {
    const pattern = rule.key === undefined ? undefined : new RegExp(rule.key);
    const active: Active = { rule, pattern, seen: 0, met: 0 };
    this.#active.push(active);
    return () => {
      this.#active = this.#active.filter((other) => other !== active);
    };
  }

  /** Ends the rules of this tag; all of them if left out. */
  clear(tag?: string): void {
    this.#active = tag === undefined ? [] : this.#active.filter(({ rule }) => rule.tag !== tag);
  }

  /** The fault that this request meets. */
  meet(verb: Verb, key: string): FaultRule | undefined {
    return this.#active.find((active) => this.#meets(active, verb, key))?.rule;
  }

  #meets(active: Active, verb: Verb, key: string): boolean {
    const { rule, pattern } = active;
    if (rule.verbs !== undefined && !rule.verbs.includes(verb)) return false;
    if (pattern !== undefined && !pattern.test(key)) return false;
    active.seen += 1;
    if (active.seen <= (rule.after ?? 0) || active.met >= (rule.times ?? Infinity)) return false;
    if (rule.share !== undefined && this.#prng.next() >= rule.share) return false;
    active.met += 1;
    return true;
  }
}
