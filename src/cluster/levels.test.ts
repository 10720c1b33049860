import { expect, test } from 'vitest';
import { commonLevel, joinLevel } from './levels.ts';

const speaker = (min: number, max: number, version = `${max}.0`) => ({
  version,
  levels: { min, max },
});

test('the common level is the highest that all speak', () => {
  expect(commonLevel([])).toBeUndefined();
  expect(commonLevel([speaker(1, 3), speaker(2, 5), speaker(1, 4)])).toBe(3);
  expect(commonLevel([speaker(1, 2), speaker(3, 4)])).toBeUndefined();
});

test('who speaks the level of the living joins at it, whatever else it knows', () => {
  expect(joinLevel(speaker(1, 3), [])).toBe(3);
  expect(joinLevel(speaker(2, 4), [speaker(1, 3), speaker(1, 2)])).toBe(2);
});

test('a program too new for the living is told to upgrade them first', () => {
  expect(() =>
    joinLevel(speaker(3, 4, '4.0'), [speaker(1, 2, '2.0'), speaker(1, 2, '2.1')]),
  ).toThrow(
    'this program (4.0) speaks levels 3 to 4, the living nodes (2.0, 2.1) are at level 2: ' +
      'first upgrade all of them to a version between the two',
  );
});

test('a program too old for the living is refused once none of them needs the old forms', () => {
  // While one old node lives, another may come back: an upgrade can be taken back until the last has moved.
  expect(joinLevel(speaker(1, 2), [speaker(1, 3), speaker(1, 2)])).toBe(2);
  expect(() => joinLevel(speaker(1, 2, '2.0'), [speaker(1, 3, '3.0')])).toThrow(
    'they have gone on to a level that this program does not know: start their version here',
  );
});
