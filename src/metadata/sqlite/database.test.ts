import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Database } from './database.ts';

let directory: string;
let db: Database;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-db-'));
  db = new Database(join(directory, 'db'), [{ name: 'a', sql: 'CREATE TABLE a (n INTEGER)' }]);
});
afterEach(() => {
  db.close();
  rmSync(directory, { recursive: true });
});

const FULL = 2;
const NORMAL = 1;
const synchronous = () => db.prepare('PRAGMA synchronous').get()!['synchronous'];
const insert = (n: number) => db.prepare('INSERT INTO a VALUES (?)').run(n);
const rows = () =>
  db
    .prepare('SELECT n FROM a ORDER BY n')
    .all()
    .map((row) => row['n']);

test('a lazy transaction doesn’t wait, the next one does again, also after a failure', () => {
  db.lazyTransaction(() => {
    expect(synchronous()).toBe(NORMAL);
    insert(1);
  });
  expect(synchronous()).toBe(FULL);
  const fail = () =>
    db.lazyTransaction(() => {
      insert(2);
      throw new Error('no');
    });
  expect(fail).toThrow('no');
  expect(synchronous()).toBe(FULL);
  db.transaction(() => insert(3));
  expect(rows()).toEqual([1, 3]);
});

test('inside another one a lazy one joins: all of it waits', () => {
  db.transaction(() => {
    db.lazyTransaction(() => insert(1));
    expect(synchronous()).toBe(FULL);
    insert(2);
  });
  expect(rows()).toEqual([1, 2]);
});
