// Access tokens that the catalog issues: JWTs signed with a secret of this cluster, so that they outlive a restart and
// every node of the cluster takes them. Not for: tokens of an identity provider (broker/auth/oauth.ts).
import { decodeProtectedHeader, errors, jwtVerify, SignJWT } from 'jose';
import { type Clock, dateAt } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { IdSource } from '../base/prng.ts';
import type { CatalogMetadata } from '../metadata/catalog.ts';

/** Names the tokens as ours before anything in them is believed. */
const KEY_ID = 'floe-catalog';
const ISSUER = 'floe';

export interface IssuedToken {
  readonly token: string;
  readonly expiresInSeconds: number;
}

export interface CatalogTokensOptions {
  readonly metadata: Pick<CatalogMetadata, 'secret'>;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly lifetimeMs: number;
}

export class CatalogTokens {
  readonly #options: CatalogTokensOptions;
  #key: Promise<Uint8Array> | undefined;

  constructor(options: CatalogTokensOptions) {
    this.#options = options;
  }

  async issue(user: string): Promise<IssuedToken> {
    const { clock, lifetimeMs, ids } = this.#options;
    const seconds = Math.floor(lifetimeMs / 1000);
    const now = Math.floor(clock.now() / 1000);
    const token = await new SignJWT({})
      .setProtectedHeader({ alg: 'HS256', kid: KEY_ID })
      .setIssuer(ISSUER)
      .setSubject(user)
      .setJti(ids.uuid())
      .setIssuedAt(now)
      .setExpirationTime(now + seconds)
      .sign(await this.#secret());
    return { token, expiresInSeconds: seconds };
  }

  /** Does the token say that we issued it? Nothing is verified. */
  isOurs(token: string): boolean {
    try {
      return decodeProtectedHeader(token).kid === KEY_ID;
    } catch {
      return false;
    }
  }

  /** The user of a token of ours. @throws FloeError `unauthorized`; with `details.expired` when only its time is up. */
  async verify(token: string): Promise<string> {
    try {
      const { payload } = await jwtVerify(token, await this.#secret(), {
        algorithms: ['HS256'],
        issuer: ISSUER,
        currentDate: dateAt(this.#options.clock.now()),
        requiredClaims: ['sub', 'exp'],
      });
      return payload.sub!;
    } catch (caught) {
      if (!(caught instanceof errors.JOSEError)) throw caught;
      const expired = caught instanceof errors.JWTExpired;
      throw new FloeError(
        'unauthorized',
        expired
          ? 'the token has expired: ask for a new one'
          : `the token is not valid: ${caught.message}`,
        { cause: caught, details: { expired } },
      );
    }
  }

  #secret(): Promise<Uint8Array> {
    this.#key ??= this.#load();
    return this.#key;
  }

  async #load(): Promise<Uint8Array> {
    const { metadata, ids } = this.#options;
    try {
      // Four random UUIDs hold 488 random bits; the key of HS256 takes 256.
      const fresh = Array.from({ length: 4 }, () => ids.uuid()).join('');
      return new TextEncoder().encode(await metadata.secret('tokens', fresh));
    } catch (caught) {
      this.#key = undefined;
      throw caught;
    }
  }
}
