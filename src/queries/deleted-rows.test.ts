// Every kind of delete by row, beside a count kept by hand: files of many names, chunks, sequence numbers and layouts.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DataFile } from '../formats/iceberg/index.ts';
import { writeVectors } from '../formats/iceberg/puffin.ts';
import type { Tail } from './tail.ts';
import { SqlFixture, type WrittenFile } from './testing.ts';

const IDS = '{id: 1}';
/** More than one chunk of bits, and more than one of DuckDB's vectors. */
const LONG = 20_000;

let fixture: SqlFixture;
let tail: Tail | undefined;

beforeEach(() => {
  tail = undefined;
  fixture = new SqlFixture({}, { tail: { read: async () => tail } });
});

afterEach(() => fixture.stop());

/** Rows with the ids `from`, `from` + 1, … at positions 0, 1, … */
const data = (from: number, count: number, more: WrittenFile = {}) =>
  fixture.write(`SELECT range AS id FROM range(${from}, ${from + count})`, {
    fieldIds: IDS,
    ...more,
  });

type Place = readonly [file: DataFile | string, position: number | bigint];

const positionDeletes = (places: readonly Place[], more: WrittenFile = {}) => {
  const rows = places.map(([file, position]) => {
    const uri = typeof file === 'string' ? file : file.filePath;
    return `('${uri.replaceAll("'", "''")}', ${position}::BIGINT)`;
  });
  return fixture.write(`SELECT * FROM (VALUES ${rows.join(', ')}) t(file_path, pos)`, {
    fieldIds: '{file_path: 2147483546, pos: 2147483545}',
    ...more,
    changes: { content: 1, ...more.changes },
  });
};

const equalityDeletes = (ids: readonly number[], more: WrittenFile = {}) =>
  fixture.write(`SELECT unnest([${ids.join(', ')}])::BIGINT AS id`, {
    fieldIds: IDS,
    ...more,
    changes: { content: 2, equalityIds: [1], ...more.changes },
  });

async function vectors(places: readonly (readonly [DataFile, readonly number[]])[]) {
  const path = `${fixture.root}/kafka/people/data/vectors-${places.length}.puffin`;
  const { files, bytes } = await writeVectors(
    path,
    places.map(([file, positions]) => ({
      filePath: file.filePath,
      data: file,
      positions: Float64Array.from(positions),
    })),
  );
  fixture.table.files.set(path, bytes);
  return files;
}

async function ids(): Promise<number[]> {
  return (await fixture.rows('SELECT id FROM people ORDER BY id')).map(([id]) => Number(id));
}

const range = (from: number, count: number) => Array.from({ length: count }, (_, n) => from + n);
const except = (all: readonly number[], ...gone: readonly number[]) =>
  all.filter((id) => !gone.includes(id));

test('a position named twice, by one file and by two, at the edges of chunks; others stay', async () => {
  const file = await data(0, LONG);
  await fixture.table.commit({ added: [file] });
  const gone = [0, 63, 2047, 2048, 8191, 8192, 16_383, 16_384, LONG - 1];
  const places = gone.map((position): Place => [file, position]);
  await fixture.table.commit({ added: [await positionDeletes([...places, ...places])] });
  await fixture.table.commit({ added: [await positionDeletes([[file, 8192]])] });
  expect(await ids()).toEqual(except(range(0, LONG), ...gone));
});

test('files are told apart whatever their names, and those without deletes are read as they are', async () => {
  const names = ["it's", 'a b', '[x]*?', 'a%20b', 'ü', 'a#b=c', '100%'];
  const files: DataFile[] = [];
  for (const [n, name] of names.entries())
    files.push(await data(n * 10, 10, { name: `${name}.parquet` }));
  const clean = await data(100, 10);
  await fixture.table.commit({ added: [...files, clean] });
  // The third delete file is about one data file alone: the others of its commit have none.
  const places = files.map((file, n): Place => [file, n]);
  await fixture.table.commit({
    added: [
      await positionDeletes(places.slice(0, 3)),
      await positionDeletes(places.slice(3, 6)),
      await positionDeletes(places.slice(6), {
        changes: { referencedDataFile: files[6]!.filePath },
      }),
    ],
  });
  const gone = files.map((_, n) => n * 10 + n);
  expect(await ids()).toEqual(except([...range(0, 70), ...range(100, 10)], ...gone));
});

