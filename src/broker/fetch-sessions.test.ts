import { describe, expect, it } from 'vitest';
import { seededPrng } from '../base/prng.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { ZERO_UUID } from '../protocol/fields.ts';
import {
  type FetchContext,
  type FetchDemand,
  type FetchPartition,
  type FetchSession,
  FetchSessions,
} from './fetch-sessions.ts';

const partition = (index: number, fetchOffset = 0): FetchPartition => ({
  topic: 't',
  topicId: ZERO_UUID,
  index,
  fetchOffset,
  maxBytes: 1_000,
  currentLeaderEpoch: -1,
});

const demand = (
  sessionId: number,
  sessionEpoch: number,
  partitions: FetchPartition[] = [],
): FetchDemand => ({
  sessionId,
  sessionEpoch,
  byTopicId: false,
  partitions,
  forgotten: [],
});

const sessions = (slots = 10) => new FetchSessions({ prng: seededPrng(5), slots: () => slots });

function sessionOf(context: FetchContext): FetchSession {
  if (context.kind === 'refused' || context.session === undefined) throw new Error('no session');
  return context.session;
}

const indexes = (context: FetchContext) =>
  context.kind === 'refused' ? context.errorCode : context.partitions.map(({ index }) => index);

describe('FetchSessions', () => {
  it('makes none unless asked', () => {
    const context = sessions().open(demand(0, -1, [partition(0)]), 0);
    expect(context).toMatchObject({ kind: 'full', session: undefined });
  });

  it('remembers partitions, takes changes, forgets', () => {
    const cache = sessions();
    const { id } = sessionOf(cache.open(demand(0, 0, [partition(0), partition(1)]), 0));
    expect(indexes(cache.open(demand(id, 1), 1))).toEqual([0, 1]);
    const changed = cache.open(
      { ...demand(id, 2, [partition(2), partition(0, 7)]), forgotten: [partition(1)] },
      2,
    );
    expect(indexes(changed)).toEqual([0, 2]);
    expect(changed.kind === 'incremental' && changed.partitions[0]!.fetchOffset).toBe(7);
  });

  it('refuses a wrong epoch, an unknown session, and ids where names were used', () => {
    const cache = sessions();
    const { id } = sessionOf(cache.open(demand(0, 0, [partition(0)]), 0));
    expect(indexes(cache.open(demand(id, 2), 0))).toBe(ErrorCode.INVALID_FETCH_SESSION_EPOCH);
    expect(indexes(cache.open(demand(id + 1, 1), 0))).toBe(ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
    const byId = { ...demand(id, 1), byTopicId: true };
    expect(indexes(cache.open(byId, 0))).toBe(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR);
  });

  it('closes a session with epoch -1, replaces it with epoch 0', () => {
    const cache = sessions();
    const first = sessionOf(cache.open(demand(0, 0, [partition(0)]), 0));
    const second = sessionOf(cache.open(demand(first.id, 0, [partition(0)]), 0));
    expect(cache.size).toBe(1);
    cache.open(demand(second.id, -1, [partition(0)]), 0);
    expect(cache.size).toBe(0);
  });

  it('ends when everything was forgotten', () => {
    const cache = sessions();
    const { id } = sessionOf(cache.open(demand(0, 0, [partition(0)]), 0));
    cache.open({ ...demand(id, 1), forgotten: [partition(0)] }, 0);
    expect(cache.size).toBe(0);
  });

  it('evicts only what was unused for two minutes', () => {
    const cache = sessions(1);
    const { id } = sessionOf(cache.open(demand(0, 0, [partition(0)]), 0));
    expect(cache.open(demand(0, 0, [partition(0)]), 119_999)).toMatchObject({ session: undefined });
    sessionOf(cache.open(demand(0, 0, [partition(0)]), 120_000));
    expect(indexes(cache.open(demand(id, 1), 120_001))).toBe(ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
  });

  it('wraps the epoch to 1', () => {
    const cache = sessions();
    const session = sessionOf(cache.open(demand(0, 0, [partition(0)]), 0));
    session.epoch = 2 ** 31 - 1;
    cache.open(demand(session.id, 2 ** 31 - 1), 0);
    expect(session.epoch).toBe(1);
  });
});

describe('FetchSession.news', () => {
  const answer = (index: number, changes: object = {}) => ({
    asked: partition(index),
    errorCode: 0,
    highWatermark: 5,
    logStartOffset: 0,
    bytes: 0,
    ...changes,
  });

  it('tells what changed, once', () => {
    const session = sessionOf(sessions().open(demand(0, 0, [partition(0)]), 0));
    expect(session.news(answer(0))).toBe(true);
    expect(session.news(answer(0))).toBe(false);
    expect(session.news(answer(0, { highWatermark: 6 }))).toBe(true);
    expect(session.news(answer(0, { highWatermark: 6, logStartOffset: 1 }))).toBe(true);
  });

  it('tells errors every time, and everything after one', () => {
    const session = sessionOf(sessions().open(demand(0, 0, [partition(0)]), 0));
    session.news(answer(0));
    expect(session.news(answer(0, { errorCode: 1, highWatermark: -1 }))).toBe(true);
    expect(session.news(answer(0, { errorCode: 1, highWatermark: -1 }))).toBe(true);
    expect(session.news(answer(0))).toBe(true);
  });

  it('moves a fed partition behind the others', () => {
    const cache = sessions();
    const session = sessionOf(cache.open(demand(0, 0, [partition(0), partition(1)]), 0));
    session.news(answer(0, { bytes: 10 }));
    expect(indexes(cache.open(demand(session.id, 1), 0))).toEqual([1, 0]);
  });
});
