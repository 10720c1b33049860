// Listeners from settings: names, protocols, settings of one over those of all, and what contradicts itself.
import { expect, it } from 'vitest';
import { resolveSettings } from '../../base/settings.ts';
import { httpListener, listenersOf, splitListenerSettings } from './listeners.ts';
import { parseMappingRules, subjectName } from './principal-mapping.ts';
import { securitySettings } from './settings.ts';

function from(given: Readonly<Record<string, string>>) {
  const { common, byListener } = splitListenerSettings(given);
  const settings = resolveSettings(securitySettings, common);
  const fallback = { host: '127.0.0.1', port: 9092 };
  const listeners = listenersOf({ settings, byListener, fallback });
  return { listeners, http: httpListener({ settings, byListener }, listeners) };
}

it('is one plain listener unless told otherwise', () => {
  const { listeners, http } = from({});
  expect(listeners).toMatchObject([
    { name: 'PLAINTEXT', host: '127.0.0.1', port: 9092, protocol: 'PLAINTEXT' },
  ]);
  expect(http.protocol).toBe('PLAINTEXT');
});

it('knows names by the map, hosts of every kind, and settings of one listener', () => {
  const { listeners, http } = from({
    listeners: 'INTERNAL://:9092,PUBLIC://[::1]:9093',
    'listener.security.protocol.map': 'INTERNAL:SSL,public:SASL_SSL',
    'sasl.enabled.mechanisms': 'SCRAM-SHA-512',
    'listener.name.internal.ssl.client.auth': 'required',
    'listener.name.http.ssl.keystore.location': '/http.pem',
  });
  expect(listeners).toMatchObject([
    { name: 'INTERNAL', host: '0.0.0.0', port: 9092, protocol: 'SSL' },
    { name: 'PUBLIC', host: '::1', port: 9093, protocol: 'SASL_SSL' },
  ]);
  expect(listeners.map(({ settings }) => settings['ssl.client.auth'])).toEqual([
    'required',
    'none',
  ]);
  expect(listeners[1]!.settings['sasl.enabled.mechanisms']).toEqual(['SCRAM-SHA-512']);
  expect(http.protocol).toBe('SASL_SSL');
  expect(http.settings['ssl.keystore.location']).toBe('/http.pem');
});

it.each<[string, Readonly<Record<string, string>>, RegExp]>([
  ['a name without protocol', { listeners: 'MINE://:1' }, /MINE: its protocol is not in/],
  ['a name twice', { listeners: 'SSL://:1,ssl://:2' }, /two have the same name/],
  ['the name of the HTTP faces', { listeners: 'HTTP://:1' }, /HTTP stands for/],
  ['no address', { listeners: 'SSL' }, /NAME:\/\/host:port/],
  [
    'a setting of no listener',
    { 'listener.name.gone.ssl.client.auth': 'none' },
    /no such listener/,
  ],
  ['an unknown setting', { 'listener.name.plaintext.ssl.colour': 'x' }, /unknown setting/],
  ['a bad value', { 'listener.name.plaintext.ssl.client.auth': 'maybe' }, /maybe/],
  ['a bad map', { 'listener.security.protocol.map': 'A:TLS' }, /"A:TLS" is not NAME:PROTOCOL/],
  ['a bad super user', { 'super.users': 'admin' }, /User:NAME/],
])('refuses %s', (_what, given, message) => {
  expect(() => from(given)).toThrow(message);
});

it('maps subjects to names as Kafka does', () => {
  const subject = subjectName('C=DE\nO=Floe\\, Inc.\nCN=Alice');
  expect(subject).toBe('CN=Alice,O=Floe\\, Inc.,C=DE');
  const name = (rules: string) => parseMappingRules(rules)(subject);
  expect(name('DEFAULT')).toBe(subject);
  expect(name('RULE:^CN=([^,]+),.*$/$1/')).toBe('Alice');
  expect(name('RULE:^CN=([^,]+),.*$/$1/L')).toBe('alice');
  expect(name('RULE:^CN=([^,]+),.*C=(..)$/$1@$2/U, DEFAULT')).toBe('ALICE@DE');
  expect(name('RULE:^UID=(.*)$/$1/, DEFAULT')).toBe(subject);
  // Only a rule that fits the whole subject counts.
  expect(name('RULE:CN=Alice/bob/')).toBeUndefined();
  expect(() => parseMappingRules('RULE:x')).toThrow(/neither DEFAULT nor RULE/);
  expect(() => parseMappingRules('RULE:(/x/')).toThrow(/ssl.principal.mapping.rules/);
});