test('many files, each with deletes of its own', async () => {
  const files: DataFile[] = [];
  for (let n = 0; n < 60; n += 1) files.push(await data(n * 20, 20));
  await fixture.table.commit({ added: files });
  const places = files.flatMap((file, n): Place[] => [
    [file, n % 20],
    [file, (n * 7) % 20],
  ]);
  await fixture.table.commit({ added: [await positionDeletes(places)] });
  const gone = new Set(places.map(([, position], at) => (at >> 1) * 20 + Number(position)));
  expect(await ids()).toEqual(range(0, 1200).filter((id) => !gone.has(id)));
});

test('deletes of files that are not read, and of rows that no file has, delete nothing', async () => {
  const file = await data(0, 10);
  await fixture.table.commit({ added: [file] });
  const places: Place[] = [
    [`${file.filePath}x`, 1],
    [file, 10],
    [file, -1],
    [file, 2n ** 53n],
    [file, 2n ** 62n],
    [file, 3],
  ];
  await fixture.table.commit({ added: [await positionDeletes(places)] });
  expect(await ids()).toEqual(except(range(0, 10), 3));
});

test('a delete concerns rows as old as it is or older', async () => {
  const [old, together, late] = [await data(0, 10), await data(10, 10), await data(20, 10)];
  await fixture.table.commit({ added: [old] });
  const places: Place[] = [
    [old, 1],
    [together, 1],
    [late, 1],
  ];
  await fixture.table.commit({ added: [together, await positionDeletes(places)] });
  await fixture.table.commit({ added: [late] });
  expect(await ids()).toEqual(except(range(0, 30), 1, 11));
});

test('vectors beside position deletes: a file with a vector has no other deletes by row', async () => {
  const [first, second, third] = [await data(0, LONG), await data(LONG, 10), await data(30_000, 5)];
  await fixture.table.commit({ added: [first, second, third] });
  const places: Place[] = [
    [first, 4],
    [second, 4],
  ];
  await fixture.table.commit({ added: [await positionDeletes(places)] });
  fixture.table.update({ action: 'upgrade-format-version', 'format-version': 3 });
  await fixture.table.commit({
    added: [
      ...(await vectors([
        [first, [5, 8192, LONG - 1]],
        [third, [0]],
      ])),
    ],
  });
  const all = [...range(0, LONG + 10), ...range(30_000, 5)];
  expect(await ids()).toEqual(except(all, 5, 8192, LONG - 1, LONG + 4, 30_000));
});

test('rows that the tail replaces go with those that were deleted before', async () => {
  const [first, second] = [await data(0, LONG), await data(LONG, 10)];
  await fixture.table.commit({ added: [first, second] });
  await fixture.table.commit({ added: [await positionDeletes([[first, 1]])] });
  const fresh = await data(50_000, 10);
  tail = {
    files: [{ file: fresh, bytes: await fixture.table.read(fresh.filePath) }],
    gone: new Map([
      // Not in the order of rows, and of one chunk with the row that is deleted.
      [first.filePath, Float64Array.of(9000, 2, 1)],
      [fresh.filePath, Float64Array.of(0)],
      ['file:///not/read.parquet', Float64Array.of(3)],
    ]),
  };
  const all = [...range(0, LONG + 10), ...range(50_000, 10)];
  expect(await ids()).toEqual(except(all, 1, 2, 9000, 50_000));
  tail = undefined;
  expect(await ids()).toEqual(except(range(0, LONG + 10), 1));
});

