// Everything that says who clients are and what they may do, put together from settings and the metadata store:
// users, token rules, how each listener knows its clients, the authorizer. Built once, used by the Kafka sockets and
// by the HTTP faces. Not for: sockets.
import { readFileSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import { Mutex } from '../../base/queue.ts';
import type { AclBinding, SecurityMetadata } from '../../metadata/security.ts';
import { AclAuthorizer } from './acl-authorizer.ts';
import { ALLOW_ALL, ANONYMOUS, type Authorizer, type Principal } from './authorizer.ts';
import type { Mechanism } from './exchange.ts';
import { type ListenerAuth, usesSasl, usesTls } from './listener-auth.ts';
import { HTTP_LISTENER, type ListenerSpec } from './listeners.ts';
import type { VerifiedToken } from './oauth.ts';
import { plainMechanism } from './plain.ts';
import { parseMappingRules } from './principal-mapping.ts';
import { scramMechanism } from './scram.ts';
import type { SASL_MECHANISMS, SecuritySettings } from './settings.ts';
import { TlsFiles } from './tls-files.ts';
import { Users } from './users.ts';

export interface SecureListener {
  readonly auth: ListenerAuth;
  /** Undefined where the wire isn't encrypted. */
  readonly tls: TlsFiles | undefined;
}

export interface Security {
  readonly authorizer: Authorizer;
  readonly users: Users;
  /** By name. */
  readonly listeners: ReadonlyMap<string, SecureListener>;
  /** Who a bearer token is about. @throws FloeError `unauthorized`, also where tokens aren't enabled. */
  verifyToken(token: string): Promise<VerifiedToken>;
  /** Takes over users and rules that other nodes have changed. */
  refresh(): Promise<void>;
}

export interface SecurityOptions {
  readonly settings: SecuritySettings;
  readonly listeners: readonly ListenerSpec[];
  readonly metadata: SecurityMetadata;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly logger: Logger;
}

/** @throws FloeError of one clear line when settings contradict themselves or a file can't be used. */
export async function openSecurity(options: SecurityOptions): Promise<Security> {
  const { settings, metadata, prng } = options;
  const { credentials, acls } = await metadata.load();
  // What is read never replaces what was changed after.
  const turns = new Mutex();
  const users = new Users({ store: metadata, credentials, prng, turns });
  for (const { user, password } of configuredUsers(settings['sasl.users.location'])) {
    await users.configure(user, password);
  }
  const tokens = await tokenChecks(options);
  const parts = { users, tokens };
  const listeners = new Map(
    options.listeners.map((spec) => [spec.name, secureListener(spec, options, parts)]),
  );
  const rules = rulesOf(options, acls, turns);
  return {
    authorizer: rules ?? ALLOW_ALL,
    users,
    listeners,
    async refresh() {
      await turns.run(async () => {
        const loaded = await metadata.load();
        users.replace(loaded.credentials);
        rules?.replace(loaded.acls);
      });
    },
    async verifyToken(token) {
      if (tokens !== undefined) return tokens.verify(token);
      throw new FloeError('unauthorized', 'bearer tokens are not enabled here');
    },
  };
}

/** Undefined where everybody may do everything. */
function rulesOf(
  { settings, metadata }: SecurityOptions,
  acls: readonly AclBinding[],
  turns: Mutex,
): AclAuthorizer | undefined {
  if (settings['authorizer.class.name'] === '') return undefined;
  return new AclAuthorizer({
    store: metadata,
    acls,
    superUsers: settings['super.users'],
    openByDefault: settings['allow.everyone.if.no.acl.found'],
    maxAcls: settings['authorizer.max.acls'],
    turns,
  });
}

/** Lines `name=password`; empty ones and those that begin with # are passed over. Faults name the line, not its text. */
function configuredUsers(path: string): { user: string; password: string }[] {
  if (path === '') return [];
  let lines: string[];
  try {
    lines = readFileSync(path, 'utf8').split(/\r?\n/);
  } catch (caught) {
    throw FloeError.from(caught, `sasl.users.location=${path}`);
  }
  return lines.flatMap((line, index) => {
    if (line.trim() === '' || line.startsWith('#')) return [];
    const at = line.indexOf('=');
    if (at < 1 || at === line.length - 1) {
      const where = `sasl.users.location=${path}: line ${index + 1}`;
      throw new FloeError('invalid', `${where} is not name=password`);
    }
    return [{ user: line.slice(0, at).trim(), password: line.slice(at + 1) }];
  });
}

interface TokenChecks {
  readonly mechanism: Mechanism;
  verify(token: string): Promise<VerifiedToken>;
}

/** Undefined where no keys are configured; the code for tokens isn't even loaded then. */
async function tokenChecks(options: SecurityOptions): Promise<TokenChecks | undefined> {
  const { settings, clock, logger } = options;
  const url = settings['sasl.oauthbearer.jwks.endpoint.url'];
  if (url === '') return undefined;
  const { keySource } = await import('./jwks.ts');
  const { oauthMechanism, verifyToken } = await import('./oauth.ts');
  const refreshMs = settings['sasl.oauthbearer.jwks.endpoint.refresh.ms'];
  const rules = {
    keys: keySource({ url, refreshMs, clock, logger }),
    issuer: settings['sasl.oauthbearer.expected.issuer'] || undefined,
    audience: settings['sasl.oauthbearer.expected.audience'],
    userClaim: settings['sasl.oauthbearer.sub.claim.name'],
    scopeClaim: settings['sasl.oauthbearer.scope.claim.name'],
    clockSkewSeconds: settings['sasl.oauthbearer.clock.skew.seconds'],
    clock,
  };
  return { mechanism: oauthMechanism(rules), verify: (token) => verifyToken(token, rules) };
}

interface Parts {
  readonly users: Users;
  readonly tokens: TokenChecks | undefined;
}

function secureListener(
  spec: ListenerSpec,
  options: SecurityOptions,
  parts: Parts,
): SecureListener {
  const { name, protocol, settings: own } = spec;
  const { settings } = options;
  const sasl = usesSasl(protocol);
  const mechanisms = new Map<string, Mechanism>();
  for (const mechanism of sasl ? own['sasl.enabled.mechanisms'] : []) {
    mechanisms.set(mechanism, mechanismOf(mechanism, parts, options));
  }
  if (sasl && mechanisms.size === 0) {
    throw new FloeError('invalid', `listener ${name}: sasl.enabled.mechanisms names none`);
  }
  warnOfClearText(spec, options.logger);
  const nameOf = parseMappingRules(own['ssl.principal.mapping.rules']);
  return {
    tls: usesTls(protocol) ? tlsOf(spec, settings) : undefined,
    auth: {
      name,
      protocol,
      mechanisms,
      maxReauthMs: own['connections.max.reauth.ms'],
      maxTokenBytes: settings['sasl.server.max.receive.size'],
      timeoutMs: settings['connection.authentication.timeout.ms'],
      failureDelayMs: settings['connection.failed.authentication.delay.ms'],
      principal: (subject) => principalOf(subject, nameOf),
    },
  };
}

function principalOf(
  subject: string | undefined,
  nameOf: (subject: string) => string | undefined,
): Principal {
  if (subject === undefined) return ANONYMOUS;
  const name = nameOf(subject);
  if (name === undefined || name === '') {
    const why = `no rule of ssl.principal.mapping.rules fits the certificate of ${subject}`;
    throw new FloeError('unauthorized', why);
  }
  return { type: 'User', name };
}

function mechanismOf(
  name: (typeof SASL_MECHANISMS)[number],
  { users, tokens }: Parts,
  { prng }: SecurityOptions,
): Mechanism {
  if (name === 'PLAIN') return plainMechanism(users);
  if (name !== 'OAUTHBEARER') return scramMechanism({ mechanism: name, users, prng });
  if (tokens !== undefined) return tokens.mechanism;
  const missing = 'sasl.oauthbearer.jwks.endpoint.url';
  throw new FloeError(
    'invalid',
    `OAUTHBEARER is enabled: set ${missing} to the keys of its issuer`,
  );
}

function tlsOf(spec: ListenerSpec, settings: SecuritySettings): TlsFiles {
  try {
    return new TlsFiles(spec.settings, asksForCertificates(spec, settings));
  } catch (caught) {
    const { code, message } = FloeError.from(caught);
    throw new FloeError(code, `listener ${spec.name} (${spec.protocol}): ${message}`);
  }
}

/** SASL says who the client is already: a certificate is asked for only where this listener's own setting says so. */
function asksForCertificates(spec: ListenerSpec, settings: SecuritySettings): boolean {
  return (
    spec.protocol === 'SSL' || spec.settings['ssl.client.auth'] !== settings['ssl.client.auth']
  );
}

function warnOfClearText({ name, protocol, settings }: ListenerSpec, logger: Logger): void {
  if (protocol !== 'SASL_PLAINTEXT') return;
  if (name === HTTP_LISTENER) {
    logger.warn({ protocol }, 'passwords and tokens cross the wire in clear over HTTP');
    return;
  }
  const clear = settings['sasl.enabled.mechanisms'].filter((mechanism) => !/SCRAM/.test(mechanism));
  if (clear.length === 0) return;
  logger.warn(
    { listener: name, mechanisms: clear },
    'passwords and tokens cross the wire in clear',
  );
}
