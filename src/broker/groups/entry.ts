// A group in the coordinator's hands: its state in either protocol, its committed offsets, what is under way.
import type { FloeError } from '../../base/error.ts';
import type { StoredOffset } from '../../metadata/groups.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import type { HeldShard } from '../shards.ts';
import type { Group } from './classic/group.ts';
import { type ConsumerGroup, consumerGroupState } from './consumer/group.ts';

export type AnyGroup = Group | ConsumerGroup;

export interface Entry {
  /** The shard it was loaded or made with: once that is over, nothing of the group counts any more. */
  readonly held: HeldShard;
  /** Another object when the group changes its protocol. */
  group: AnyGroup;
  /** Committed positions by partition id. */
  readonly offsets: Map<number, StoredOffset>;
  /** Commits on their way to the store: the group must not vanish under them. */
  commits: number;
  /** The latest change of a consumer group on its way to the store, if there is one: answers wait for it. */
  saving: Promise<number> | undefined;
}

/** A store that fails is a coordinator that is not available: clients try again (L9). */
export function storeFault(error: FloeError): number {
  return error.code === 'conflict'
    ? ErrorCode.NOT_COORDINATOR
    : ErrorCode.COORDINATOR_NOT_AVAILABLE;
}

/** By its name in Kafka, which both protocols share in part. */
export function stateOf(group: AnyGroup): string {
  return group.kind === 'classic' ? group.state : consumerGroupState(group);
}

export function isEmpty(group: AnyGroup): boolean {
  return group.members.size === 0 && stateOf(group) === 'Empty';
}
