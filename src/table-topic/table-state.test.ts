import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  mayCommit,
  mayStage,
  nextState,
  TABLE_EVENTS,
  TABLE_STATES,
  type TableEvent,
  type TableState,
  TRANSITIONS,
} from './table-state.ts';

/** A model in other words: an operator's pause and the end stick, trouble waits for a retry. */
class Model {
  ended: 'no' | 'stopping' | 'fenced' | 'stopped' = 'no';
  paused = false;
  mood: 'starting' | 'waiting' | 'running' | 'suspended' = 'starting';

  apply(event: TableEvent): void {
    if (this.ended !== 'no') {
      if (event === 'stopped') this.ended = 'stopped';
      return;
    }
    switch (event) {
      case 'stop':
        this.ended = 'stopping';
        return;
      case 'stopped':
        this.ended = 'stopped';
        return;
      case 'fenced':
        this.ended = 'fenced';
        return;
      case 'pause':
        this.paused = true;
        return;
      case 'resume':
        if (this.paused || this.mood === 'suspended') this.mood = 'starting';
        this.paused = false;
        return;
    }
    if (this.paused) return;
    if (event === 'trouble') this.mood = 'suspended';
    if (event === 'retry') this.mood = 'starting';
    if (this.mood === 'suspended') return;
    if (event === 'opened') this.mood = 'running';
    if (event === 'no-columns') this.mood = 'waiting';
  }

  get state(): TableState {
    if (this.ended !== 'no') return this.ended;
    return this.paused ? 'paused' : this.mood;
  }
}

test('any sequence of events takes table and model to the same state', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...TABLE_EVENTS), { maxLength: 40 }), (events) => {
      const model = new Model();
      let state: TableState = 'starting';
      for (const event of events) {
        model.apply(event);
        state = nextState(state, event);
        expect(state).toBe(model.state);
      }
    }),
    { seed: 1, numRuns: 500 },
  );
});

test('the table is total, and ends are ends', () => {
  for (const state of TABLE_STATES) {
    expect(Object.keys(TRANSITIONS[state]).toSorted()).toEqual([...TABLE_EVENTS].toSorted());
    expect(nextState(state, 'stopped')).toBe('stopped');
  }
  expect(TABLE_STATES.filter(mayStage)).toEqual(['waiting', 'running']);
  expect(TABLE_STATES.filter(mayCommit)).toEqual(['running', 'stopping']);
});
