// What one client may do, remembered: the authorizer is asked once per operation and resource, until its rules change.
// A produce request costs one look-up in a Map per topic. Not for: deciding (acl-authorizer.ts).
import { CLUSTER_NAME } from '../../protocol/acls.ts';
import {
  type Authorizer,
  OPERATIONS_OF,
  type Operation,
  operationBits,
  type Requester,
  type ResourceType,
} from './authorizer.ts';

/** Answers kept per client: a client that asks for more names than this starts afresh. */
const MAX_ANSWERS = 10_000;

type Kind = `${ResourceType} ${Operation}`;

export class Access {
  readonly who: Requester;
  readonly #authorizer: Authorizer;
  readonly #answers = new Map<Kind, Map<string, boolean>>();
  #count = 0;
  #version = -1;

  constructor(authorizer: Authorizer, who: Requester) {
    this.#authorizer = authorizer;
    this.who = who;
  }

  /** Whether the client may do `operation` on the resource; the cluster needs no name. */
  allows(operation: Operation, type: ResourceType, name: string = CLUSTER_NAME): boolean {
    const authorizer = this.#authorizer;
    if (!authorizer.enabled) return true;
    if (authorizer.version !== this.#version || this.#count >= MAX_ANSWERS) this.#forget();
    const kind: Kind = `${type} ${operation}`;
    let answers = this.#answers.get(kind);
    if (answers === undefined) {
      answers = new Map();
      this.#answers.set(kind, answers);
    }
    let answer = answers.get(name);
    if (answer === undefined) {
      answer = authorizer.allows(this.who, operation, type, name);
      answers.set(name, answer);
      this.#count += 1;
    }
    return answer;
  }

  /** Whether the client may do `operation` on any resource of `type` at all. */
  allowsAny(operation: Operation, type: ResourceType): boolean {
    return this.#authorizer.allowsAny(this.who, operation, type);
  }

  /** All that the client may do on a resource, as a bit set (KIP-430). */
  operations(type: ResourceType, name: string = CLUSTER_NAME): number {
    return operationBits(
      OPERATIONS_OF[type].filter((operation) => this.allows(operation, type, name)),
    );
  }

  #forget(): void {
    this.#answers.clear();
    this.#count = 0;
    this.#version = this.#authorizer.version;
  }
}

/** The bit set of the cluster: none for a client that may not describe it, as in Kafka. */
export function clusterOperations(access: Access): number {
  return access.allows('describe', 'cluster') ? access.operations('cluster') : 0;
}
