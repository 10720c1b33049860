import { expect, test } from 'vitest';
import { rackInClientId } from './client-rack.ts';

const RACKS = ['us-east-1', 'us-east-1a', 'b'];

test.each([
  ['app', undefined],
  ['app,rack=us-east-1a', 'us-east-1a'],
  ['rack=us-east-1a;team=x', 'us-east-1a'],
  ['app&zone=b', 'b'],
  ['app floe_rack=b', 'b'],
  ['warpstream_az=b,warpstream_proxy=x', 'b'],
  ['app,ws_az=us-east-1', 'us-east-1'],
  ['automq_type=consumer&automq_az=us-east-1a', 'us-east-1a'],
  ['client,diskless_az=b', 'b'],
  // What Streams puts behind it.
  ['rack=us-east-1a-StreamThread-1-producer', 'us-east-1a'],
  ['rack=elsewhere', undefined],
  ['rack=bb', undefined],
  ['track=b', undefined],
  ['rack=', undefined],
])('%s → %s', (clientId, rack) => {
  expect(rackInClientId(clientId, RACKS)).toBe(rack);
});
