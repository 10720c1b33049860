// Limits on connections: counted exactly, changed while running, and nothing kept of a flood.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { PrometheusMetrics } from '../../base/metrics.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { apiVersionsApi } from '../../protocol/messages/18-api-versions.ts';
import { BrokerConfig, splitListenerLimits } from '../broker-config.ts';
import { brokerSettings } from '../settings.ts';
import { startTestBroker, type TestBroker } from '../testing/harness.ts';
import { RawClient } from '../testing/raw-client.ts';
import { ClientQuotas } from './client-quotas.ts';
import { ConnectionLimits, plainAddress } from './connection-limits.ts';

const clock = new ManualClock();

async function limitsWith(
  set: Readonly<Record<string, string>> = {},
  listenerLimits: Readonly<Record<string, string>> = {},
) {
  const settings = resolveSettings(brokerSettings, set);
  const { topics: store, quotas: metadata } = openSqliteMetadata(':memory:');
  const config = await BrokerConfig.load({ settings, nodeId: 1, store, listenerLimits });
  const quotas = await ClientQuotas.load({ metadata, settings, clock });
  return { config, quotas, limits: new ConnectionLimits({ config, quotas, clock }) };
}

/** Opens `count` connections as far as they may be; how each was admitted. */
function open(limits: ConnectionLimits, listener: string, address: string, count = 1): string[] {
  return Array.from({ length: count }, () => {
    const admission = limits.admit(listener, address);
    if (admission.kind === 'open') limits.opened(listener, address);
    if (admission.kind === 'wait') limits.waited();
    return admission.kind === 'refuse' ? admission.reason : admission.kind;
  });
}

describe('connections at a time', () => {
  it('are limited in all, per listener and per address, and counted down again', async () => {
    const { limits } = await limitsWith(
      { 'max.connections': '4', 'max.connections.per.ip': '2' },
      { 'listener.name.a.max.connections': '3' },
    );
    expect(open(limits, 'A', '10.0.0.1', 3)).toEqual(['open', 'open', 'address']);
    expect(open(limits, 'A', '10.0.0.2', 2)).toEqual(['open', 'listener']);
    expect(open(limits, 'B', '10.0.0.2', 2)).toEqual(['open', 'broker']);
    limits.closed('A', '10.0.0.1');
    expect(open(limits, 'A', '10.0.0.1', 2)).toEqual(['open', 'broker']);
  });

  it('have their own limit for addresses that are named', async () => {
    const { limits } = await limitsWith({
      'max.connections.per.ip': '1',
      'max.connections.per.ip.overrides': '10.0.0.1:2,::1:0',
    });
    expect(open(limits, 'A', '10.0.0.1', 3)).toEqual(['open', 'open', 'address']);
    expect(open(limits, 'A', '::1')).toEqual(['address']);
    expect(open(limits, 'A', '10.0.0.2', 2)).toEqual(['open', 'address']);
  });

  it('follow changes of the broker’s configs', async () => {
    const { limits, config } = await limitsWith({ 'max.connections.per.ip': '1' });
    expect(open(limits, 'A', '10.0.0.1', 2)).toEqual(['open', 'address']);
    await config.alter('', config.check({ 'max.connections.per.ip': '2' }));
    expect(open(limits, 'A', '10.0.0.1', 2)).toEqual(['open', 'address']);
    await config.alter('1', config.check({ 'listener.name.a.max.connections': '2' }));
    expect(open(limits, 'A', '10.0.0.2')).toEqual(['listener']);
  });
});

