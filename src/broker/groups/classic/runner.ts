// Runs classic groups: requests become events, effects become answers and writes. A request waits until some event,
// its own or a later one, answers it. Not for: which group, offsets, the lease (coordinator.ts).

import { ErrorCode } from '../../../protocol/errors.ts';
import type { HeldShard } from '../../shards.ts';
import type { Deadlines } from '../deadlines.ts';
import { type Entry, storeFault } from '../entry.ts';
import type { GroupSettings } from '../settings.ts';
import type { ChangeWriter } from '../writer.ts';
import {
  type Effect,
  type JoinReply,
  joinFailed,
  type PersistReason,
  type SyncReply,
  syncFailed,
} from './effects.ts';
import { type Group, nextDeadline, snapshotGroup, type Token } from './group.ts';
import { type GroupEvent, step } from './step.ts';

export interface RunnerOptions {
  readonly writer: ChangeWriter;
  readonly deadlines: Deadlines;
  readonly settings: GroupSettings;
  now(): number;
  /** Called after each event: a new generation, or none. */
  stepped(entry: Entry, newGeneration: boolean): void;
}

type Reply =
  | { readonly kind: 'join-reply'; readonly reply: JoinReply }
  | { readonly kind: 'sync-reply'; readonly reply: SyncReply }
  | { readonly kind: 'reply'; readonly errorCode: number }
  | { readonly kind: 'leave-reply'; readonly errorCodes: readonly number[] };

interface Waiting {
  readonly kind: Reply['kind'];
  readonly held: HeldShard;
  resolve(reply: Reply): void;
}

export class ClassicGroups {
  readonly #options: RunnerOptions;
  readonly #waiting = new Map<Token, Waiting>();
  #nextToken: Token = 1;
  #stopped = false;

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** Runs the event of a request; until `signal` says that the client or the broker goes: NOT_COORDINATOR. */
  ask<K extends Reply['kind']>(
    entry: Entry,
    kind: K,
    request: { readonly event: (token: Token) => GroupEvent; readonly signal?: AbortSignal },
  ): Promise<Extract<Reply, { kind: K }>> {
    const { event, signal } = request;
    const token = this.#nextToken++;
    const giveUp = () => this.#refuse(token, ErrorCode.NOT_COORDINATOR);
    const answer = new Promise<Reply>((resolve) => {
      this.#waiting.set(token, { kind, held: entry.held, resolve });
      this.step(entry, event(token));
    });
    // The member stays in the group: it may be back within its session.
    if (signal?.aborted) giveUp();
    else signal?.addEventListener('abort', giveUp, { once: true });
    return answer.finally(() => signal?.removeEventListener('abort', giveUp)) as Promise<
      Extract<Reply, { kind: K }>
    >;
  }

  step(entry: Entry, event: GroupEvent): void {
    const group = entry.group as Group;
    const before = group.generation;
    const { settings, now } = this.#options;
    for (const effect of step(group, event, { now: now(), settings }))
      this.#carryOut(entry, group, effect);
    // A heartbeat only moves a deadline away; the timer finds out when it fires.
    if (event.type !== 'heartbeat') this.schedule(group);
    this.#options.stepped(entry, group.generation !== before);
  }

  schedule(group: Group): void {
    this.#options.deadlines.set(group.groupId, this.#stopped ? Infinity : nextDeadline(group));
  }

  /** The group goes on in another protocol: whoever waits is to join again. */
  abandon(group: Group): void {
    for (const { joinToken, syncToken } of group.members.values())
      for (const token of [joinToken, syncToken])
        if (token !== null) this.#refuse(token, ErrorCode.REBALANCE_IN_PROGRESS);
  }

  /** Answers all who wait with NOT_COORDINATOR, so that clients look for another. */
  stop(): void {
    this.#stopped = true;
    for (const token of [...this.#waiting.keys()]) this.#refuse(token, ErrorCode.NOT_COORDINATOR);
  }

  /** The shard is another node's: all who wait for its groups are told so. */
  drop(held: HeldShard): void {
    for (const [token, waiting] of this.#waiting)
      if (waiting.held === held) this.#refuse(token, ErrorCode.NOT_COORDINATOR);
  }

  #carryOut(entry: Entry, group: Group, effect: Effect): void {
    if (effect.kind === 'persist') {
      void this.#persist(entry, group, effect.reason);
      return;
    }
    const waiting = this.#waiting.get(effect.token);
    this.#waiting.delete(effect.token);
    waiting?.resolve(effect);
  }

  async #persist(entry: Entry, group: Group, reason: PersistReason): Promise<void> {
    const { writer } = this.#options;
    const { error } = await writer.write(entry.held, {
      kind: 'group',
      group: snapshotGroup(group),
    });
    if (this.#stopped || entry.held.dropped) return;
    if (entry.group === group) {
      const errorCode = error === undefined ? 0 : storeFault(error);
      this.step(entry, { type: 'persisted', reason, errorCode });
    } else if (reason.kind === 'static')
      this.#refuse(reason.token, ErrorCode.REBALANCE_IN_PROGRESS);
  }

  #refuse(token: Token, errorCode: number): void {
    const waiting = this.#waiting.get(token);
    this.#waiting.delete(token);
    if (waiting?.kind === 'join-reply') waiting.resolve(joinFailed(token, errorCode) as Reply);
    else if (waiting?.kind === 'sync-reply') waiting.resolve(syncFailed(token, errorCode) as Reply);
  }
}

export function failedJoin(errorCode: number, memberId: string): JoinReply {
  return (joinFailed(0, errorCode, memberId) as Extract<Effect, { kind: 'join-reply' }>).reply;
}

export function failedSync(errorCode: number): SyncReply {
  return (syncFailed(0, errorCode) as Extract<Effect, { kind: 'sync-reply' }>).reply;
}
