// HOST:PORT arguments. Not for: Kafka's listener syntax (PLAINTEXT://…), which one node doesn't need.
import { FloeError } from '../base/error.ts';

export interface Address {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
}

/** Parses `HOST:PORT`, `[::1]:PORT` or a bare port. @throws FloeError `invalid` naming the option. */
export function parseAddress(option: string, text: string): Address {
  const match = /^(?:(\[[0-9a-fA-F:]+\]|[^:\s]*):)?(\d{1,5})$/.exec(text.trim());
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new FloeError('invalid', `${option}: "${text}" is not HOST:PORT, such as 127.0.0.1:9092`);
  }
  const host = (match[1] ?? '').replace(/^\[|\]$/g, '');
  return { host: host === '' ? '127.0.0.1' : host, port };
}

export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
