import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  isOver,
  nextStage,
  REWRITE_TRANSITIONS,
  type RewriteEvent,
  type RewriteStage,
} from './rewrite-state.ts';

const EVENTS = Object.keys(REWRITE_TRANSITIONS.writing) as RewriteEvent[];

test('an end is an end, and files of a request that may still arrive are never called abandoned', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...EVENTS), { maxLength: 30 }), (events) => {
      let stage: RewriteStage = 'writing';
      // The model: is a request out whose fate nobody knows?
      let uncertain = false;
      for (const event of events) {
        const before: RewriteStage = stage;
        stage = nextStage(stage, event);
        if (isOver(before)) expect(stage).toBe(before);
        else if (stage === 'sent') uncertain = true;
        else if (stage === 'written') uncertain = false;
        if (stage === 'abandoned') expect(uncertain).toBe(false);
        if (stage === 'left') expect(uncertain).toBe(true);
        if (stage === 'committed' && before !== stage)
          expect(['accepted', 'found']).toContain(event);
      }
    }),
    { numRuns: 500, seed: 11 },
  );
});
