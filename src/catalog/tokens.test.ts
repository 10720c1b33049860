import { expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { seededIds, seededPrng } from '../base/prng.ts';
import { openSqliteMetadata } from '../metadata/sqlite/index.ts';
import { CatalogTokens } from './tokens.ts';

const metadata = openSqliteMetadata(':memory:').catalog;
const clock = new ManualClock();
const made = (seed: number, store = metadata) =>
  new CatalogTokens({
    metadata: store,
    clock,
    ids: seededIds(seededPrng(seed)),
    lifetimeMs: 60_000,
  });

test('a token says its user, also to another node of the cluster, until its time is up', async () => {
  const { token, expiresInSeconds } = await made(1).issue('ann');
  expect(expiresInSeconds).toBe(60);
  const other = made(2);
  expect(other.isOurs(token)).toBe(true);
  expect(await other.verify(token)).toBe('ann');
  await clock.advance(61_000);
  await expect(other.verify(token)).rejects.toMatchObject({
    code: 'unauthorized',
    details: { expired: true },
  });
});

test('another cluster’s token, a changed one and no token are refused', async () => {
  const { token } = await made(3).issue('ann');
  const [header, , signature] = token.split('.');
  const body = Buffer.from(JSON.stringify({ sub: 'root', iss: 'floe', exp: 9e9 }));
  const foreign = made(4, openSqliteMetadata(':memory:').catalog);
  await expect(foreign.verify(token)).rejects.toMatchObject({ code: 'unauthorized' });
  for (const bad of [`${header}.${body.toString('base64url')}.${signature}`, 'x.y.z', ''])
    await expect(made(3).verify(bad)).rejects.toMatchObject({ code: 'unauthorized' });
  expect(made(3).isOurs('not a token')).toBe(false);
});
