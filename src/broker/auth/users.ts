// Users with passwords: those in the metadata store (KIP-554) over those of the configuration, both as salted
// credentials in memory. An unknown user gets a credential that no password fits, the same every time, so that
// nobody learns from the server which users there are.
// Not for: what a user may do (acl-authorizer.ts).
import { timingSafeEqual } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Prng } from '../../base/prng.ts';
import { Mutex } from '../../base/queue.ts';
import type {
  CredentialName,
  ScramCredential,
  ScramMechanism,
  SecurityMetadata,
} from '../../metadata/security.ts';
import {
  credentialOf,
  hmac,
  isPassword,
  MIN_ITERATIONS,
  SCRAM,
  SCRAM_MECHANISMS,
  saltPassword,
} from './scram-keys.ts';

const SALT_BYTES = 24;

/** Most users of the store: all of them are held in memory. */
export const MAX_USERS = 100_000;

export interface UsersOptions {
  readonly store: SecurityMetadata;
  /** The credentials in the store. */
  readonly credentials: readonly ScramCredential[];
  readonly prng: Prng;
  /** Changes take turns with whoever reads the store again and calls `replace`. */
  readonly turns?: Mutex;
}

type Credentials = Map<ScramMechanism, ScramCredential>;

export class Users {
  readonly #store: SecurityMetadata;
  readonly #prng: Prng;
  readonly #turns: Mutex;
  #stored = new Map<string, Credentials>();
  readonly #configured = new Map<string, Credentials>();
  readonly #verified = new WeakMap<ScramCredential, Buffer>();
  /** Of this process: unknown users look the same as long as it runs. */
  readonly #secret: Uint8Array;

  constructor({ store, credentials, prng, turns = new Mutex() }: UsersOptions) {
    this.#store = store;
    this.#turns = turns;
    this.#prng = prng;
    this.#secret = prng.bytes(32);
    for (const credential of credentials) keep(this.#stored, credential);
  }

  /** Adds a user of the configuration: lasts as long as the process, gives way to one in the store. */
  async configure(user: string, password: string): Promise<void> {
    for (const mechanism of SCRAM_MECHANISMS) {
      keep(this.#configured, await this.salted({ user, mechanism }, password));
    }
  }

  /** A new credential, with a salt of its own. */
  async salted(name: CredentialName, password: string): Promise<ScramCredential> {
    const salt = this.#prng.bytes(SALT_BYTES);
    const salted = { ...name, salt, iterations: MIN_ITERATIONS };
    return credentialOf(salted, await saltPassword(password, salted));
  }

  /** The user's credential, or one that nothing fits. */
  credential(name: CredentialName): ScramCredential {
    return this.#find(name) ?? this.#nobody(name);
  }

  /**
   * True when there is such a user with this password, whatever mechanism it was set for. A password that was right is
   * remembered as a digest until it changes, so that HTTP requests don't pay for the rounds of hashing each.
   */
  async verify(user: string, password: string): Promise<boolean> {
    const [known] = this.#of(user)?.values() ?? [];
    const credential = known ?? this.#nobody({ user, mechanism: 'SCRAM-SHA-256' });
    const digest = hmac('sha256', this.#secret, `password ${password}`);
    const seen = this.#verified.get(credential);
    if (seen !== undefined && timingSafeEqual(seen, digest)) return true;
    const right = await isPassword(credential, password);
    if (right) this.#verified.set(credential, digest);
    return right;
  }

  /** Users of the store by name, each with its credentials. */
  get stored(): ReadonlyMap<string, ReadonlyMap<ScramMechanism, ScramCredential>> {
    return this.#stored;
  }

  /** Sets and removes credentials in the store, then here. */
  async alter(set: readonly ScramCredential[], removed: readonly CredentialName[]): Promise<void> {
    await this.#turns.run(async () => {
      await this.#store.alterCredentials(set, removed);
      for (const { user, mechanism } of removed) {
        const credentials = this.#stored.get(user);
        credentials?.delete(mechanism);
        if (credentials?.size === 0) this.#stored.delete(user);
      }
      for (const credential of set) keep(this.#stored, credential);
    });
  }

  /** Takes over the credentials of the store, which were read in turn. Passwords known to be right stay known. */
  replace(credentials: readonly ScramCredential[]): void {
    const stored = new Map<string, Credentials>();
    for (const credential of credentials) {
      const known = this.#stored.get(credential.user)?.get(credential.mechanism);
      keep(stored, known !== undefined && isSame(known, credential) ? known : credential);
    }
    this.#stored = stored;
  }

  #of(user: string): Credentials | undefined {
    return this.#stored.get(user) ?? this.#configured.get(user);
  }

  #find({ user, mechanism }: CredentialName): ScramCredential | undefined {
    return this.#of(user)?.get(mechanism);
  }

  #nobody(name: CredentialName): ScramCredential {
    const { digest, bytes } = SCRAM[name.mechanism];
    const salt = hmac('sha256', this.#secret, `salt ${name.user}`).subarray(0, SALT_BYTES);
    const key = hmac(digest, this.#secret, `key ${name.user}`).subarray(0, bytes);
    return { ...name, salt, iterations: MIN_ITERATIONS, storedKey: key, serverKey: key };
  }
}

const isSame = (a: ScramCredential, b: ScramCredential) =>
  a.iterations === b.iterations &&
  isDeepStrictEqual(
    [a.salt, a.storedKey, a.serverKey].map((bytes) => [...bytes]),
    [b.salt, b.storedKey, b.serverKey].map((bytes) => [...bytes]),
  );

function keep(users: Map<string, Credentials>, credential: ScramCredential): void {
  const credentials = users.get(credential.user) ?? new Map();
  users.set(credential.user, credentials.set(credential.mechanism, credential));
}