describe('new connections', () => {
  it('wait their turn when listener or broker get too many', async () => {
    const { limits } = await limitsWith(
      { 'max.connection.creation.rate': '2' },
      { 'listener.name.a.max.connection.creation.rate': '1' },
    );
    expect(open(limits, 'A', '10.0.0.1', 11)).toEqual([...Array(10).fill('open'), 'wait']);
    expect(open(limits, 'B', '10.0.0.1', 10)).toEqual([...Array(9).fill('open'), 'wait']);
  });

  it('of an address are closed above its quota, which refused ones do not use up', async () => {
    const { limits, quotas } = await limitsWith();
    await quotas.alter([{ entity: { ip: null }, values: { connection_creation_rate: 1 } }]);
    await quotas.alter([{ entity: { ip: '10.0.0.9' }, values: { connection_creation_rate: 2 } }]);
    for (let n = 0; n < 10; n += 1) limits.admit('A', '10.0.0.1');
    for (let n = 0; n < 1_000; n += 1) open(limits, 'A', '10.0.0.1');
    const refused = limits.admit('A', '10.0.0.1');
    expect(refused).toMatchObject({ kind: 'wait', after: 'close' });
    limits.waited();
    expect(open(limits, 'A', '10.0.0.9', 20)).toEqual(Array(20).fill('open'));
    await clock.advance(11_000);
    expect(open(limits, 'A', '10.0.0.1')).toEqual(['open']);
  });

  it('of a flood wait in small numbers only, and leave nothing', async () => {
    const { limits, quotas } = await limitsWith();
    await quotas.alter([{ entity: { ip: null }, values: { connection_creation_rate: 0.01 } }]);
    let refused = 0;
    for (let n = 0; n < 20_000; n += 1) {
      const address = `10.0.${Math.floor(n / 250)}.${n % 250}`;
      if (limits.admit('A', address).kind === 'refuse') refused += 1;
    }
    expect(limits.waiting).toBe(512);
    expect(refused).toBe(20_000 - 512);
    expect(limits.rememberedAddresses).toBeLessThanOrEqual(10_000);
    await quotas.alter([{ entity: { ip: null }, values: { connection_creation_rate: null } }]);
    limits.admit('A', '10.0.0.1');
    expect(limits.rememberedAddresses).toBe(0);
  });
});

it('limits of listeners are taken out of what was given, and checked', () => {
  const given = { 'listener.name.SSL.max.connections': '5', 'listener.name.ssl.x': 'y', a: 'b' };
  expect(splitListenerLimits(given)).toEqual({
    limits: { 'listener.name.ssl.max.connections': '5' },
    others: { 'listener.name.ssl.x': 'y', a: 'b' },
  });
  const bad = { 'listener.name.ssl.max.connections': 'many' };
  expect(() => splitListenerLimits(bad)).toThrow(/listener\.name\.ssl\.max\.connections.*many/);
});

it('an IPv4 client is the same behind an IPv6 socket', () => {
  expect(plainAddress('::ffff:10.0.0.1')).toBe('10.0.0.1');
  expect(plainAddress('::ffff:1')).toBe('::ffff:1');
});

describe('a server', () => {
  let test: TestBroker;
  let metrics: PrometheusMetrics;
  let time: ManualClock;
  const clients: RawClient[] = [];

  beforeEach(async () => {
    metrics = new PrometheusMetrics();
    time = new ManualClock();
    test = await startTestBroker({ metrics, clock: time });
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    await test.stop();
  });

  async function connect(): Promise<RawClient> {
    const client = await RawClient.connect(test.port);
    clients.push(client);
    return client;
  }

  const request = { clientSoftwareName: 'a', clientSoftwareVersion: '1' };

  it('closes what is too much of an address after a wait', async () => {
    const entity = { ip: '127.0.0.1' };
    await test.broker.services.quotas.alter([
      { entity, values: { connection_creation_rate: 0.1 } },
    ]);
    const first = await connect();
    expect((await first.call(apiVersionsApi, 3, request)).errorCode).toBe(0);
    const second = await connect();
    // The first one's answer comes after the second was accepted.
    await first.call(apiVersionsApi, 3, request);
    expect(second.isClosed).toBe(false);
    await time.advance(1_000);
    await second.closed;
    expect(await metrics.render()).toContain(
      'floe_broker_connections_refused_total{reason="address-rate"} 1',
    );
  });

  it('lets connections wait their turn, and serves them then', async () => {
    const { config } = test.broker;
    await config.alter('', config.check({ 'max.connection.creation.rate': '1' }));
    for (let n = 0; n < 10; n += 1) {
      const early = await connect();
      await early.call(apiVersionsApi, 3, request);
    }
    const late = await connect();
    late.send(apiVersionsApi, 3, request);
    const answer = late.receive(apiVersionsApi, 3);
    await clients[0]!.call(apiVersionsApi, 3, request);
    expect(await metrics.render()).toContain('floe_broker_connections 10');
    await time.advance(1_000);
    expect((await answer).response.errorCode).toBe(0);
  });

  it('stops with sockets that still wait', async () => {
    const { config } = test.broker;
    await config.alter('', config.check({ 'max.connection.creation.rate': '1' }));
    for (let n = 0; n < 12; n += 1) await connect();
    const [first] = clients;
    await first!.call(apiVersionsApi, 3, request);
    const stopped = test.stop();
    await Promise.all(clients.map(({ closed }) => closed));
    await stopped;
    test = await startTestBroker({ clock: time });
  });
});
