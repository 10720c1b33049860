// Key, certificate and authorities of a listener, from PEM files: checked before they are used, read again when told,
// and only then replaced, so that a half-written file changes nothing. Not for: sockets (server.ts).
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { FloeError } from '../../base/error.ts';
import type { ListenerSettings } from './settings.ts';

/** What node:tls takes, HTTP servers included. */
export interface TlsMaterial {
  readonly key: string;
  readonly cert: string;
  readonly ca?: string;
  readonly passphrase?: string;
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  readonly maxVersion: 'TLSv1.2' | 'TLSv1.3';
  readonly ciphers?: string;
}

export class TlsFiles {
  readonly #settings: ListenerSettings;
  readonly #asksClients: boolean;
  readonly #listeners = new Set<(material: TlsMaterial) => void>();
  #material: TlsMaterial;

  /** @throws FloeError naming the setting and the file that can't be used. */
  constructor(settings: ListenerSettings, asksClients: boolean) {
    this.#settings = settings;
    this.#asksClients = asksClients;
    this.#material = this.#read();
  }

  get material(): TlsMaterial {
    return this.#material;
  }

  /** Called with new material after each change. */
  onChange(listener: (material: TlsMaterial) => void): void {
    this.#listeners.add(listener);
  }

  /** Looks at the files again; true when they changed. @throws FloeError when they can't be used: the old ones stay. */
  reload(): boolean {
    const material = this.#read();
    const { key, cert, ca } = this.#material;
    if (material.key === key && material.cert === cert && material.ca === ca) return false;
    this.#material = material;
    for (const listener of this.#listeners) listener(material);
    return true;
  }

  #read(): TlsMaterial {
    const settings = this.#settings;
    const auth = this.#asksClients ? settings['ssl.client.auth'] : 'none';
    const certificatePath = settings['ssl.keystore.location'];
    const keyPath = settings['ssl.keystore.key.location'] || certificatePath;
    const cert = readPem('ssl.keystore.location', certificatePath, 'CERTIFICATE');
    const key = readPem('ssl.keystore.key.location', keyPath, 'PRIVATE KEY');
    const passphrase = settings['ssl.key.password'];
    checkPair(cert, { key, passphrase });
    const caPath = settings['ssl.truststore.location'];
    const ca =
      caPath === '' ? undefined : readPem('ssl.truststore.location', caPath, 'CERTIFICATE');
    const versions = settings['ssl.enabled.protocols'];
    return {
      key,
      cert,
      ...(ca === undefined ? {} : { ca }),
      ...(passphrase === '' ? {} : { passphrase }),
      requestCert: auth !== 'none',
      // `requested`: whoever shows one that isn't trusted is refused by server.ts.
      rejectUnauthorized: auth === 'required',
      minVersion: versions.includes('TLSv1.2') ? 'TLSv1.2' : 'TLSv1.3',
      maxVersion: versions.includes('TLSv1.3') ? 'TLSv1.3' : 'TLSv1.2',
      ...(settings['ssl.cipher.suites'] === '' ? {} : { ciphers: settings['ssl.cipher.suites'] }),
    };
  }
}

function readPem(setting: string, path: string, kind: string): string {
  if (path === '') {
    throw new FloeError('invalid', `a listener speaks TLS: set ${setting} to a PEM file`);
  }
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (caught) {
    throw FloeError.from(caught, `${setting}=${path}`);
  }
  if (new RegExp(`-----BEGIN [A-Z0-9 ]*${kind}-----`).test(text)) return text;
  throw new FloeError('invalid', `${setting}=${path}: there is no ${kind} in it (PEM)`);
}

function checkPair(cert: string, key: { readonly key: string; readonly passphrase: string }): void {
  let fits: boolean;
  try {
    fits = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch (caught) {
    const why = (caught as Error).message;
    throw new FloeError('invalid', `certificate or private key can't be read: ${why}`);
  }
  if (!fits) throw new FloeError('invalid', 'private key and certificate are of different pairs');
}