test('a table named twice in a query has its deletes twice', async () => {
  const file = await data(0, 10);
  await fixture.table.commit({ added: [file] });
  await fixture.table.commit({ added: [await positionDeletes([[file, 3]])] });
  const query = 'SELECT count(*) FROM people a JOIN people b USING (id) WHERE a.id < 5';
  expect(await fixture.rows(query)).toEqual([[4]]);
});

describe('equality deletes', () => {
  test('concern older rows only, everywhere when their spec is unpartitioned', async () => {
    await fixture.table.commit({ added: [await data(0, 10)] });
    await fixture.table.commit({ added: [await data(5, 10), await equalityDeletes([1, 7])] });
    const late = await data(0, 2);
    await fixture.table.commit({ added: [late] });
    await fixture.table.commit({ added: [await positionDeletes([[late, 0]])] });
    // Of the first file all but 1 and 7, of the second all, of the late one its second row.
    const left = [...except(range(0, 10), 1, 7), ...range(5, 10), 1];
    expect(await ids()).toEqual(left.sort((a, b) => a - b));
  });

  test('concern their own partition when they have one', async () => {
    await fixture.stop();
    fixture = new SqlFixture({
      partitionFields: [{ 'source-id': 2, name: 'name', transform: 'identity' }],
    });
    const parts = ['a', 'b', null];
    const of = (part: string | null) => ({ partition: [part] });
    const files: DataFile[] = [];
    for (const part of parts) files.push(await data(0, 10, of(part)));
    fixture.table.update({ action: 'add-spec', spec: { 'spec-id': 1, fields: [] } });
    await fixture.table.commit({ added: files });
    await fixture.table.commit({
      added: [
        await equalityDeletes([1, 2], of('a')),
        await equalityDeletes([3], of(null)),
        // Of another spec, the unpartitioned one the table had: anywhere.
        await equalityDeletes([9], { changes: { specId: 1 } }),
        // By other columns.
        await fixture.write("SELECT 8::BIGINT AS id, 'b' AS name", {
          fieldIds: '{id: 1, name: 2}',
          changes: { content: 2, equalityIds: [1, 2], specId: 1 },
        }),
        await positionDeletes([[files[1]!, 4]], of('b')),
      ],
    });
    const left = await fixture.rows(
      'SELECT name, list(id ORDER BY id) FROM people GROUP BY name ORDER BY name',
    );
    expect(left).toEqual([
      ['a', except(range(0, 10), 1, 2, 9)],
      ['b', except(range(0, 10), 4, 8, 9)],
      [null, except(range(0, 10), 3, 9)],
    ]);
  });
});

test('a file whose own columns hide the places of its rows is refused, not misread', async () => {
  fixture.table.update({
    action: 'set-properties',
    updates: {
      'schema.name-mapping.default': JSON.stringify([{ 'field-id': 1, names: ['id'] }]),
    },
  });
  const file = await fixture.write('SELECT range AS id, 7 AS "File_Row_Number" FROM range(5)');
  await fixture.table.commit({ added: [file] });
  expect(await ids()).toEqual(range(0, 5));
  await fixture.table.commit({ added: [await positionDeletes([[file, 3]])] });
  await expect(ids()).rejects.toMatchObject({ code: 'unsupported' });
});

test.each([
  ['has no pos', 'SELECT file_path FROM', '{file_path: 2147483546}'],
  ['has a text for pos', "SELECT file_path, 'three' AS pos FROM", undefined],
])(
  'a position delete file that %s is named, and the query is not blamed',
  async (_, select, fieldIds) => {
    const file = await data(0, 10);
    const shown = `(SELECT '${file.filePath}' AS file_path)`;
    const wrong = await fixture.write(`${select} ${shown}`, {
      fieldIds: fieldIds ?? '{file_path: 2147483546, pos: 2147483545}',
      changes: { content: 1 },
    });
    await fixture.table.commit({ added: [file, wrong] });
    await expect(ids()).rejects.toMatchObject({
      code: 'corrupt',
      message: expect.stringContaining(wrong.filePath),
    });
    expect(await fixture.rows('SELECT 1')).toEqual([[1]]);
  },
);
