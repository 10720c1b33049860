// From settings to listeners: name, address, protocol, and the settings of each (those of one over those of all).
// Pure. Not for: opening them (server.ts).
import { FloeError } from '../../base/error.ts';
import { findSetting, parseSetting } from '../../base/settings.ts';
import { SECURITY_PROTOCOLS, type SecurityProtocol } from './listener-auth.ts';
import { LISTENER_SETTINGS, type ListenerSettings, type SecuritySettings } from './settings.ts';

export interface ListenerSpec {
  /** Kafka's name of the listener. */
  readonly name: string;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly protocol: SecurityProtocol;
  readonly settings: ListenerSettings;
}

/** Settings as text, by name. */
type Given = Readonly<Record<string, string>>;

export interface SplitSettings {
  /** Those of all listeners, and all others. */
  readonly common: Given;
  /** Those of one listener, by its name in lower case. */
  readonly byListener: ReadonlyMap<string, Given>;
}

/** Takes `listener.name.<name>.<setting>` out of what was given. */
export function splitListenerSettings(given: Given): SplitSettings {
  const common: Record<string, string> = {};
  const byListener = new Map<string, Record<string, string>>();
  for (const [name, value] of Object.entries(given)) {
    const [, listener, setting] = /^listener\.name\.([^.]+)\.(.+)$/.exec(name) ?? [];
    if (listener === undefined || setting === undefined) {
      common[name] = value;
      continue;
    }
    const own = byListener.get(listener.toLowerCase()) ?? {};
    own[setting] = value;
    byListener.set(listener.toLowerCase(), own);
  }
  return { common, byListener };
}

/** The HTTP faces have security like a listener of this name, which Kafka's can't have. */
export const HTTP_LISTENER = 'HTTP';

/** By ascending strictness. */
const STRICTNESS: readonly SecurityProtocol[] = ['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'];

/** The security of the HTTP faces: as asked for, or the strictest of what Kafka's listeners have. */
export function httpListener(
  { settings, byListener }: Pick<ListenerOptions, 'settings' | 'byListener'>,
  listeners: readonly ListenerSpec[],
): ListenerSpec {
  const asked = settings['http.security.protocol'];
  const strictest = Math.max(...listeners.map(({ protocol }) => STRICTNESS.indexOf(protocol)));
  return {
    name: HTTP_LISTENER,
    host: '',
    port: 0,
    protocol: asked === 'auto' ? STRICTNESS[strictest]! : asked,
    settings: own(settings, HTTP_LISTENER, byListener.get(HTTP_LISTENER.toLowerCase()) ?? {}),
  };
}

export interface ListenerOptions {
  readonly settings: SecuritySettings;
  readonly byListener: SplitSettings['byListener'];
  /** Where PLAINTEXT listens when `listeners` is empty. */
  readonly fallback: { readonly host: string; readonly port: number };
}

/** @throws FloeError `invalid` naming the listener and what is wrong with it. */
export function listenersOf({ settings, byListener, fallback }: ListenerOptions): ListenerSpec[] {
  const given = settings.listeners;
  const addresses = given.length === 0 ? [{ name: 'PLAINTEXT', ...fallback }] : given.map(parse);
  const names = new Set(addresses.map(({ name }) => name.toLowerCase()));
  if (names.size < addresses.length) {
    throw new FloeError(
      'invalid',
      'listeners: two have the same name; map further names to protocols',
    );
  }
  if (names.has(HTTP_LISTENER.toLowerCase())) {
    throw new FloeError('invalid', 'listeners: the name HTTP stands for the HTTP faces');
  }
  for (const name of byListener.keys()) {
    if (!names.has(name) && name !== HTTP_LISTENER.toLowerCase()) {
      throw new FloeError('invalid', `listener.name.${name}.…: there is no such listener`);
    }
  }
  return addresses.map((address) => ({
    ...address,
    protocol: protocolOf(address.name, settings),
    settings: own(settings, address.name, byListener.get(address.name.toLowerCase()) ?? {}),
  }));
}

function parse(listener: string) {
  const [, name, host, port] = /^(\w+):\/\/(.*):(\d+)$/.exec(listener) as unknown as string[];
  // As in Kafka: no host means every address.
  const plain = host!.replace(/^\[|\]$/g, '');
  return { name: name!, host: plain === '' ? '0.0.0.0' : plain, port: Number(port) };
}

function protocolOf(name: string, settings: SecuritySettings): SecurityProtocol {
  const pairs = settings['listener.security.protocol.map'].map((pair) => pair.split(':'));
  const mapped = pairs.find(([listener]) => listener!.toLowerCase() === name.toLowerCase())?.[1];
  const protocol = SECURITY_PROTOCOLS.find((known) => known === (mapped ?? name));
  if (protocol !== undefined) return protocol;
  const why = `listener ${name}: its protocol is not in listener.security.protocol.map`;
  throw new FloeError('invalid', why);
}

function own(settings: SecuritySettings, listener: string, given: Given): ListenerSettings {
  const values: Record<string, unknown> = {};
  for (const name of Object.keys(LISTENER_SETTINGS)) {
    values[name] = settings[name as keyof SecuritySettings];
  }
  for (const [name, value] of Object.entries(given)) {
    const full = `listener.name.${listener.toLowerCase()}.${name}`;
    const found = findSetting(LISTENER_SETTINGS, name);
    if (found === undefined) {
      throw new FloeError('invalid', `unknown setting "${full}": see docs/settings.md`);
    }
    values[found[0]] = parseSetting(full, found[1], value);
  }
  return values as ListenerSettings;
}
