// What two brokers over one metadata store keep in memory: what one changes, the other has after a refresh; what a broker
// changed itself is there at once, whatever is read meanwhile.
import { expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { seededPrng } from '../base/prng.ts';
import { resolveSettings } from '../base/settings.ts';
import { openSqliteMetadata } from '../metadata/sqlite/index.ts';
import { openSecurity, securitySettings } from './auth/index.ts';
import { BrokerConfig } from './broker-config.ts';
import { ClientQuotas } from './quotas/index.ts';
import { ResourceConfigs } from './resource-configs.ts';
import { brokerSettings } from './settings.ts';

const settings = resolveSettings(brokerSettings, {});

test('broker configs: the cluster’s and one’s own', async () => {
  const store = openSqliteMetadata(':memory:').topics;
  const one = await BrokerConfig.load({ settings, nodeId: 1, store });
  const two = await BrokerConfig.load({ settings, nodeId: 2, store });
  let told = 0;
  two.onChange(() => {
    told += 1;
  });
  await one.alter('', { 'message.max.bytes': '100' });
  await one.alter('1', { 'request.slow.ms': '7' });
  expect(two.values['message.max.bytes']).toBe(1_048_588);
  await two.refresh();
  expect(two.values['message.max.bytes']).toBe(100);
  expect(two.values['request.slow.ms']).not.toBe(7);
  await two.refresh();
  expect(told).toBe(1);
  // Another broker's own settings are kept for it and don't touch ours.
  await one.alter('2', { 'message.max.bytes': '200' });
  expect(one.values['message.max.bytes']).toBe(100);
  await two.refresh();
  expect(two.values['message.max.bytes']).toBe(200);
});

test('resource configs: set, changed, gone', async () => {
  const metadata = openSqliteMetadata(':memory:').resourceConfigs;
  const [one, two] = [await ResourceConfigs.load(metadata), await ResourceConfigs.load(metadata)];
  const told: string[] = [];
  two.onChange((kind, name) => told.push(`${kind} ${name}`));
  await one.alter('group', 'g', { 'consumer.session.timeout.ms': '50000' });
  await one.alter('client-metrics', 'm', { 'interval.ms': '1000' });
  await two.refresh();
  expect(two.of('group', 'g')).toEqual({ 'consumer.session.timeout.ms': '50000' });
  await one.alter('group', 'g', { 'consumer.session.timeout.ms': null });
  await two.refresh();
  await two.refresh();
  expect(two.of('group', 'g')).toBeUndefined();
  expect(two.all('client-metrics').size).toBe(1);
  expect(told.toSorted()).toEqual(['client-metrics m', 'group g', 'group g']);
});

test('quotas: what clients used still counts', async () => {
  const metadata = openSqliteMetadata(':memory:').quotas;
  const load = () => ClientQuotas.load({ metadata, settings, clock: systemClock });
  const [one, two] = [await load(), await load()];
  const entity = { user: 'ann' };
  await one.alter([{ entity, values: { producer_byte_rate: 100 } }]);
  expect(two.active).toBe(false);
  await two.refresh();
  const meter = two.limits('ann', 'c')!.produce!;
  expect(meter.limit).toBe(100);
  await one.alter([{ entity, values: { producer_byte_rate: 200 } }]);
  await two.refresh();
  expect(two.limits('ann', 'c')!.produce).toBe(meter);
  expect(meter.limit).toBe(200);
});

/** A node's security over `metadata`. */
function secured(metadata: Parameters<typeof openSecurity>[0]['metadata']) {
  const given = {
    'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
  };
  return openSecurity({
    settings: resolveSettings(securitySettings, given),
    listeners: [],
    metadata,
    clock: systemClock,
    prng: seededPrng(1),
    logger: silentLogger,
  });
}

const MAY_READ = {
  resourceType: 2,
  resourceName: 't',
  patternType: 3,
  principal: 'User:ann',
  host: '*',
  operation: 3,
  permission: 3,
};
const ann = { principal: { type: 'User', name: 'ann' }, host: '::1' } as const;

test('users and rules: given, changed, taken away', async () => {
  const metadata = openSqliteMetadata(':memory:').security;
  const [one, two] = [await secured(metadata), await secured(metadata)];
  const name = { user: 'ann', mechanism: 'SCRAM-SHA-256' } as const;
  await one.users.alter([await one.users.salted(name, 'secret')], []);
  await one.authorizer.acls!.add([MAY_READ]);
  expect(await two.users.verify('ann', 'secret')).toBe(false);
  await two.refresh();
  expect(await two.users.verify('ann', 'secret')).toBe(true);
  expect(two.authorizer.allows(ann, 'read', 'topic', 't')).toBe(true);

  const credential = two.users.credential(name);
  const { version } = two.authorizer;
  await two.refresh();
  // Nothing has changed: what was worked out from it stays.
  expect(two.users.credential(name)).toBe(credential);
  expect(two.authorizer.version).toBe(version);

  await one.users.alter([await one.users.salted(name, 'other')], []);
  await one.authorizer.acls!.remove([MAY_READ]);
  await two.refresh();
  expect(await two.users.verify('ann', 'secret')).toBe(false);
  expect(await two.users.verify('ann', 'other')).toBe(true);
  expect(two.authorizer.allows(ann, 'read', 'topic', 't')).toBe(false);
});

test('what was read before a change of one’s own does not undo it', async () => {
  const store = openSqliteMetadata(':memory:').security;
  let release = () => {};
  const slow = {
    load: async () => {
      const loaded = await store.load();
      await new Promise<void>((resolve) => {
        release = resolve;
        if (!slow.hold) resolve();
      });
      return loaded;
    },
    alterAcls: store.alterAcls.bind(store),
    alterCredentials: store.alterCredentials.bind(store),
    hold: false,
  };
  const security = await secured(slow);
  slow.hold = true;
  const refreshed = security.refresh();
  const added = security.authorizer.acls!.add([MAY_READ]);
  await new Promise((resolve) => setImmediate(resolve));
  release();
  await Promise.all([refreshed, added]);
  expect(security.authorizer.allows(ann, 'read', 'topic', 't')).toBe(true);
});
